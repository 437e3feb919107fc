"""A training job: what is trained, how it is spread, on what, in which order; those that ship, and files, ``*.job.json``."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any, Self

from topox_core.errors import InputError, errors_in_file, printable, refuse_if, shown, unknown
from topox_core.io.assertions import KEY as ASSERT, Assertion, assertions_of
from topox_core.io.content import FileFormat, read_object, without_header
from topox_core.io.limits import TRAINING_JOB
from topox_core.schema.fields import Field, fields_of
from topox_core.schema.records import check_fields, from_values
from topox_core.training.checks import Rule, divides, obey, short_text
from topox_core.training.machine import MACHINES, Machine
from topox_core.training.plan import Plan, Schedule, dealt
from topox_core.training.shape import SHAPES, Shape

MAX_GPUS = 1_000_000
# Forward and backward passes of all ranks of one replica; each is placed one by one.
MAX_PASSES = 2_000_000


@dataclass(frozen=True)
class Job:
    """One training iteration, the same for whoever asks: its four parts fit one another.

    Attributes
    ----------
    shape, plan, machine, schedule
        The model, its spreading, the GPUs, the order.
    name, title, source
        A word, a heading, and where the choice of the parts is from.

    Raises
    ------
    InputError
        If a degree does not suit model, machine or order; part and field are named, with the nearest
        values that work.
    """

    shape: Shape
    plan: Plan
    machine: Machine
    schedule: Schedule = Schedule()  # noqa: RUF009
    name: Annotated[str, short_text()] = "job"
    title: Annotated[str, short_text()] = ""
    source: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        self._check_degrees()
        self._check_stages()
        self._check_together()

    @property
    def chunks(self) -> int:
        """Pipeline stages, virtual ones counted."""
        return self.plan.pipeline * self.schedule.virtual

    @cached_property
    def chunk_layers(self) -> list[int]:
        """Layers of every chunk; chunk k is on stage k modulo the stages."""
        return [len(layers) for layers in dealt(self.shape.layers, self.chunks)]

    def stage_layers(self, stage: int) -> int:
        """Layers of a stage, all of its chunks."""
        return sum(self.chunk_layers[stage :: self.plan.pipeline])

    @property
    def servers(self) -> int:
        """Servers that it takes; the last one may be partly empty."""
        return -(-self.plan.gpus // self.machine.gpus_per_server)

    @property
    def tokens(self) -> int:
        """Tokens of a microbatch on one context-parallel rank."""
        return self.plan.microbatch_size * self.shape.sequence // self.plan.context

    @property
    def split(self) -> int:
        """Into how many parts norms and the residual stream are split."""
        return self.plan.tensor if self.plan.sequence_parallel else 1

    @property
    def key_width(self) -> float:
        """Width of the keys on one GPU: its share of their heads, or one that several GPUs hold alike."""
        shape = self.shape
        return max(shape.key_value / self.plan.tensor, shape.hidden / shape.heads)

    @property
    def expert_rows(self) -> float:
        """Rows that the experts of one GPU work on in a microbatch; all tokens if the model is dense."""
        if self.shape.experts == 1:
            return float(self.tokens)
        return self.tokens * self.shape.top_k * self.plan.capacity

    @property
    def operations(self) -> float:
        """Operations that the model needs for an iteration, for utilisation."""
        return self.plan.batch * self.shape.sequence_operations

    @property
    def values(self) -> dict[str, Any]:
        """What holds of it, by the names of :data:`SETTINGS`."""
        return {name: getattr(getattr(self, one.group), name) for name, one in SETTINGS.items()}

    @property
    def words(self) -> str:
        """The job in one line."""
        return (
            f"{self.shape.title}: {self.plan.gpus:,} {self.machine.title}, {self.plan.words}, "
            f"{self.schedule.words}"
        )

    @property
    def heading(self) -> str:
        """Its title, or else the job in one line."""
        return self.title or self.words

    def changed(self, **changes: Any) -> Self:
        """Return a copy with fields replaced, checked again: ``changed(tensor=4, shape__source="", name="mine")``.

        One of :data:`SETTINGS` needs no part before it; those of a part that is replaced are put into the new one.

        Raises
        ------
        InputError
            If there is no such field, or a value does not fit.
        """
        parts: dict[str, dict[str, Any]] = {}
        for key, value in changes.items():
            part, _, field = key.rpartition("__")
            part = SETTINGS[key].group if key in SETTINGS else part
            owner = self if not part else getattr(self, part, None)
            known = [one.name for one in fields(owner)] if owner is not None else []
            if field not in known:
                raise InputError(unknown(field, known or fields_of(Job)), item=part, field=field)
            parts.setdefault(part, {})[field] = value
        own = parts.pop("", {})
        new = {k: replace(own.get(k, getattr(self, k)), **v) for k, v in parts.items()}
        return replace(self, **own | new)

    def _check_degrees(self) -> None:
        shape, g = self.shape, self.machine.gpus_per_server
        plan = self.plan
        whole_servers = Rule(
            f"divide the GPUs of a server, {g:,}, or be a multiple of them",
            lambda one: g % one == 0 or one % g == 0,
        )
        heads = [
            divides(shape.heads, "the attention heads"),
            Rule(
                f"divide the heads of keys, {shape.key_heads:,}, or be a multiple of them",
                shape.keys_suit,
            ),
            divides(shape.feed_forward, "the width of the feed-forward block"),
            whole_servers,
        ]
        obey(plan, "plan", "tensor", heads, shape.heads)
        tokens = divides(shape.sequence, "the tokens of a sequence")
        obey(plan, "plan", "context", [tokens], shape.sequence)
        experts = divides(shape.experts, "the experts of a layer"), divides(self.plan.data, "data")
        obey(plan, "plan", "expert", experts, shape.experts)

    def _check_stages(self) -> None:
        shape, virtual, interleaved = self.shape, self.schedule.virtual, self.schedule.virtual > 1
        plan = self.plan
        most = shape.layers // virtual
        what = "pipeline x virtual" if interleaved else "the number of stages"
        stages = [
            Rule(
                f"leave every stage a layer: {what} may be {shape.layers:,} at most",
                lambda one: one * virtual <= shape.layers,
            )
        ]
        if interleaved:
            stages.append(Rule("be 2 or more to interleave stages", lambda one: one > 1))
        obey(plan, "plan", "pipeline", stages, most)
        if interleaved:
            p = self.plan.pipeline
            rule = Rule(
                f"be a multiple of pipeline, {p:,}, to interleave", lambda one: one % p == 0
            )
            obey(plan, "plan", "microbatches", [rule])

    def _check_together(self) -> None:
        layer_by_layer, gpus = self.schedule.exchanges == "layer", self.plan.gpus
        passes = 2 * self.chunks * self.plan.microbatches
        refuse_if(
            (
                self.plan.skew and not (layer_by_layer and self.plan.expert > 1),
                "must be 0 unless expert is 2 or more and schedule.exchanges is layer "
                f"(got {self.plan.skew:g})",
                "skew",
            ),
            (
                gpus > MAX_GPUS,
                f"tensor x context x data x pipeline is {gpus:,} GPUs, more than the limit of {MAX_GPUS:,}",
                "data",
            ),
            (
                passes > MAX_PASSES,
                f"would make {passes:,} passes, more than the limit of {MAX_PASSES:,}",
                "microbatches",
            ),
            item="plan",
        )
        refuse_if(
            (
                self.schedule.overlap_exchanges and not (layer_by_layer and self.plan.zero < 3),
                "must be false unless exchanges is layer and plan.zero is 2 or less",
            ),
            item="schedule",
            field="overlap_exchanges",
        )


# In the order in which they are shown; and what they say of themselves, by names that no two have, but for what they are called.
PARTS = ("plan", "schedule", "shape", "machine")
SETTINGS: Mapping[str, Field] = {
    name: replace(field, group=part)
    for part in PARTS
    for name, field in fields_of(fields_of(Job)[part].kind).items()
    if field.description
}


_CHOSEN = "the degrees are our choice"
# One GPU a server, so that every exchange is on the network.
_SMALL_SERVER = replace(MACHINES["a100"], title="A100 alone", gpus_per_server=1, nic_gbps=50.0)
_HERD = "Llama 3 Herd (arXiv 2407.21783), table 4"


def _llama_405b(data: int, microbatches: int) -> Job:
    gpus = 8 * 16 * data
    # FSDP shares out the optimizer's state and the gradients, not the weights (section 3.3.2).
    plan = Plan(
        tensor=8,
        data=data,
        pipeline=16,
        microbatches=microbatches,
        sequence_parallel=True,
        zero=2,
    )
    title = f"Llama 3.1 405B on {gpus:,} H100"
    shape, machine = SHAPES["llama3-405b"], MACHINES["h100"]
    return Job(shape, plan, machine, Schedule(), f"llama3.1-405b-{gpus}", title, _HERD)


JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job(
            SHAPES["llama3-8b"],
            Plan(tensor=8, pipeline=4, data=2, microbatches=8),
            MACHINES["h100"],
            Schedule(overlap_gradients=False),
            "llama3-8b",
            "Llama 3 8B on 64 H100",
            _CHOSEN,
        ),
        Job(
            SHAPES["gpt2-small"],
            Plan(pipeline=4, data=2, microbatches=8, microbatch_size=8),
            _SMALL_SERVER,
            Schedule(overlap_gradients=False),
            "gpt-small",
            "GPT-2 small on 8 A100, one per server",
            _CHOSEN,
        ),
        Job(
            SHAPES["llama3-70b"],
            Plan(tensor=8, pipeline=16, data=8, microbatches=20),
            MACHINES["h100"],
            Schedule(overlap_gradients=False),
            "llama3-70b",
            "Llama 3 70B on 1,024 H100",
            _CHOSEN,
        ),
        Job(
            SHAPES["llama3-8b"],
            Plan(tensor=8, data=8, zero=3),
            MACHINES["h100"],
            Schedule(),
            "fsdp",
            "Llama 3 8B, fully sharded, on 64 H100",
            _CHOSEN,
        ),
        Job(
            replace(SHAPES["mixtral-8x7b"], layers=2, sequence=4096),
            Plan(tensor=8, data=8, expert=8, microbatches=2, microbatch_size=4),
            MACHINES["h100"],
            Schedule(exchanges="layer", overlap_exchanges=True),
            "moe",
            "Mixture of experts, two layers, on 64 H100",
            _CHOSEN,
        ),
        Job(
            SHAPES["llama3-8b"],
            Plan(tensor=4, data=2, pipeline=2, microbatches=2, zero=3),
            MACHINES["perlmutter"],
            Schedule(recompute="full", split_sends=False, regather=False, reduce="pass"),
            "llama3-8b-perlmutter",
            "Llama 3 8B on 16 A100 of Perlmutter",
            "Photonic Rails (arXiv 2507.08119), section 3.1, computing not scaled to its measured time",
        ),
        Job(
            SHAPES["gpt3-175b"],
            Plan(
                tensor=8,
                data=4,
                pipeline=16,
                microbatches=128,
                microbatch_size=3,
                gradient_bytes=2,
            ),
            MACHINES["vtrain"],
            Schedule(recompute="full", attention="full", overlap_gradients=False),
            "gpt3-175b",
            "GPT-3 175B on 512 A100",
            "a measured iteration of vTrain (MICRO 2024): 55.678 s",
        ),
        Job(
            SHAPES["mixtral-8x7b"],
            Plan(
                tensor=8,
                pipeline=4,
                data=8,
                expert=8,
                microbatches=8,
                capacity=1.25,
                sequence_parallel=True,
            ),
            MACHINES["h100"],
            Schedule(recompute="selective", overlap_gradients=False),
            "mixtral-8x7b",
            "Mixture of experts 8 x 7B on 256 H100",
            _CHOSEN,
        ),
        Job(
            SHAPES["deepseek-16b"],
            Plan(tensor=4, data=64, expert=8, microbatches=4),
            replace(MACHINES["h100"], title="H100, four a server", gpus_per_server=4),
            Schedule(overlap_gradients=False),
            "deepseek-16b",
            "DeepSeekMoE 16B on 256 H100",
            _CHOSEN,
        ),
        _llama_405b(64, 32),
        _llama_405b(128, 16),
    )
}


def job_of(name: str) -> Job:
    """Return a job by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    refuse_if(
        (name not in JOBS, f"must be a file or one of {', '.join(JOBS)} (got {name[:80]})"),
        file="job",
    )
    return JOBS[name]


