"""One training iteration on one rail, built pass by pass in an order that all ranks can follow."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.model.csr import flattened
from topox_core.rails.chunks import (
    Event,
    Pass,
    Unit,
    chunk_units,
    events,
    needed,
    needing,
    weights_of,
)
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.folding import unfold
from topox_core.rails.iteration import (
    ALL_REDUCE,
    BACKWARD,
    COMPUTE,
    FORWARD,
    KINDS,
    SEND,
    UPDATE,
    WORK,
    Rail,
    RailGroup,
    RailIteration,
)
from topox_core.rails.timing import durations_ms
from topox_core.training.collectives import Shared, gathered_ms, message, tied_tables
from topox_core.training.iteration import scale_to
from topox_core.training.job import Job
from topox_core.training.layer import update_ms
from topox_core.training.plan import dealt
from topox_core.training.program import Spread
from topox_core.training.units import GatheredChunks

CLOSE = 1e-9


def calibrated(folded: RailIteration, scales: NDArray[np.bool_], job: Job) -> RailIteration:
    """Return the iteration with its passes scaled so that it lasts ``job.schedule.iteration_ms``.

    The rail is the electrical one of the job's NIC, as where iterations were measured. The
    iteration's length is a convex, piecewise linear function of the scale.

    Raises
    ------
    InputError
        If the communications alone last longer.
    """
    wanted = job.schedule.iteration_ms or 0.0
    rail = Rail(nic_gbps=job.machine.nic_gbps, optical=False)
    lasting = durations_ms(folded, rail)

    def length_ms(factor: float) -> float:
        return Simulation(folded, rail, np.where(scales, lasting * factor, lasting)).undisturbed_ms

    low, least = 0.0, length_ms(0.0)
    if least >= wanted:
        raise InputError(
            f"must be more than the {least:,.6g} ms that everything but the passes' computing lasts "
            f"(got {wanted:g})",
            file=f"job {job.name}",
            field="iteration_ms",
        )
    high = wanted / float(lasting[scales].max())
    factor = scale_to(length_ms, wanted, (low, high), CLOSE)
    return replace(
        folded, duration_ms=np.where(scales, folded.duration_ms * factor, folded.duration_ms)
    )


# Named before memory is spent; more than any real job has.
MAX_STEPS = 1_000_000
# Scalars that the optimizer's step all-reduces, each FP32: the gradients' norm before the update,
# the loss's mean and maximum after it.
SCALAR_BYTES = 4.0
LOSSES = ("mean loss", "highest loss")


def build(job: Job, fold: bool = False, by_layer: bool = True) -> RailIteration:
    """Return an iteration of a job on one rail; docs/rails.md has every rule.

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
    builder = _Builder(job, by_layer)
    folded = builder.folded()
    if job.schedule.iteration_ms is not None:
        folded = calibrated(folded, np.array([node.scales for node in builder.nodes]), job)
    return folded if fold else unfold(folded, job)


class _Node(NamedTuple):
    """A node, as in :class:`RailIteration`; calibration scales those with ``scales``."""

    kind: int
    label: str
    work: int = -1
    rank: int = -1
    duration_ms: float = 0.0
    group: int = -1
    size_bytes: float = 0.0
    microbatch: int = -1
    layer: int = -1
    scales: bool = False


