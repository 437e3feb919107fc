"""One training iteration on one representative rail, built pass by pass in an order that every rank can follow."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from topox_core.errors import InputError
from topox_core.rails.calibration import calibrated
from topox_core.rails.chunks import Unit, chunk_layers, chunk_units
from topox_core.rails.folding import unfold
from topox_core.rails.iteration import (
    ALL_GATHER,
    ALL_REDUCE,
    COMPUTE,
    REDUCE_SCATTER,
    SEND,
    RailGroup,
    RailIteration,
)
from topox_core.rails.passes import Event, Pass, events, needed, needing
from topox_core.rails.presets import Preset
from topox_core.strategy.plan_memory import GRADIENT_BYTES, WEIGHT_BYTES
from topox_core.strategy.transformers import HALF
from topox_core.workloads.arithmetic import UPDATE_BYTES

# Named before memory is spent; more than any real job has.
MAX_STEPS = 1_000_000
# Scalars that the optimizer's step all-reduces, each FP32: the gradients' norm, then the loss's
# mean and maximum.
SCALAR_BYTES = 4.0
SCALARS = ("norm", "mean loss", "highest loss")
_PARALLELISM = {"pp": "pp", "cp": "cp", "ep": "ep", "sync": "dp"}


def build(preset: Preset, fold: bool = False, by_layer: bool = True) -> RailIteration:
    """Return an iteration of a job on one rail; docs/rails.md tells every rule.

    Parameters
    ----------
    fold
        One rank stands for all replicas of its stage (they do the same at the same time).
    by_layer
        A collective for each layer; False: one for all layers of a pass.

    Raises
    ------
    InputError
        If the iteration would be larger than a limit, or ``iteration_ms`` cannot be reached.
    """
    builder = _Builder(preset, by_layer)
    folded = builder.folded()
    if preset.iteration_ms is not None:
        folded = calibrated(folded, np.array(builder.nodes.scales, bool), preset)
    return folded if fold else unfold(folded, preset)


@dataclass
class _Nodes:
    """Columns of the nodes, filled pass by pass."""

    kind: list[int] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    duration_ms: list[float] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    size_bytes: list[float] = field(default_factory=list)
    microbatch: list[int] = field(default_factory=list)
    layer: list[int] = field(default_factory=list)
    label: list[str] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    wait_counts: list[int] = field(default_factory=list)
    scales: list[bool] = field(default_factory=list)

    def add(
        self,
        kind: int,
        label: str,
        waits: list[int],
        *,
        rank: int = -1,
        ms: float = 0.0,
        group: int = -1,
        size_bytes: float = 0.0,
        microbatch: int = -1,
        layer: int = -1,
        scales: bool = False,
    ) -> int:
        self.kind.append(kind)
        self.rank.append(rank)
        self.duration_ms.append(ms)
        self.group.append(group)
        self.size_bytes.append(size_bytes)
        self.microbatch.append(microbatch)
        self.layer.append(layer)
        self.label.append(label)
        waits = list(dict.fromkeys(waits))
        self.waits += waits
        self.wait_counts.append(len(waits))
        self.scales.append(scales)
        return len(self.kind) - 1


class _Builder:
    """Builds the folded iteration: rank ``stage`` stands for all replicas of its stage."""

    def __init__(self, preset: Preset, by_layer: bool) -> None:
        self.preset = preset
        self.units = [
            chunk_units(preset, chunk, layers, by_layer)
            for chunk, layers in enumerate(chunk_layers(preset))
        ]
        self._check_size()
        self.nodes = _Nodes()
        self.groups: dict[str, int] = {}
        self.members: list[RailGroup] = []
        stages = range(preset.pipeline)
        self.issued: list[list[int]] = [[] for _ in stages]
        # Of each stage: what ends its last pass, and what it has sent since.
        self.passed: list[list[int]] = [[] for _ in stages]
        self.sending: list[list[int]] = [[] for _ in stages]
        self.arrived: dict[Pass, int] = {}
        self.result: dict[Pass, list[int]] = {}
        self.gathered = [False] * preset.chunks
        self.backwards_left = [preset.microbatches] * preset.chunks

    def _check_size(self) -> None:
        steps = (
            sum(len(unit.forward) + len(unit.backward) for units in self.units for unit in units)
            * self.preset.microbatches
        )
        if steps > MAX_STEPS:
            raise InputError(
                f"would have {steps:,} steps of computing and exchange, more than the limit of {MAX_STEPS:,} for "
                "one rank a stage: use fewer microbatches, or merge the layers",
                file=f"preset {self.preset.name}",
            )

    def folded(self) -> RailIteration:
        """Return the iteration of one representative a stage."""
        preset, nodes = self.preset, self.nodes
        lengths = [
            [sum(unit.forward_ms for unit in units) for units in self.units],
            [sum(unit.backward_ms for unit in units) for units in self.units],
        ]
        for event in events(preset, *lengths):
            if event.sender < 0:
                self._pass(event.stage, event.result)
            else:
                self._send(event)
        for stage in range(preset.pipeline):
            self._step(stage)
        ptr = np.zeros(len(nodes.kind) + 1, np.int32)
        np.cumsum(nodes.wait_counts, out=ptr[1:])
        issue_ptr = np.zeros(preset.pipeline + 1, np.int32)
        np.cumsum([len(one) for one in self.issued], out=issue_ptr[1:])
        stages = np.arange(preset.pipeline, dtype=np.int32)
        return RailIteration(
            name=preset.title,
            ranks=preset.pipeline,
            stands_for=np.full(preset.pipeline, preset.replicas, np.int32),
            stage=stages,
            replica=np.zeros_like(stages),
            kind=np.array(nodes.kind, np.int32),
            rank=np.array(nodes.rank, np.int32),
            duration_ms=np.array(nodes.duration_ms),
            group=np.array(nodes.group, np.int32),
            size_bytes=np.array(nodes.size_bytes),
            microbatch=np.array(nodes.microbatch, np.int32),
            layer=np.array(nodes.layer, np.int32),
            label=tuple(nodes.label),
            pred_ptr=ptr,
            pred_idx=np.array(nodes.waits, np.int32),
            issue_ptr=issue_ptr,
            issue_idx=np.concatenate([np.array(one, np.int32) for one in self.issued]),
            groups=tuple(self.members),
        )

    def _group(self, kind: str, stages: tuple[int, ...]) -> int:
        """Return a group's number; ``kind`` is fsdp, dp, experts, sync, cp, ep or pp."""
        name = f"{kind}.s" + "-".join(map(str, stages))
        if name not in self.groups:
            self.groups[name] = len(self.members)
            preset = self.preset
            size = {
                "pp": 2,
                "cp": preset.context,
                "ep": preset.expert,
                "experts": preset.replicas // preset.expert,
            }.get(kind, preset.replicas)
            parallelism = _PARALLELISM.get(kind, "fsdp" if preset.fsdp else "dp")
            self.members.append(RailGroup(name, parallelism, stages, size))
        return self.groups[name]

    def _add(self, stage: int, kind: int, label: str, waits: list[int], **rest: float) -> int:
        node = self.nodes.add(kind, label, waits, **rest)  # type: ignore[arg-type]
        self.issued[stage].append(node)
        return node

    def _shards(self, unit: Unit) -> list[tuple[str, float]]:
        """Return the unit's weights that the rail moves: (group kind, parameters)."""
        preset = self.preset
        size = {"weights": preset.replicas, "experts": preset.replicas // preset.expert}
        kind = {"weights": "fsdp" if preset.fsdp else "dp", "experts": "experts"}
        return [(kind[spread], count) for spread, count in unit.weights if size[spread] > 1]

    def _collectives(
        self, stage: int, unit: Unit, kind: int, word: str, each: float, waits: list[int], m: int
    ) -> list[int]:
        found: list[int] = []
        for shard, count in self._shards(unit):
            group = self._group(shard, (stage,))
            # Shards of one group go one after the other; different groups need not.
            before = [node for node in found if self.nodes.group[node] == group]
            found.append(
                self._add(
                    stage,
                    kind,
                    f"{word} {unit.name}",
                    before or waits,
                    group=group,
                    size_bytes=count * each,
                    microbatch=m,
                    layer=unit.layer,
                )
            )
        return found

    def _burst(
        self,
        stage: int,
        units: list[Unit],
        kind: int,
        word: str,
        each: float,
        waits: list[int],
        m: int,
    ) -> list[int]:
        """Add the collectives of several units: one ring after the other, which share a NIC, so that each is set up once."""
        shards = [(shard, count, unit) for unit in units for shard, count in self._shards(unit)]
        found: list[int] = []
        for ring in dict.fromkeys(shard for shard, _, _ in shards):
            group, before = self._group(ring, (stage,)), found[-1:] or waits
            found += [
                self._add(
                    stage,
                    kind,
                    f"{word} {unit.name}",
                    before,
                    group=group,
                    size_bytes=count * each,
                    microbatch=m,
                    layer=unit.layer,
                )
                for shard, count, unit in shards
                if shard == ring
            ]
        return found

    def _last_of_groups(self, nodes: list[int]) -> list[int]:
        """Return the last node of each group; those before it are over by then."""
        return list({self.nodes.group[node]: node for node in nodes}.values())

    def _begun(self, stage: int, one: Pass | None, label: str) -> list[int]:
        """Return what a pass waits for: the pass before it, what that sent, what has come; then the host."""
        waits = self.passed[stage] + self.sending[stage]
        self.sending[stage] = []
        if one is not None and needed(one, self.preset) is not None:
            waits.append(self.arrived.pop(one))
        if self.preset.host_ms:
            m = -1 if one is None else one.microbatch
            waits = [
                self._add(
                    stage, COMPUTE, label, waits, rank=stage, ms=self.preset.host_ms, microbatch=m
                )
            ]
        return waits

    def _pass(self, stage: int, one: Pass) -> None:
        preset, m = self.preset, one.microbatch
        forward = one.way == "f"
        units = self.units[one.chunk] if forward else self.units[one.chunk][::-1]
        word = "forward" if forward else "backward"
        begin = self._begun(stage, one, f"{word} {m} launch")
        must_gather = preset.fsdp and self._gathers(one)
        scatters = preset.fsdp and not forward
        ends: list[int] = []
        scattered: list[int] = []
        # The gather of the next unit may run while this one computes, not earlier: two units are
        # held at most.
        coming = (
            self._collectives(stage, units[0], ALL_GATHER, "gather", WEIGHT_BYTES, begin, m)
            if must_gather
            else []
        )
        for k, unit in enumerate(units):
            ready = coming
            if must_gather and k + 1 < len(units):
                coming = self._collectives(
                    stage,
                    units[k + 1],
                    ALL_GATHER,
                    "gather",
                    WEIGHT_BYTES,
                    [ends[-1]] if ends else ready or begin,
                    m,
                )
            ends.append(
                self._steps(
                    stage,
                    unit,
                    forward,
                    m,
                    [ends[-1]] if ends else begin,
                    ready,
                    f"{word} {m} {unit.name}",
                )
            )
            if scatters and preset.reduce == "layer":
                scattered += self._collectives(
                    stage, unit, REDUCE_SCATTER, "scatter", GRADIENT_BYTES, [ends[-1]], m
                )
        self.backwards_left[one.chunk] -= not forward
        if scatters and (
            preset.reduce == "pass"
            or (preset.reduce == "last" and not self.backwards_left[one.chunk])
        ):
            scattered = self._burst(
                stage, units, REDUCE_SCATTER, "scatter", GRADIENT_BYTES, [ends[-1]], m
            )
        self.result[one] = self.passed[stage] = [ends[-1], *self._last_of_groups(scattered)]

    def _gathers(self, one: Pass) -> bool:
        """Whether a pass gathers its weights; what it leaves gathered is noted."""
        preset, forward = self.preset, one.way == "f"
        if preset.reshard and not preset.regather:
            return forward
        found = not self.gathered[one.chunk]
        self.gathered[one.chunk] = not preset.reshard or (preset.reduce == "last" and not forward)
        return found

    def _steps(
        self,
        stage: int,
        unit: Unit,
        forward: bool,
        m: int,
        waits: list[int],
        weights: list[int],
        label: str,
    ) -> int:
        """Add a unit's computing and exchanges, one after the other; return the last."""
        for step in unit.forward if forward else unit.backward:
            if step.kind == COMPUTE:
                waits = [
                    self._add(
                        stage,
                        COMPUTE,
                        label,
                        waits + weights,
                        rank=stage,
                        ms=step.ms,
                        microbatch=m,
                        layer=unit.layer,
                        scales=True,
                    )
                ]
                weights = []
            else:
                word = {"cp": "keys", "ep": "tokens"}[step.of]
                waits = [
                    self._add(
                        stage,
                        step.kind,
                        f"{word} {m} {unit.name}",
                        waits,
                        group=self._group(step.of, (stage,)),
                        size_bytes=step.size_bytes,
                        microbatch=m,
                        layer=unit.layer,
                    )
                ]
        return waits[0]

    def _send(self, event: Event) -> None:
        preset, one, meet = self.preset, event.result, self.preset.schedule != "interleaved"
        size = (
            HALF
            * preset.tokens
            * preset.shape.base.hidden
            / (preset.tensor if preset.split_sends else 1)
        )
        waits = self.result.pop(one) + (self.passed[event.stage] if meet else [])
        pair = (min(event.sender, event.stage), max(event.sender, event.stage))
        what = "activation" if one.way == "f" else "gradient"
        node = self._add(
            event.sender,
            SEND,
            f"send {what} {one.microbatch} to stage {event.stage}",
            waits,
            group=self._group("pp", pair),
            size_bytes=size,
            microbatch=one.microbatch,
        )
        self.issued[event.stage].append(node)
        after = needing(one, preset)
        assert after is not None
        self.arrived[after] = node
        if meet:
            self.sending[event.sender].append(node)

    def _step(self, stage: int) -> None:
        """Add the optimizer's step: FSDP's norm and scalars, or the all-reduce of copied weights; and the update."""
        preset = self.preset
        chunks = range(stage, preset.chunks, preset.pipeline)
        units = [unit for chunk in reversed(chunks) for unit in reversed(self.units[chunk])]
        held = {
            spread: sum(count for unit in units for kind, count in unit.weights if kind == spread)
            for spread in ("weights", "experts")
        }
        sharers = {"weights": preset.replicas, "experts": preset.replicas // preset.expert}
        count = sum(held[spread] / (sharers[spread] if preset.fsdp else 1) for spread in held)
        per_ms = preset.memory_gb_per_s * 1e6
        waits = self._begun(stage, None, "optimizer launch")
        if not preset.fsdp:
            reduced = self._burst(stage, units, ALL_REDUCE, "reduce", GRADIENT_BYTES, waits, -1)
            waits = self._last_of_groups(reduced) or waits
        scalars = SCALARS if preset.fsdp and preset.replicas > 1 else ()
        for scalar in scalars:
            if scalar == "norm":
                waits = [
                    self._add(
                        stage,
                        COMPUTE,
                        "norm",
                        waits,
                        rank=stage,
                        ms=count * GRADIENT_BYTES / per_ms,
                    )
                ]
            waits = [
                self._add(
                    stage,
                    ALL_REDUCE,
                    f"reduce {scalar}",
                    waits,
                    group=self._group("sync", (stage,)),
                    size_bytes=SCALAR_BYTES,
                )
            ]
            if scalar == "norm":
                waits = [
                    self._add(
                        stage,
                        COMPUTE,
                        "update",
                        waits,
                        rank=stage,
                        ms=count * UPDATE_BYTES / per_ms,
                    )
                ]
        if not scalars:
            self._add(stage, COMPUTE, "update", waits, rank=stage, ms=count * UPDATE_BYTES / per_ms)
