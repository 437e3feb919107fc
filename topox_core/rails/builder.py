"""One training iteration on one rail: the job's own program as its ranks issue it, as an iteration and as a task graph."""

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from topox_core.errors import errors_in_file, refuse_if
from topox_core.io.content import gc_paused
from topox_core.io.limits import MAX_TASKS
from topox_core.model.arrays.csr import flattened
from topox_core.model.arrays.waiting_order import earliest
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.task_graph import TaskGraph
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import COMPUTE, KINDS, WORK, Rail, RailGroup, RailIteration
from topox_core.rails.timing import durations_ms
from topox_core.training.costs.collectives import Call, Weights, stage_weights, tied_tables
from topox_core.training.iteration import Iteration, scale_to, timed
from topox_core.training.job import Job
from topox_core.training.pipeline.graph import graph_of
from topox_core.training.pipeline.program import (
    TABLE,
    Meetings,
    Program,
    Spread,
    Step,
    Unit,
    instances,
    layer_units,
    meetings,
)
from topox_core.training.pipeline.steps import END_OF, LAUNCH, NO_WEIGHTS, Names, ProgramBuilder

CLOSE = 1e-9
# Limits are named before memory is spent: a node takes about 100 bytes, a dependency 4.
MAX_NODES = 4_000_000
MAX_DEPENDENCIES = 40_000_000
# Scalars that FSDP's optimizer all-reduces, each FP32: the gradients' norm before the update, the
# loss's mean and maximum after it.
SCALAR_BYTES = 4.0
SCALARS = ("norm", "mean-loss", "highest-loss")


@gc_paused()
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
    with errors_in_file(f"job {job.name}"):
        return _iteration(rail_program(job, by_layer), fold)


def as_task_graph(job: Job, *, by_layer: bool = False) -> tuple[TaskGraph, Cluster]:
    """Return a job's iteration as a task graph on the servers of one rail, and a cluster that suits it.

    A server is a rank. The cluster has two switches and two ports per server, half the NIC's speed each,
    for the two neighbours in a ring.

    Parameters
    ----------
    by_layer
        A collective for each layer, else one for all layers of a pass.

    Raises
    ------
    InputError
        If it is larger than a task graph may be.
    """
    with errors_in_file(f"job {job.name}"):
        graph = graph_of(rail_program(job, by_layer), MAX_TASKS, one_rail=True)
    name = f"{job.servers} servers of one rail, 2 OCS"
    return graph, one_port_a_switch(job.servers, 2, job.machine.network_gbps / 2, name=name)


@lru_cache(maxsize=2)
def rail_program(job: Job, by_layer: bool = True) -> Program:
    """Return what the ranks of one rail do, computing scaled so that it lasts ``iteration_ms`` if that is given.

    The rail is then the electrical one of the job's NIC, as where iterations were measured. The
    iteration's length is a convex, piecewise linear function of the scale.

    Raises
    ------
    InputError
        If there would be too many steps, or the communications alone last longer.
    """
    issued = job.changed(
        skew=0.0,
        exchanges="layer" if by_layer else "pass",
        overlap_exchanges=False,
        overlap_sends=job.schedule.overlap_sends or job.schedule.virtual > 1,
        iteration_ms=0.0,
    )
    built = _OnRail(timed(issued, 1.0), by_layer).program()
    wanted = job.schedule.iteration_ms
    if not wanted:
        return built
    least = _OnRail(timed(issued, 0.0), by_layer).program()
    scaled = [one.ms - other.ms for one, other in zip(built.steps, least.steps, strict=True)]
    order, rail = _order(built.steps)[1], Rail(nic_gbps=job.machine.network_gbps, optical=False)
    folded, more_ms = _iteration(built, fold=True), np.array(scaled)[order]
    lasting_ms = durations_ms(folded, rail) - more_ms

    def length_ms(factor: float) -> float:
        return Simulation(folded, rail, lasting_ms + factor * more_ms).undisturbed_ms

    shortest = length_ms(0.0)
    refuse_if(
        (
            shortest >= wanted,
            f"must be more than the {shortest:,.6g} ms that everything but the passes' computing lasts (got {wanted:g})",
        ),
        field="iteration_ms",
    )
    factor = scale_to(length_ms, wanted, (0.0, wanted / max(scaled)), CLOSE)
    longer = zip(least.steps, scaled, strict=True)
    return replace(built, steps=tuple(replace(one, ms=one.ms + factor * ms) for one, ms in longer))