class _Builder:
    """Builds the folded iteration: rank ``stage`` stands for all replicas of its stage."""

    def __init__(self, job: Job, by_layer: bool) -> None:
        self.job = job
        self.sharing = "fsdp" if job.plan.fsdp else "dp"
        self.units = [
            chunk_units(job, chunk, layers, by_layer)
            for chunk, layers in enumerate(dealt(job.shape.layers, job.chunks))
        ]
        self._check_size()
        self.nodes: list[_Node] = []
        self.waits: list[list[int]] = []
        self.groups: dict[str, int] = {}
        self.members: list[RailGroup] = []
        stages = range(job.plan.pipeline)
        self.issued: list[list[int]] = [[] for _ in stages]
        # Of each stage: what ends its last pass, and what it has sent since.
        self.passed: list[list[int]] = [[] for _ in stages]
        self.sending: list[list[int]] = [[] for _ in stages]
        self.arrived: dict[Pass, int] = {}
        self.result: dict[Pass, list[int]] = {}
        self.gathered = GatheredChunks(job)
        self.backwards_left = [job.plan.microbatches] * job.chunks

    def _check_size(self) -> None:
        steps = (
            sum(len(unit.forward) + len(unit.backward) for units in self.units for unit in units)
            * self.job.plan.microbatches
        )
        if steps > MAX_STEPS:
            raise InputError(
                f"would have {steps:,} steps of computing and exchange, more than the limit of {MAX_STEPS:,} for "
                "one rank a stage: use fewer microbatches, or merge the layers",
                file=f"job {self.job.name}",
            )

    def folded(self) -> RailIteration:
        """Return the iteration of one representative a stage."""
        job = self.job
        lengths = [
            [sum(unit.forward_ms for unit in units) for units in self.units],
            [sum(unit.backward_ms for unit in units) for units in self.units],
        ]
        for event in events(job, *lengths):
            if event.sender < 0:
                self._pass(event.stage, event.result)
            else:
                self._send(event)
        summed = [self._summed(stage) for stage in range(job.plan.pipeline)]
        self._tied(summed)
        for stage in range(job.plan.pipeline):
            self._step(stage, summed[stage])
        kind, label, work, rank, ms, group, size, microbatch, layer, _ = zip(
            *self.nodes, strict=True
        )
        pred_ptr, pred_idx = flattened(self.waits, np.int32)
        issue_ptr, issue_idx = flattened(self.issued, np.int32)
        return RailIteration(
            name=job.heading,
            ranks=job.plan.pipeline,
            stands_for=np.full(job.plan.pipeline, job.plan.replicas, np.int32),
            stage=np.arange(job.plan.pipeline, dtype=np.int32),
            kind=np.array(kind, np.int32),
            rank=np.array(rank, np.int32),
            duration_ms=np.array(ms),
            work=np.array(work, np.int32),
            group=np.array(group, np.int32),
            size_bytes=np.array(size),
            microbatch=np.array(microbatch, np.int32),
            layer=np.array(layer, np.int32),
            label=label,
            pred_ptr=pred_ptr,
            pred_idx=pred_idx,
            issue_ptr=issue_ptr,
            issue_idx=issue_idx,
            groups=tuple(self.members),
        )

    def _group(self, kind: str, stages: tuple[int, ...]) -> int:
        """Return a group's number; ``kind`` is fsdp, dp, experts, sync, cp, ep or pp."""
        name = f"{kind}.s" + "-".join(map(str, stages))
        if name not in self.groups:
            self.groups[name] = len(self.members)
            job = self.job
            spread, parallelism, size = {
                "pp": (Spread.REPLICA, "pp", 2),
                "cp": (Spread.CONTEXT, "cp", job.plan.context),
                "ep": (Spread.EXCHANGE, "ep", job.plan.expert),
                "experts": (Spread.EXPERTS, self.sharing, job.plan.expert_replicas),
                "sync": (Spread.WEIGHTS, "dp", job.plan.replicas),
            }.get(kind, (Spread.WEIGHTS, self.sharing, job.plan.replicas))
            self.members.append(RailGroup(name, parallelism, stages, size, spread))
        return self.groups[name]

    def _add(self, stage: int, waits: list[int], node: _Node) -> int:
        """Add what a stage issues next; return its number."""
        self.nodes.append(node)
        self.waits.append(list(dict.fromkeys(waits)))
        number = len(self.nodes) - 1
        self.issued[stage].append(number)
        return number

    def _compute(
        self, stage: int, waits: list[int], work: int, label: str, ms: float, **rest: Any
    ) -> list[int]:
        """Add computing of a stage; return it as what comes next waits for."""
        node = _Node(COMPUTE, label, work, rank=stage, duration_ms=ms, **rest)
        return [self._add(stage, waits, node)]

    def _collective(self, one: Shared, unit: Unit, stage: int, m: int) -> _Node:
        """Return the collective that moves a unit's weights or gradients between replicas."""
        word = {"all_gather": "gather", "reduce_scatter": "scatter", "all_reduce": "reduce"}
        return _Node(
            KINDS.index(one.kind),
            f"{word[one.kind]} {unit.name}",
            group=self._group("experts" if one.experts else self.sharing, (stage,)),
            size_bytes=one.size_bytes,
            microbatch=m,
            layer=unit.layer,
        )

    def _collectives(
        self, stage: int, unit: Unit, shared: Iterable[Shared], waits: list[int], m: int
    ) -> list[int]:
        """Add a unit's collectives; those of one group follow each other."""
        nodes: list[int] = []
        for one in shared:
            collective = self._collective(one, unit, stage, m)
            before = [node for node in nodes if self.nodes[node].group == collective.group]
            nodes.append(self._add(stage, before or waits, collective))
        return nodes

    def _burst(
        self, stage: int, shared: Iterable[tuple[Shared, Unit]], waits: list[int], m: int
    ) -> list[int]:
        """Add several units' collectives ring by ring, so that each ring is set up once."""
        collectives = [self._collective(one, unit, stage, m) for one, unit in shared]
        nodes: list[int] = []
        for ring in dict.fromkeys(one.group for one in collectives):
            before = nodes[-1:] or waits
            nodes += [self._add(stage, before, one) for one in collectives if one.group == ring]
        return nodes

    def _last_of_groups(self, nodes: list[int]) -> list[int]:
        """Return the last node of each group; those before it are over by then."""
        return list({self.nodes[node].group: node for node in nodes}.values())

    def _begun(self, stage: int, one: Pass | None, label: str) -> list[int]:
        """Return what a pass waits for: the one before, what that sent, what has come, the host."""
        waits = self.passed[stage] + self.sending[stage]
        self.sending[stage] = []
        came = one is not None and needed(one, self.job) is not None
        if one is not None and came:
            waits.append(self.arrived.pop(one))
        work = UPDATE if one is None else _work(one)
        m = -1 if one is None else one.microbatch
        if came and (whole_ms := gathered_ms(self.job)):
            words = label.replace("launch", "message made whole")
            waits = self._compute(stage, waits, work, words, whole_ms, microbatch=m)
        if self.job.machine.host_ms:
            waits = self._compute(stage, waits, work, label, self.job.machine.host_ms, microbatch=m)
        return waits

    def _pass(self, stage: int, one: Pass) -> None:
        job, m, work = self.job, one.microbatch, _work(one)
        forward = work == FORWARD
        units = self.units[one.chunk] if forward else self.units[one.chunk][::-1]
        begin = self._begun(stage, one, f"{WORK[work]} {m} launch")
        must_gather = job.plan.fsdp and self.gathered.needed(one.chunk, one.way)
        scatters = job.plan.fsdp and not forward
        last: list[int] = []
        scattered: list[int] = []
        # The gather of the next unit may run while this one computes, not earlier: two units are
        # held at most.
        coming = (
            self._collectives(stage, units[0], units[0].gathers, begin, m) if must_gather else []
        )
        for k, unit in enumerate(units):
            ready = coming
            if must_gather and k + 1 < len(units):
                before = last or ready or begin
                following = units[k + 1]
                coming = self._collectives(stage, following, following.gathers, before, m)
            last = self._unit(stage, unit, work, m, last or begin, ready)
            if scatters and job.schedule.reduce == "layer":
                scattered += self._collectives(stage, unit, unit.gradients, last, m)
        self.backwards_left[one.chunk] -= not forward
        if scatters and (
            job.schedule.reduce == "pass"
            or (job.schedule.reduce == "last" and not self.backwards_left[one.chunk])
        ):
            gradients = ((one, unit) for unit in units for one in unit.gradients)
            scattered = self._burst(stage, gradients, last, m)
        self.result[one] = self.passed[stage] = [*last, *self._last_of_groups(scattered)]

    def _unit(
        self, stage: int, unit: Unit, work: int, m: int, waits: list[int], weights: list[int]
    ) -> list[int]:
        """Add a unit's computing and exchanges, one after the other; return the last."""
        place: dict[str, Any] = {"microbatch": m, "layer": unit.layer}
        for step in unit.forward if work == FORWARD else unit.backward:
            if step.kind == COMPUTE:
                label = f"{WORK[work]} {m} {unit.name}"
                before = waits + weights
                waits = self._compute(stage, before, work, label, step.ms, scales=True, **place)
                weights = []
            else:
                label = f"{'keys' if step.of == 'cp' else 'tokens'} {m} {unit.name}"
                group, size = self._group(step.of, (stage,)), step.size_bytes
                exchange = _Node(step.kind, label, group=group, size_bytes=size, **place)
                waits = [self._add(stage, waits, exchange)]
        return waits

    def _send(self, event: Event) -> None:
        job, one, meet = self.job, event.result, self.job.schedule.order != "interleaved"
        waits = self.result.pop(one) + (self.passed[event.stage] if meet else [])
        pair = (min(event.sender, event.stage), max(event.sender, event.stage))
        what = "activation" if _work(one) == FORWARD else "gradient"
        sent = _Node(
            SEND,
            f"send {what} {one.microbatch} to stage {event.stage}",
            group=self._group("pp", pair),
            size_bytes=message(job).size_bytes,
            microbatch=one.microbatch,
        )
        node = self._add(event.sender, waits, sent)
        self.issued[event.stage].append(node)
        after = needing(one, job)
        assert after is not None
        self.arrived[after] = node
        if meet:
            self.sending[event.sender].append(node)

    def _units_of(self, stage: int) -> list[Unit]:
        """Return a stage's units in the order of their gradients."""
        chunks = range(stage, self.job.chunks, self.job.plan.pipeline)
        return [unit for chunk in reversed(chunks) for unit in reversed(self.units[chunk])]

    def _summed(self, stage: int) -> list[int]:
        """Add the launch of the optimizer and, unless FSDP shared them out, the gradients' sum; return the last."""
        waits = self._begun(stage, None, "optimizer launch")
        if self.job.plan.fsdp:
            return waits
        gradients = ((one, unit) for unit in self._units_of(stage) for one in unit.gradients)
        burst = self._burst(stage, gradients, waits, -1)
        return self._last_of_groups(burst) or waits

    def _tied(self, summed: list[list[int]]) -> None:
        """Add the sum of a tied table's gradients over the stages that hold it, first and last; they go on after it."""
        job, last = self.job, self.job.plan.pipeline - 1
        tables = tied_tables(job)
        if not tables:
            return
        ends = (0, last)
        if job.machine.host_ms:
            for stage in ends:
                words = ("tied table launch", job.machine.host_ms)
                summed[stage] = self._compute(stage, summed[stage], UPDATE, *words)
        group, size = self._group("pp", ends), sum(one.size_bytes for one in tables)
        table = _Node(ALL_REDUCE, "reduce tied table", group=group, size_bytes=size)
        node = self._add(0, summed[0] + summed[last], table)
        self.issued[last].append(node)
        summed[0] = summed[last] = [node]

    def _step(self, stage: int, waits: list[int]) -> None:
        """Add the optimizer's step: the update, and FSDP's scalars or what ZeRO gathers after it."""
        job = self.job
        units = self._units_of(stage)
        held, shared_out = weights_of(units), job.plan.zero > 0
        count = held.split(job) if shared_out else held.held
        norm_ms = job.machine.moved_ms(count * job.plan.gradient_bytes)
        step_ms = update_ms(job, count)
        if not job.plan.fsdp or job.plan.replicas == 1:
            waits = self._compute(stage, waits, UPDATE, "update", step_ms)
            if shared_out and not job.plan.fsdp:  # each updated a part (ZeRO 1 and 2)
                gathers = ((one, unit) for unit in units for one in unit.gathers)
                self._burst(stage, gathers, waits, -1)
            return
        waits = self._compute(stage, waits, UPDATE, "norm", norm_ms)
        waits = self._scalar(stage, waits, "norm")
        waits = self._compute(stage, waits, UPDATE, "update", step_ms)
        for scalar in LOSSES:
            waits = self._scalar(stage, waits, scalar)

    def _scalar(self, stage: int, waits: list[int], name: str) -> list[int]:
        """Add the all-reduce of one scalar among all ranks of a stage."""
        group = self._group("sync", (stage,))
        reduce = _Node(ALL_REDUCE, f"reduce {name}", group=group, size_bytes=SCALAR_BYTES)
        return [self._add(stage, waits, reduce)]


def _work(one: Pass) -> int:
    return FORWARD if one.way == "f" else BACKWARD