FORMAT, VERSION, HEADER_BYTES = "topox-job", 1, 400
_FORM = FileFormat(FORMAT, VERSION, (*fields_of(Job), ASSERT), TRAINING_JOB)
# What a job file may assert: of its schedule, and of its verdict.
ASSERTED = ("iteration_ms", "bound_ms", "gap", "pays_up_to_ms", "cannot_pay_from_ms")
# Those of a part that have a name.
_KNOWN: Mapping[str, Mapping[str, Any]] = {"shape": SHAPES, "machine": MACHINES}


def is_job(data: bytes) -> bool:
    """Whether a file that is a task graph or a training job is the latter, by how it begins."""
    return f'"{FORMAT}"'.encode() in data[:HEADER_BYTES]


def load_job(data: bytes, file: str) -> Job:
    """Read a job; shape and machine are objects, or the names of known ones.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, part and field.
    """
    return load_design(data, file)[0]


def load_design(data: bytes, file: str) -> tuple[Job, tuple[Assertion, ...]]:
    """Read a job and what its file asserts of it.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, part and field.
    """
    file = printable(file, 200) if file else "job"
    record = without_header(read_object(data, file, _FORM))
    for part in ("shape", "plan", "machine"):
        refuse_if((part not in record, "is missing"), file=file, field=part)
    with errors_in_file(file):
        asserted = assertions_of(record.pop(ASSERT, []), ASSERTED)
        parts = {name: _part(name, record.pop(name, {})) for name in PARTS}
        return Job(**parts, **record), asserted


def dump_job(job: Job) -> bytes:
    """Write a job, all of its fields; reading it back gives an equal one."""
    values = asdict(job)
    names = ("name", "title", "source", "shape", "plan", "machine", "schedule")
    return _FORM.written({name: values[name] for name in names})


def _part(name: str, entry: object) -> Any:
    """Return a part of a job: the known one that is named, or the one of an object."""
    known = _KNOWN.get(name, {})
    if isinstance(entry, str) and known:
        if entry not in known:
            raise InputError(f"{unknown(entry, known, 'name')} (got {shown(entry)})", field=name)
        return known[entry]
    words = "a name or an object" if known else "an object in braces"
    refuse_if((not isinstance(entry, dict), f"must be {words} (got {shown(entry)})"), field=name)
    return from_values(fields_of(Job)[name].kind, entry, "", name)