class _OnRail(ProgramBuilder):
    """Builds a program as it is issued: launches, messages that both sides come to, the optimizer's scalars."""

    TIED = "pp"  # tied tables are summed over the circuit of a pipeline's pair

    def __init__(self, one: Iteration, by_layer: bool) -> None:
        super().__init__(one)
        self.by_layer = by_layer
        self.scalars = self.job.plan.fsdp and self.job.plan.replicas > 1
        # Of each pass the one before it on its rank.
        self.earlier = {after: one for passes in self.passes for one, after in pairwise(passes)}

    def _units(self, chunk: int, way: str) -> list[Unit]:
        """Return a chunk's units: the table is one, as it is gathered; or all are one."""
        if (chunk, way) not in self.units:
            units = layer_units(self.one, chunk, way, table_apart=self.sharded)
            if not self.by_layer:
                shared = sum(unit.weights.shared for unit in units)
                weights = Weights(shared, sum(unit.weights.experts for unit in units))
                many = self.job.chunk_layers[chunk]
                units = [Unit(".layers", sum(unit.ms for unit in units), weights, layers=many)]
            self.units[chunk, way] = units
        return self.units[chunk, way]

    def _layer(self, stage: int, way: str, m: int, unit: Unit, waits: Names) -> Names:
        """Add a unit's pass; the table computes nothing."""
        if unit.place.endswith(TABLE):
            return waits
        return super()._layer(stage, way, m, unit, waits)

    def _awaited(self, chunk: int, way: str, m: int) -> Names:
        """Return the pass after which the receiver comes to a message: the one before that which needs it."""
        if self.job.schedule.overlap_sends or (way, chunk, m) not in self.earlier:
            return ()
        way, chunk, m = self.earlier[way, chunk, m]
        return (f"{END_OF}{way}.s{chunk}.m{m}",)

    def _gradients(self, stage: int) -> None:
        self.before[stage] = self._launched("optimizer", stage, self.before[stage])
        super()._gradients(stage)

    def _tied(self) -> float:
        """Add the sum of tied tables after its launches, and of FSDP the norm of all gradients."""
        stages = range(self.job.plan.pipeline)
        if tied_tables(self.job):
            for stage in (0, stages[-1]):
                self.sums[stage] = self._launched("tied-table", stage, self.sums[stage])
        tied_ms = super()._tied()
        for stage in stages if self.scalars else ():
            held = stage_weights(self.job, stage).split(self.job)
            norm_ms = self.job.machine.moved_ms(held * self.job.plan.gradient_bytes)
            norm = Step("norm", f".s{stage}", "update", stage, self.sums[stage], norm_ms)
            self.sums[stage] = self._scalar(SCALARS[0], stage, self._add(norm))
        return tied_ms

    def _updates(self) -> None:
        super()._updates()
        for stage in range(self.job.plan.pipeline) if self.scalars else ():
            waits: Names = (f"u.s{stage}",)
            for loss in SCALARS[1:]:
                waits = self._scalar(loss, stage, waits)

    def _launched(self, what: str, stage: int, waits: Names) -> Names:
        """Add the host's launch of something besides a pass."""
        if not self.job.machine.host_ms:
            return waits
        place = f".s{stage}{LAUNCH}"
        return self._add(Step(what, place, "update", stage, waits, self.job.machine.host_ms))

    def _scalar(self, name: str, stage: int, waits: Names) -> Names:
        """Add the all-reduce of one scalar among all ranks of a stage."""
        one = Call("all_reduce", SCALAR_BYTES, self.groups.weights)
        unit = Unit(f".s{stage}.sum", 0.0, NO_WEIGHTS)
        return self._communicate(
            name, stage, -1, unit, one, waits, spread=Spread.WEIGHTS, parallelism="dp"
        )


def _order(steps: tuple[Step, ...]) -> tuple[list[list[int]], list[int]]:
    """Return what each step waits for, and an order that every rank can follow: by begin, communications taking no time."""
    number = {step.name: at for at, step in enumerate(steps)}
    waits = [[number[name] for name in step.waits] for step in steps]
    order, begin_ms = earliest(waits, [step.ms for step in steps])
    return waits, sorted(order, key=begin_ms.__getitem__)


