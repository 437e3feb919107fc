"""Jobs on photonic rails: a transformer, how it is spread over GPUs, and what those GPUs are."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from topox_core.errors import InputError, errors_in_file, shown, unknown
from topox_core.io.ranges import check_one_of, check_whole, is_number
from topox_core.training.job import Job
from topox_core.training.machines import MACHINES
from topox_core.training.plan import Plan
from topox_core.training.schedule import ORDERS, REDUCTIONS, Schedule
from topox_core.training.shape import Shape
from topox_core.training.shapes import SHAPES

MAX_GPUS = 1_000_000
MAX_MICROBATCHES = 4096
_COUNTS = (
    "gpus",
    "tensor",
    "context",
    "pipeline",
    "data",
    "expert",
    "microbatches",
    "microbatch_size",
    "sequence",
    "virtual_stages",
    "gpus_per_server",
)
SHARDED = 3  # the stage of ZeRO that splits weights too
# Speeds and times beyond these are typing errors, and would make times that no float tells apart.
_SLOWEST, _FASTEST, _LONGEST_MS = 1e-3, 1e9, 1e9


@dataclass(frozen=True)
class Preset:
    """A training job as the rails see it; every key can be changed with :meth:`changed`.

    Attributes
    ----------
    gpus
        Of the job; tensor x context x pipeline x data must be as many.
    tensor
        Tensor-parallel GPUs; they fill one server (scale-up domain), so that a server is one rank
        of each rail.
    context, pipeline, data, expert
        Degrees on the rail. ``expert`` is taken out of ``data``. Ranks are numbered context first,
        then data, then pipeline.
    fsdp
        True: weights are sharded over data x context and gathered layer by layer; False: copied,
        gradients all-reduced.
    microbatches, microbatch_size, sequence
        Of one replica: how many, sequences in each, tokens in a sequence.
    schedule, virtual_stages
        ``1f1b``, ``afab`` (all forward, all backward) or ``interleaved`` with several stages on a
        rank.
    recompute
        The backward pass repeats the forward pass first (full activation checkpointing).
    reshard, regather
        FSDP: gathered weights are dropped after a pass, so that each pass gathers its own; without
        ``regather`` a backward pass uses those of its forward pass (Table 2 of the paper: forward
        gathers, backward scatters). Without ``reshard`` they are gathered once an iteration.
    reduce
        FSDP's reduce-scatters: ``layer``, layer by layer while a backward pass computes; ``pass``,
        in one burst after every backward pass; ``last``, in one burst after a stage's last one,
        weights kept gathered after the earlier ones (PyTorch's pipelining does so).
    split_sends
        Each tensor-parallel rank sends its share of an activation (sequence parallel); False: each
        sends all of it.
    gpus_per_server, nic_gbps
        GPUs of a scale-up domain, and the NIC that each has on its rail.
    machine
        What a GPU is: a name of :data:`topox_core.training.machines.MACHINES`.
    iteration_ms
        If given, compute times are scaled together until the undisturbed iteration lasts this long.
    host_ms
        What the host takes to launch a pass before its first communication.
    training
        The training job that it was made of, if any: what no key above says is as there.

    Raises
    ------
    InputError
        If a value is out of range or the degrees do not fit GPUs, layers, sequence or experts.
    """

    name: str
    title: str
    source: str
    shape: Shape
    gpus: int
    tensor: int
    pipeline: int
    data: int
    context: int = 1
    expert: int = 1
    fsdp: bool = True
    microbatches: int = 1
    microbatch_size: int = 1
    sequence: int = 8192
    schedule: str = "1f1b"
    virtual_stages: int = 1
    recompute: bool = False
    reshard: bool = True
    regather: bool = True
    reduce: str = "layer"
    split_sends: bool = True
    gpus_per_server: int = 8
    nic_gbps: float = 400.0
    machine: str = "h100"
    iteration_ms: float | None = None
    host_ms: float = 0.0
    training: Job | None = None

    @classmethod
    def of_job(cls, job: Job) -> Preset:
        """Return a training job as the rails see it.

        Raises
        ------
        InputError
            If tensor parallelism does not fill a server.
        """
        plan, schedule, machine = job.plan, job.schedule, job.machine
        return cls(
            job.name,
            job.title or job.words,
            job.source or "a job of your own",
            job.shape,
            plan.gpus,
            tensor=plan.tensor,
            pipeline=plan.pipeline,
            data=plan.data,
            context=plan.context,
            expert=plan.expert,
            fsdp=plan.zero == SHARDED,
            microbatches=plan.microbatches,
            microbatch_size=plan.microbatch_size,
            sequence=job.shape.sequence,
            schedule=schedule.order,
            virtual_stages=schedule.virtual,
            recompute=schedule.recompute == "full",
            reshard=schedule.reshard,
            regather=schedule.regather,
            reduce=schedule.reduce,
            split_sends=schedule.split_sends,
            gpus_per_server=machine.gpus_per_server,
            nic_gbps=machine.nic_gbps,
            machine=machine.name if machine.name in MACHINES else "h100",
            iteration_ms=schedule.iteration_ms,
            host_ms=machine.host_ms,
            training=job,
        )

    def __post_init__(self) -> None:
        self._check_values()
        self._check_degrees()
        with errors_in_file(f"preset {self.name}"):
            _ = self.job

    @property
    def replicas(self) -> int:
        """Ranks of a stage on the rail: data times context."""
        return self.data * self.context

    @property
    def ranks(self) -> int:
        """Ranks on one rail, one a server."""
        return self.pipeline * self.replicas

    @property
    def chunks(self) -> int:
        """Pipeline stages, virtual ones counted."""
        return self.pipeline * self.virtual_stages

    @property
    def tokens(self) -> int:
        """Tokens of a microbatch on one context-parallel rank."""
        return self.microbatch_size * self.sequence // self.context

    @property
    def batch(self) -> int:
        """Sequences of an iteration."""
        return self.data * self.microbatches * self.microbatch_size

    @property
    def words(self) -> str:
        """The degrees in one line."""
        parts = [
            ("TP", self.tensor),
            ("CP", self.context),
            ("PP", self.pipeline),
            ("FSDP" if self.fsdp else "DP", self.data),
            ("EP", self.expert),
        ]
        order = {
            "1f1b": "1F1B",
            "afab": "all forward, all backward",
            "interleaved": f"interleaved x{self.virtual_stages}",
        }
        degrees = ", ".join(f"{word} {degree}" for word, degree in parts if degree > 1)
        return f"{self.gpus:,} GPUs: {degrees or 'one GPU'}; {self.microbatches} microbatches, {order[self.schedule]}"

    @cached_property
    def job(self) -> Job:
        """The preset as the job that other pages know; its computing is not scaled to ``iteration_ms``."""
        own = self.training or _plain_job(self)
        recompute = "full" if self.recompute else "none"
        same = self.recompute == (own.schedule.recompute == "full")
        zero = own.plan.zero if own.plan.zero < SHARDED else 0
        return own.changed(
            plan__tensor=self.tensor,
            plan__context=self.context,
            plan__data=self.data,
            plan__pipeline=self.pipeline,
            plan__expert=self.expert,
            plan__microbatches=self.microbatches,
            plan__microbatch_size=self.microbatch_size,
            plan__zero=SHARDED if self.fsdp else zero,
            machine__gpus_per_server=self.gpus_per_server,
            machine__nic_gbps=self.nic_gbps,
            machine__host_ms=self.host_ms,
            schedule__order=self.schedule,
            schedule__virtual=self.virtual_stages,
            schedule__recompute=own.schedule.recompute if same else recompute,
            schedule__split_sends=self.split_sends,
            schedule__reshard=self.reshard,
            schedule__regather=self.regather,
            schedule__reduce=self.reduce,
            schedule__iteration_ms=None,
            shape__sequence=self.sequence,
        )

    def changed(self, **changes: Any) -> Preset:
        """Return a copy with some keys replaced, checked again.

        Raises
        ------
        InputError
            If a key is unknown or a value does not fit.
        """
        known = [field.name for field in fields(self)]
        for key in changes:
            if key not in known:
                raise InputError(unknown(key, known), file=f"preset {self.name}", field=key)
        return replace(self, **changes)

    def _wrong(self, field: str, problem: str) -> InputError:
        return InputError(problem, file=f"preset {self.name}", field=field)

    def _check_values(self) -> None:
        limits = {"microbatches": MAX_MICROBATCHES, "sequence": 10**8}
        for field in _COUNTS:
            value, highest = getattr(self, field), limits.get(field, MAX_GPUS)
            check_whole(value, 1, highest, file=f"preset {self.name}", field=field)
        for field in ("nic_gbps", "host_ms", "iteration_ms"):
            value = getattr(self, field)
            if field == "iteration_ms" and value is None:
                continue
            least = 0.0 if field == "host_ms" else _SLOWEST
            most = _FASTEST if field == "nic_gbps" else _LONGEST_MS
            if not is_number(value, least, most):
                raise self._wrong(
                    field, f"must be a number from {least:g} to {most:g} (got {shown(value)})"
                )
        for field, choices in (
            ("schedule", ORDERS),
            ("reduce", REDUCTIONS),
            ("machine", tuple(MACHINES)),
        ):
            check_one_of(getattr(self, field), choices, file=f"preset {self.name}", field=field)
        for field in ("fsdp", "recompute", "reshard", "regather", "split_sends"):
            if not isinstance(getattr(self, field), bool):
                raise self._wrong(
                    field, f"must be true or false (got {shown(getattr(self, field))})"
                )

    def _check_degrees(self) -> None:
        product = self.tensor * self.context * self.pipeline * self.data
        if product != self.gpus:
            raise self._wrong(
                "gpus",
                f"must be tensor x context x pipeline x data = {self.tensor} x {self.context} x "
                f"{self.pipeline} x {self.data} = {product:,} (got {self.gpus:,})",
            )
        if self.tensor != self.gpus_per_server:
            raise self._wrong(
                "tensor",
                f"must be gpus_per_server, {self.gpus_per_server} (got {self.tensor}): tensor parallel "
                "GPUs fill a server, which is one rank of every rail",
            )
        if self.chunks > self.shape.layers:
            what = (
                "pipeline x virtual_stages" if self.virtual_stages > 1 else "the pipeline's stages"
            )
            raise self._wrong(
                "pipeline",
                f"{what} must be at most the number of layers, {self.shape.layers} "
                f"(got {self.chunks})",
            )
        for field, whole, what in (
            ("tensor", self.shape.heads, "attention heads"),
            ("context", self.sequence, "tokens"),
            ("expert", self.shape.experts, "experts of a layer"),
            ("expert", self.data, "data-parallel ranks"),
        ):
            if whole % getattr(self, field):
                raise self._wrong(
                    field,
                    f"must divide the number of {what}, {whole:,} (got {getattr(self, field)})",
                )
        if self.schedule != "interleaved" and self.virtual_stages != 1:
            raise self._wrong(
                "virtual_stages",
                f"must be 1 unless the schedule is interleaved (got {self.virtual_stages})",
            )
        if self.schedule == "interleaved":
            if self.virtual_stages < 2 or self.pipeline < 2:
                field = "pipeline" if self.pipeline < 2 else "virtual_stages"
                raise self._wrong(
                    field,
                    f"must be at least 2 when the schedule is interleaved (got {getattr(self, field)})",
                )
            if self.microbatches % self.pipeline:
                raise self._wrong(
                    "microbatches",
                    f"must be a multiple of the pipeline's stages, {self.pipeline}, when the "
                    f"schedule is interleaved (got {self.microbatches})",
                )


def _plain_job(preset: Preset) -> Job:
    """Return the job of a preset that was made of none, with its own model and GPU."""
    plan = Plan(sequence_parallel=preset.split_sends)
    schedule = Schedule(overlap_gradients=False)
    machine = MACHINES[preset.machine]
    return Job(preset.shape, plan, machine, schedule, preset.name, preset.title, preset.source)


# Llama 3.1's context-parallel row trains sequences of 131,072 tokens (arXiv 2407.21783, table 4).
_HERD = "Llama 3 Herd (arXiv 2407.21783), table 4"
_DEEPSEEK_16B = SHAPES["deepseek-16b"]


def _llama_405b(name: str, words: str = "", source: str = "", **degrees: Any) -> Preset:
    """Return Llama 3.1 405B in 16 pipeline stages, on servers of eight H100."""
    gpus = 8 * 16 * degrees["data"] * degrees.get("context", 1)
    title, shape = f"Llama 3.1 405B on {gpus:,} H100{words}", SHAPES["llama3-405b"]
    return Preset(name, title, _HERD + source, shape, gpus, tensor=8, pipeline=16, **degrees)


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "llama3-8b-perlmutter",
            "Llama 3 8B on 16 A100 of Perlmutter",
            "Photonic Rails (arXiv 2507.08119), section 3.1: four servers of four A100, Slingshot 11 at 200 Gbit/s; 10.2 s and "
            "the host's 1.7 ms (median of the recorded windows below 20 ms before a pass): artifact opusfabric/Opus",
            SHAPES["llama3-8b"],
            gpus=16,
            tensor=4,
            pipeline=2,
            data=2,
            microbatches=2,
            recompute=True,
            regather=False,
            reduce="pass",
            split_sends=False,
            gpus_per_server=4,
            nic_gbps=200.0,
            machine="perlmutter",
            iteration_ms=10_200.0,
            host_ms=1.7,
        ),
        _llama_405b("llama3.1-405b-8192", data=64, microbatches=32),
        _llama_405b("llama3.1-405b-16384", data=128, microbatches=16),
        _llama_405b(
            "llama3.1-405b-16384-cp",
            data=8,
            microbatches=16,
            words=", long context",
            context=16,
            sequence=131_072,
        ),
        _llama_405b(
            "llama3.1-405b-2048", data=16, microbatches=16, source="; scaled down to 16 replicas"
        ),
        Preset(
            "llama3-70b",
            "Llama 3 70B on 512 H100",
            _HERD + "; degrees chosen here",
            SHAPES["llama3-70b"],
            gpus=512,
            tensor=8,
            pipeline=8,
            data=8,
            microbatches=16,
        ),
        Preset(
            "mixtral-8x7b",
            "Mixture of experts 8 x 7B on 256 H100",
            SHAPES["mixtral-8x7b"].source + "; degrees chosen here",
            SHAPES["mixtral-8x7b"],
            gpus=256,
            tensor=8,
            pipeline=4,
            data=8,
            expert=8,
            microbatches=8,
        ),
        Preset(
            "deepseek-16b",
            "DeepSeekMoE 16B on 256 GPUs",
            _DEEPSEEK_16B.source + "; degrees chosen here",
            _DEEPSEEK_16B,
            gpus=256,
            tensor=4,
            pipeline=1,
            data=64,
            expert=8,
            microbatches=4,
            sequence=4096,
            gpus_per_server=4,
        ),
        Preset(
            "toy",
            "Toy: DP 2, PP 2, TP 2",
            "degrees, 62.2416 s and a window of 1.1 ms: the published artifact's toy case; model, microbatches and that "
            "the short window lies before the sum of a tied table are chosen here",
            replace(SHAPES["llama3-8b"], tied=True),
            gpus=8,
            tensor=2,
            pipeline=2,
            data=2,
            fsdp=False,
            microbatches=2,
            gpus_per_server=2,
            iteration_ms=62_241.6,
            host_ms=1.1,
        ),
    )
}


def preset(name: str) -> Preset:
    """Return a preset by name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in PRESETS:
        raise InputError(unknown(name, PRESETS, "preset"), file="rails", field="preset")
    return PRESETS[name]
