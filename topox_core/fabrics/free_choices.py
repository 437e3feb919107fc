"""What the user leaves free is chosen, on every circuit fabric alike: number of rings, algorithms of collectives.

Each choice is run and the fastest is kept, in a fixed order and within limits counted in nodes of
the lowered graph, so that the same input gives the same answer on any machine. Plans take longer
than anything else: beyond some hundred nodes they are made for one choice only, which a few quick
plans select, and beyond some thousand the provisioned controller does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from topox_core.errors import InputError
from topox_core.fabrics.collective_choice import CHOOSES, with_fastest_algorithms
from topox_core.fabrics.run import Chosen, FabricRequest, FabricRun, JobRequest
from topox_core.model.durations import shortest_ms
from topox_core.model.facts import longest_chain
from topox_core.model.lowering import lower, transfers_of
from topox_core.model.rings import RING_KINDS, distinct_rings
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.settings import Settings

# Nodes of a lowered graph: beyond the first every plan is not made, beyond the second none to
# compare with, and beyond the last nothing is tried.
MAX_COMPARED_NODES = 600
MAX_PLANNED_NODES = 5_000
MAX_NODES = 60_000
# Beyond MAX_COMPARED_NODES: a choice that the provisioned controller finds this much slower than the
# fastest is not planned, and one whose quick plan is this little shorter does not replace the first.
SLOWER = 1.25
CLEARLY = 0.99

RunLowered = Callable[[FabricRequest], FabricRun]
QuickMs = Callable[[FabricRequest], float]


@dataclass(frozen=True)
class Case:
    """What a choice depends on: a job on one fabric."""

    fabric: str
    job: JobRequest

    @property
    def settings(self) -> Settings:
        """How the job's collectives are lowered, and what of it is free."""
        return self.job.settings

    @property
    def free(self) -> bool:
        """Whether there is anything to choose."""
        return bool(self.settings.free) and self.fabric in CHOOSES

    @property
    def nodes(self) -> int:
        """Nodes of the graph as the settings lower it."""
        return len(self.job.lowered(self.settings.lowering).graph)


def fastest_run(
    case: Case,
    run: RunLowered,
    provisioned: RunLowered | None = None,
    quick_ms: QuickMs | None = None,
) -> FabricRun:
    """Return the fastest run over all free choices; of equal ones the first, the settings' own lowering foremost.

    Parameters
    ----------
    run
        Runs the lowered job on the case's fabric.
    provisioned, quick_ms
        For the scheduled fabric: the run of the provisioned controller, and the makespan of a few
        plans.

    Raises
    ------
    InputError
        If the fabric cannot run the settings' own lowering.
    """
    if case.fabric != "scheduled" or not case.free or case.nodes > MAX_NODES:
        return _fastest(case, tried(case), run)
    assert provisioned is not None
    assert quick_ms is not None
    if case.settings.engine == "list":
        return _fastest_plan(case, run, provisioned, quick_ms)
    return _run(case, planned_lowering(case, run, provisioned, quick_ms), run)


def tried(case: Case) -> Iterator[Lowering]:
    """Yield the settings' own lowering, then all that are tried besides."""
    yield case.settings.lowering
    if case.free and case.nodes <= MAX_NODES:
        yield from choices(case)


def shortest_chain(job: JobRequest) -> tuple[float, tuple[str, ...]]:
    """Return the critical path of a job, its length in ms and its ids: no schedule is shorter.

    Of all lowerings that plans and fixed circuits may choose it is the one that is least, each
    transfer on all ports of a server.
    """
    lowerings = {one: None for name in ("scheduled", "static") for one in tried(Case(name, job))}
    chains: list[tuple[float, tuple[str, ...]]] = []
    for one in lowerings:
        try:
            graph = lower(job.task_graph, one)
        except InputError:
            if not chains:
                raise
            continue  # too many transfers
        chains.append(longest_chain(graph, shortest_ms(graph, job.cluster)))
    return min(chains)


def planned_lowering(
    case: Case, run: RunLowered, provisioned: RunLowered, quick_ms: QuickMs
) -> Lowering:
    """Return the lowering that an engine plans for: that of the best list schedule which switches.

    Nothing is planned where there is nothing to choose, or where the size of the graph lets the
    provisioned controller choose: an engine plans what was chosen itself.
    """
    case = replace(case, job=replace(case.job, settings=as_list(case.settings)))
    own = case.settings.lowering
    if not case.free or case.nodes > MAX_NODES or not any(True for _ in choices(case)):
        return own
    if case.nodes <= MAX_COMPARED_NODES:
        result = _fastest_plan(case, run, provisioned, quick_ms).result
    else:
        promising = _promising(case, provisioned, quick_ms)
        if promising.agreed:
            return promising.planned
        result = _fastest_of(case, promising, run).result
    assert result is not None
    return (result.alternative or result).settings.lowering


def as_list(settings: Settings) -> Settings:
    """Return settings with the list engine, on the clock of the engine that they name."""
    return replace(settings, engine="list", clock="slots" if settings.on_slots else settings.clock)


def _fastest_plan(
    case: Case, run: RunLowered, provisioned: RunLowered, quick_ms: QuickMs
) -> FabricRun:
    """Return the shortest plan over the choices that are planned, never behind the provisioned controller's best."""
    if case.nodes <= MAX_COMPARED_NODES:
        return _fastest(case, (case.settings.lowering, *choices(case)), run)
    return _fastest_of(case, _promising(case, provisioned, quick_ms), run)