def _iteration(built: Program, fold: bool) -> RailIteration:
    """Return a program as an iteration: computing and messages once a replica, collectives once a group."""
    job, steps = built.job, built.steps
    instance = {spread: [0] for spread in Spread} if fold else instances(job)
    met, replicas = meetings(instance), len(instance[Spread.REPLICA])
    waits, order = _order(steps)
    _check_size(job, steps, waits, met)
    rows: list[tuple[int, int, float, int, int, float, int, int, str]] = []
    before: list[list[int]] = []
    issued: list[list[int]] = [[] for _ in range(job.plan.pipeline * replicas)]
    groups: dict[RailGroup, int] = {}
    first = [0] * len(steps)
    for at in order:
        step, label = steps[at], _label(steps[at])
        first[at] = len(rows)
        kind = COMPUTE if step.computes else KINDS.index(step.kind)
        work = WORK.index(step.kind) if step.computes else -1
        tail = (step.size_bytes, step.microbatch, step.layer, label)
        every = met[Spread.REPLICA][step.spread]
        for group, members in enumerate(every):
            ranks = tuple(stage * replicas + one for stage in _stages(step) for one in members)
            for rank in ranks:
                issued[rank].append(len(rows))
            before.append(
                [
                    first[one] + other
                    for one in waits[at]
                    for other in met[steps[one].spread][step.spread][group]
                ]
            )
            number, own_rank = -1, ranks[0]
            if step.group is not None:
                own = _group(step, ranks, f".{group}" if len(every) > 1 else "")
                number, own_rank = groups.setdefault(own, len(groups)), -1
            rows.append((kind, own_rank, step.ms, work, number, *tail))
    kinds, owner, ms, works, number_of, size, microbatch, layer, labels = zip(*rows, strict=True)
    pred_ptr, pred_idx = flattened(before, np.int32)
    issue_ptr, issue_idx = flattened(issued, np.int32)
    return RailIteration(
        name=job.heading,
        ranks=len(issued),
        stands_for=np.full(len(issued), job.plan.replicas // replicas, np.int32),
        stage=np.repeat(np.arange(job.plan.pipeline, dtype=np.int32), replicas),
        kind=np.array(kinds, np.int32),
        rank=np.array(owner, np.int32),
        duration_ms=np.array(ms),
        work=np.array(works, np.int32),
        group=np.array(number_of, np.int32),
        size_bytes=np.array(size),
        microbatch=np.array(microbatch, np.int32),
        layer=np.array(layer, np.int32),
        label=labels,
        pred_ptr=pred_ptr,
        pred_idx=pred_idx,
        issue_ptr=issue_ptr,
        issue_idx=issue_idx,
        groups=tuple(groups),
    )


def _stages(step: Step) -> list[int]:
    return sorted({step.stage, step.stage if step.other < 0 else step.other})


def _group(step: Step, ranks: tuple[int, ...], tail: str) -> RailGroup:
    """Return who takes part in a communication."""
    assert step.group is not None
    kind = "experts" if step.spread is Spread.EXPERTS else step.parallelism
    stages = "-".join(map(str, _stages(step)))
    return RailGroup(f"{kind}.s{stages}{tail}", step.parallelism, ranks, step.group.size)


VERBS = {"all_gather": "gather", "reduce_scatter": "scatter", "all_reduce": "reduce"}
EXCHANGED = {"cp": "keys", "ep": "tokens"}
UNITS = (TABLE[1:], LAUNCH[1:], "head", "layers")
NOUNS = {"u": "update", "sum": "gradients", "gather": "weights", "tied": "tied table"}


def _label(step: Step) -> str:
    """Return what hovers and logs call a step: forward 3 layer 7, gather layer 7, send activation 3 to stage 1."""
    if step.kind == "send":
        what = "activation" if step.word == "fx" else "gradient"
        return f"send {what} {step.microbatch} to stage {step.other}"
    tail = step.place.rpartition(".")[2]
    unit = f"layer {step.layer}" if step.layer >= 0 else tail if tail in UNITS else ""
    noun = NOUNS.get(step.word, step.word.replace("-", " "))
    if step.kind == "update":
        return f"{noun} {unit}".strip()
    if step.spread in (Spread.WEIGHTS, Spread.EXPERTS) or step.other >= 0:
        return f"{VERBS[step.kind]} {unit or noun}"
    return f"{EXCHANGED.get(step.parallelism, step.kind)} {step.microbatch} {unit}".strip()


def _check_size(job: Job, steps: tuple[Step, ...], waits: list[list[int]], met: Meetings) -> None:
    pairs = [[sum(map(len, groups)) for groups in row] for row in met]
    nodes = sum(len(met[Spread.REPLICA][step.spread]) for step in steps)
    edges = sum(
        pairs[steps[one].spread][step.spread]
        for step, befores in zip(steps, waits, strict=True)
        for one in befores
    )
    for count, most, what in (
        (nodes, MAX_NODES, "nodes"),
        (edges, MAX_DEPENDENCIES, "dependencies"),
    ):
        refuse_if(
            (
                count > most,
                f"would have {count:,} {what} on {job.servers:,} ranks, more than the limit of {most:,}: fold its "
                "replicas, or merge the layers",
            )
        )
