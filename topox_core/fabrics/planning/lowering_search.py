"""What the user leaves free is chosen, on every circuit fabric alike: number of rings, algorithms of collectives.

Each choice is run and the fastest is kept, in a fixed order and within limits counted in nodes of
the lowered graph, so that the same input gives the same answer on any machine. A plan takes longer
than anything else, and so more choices are looked at than planned: the provisioned controller, on
the plan's clock, says which are.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain, combinations, islice, product

from topox_core.errors import InputError
from topox_core.fabrics.planning.collective_choice import collectives_of, with_fastest_algorithms
from topox_core.fabrics.registry import CHOOSES, ENTRIES
from topox_core.fabrics.run import FabricRequest, FabricRun, JobRequest, LoweringChoice
from topox_core.model.lowering.algorithm_choice import (
    DEFAULT,
    RING_KINDS,
    Choice,
    algorithms_that_fit,
    distinct_rings,
    on_rings,
)
from topox_core.model.lowering.lowering import lower, transfers_of
from topox_core.model.lowering_choices import Lowering
from topox_core.model.transfer_graph import TransferGraph
from topox_core.schedule.bounds.open_bound import Way, open_bound
from topox_core.schedule.bounds.unrounded import Bound
from topox_core.schedule.results.result import MET, FixedCircuits, Result
from topox_core.schedule.source import LOADS

# What runs on fixed circuits and on the ideal switch; the other fabrics that choose change circuits.
WAYS: dict[str, Way] = {"static": "fixed", "static_graph": "fixed", "ideal": "packets"}


def bound_of(job: JobRequest, way: Way) -> Bound | None:
    """Return what no lowering that the settings leave open goes below; None where nothing is open."""
    return open_bound(job.task_graph, job.cluster, job.settings, way)


def standing_over_every(job: JobRequest, standing: FixedCircuits) -> FixedCircuits:
    """Return fixed circuits with a bound over every lowering."""
    bound = bound_of(job, "fixed")
    if bound is None:
        return standing
    return replace(standing, bound_ms=min(bound.ms, standing.makespan_ms), bound_by=bound.text)


def result_over_every(job: JobRequest, result: Result) -> Result:
    """Return a result whose bounds hold over every lowering; what was proved of its own lowering stays beside them."""
    if result.makespan_ms is None or not result.classes:
        return result
    ways: dict[bool, Way] = {True: "changing", False: "fixed"}
    bounds = {
        one.changes_circuits: bound_of(job, ways[one.changes_circuits]) for one in result.classes
    }
    known = {changes: bound for changes, bound in bounds.items() if bound is not None}
    if not known:
        return result
    least = min(known.values(), key=lambda bound: bound.ms)
    makespan_ms, bound_ms = result.makespan_ms, min(result.makespan_ms, least.ms)
    proved, ended = makespan_ms <= bound_ms * (1 + MET), result.stopped_by
    if ended == "proof":
        # The lowering of fixed circuits may be another one than that of the bound.
        ended = "heuristic" if result.switching == "fixed" else "lowering"
    slotted_ms, other = result.bound_slotted_ms, result.alternative
    return replace(
        result,
        status="optimal" if proved else "feasible",
        stopped_by="proof" if proved else ended,
        bound_ms=bound_ms,
        bound_by=least.text,
        unrounded_bound_ms=min(result.unrounded_bound_ms, bound_ms),
        bound_slotted_ms=None if slotted_ms is None else min(slotted_ms, least.ms),
        classes=tuple(
            replace(one, bound_ms=min(known[one.changes_circuits].ms, one.best_ms or makespan_ms))
            for one in result.classes
        ),
        lowered_bound_ms=next(
            (one.bound_ms for one in result.classes if one.changes_circuits), None
        ),
        alternative=None if other is None else result_over_every(job, other),
        trace=tuple(replace(p, bound_ms=bound_ms, bound_source=LOADS) for p in result.trace),
    )


def run_over_every(name: str, job: JobRequest, run: FabricRun) -> FabricRun:
    """Return the run of a fabric that chooses for itself with a bound over every lowering that it could have chosen."""
    if run.result is not None:
        result = result_over_every(job, run.result)
        return replace(run, bound_ms=result.bound_ms, bound_by=result.bound_by, result=result)
    if name not in CHOOSES and name not in WAYS:
        return run
    bound = bound_of(job, WAYS.get(name, "changing"))
    if bound is None:
        return run
    return replace(run, bound_ms=min(bound.ms, run.iteration_ms), bound_by=bound.text)


# Nodes of a lowered graph: up to the first whatever the provisioned controller finds fastest is
# planned, up to the second what it finds promising, and beyond the last nothing is tried.
MAX_COMPARED_NODES = 600
MAX_PLANNED_NODES = 5_000
MAX_NODES = 60_000
# Up to so many nodes: how many choices are looked at, and how many of them are planned. A few quick
# plans of each tell no better which: of 330 random graphs (benchmarks/single_choices.py) no plan was
# shorter with them.
LOOKED_AT = {
    40: (64, 48),
    200: (64, 12),
    MAX_COMPARED_NODES: (64, 6),
    MAX_PLANNED_NODES: (24, 3),
}
# A choice that the provisioned controller finds this much slower than the fastest is not promising.
SLOWER = 1.25
RINGS = (1, 2, 4)
# Fabrics that look at all choices in one run, and up to how many nodes.
SEVERAL_AT_ONCE = {"static_graph": MAX_COMPARED_NODES, "ideal": MAX_PLANNED_NODES}

RunLowered = Callable[[FabricRequest], FabricRun]
ProvisionedMs = Callable[[FabricRequest], float]


def _chooses(name: str, job: JobRequest) -> bool:
    """Return whether a fabric has anything to choose."""
    return bool(job.settings.free) and bool(ENTRIES[name].alone_on)


def fastest_run(
    name: str,
    job: JobRequest,
    run: RunLowered,
    provisioned: ProvisionedMs | None = None,
    few: bool = False,
) -> FabricRun:
    """Return the fastest run over all free choices; of equal ones the first, the settings' own lowering foremost.

    Parameters
    ----------
    run
        Runs the lowered job on the fabric.
    provisioned
        For the scheduled fabric: how long the provisioned controller takes, in ms on the plan's clock.
    few
        Whether that looks at few choices, and one is planned.

    Raises
    ------
    InputError
        If the fabric cannot run the settings' own lowering.
    """
    if name != "scheduled" or not _chooses(name, job) or job.nodes > MAX_NODES:
        return _fastest(name, job, tried(name, job), run)
    assert provisioned is not None
    if job.settings.engine == "list":
        return _fastest(name, job, _likely(job, provisioned, few), run)
    return _run(name, job, planned_lowering(job, run, provisioned), run)


def tried(name: str, job: JobRequest, most: int = 0) -> Iterator[Lowering]:
    """Yield the settings' own lowering, then all that are tried besides; where a quick look tells which are promising, so many."""
    yield job.settings.lowering
    if _chooses(name, job) and job.nodes <= MAX_NODES:
        yield from islice(_many_choices(name, job), most) if most else choices(name, job)