def _fastest_of(case: Case, promising: _Promising, run: RunLowered) -> FabricRun:
    """Return the plan for a large graph, and no slower one than the provisioned controller's choice gives."""
    best = _run(case, promising.planned, run)
    if best.iteration_ms > promising.at_once_ms * (1 + 1e-9) and not promising.agreed:
        return _fastest(case, (promising.planned, promising.at_once), run)
    return best


@dataclass(frozen=True)
class _Promising:
    """What a large graph is planned for: a quick plan's choice, and the fastest for the provisioned controller."""

    planned: Lowering
    at_once: Lowering
    at_once_ms: float

    @property
    def agreed(self) -> bool:
        """Whether both are the same."""
        return self.planned == self.at_once


def _promising(case: Case, provisioned: RunLowered, quick_ms: QuickMs) -> _Promising:
    own = case.settings.lowering
    known_ms: dict[Lowering, float] = {}
    for lowering in (own, *choices(case)):
        time_ms = _time_ms(lambda one: _run(case, one, provisioned).iteration_ms, lowering)
        # Algorithms have to pay at once: their many messages make plans long in the making.
        if lowering.algorithm == own.algorithm or time_ms < min(known_ms.values()) * (1 - 1e-9):
            known_ms[lowering] = time_ms
    at_once = min(known_ms, key=lambda one: known_ms[one])
    least_ms = known_ms[at_once]
    if case.nodes > MAX_PLANNED_NODES:
        return _Promising(at_once, at_once, least_ms)
    likely = [one for one, time_ms in known_ms.items() if time_ms <= SLOWER * least_ms]
    chosen = likely[0] if likely else own
    if len(likely) > 1:
        quick = {
            one: _time_ms(lambda lowering: quick_ms(case.job.lowered(lowering)), one)
            for one in likely
        }
        for one in likely[1:]:
            if quick[one] < quick[chosen] * CLEARLY:
                chosen = one
    return _Promising(chosen, at_once, least_ms)


def _fastest(case: Case, lowerings: Iterable[Lowering], run: RunLowered) -> FabricRun:
    """Return the fastest run, of equal ones the first; the first lowering must be one that can be run."""
    best: FabricRun | None = None
    for lowering in lowerings:
        try:
            other = _run(case, lowering, run)
        except InputError:
            if best is None:
                raise
            continue  # too many transfers, or a fabric that cannot carry them
        if best is None or _shorter(other, best):
            best = other
    assert best is not None
    return best


def _shorter(one: FabricRun, other: FabricRun) -> bool:
    """Return whether a run is shorter; where both keep fixed circuits, whether its best switching plan is."""
    if one.iteration_ms < other.iteration_ms * (1 - 1e-9):
        return True
    if one.iteration_ms > other.iteration_ms * (1 + 1e-9):
        return False
    return _switching_ms(one) < _switching_ms(other) * (1 - 1e-9)


def _switching_ms(run: FabricRun) -> float:
    other = run.result.alternative if run.result is not None else None
    return run.iteration_ms if other is None else other.makespan_ms or run.iteration_ms


def _time_ms(run: Callable[[Lowering], float], lowering: Lowering) -> float:
    try:
        return run(lowering)
    except InputError:
        return float("inf")


def _run(case: Case, lowering: Lowering, run: RunLowered) -> FabricRun:
    result = run(case.job.lowered(lowering))
    if not case.free or result.chosen is not None:  # fixed circuits have made choices of their own
        return result
    return replace(result, chosen=Chosen(lowering, case.settings.free))


def choices(case: Case) -> Iterator[Lowering]:
    """Yield the lowerings to try besides the settings' own: other rings, and the fastest algorithms with each."""
    job, own = case.job, case.settings.lowering
    rings = ring_choices(case)
    yield from rings
    if "algorithm" not in case.settings.free:
        return
    most = max(MAX_PLANNED_NODES, 2 * case.nodes)
    tried = {own, *rings}
    for lowering, judge in product((own, *rings), CHOOSES[case.fabric]):
        settings = replace(job.settings, lowering=lowering)
        fastest = with_fastest_algorithms(
            judge, job.task_graph, job.cluster, settings, job.options.topology_variant
        )
        nodes = len(job.task_graph.tasks) + transfers_of(job.task_graph, fastest)
        if fastest not in tried and nodes <= most:
            tried.add(fastest)
            yield fastest


def ring_choices(case: Case) -> tuple[Lowering, ...]:
    """Return the lowerings on one ring and on one a port, as far as they differ from the settings' own.

    Static circuits need no choice: TopologyFinder moves ring collectives onto the rings it lays.
    """
    own = case.settings.lowering
    if "rings" not in case.settings.free or own.strides or case.fabric == "static":
        return ()
    sizes = {
        len(task.members or ())
        for task in case.job.task_graph.tasks
        if (task.kind in RING_KINDS or task.kind == "broadcast")
        and (own.all_reduce_on_network or task.kind != "all_reduce")
    }
    most = max((len(distinct_rings(n)) for n in sizes if n > 1), default=1)
    wanted = dict.fromkeys((1, min(case.job.cluster.ports_per_server, most)))
    return tuple(replace(own, rings=k) for k in wanted if k != min(own.rings, most))
