"""A training job: what is trained, how it is spread, on what, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any

from topox_core.errors import InputError, unknown
from topox_core.schema.records import check_fields
from topox_core.training.checks import Rule, divides, obey, short_text
from topox_core.training.machine import Machine
from topox_core.training.plan import Plan, Schedule, dealt
from topox_core.training.shape import Shape

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
        self._check_exchanges()
        self._check_size()

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

    def changed(self, **changes: Any) -> Job:
        """Return a copy with fields replaced, checked again: ``changed(plan__tensor=4, name="mine")``.

        Raises
        ------
        InputError
            If there is no such field, or a value does not fit.
        """
        parts: dict[str, dict[str, Any]] = {}
        for key, value in changes.items():
            part, _, field = key.rpartition("__")
            owner = self if not part else getattr(self, part, None)
            known = [one.name for one in fields(owner)] if owner is not None else []
            if field not in known:
                raise InputError(unknown(field, known or PARTS), item=part, field=field)
            parts.setdefault(part, {})[field] = value
        own = parts.pop("", {})
        return replace(self, **{k: replace(getattr(self, k), **v) for k, v in parts.items()}, **own)

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

    def _check_exchanges(self) -> None:
        layer_by_layer = self.schedule.exchanges == "layer"
        if self.plan.skew and not (layer_by_layer and self.plan.expert > 1):
            problem = "must be 0 unless expert is 2 or more and schedule.exchanges is layer"
            raise InputError(f"{problem} (got {self.plan.skew:g})", item="plan", field="skew")
        if self.schedule.overlap_exchanges and not (layer_by_layer and self.plan.zero < 3):
            problem = "must be false unless exchanges is layer and plan.zero is 2 or less"
            raise InputError(problem, item="schedule", field="overlap_exchanges")

    def _check_size(self) -> None:
        gpus = self.plan.gpus
        if gpus > MAX_GPUS:
            problem = f"tensor x context x data x pipeline is {gpus:,} GPUs, more than the limit of {MAX_GPUS:,}"
            raise InputError(problem, item="plan", field="data")
        passes = 2 * self.chunks * self.plan.microbatches
        if passes > MAX_PASSES:
            problem = f"would make {passes:,} passes, more than the limit of {MAX_PASSES:,}"
            raise InputError(problem, item="plan", field="microbatches")


PARTS = tuple(one.name for one in fields(Job))