def planned_lowering(job: JobRequest, run: RunLowered, provisioned: ProvisionedMs) -> Lowering:
    """Return the lowering that an engine plans for: that of the best list schedule which switches.

    Nothing is planned where there is nothing to choose, or where the size of the graph lets the
    provisioned controller choose: an engine plans what was chosen itself.
    """
    job = replace(job, settings=job.settings.by_rules)
    if not job.settings.free or job.nodes > MAX_NODES:
        return job.settings.lowering
    likely = _likely(job, provisioned)
    if len(likely) == 1:
        return likely[0]
    result = _fastest("scheduled", job, likely, run).result
    assert result is not None
    return (result.alternative or result).settings.lowering


def _likely(job: JobRequest, provisioned: ProvisionedMs, few: bool = False) -> tuple[Lowering, ...]:
    """Return the choices that are planned, in the order in which they are looked at: the provisioned controller's fastest.

    Nobody looks further once it is as fast as the bound of all choices.
    """
    looked, planned = (0, 1) if few else looks(job)
    known = open_bound(job.task_graph, job.cluster, job.settings, "changing")
    enough_ms = 0.0 if known is None or job.settings.on_slots else known.ms * (1 + 1e-9)
    at_once: dict[Lowering, float] = {job.settings.lowering: math.inf}
    for lowering in tried("scheduled", job, looked):
        with suppress(InputError):  # too many transfers, or a fabric that cannot carry them
            at_once[lowering] = provisioned(job.lowered(lowering))
            if at_once[lowering] <= enough_ms:
                break
    least_ms = min(at_once.values())
    if planned == 1 or least_ms <= enough_ms:
        return (next(one for one, ms in at_once.items() if ms <= least_ms * (1 + 1e-9)),)
    most_ms = math.inf if job.nodes <= MAX_COMPARED_NODES else SLOWER * least_ms
    promising = [one for one in at_once if at_once[one] <= most_ms]
    fastest = sorted(promising, key=lambda one: at_once[one])[:planned]
    return tuple(one for one in promising if one in fastest)


def _fastest(
    name: str, job: JobRequest, lowerings: Iterable[Lowering], run: RunLowered
) -> FabricRun:
    """Return the fastest run, of equal ones the first; the first lowering must be one that can be run."""
    best: FabricRun | None = None
    for lowering in lowerings:
        try:
            other = _run(name, job, lowering, run)
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


def _run(name: str, job: JobRequest, lowering: Lowering, run: RunLowered) -> FabricRun:
    request = lowered(name, job, lowering)
    result = run(request)
    if any(result.execution.graph is one for one in request.others):
        return replace(
            result, chosen=LoweringChoice(result.execution.graph.lowering, job.settings.free)
        )
    # Fixed circuits have made choices of their own.
    if not _chooses(name, job) or result.chosen is not None:
        return result
    return replace(result, chosen=LoweringChoice(lowering, job.settings.free))


def lowered(name: str, job: JobRequest, lowering: Lowering) -> FabricRequest:
    """Return the request of a fabric that lowers a job so, with the other graphs that it may look at."""
    return replace(job.lowered(lowering), others=_others(name, job))


def _others(name: str, job: JobRequest) -> tuple[TransferGraph, ...]:
    """Return what a job may be lowered to besides, for fabrics that look at several graphs at once."""
    if name not in SEVERAL_AT_ONCE or not job.settings.free:
        return ()
    if job.nodes > SEVERAL_AT_ONCE[name]:
        return ()
    _, *others = tried("scheduled", job, looks(job)[0])
    return tuple(lower(job.task_graph, one) for one in others)


def looks(job: JobRequest) -> tuple[int, int]:
    """Return how many choices are looked at and how many are planned; for large graphs 0 and 1."""
    return next((most for nodes, most in LOOKED_AT.items() if job.nodes <= nodes), (0, 1))


def choices(name: str, job: JobRequest) -> Iterator[Lowering]:
    """Yield the lowerings to try besides the settings' own: other rings, and the fastest algorithms with each."""
    own = job.settings.lowering
    rings = ring_choices(name, job)
    yield from rings
    if "algorithm" not in job.settings.free:
        return
    most = max(MAX_PLANNED_NODES, 2 * job.nodes)
    tried = {own, *rings}
    for lowering, judge in product((own, *rings), ENTRIES[name].alone_on):
        settings = replace(job.settings, lowering=lowering)
        fastest = with_fastest_algorithms(
            judge, job.task_graph, job.cluster, settings, job.options.topology_variant
        )
        nodes = len(job.task_graph.tasks) + transfers_of(job.task_graph, fastest)
        if fastest not in tried and nodes <= most:
            tried.add(fastest)
            yield fastest


def _many_choices(name: str, job: JobRequest) -> Iterator[Lowering]:
    """Yield lowerings to look at besides the settings' own, no two of which give the same transfers, and none too many.

    First those that are tried anyway, then the algorithms of no, one and two kinds that are open,
    each on every number of rings.
    """
    own = job.settings.lowering
    kinds = _kinds_to_choose(job)
    some = (
        _with(one, dict(zip(of, words, strict=True)))
        for count in range(3)
        for of in combinations(kinds, count)
        for words in product(*(kinds[kind] for kind in of))
        for one in (own, *ring_choices(name, job))
    )
    graph = job.task_graph
    known = {_transfers(lower(graph, own))}
    most = max(MAX_PLANNED_NODES, 2 * job.nodes)
    for lowering in chain(choices(name, job), some):
        with suppress(InputError):  # too many transfers
            if len(graph.tasks) + transfers_of(graph, lowering) <= most:
                made = _transfers(lower(graph, lowering))
                if made not in known:
                    known.add(made)
                    yield lowering


def _with(lowering: Lowering, words: Mapping[str, str]) -> Lowering:
    """Return a lowering with algorithms for whole kinds."""
    others = [pair for pair in lowering.algorithm if pair[0].split(":")[0] not in words]
    chosen = [pair for pair in words.items() if pair[1] != DEFAULT]
    return replace(lowering, algorithm=tuple(sorted([*others, *chosen])))


def _kinds_to_choose(job: JobRequest) -> dict[str, list[str]]:
    """Return the kinds whose algorithm is open, each with the words of all that its groups can run.

    Messages go whole, or in one part for each port; rings are a choice of their own.
    """
    graph, ports = job.task_graph, job.cluster.ports_per_server
    if "algorithm" not in job.settings.free:
        return {}
    kinds: dict[str, list[str]] = {}
    for kind in sorted({one.kind for one in collectives_of(graph, job.settings.lowering)}):
        kinds[kind] = [
            str(Choice(name, parts=parts))
            for name in algorithms_that_fit(kind, graph.group_sizes.get(kind, ()))
            for parts in ((1, ports) if ports > 1 and not on_rings(kind, name) else (1,))
        ]
    return kinds


def _transfers(graph: TransferGraph) -> int:
    """Return a hash of what a graph transfers: lowerings that differ only in what none of its collectives uses are one."""
    columns = (graph.source, graph.destination, graph.size_bytes, graph.pred_ptr, graph.pred_idx)
    return hash(tuple(column.tobytes() for column in columns))


def ring_choices(name: str, job: JobRequest) -> tuple[Lowering, ...]:
    """Return the lowerings on one, two and four rings and on one a port, as far as they differ from the settings' own.

    Static circuits need no choice: TopologyFinder moves ring collectives onto the rings it lays.
    """
    own = job.settings.lowering
    if "rings" not in job.settings.free or own.strides or name == "static":
        return ()
    sizes = {
        len(task.members or ())
        for task in job.task_graph.tasks
        if (task.kind in RING_KINDS or task.kind == "broadcast")
        and (own.all_reduce_on_network or task.kind != "all_reduce")
    }
    most = max((len(distinct_rings(n)) for n in sizes if n > 1), default=1)
    ports = job.cluster.ports_per_server
    wanted = dict.fromkeys(min(k, most) for k in (ports, *RINGS))
    return tuple(replace(own, rings=k) for k in wanted if k != min(own.rings, most))
