"""One task graph under several fabrics: each lowered as it may, run, and compared on one clock."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from topox_core.economics.clusters import cluster_bill, same_cost_nic_gbps
from topox_core.economics.networks import Bill
from topox_core.economics.price_sets import Catalogue
from topox_core.errors import InputError, refuse_if
from topox_core.fabrics.fluid.simulator import Stopped, go_on
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.fixed_beside import FIXED, fixed_run
from topox_core.fabrics.planning.lowering_search import fastest_run, run_over_every
from topox_core.fabrics.planning.scheduled import freely_scheduled
from topox_core.fabrics.registry import ENTRIES, FABRICS, USUAL, fabric
from topox_core.fabrics.run import FabricRequest, FabricRun, JobRequest
from topox_core.io.task_graph_file import check_fits
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.latest import Latest
from topox_core.runs.run import Stop, never
from topox_core.schedule.settings import Settings

# Below this difference, as a share of the shorter, two iteration times are called equal.
EQUAL = 0.005
# The slowest switch on the market, a robot at a patch panel, takes two minutes.
MAX_DELAY_MS = 3_600_000.0

# Fabrics that are run for the ideal switch where nobody did; the others are looked at where they were
# run anyway. (No plan on continuous time is behind the other controllers, one on slots may be.)
CANDIDATES = ("static", "reactive", "provisioned", "scheduled")
MAX_KEPT = 8  # runs of the ideal switch, which serve every delay
_ideal_kept = Latest[FabricRun](MAX_KEPT)

OnRun = Callable[[FabricRun], None]
Name = TypeVar("Name", bound=Hashable)


def compare(
    task_graph: TaskGraph,
    cluster: Cluster,
    settings: Settings,
    fabrics: Iterable[str] = USUAL,
    options: FabricOptions | None = None,
    stop: Stop = never,
    on_run: OnRun | None = None,
    known: Mapping[str, FabricRun] | None = None,
) -> dict[str, FabricRun]:
    """Run one task graph under each fabric and return the runs in the order of :data:`FABRICS`.

    Parameters
    ----------
    task_graph, cluster
        What runs, on what.
    settings
        How collectives are lowered and how the scheduled model is read; its engine plans
        ``scheduled``.
    fabrics
        Names of :data:`FABRICS`; the usual ones by default.
    options
        Of the fabrics; by default :func:`default_options`. Without a layout, ``static`` gets
        TopologyFinder's, and its all-reduces run on the rings of that layout (TopoOpt: all-reduce
        traffic is mutable).
    stop
        Asked now and then; True leaves out what has not been run.
    on_run
        Told each run as soon as it is there.
    known
        Runs of other fabrics with the same arguments, which are not run again.

    Raises
    ------
    InputError
        If a name is no fabric, the graph does not fit the cluster, or a fabric cannot run it.
    """
    names = chosen(fabrics)
    check_delay(cluster)
    check_fits(task_graph, cluster)
    request = JobRequest(task_graph, cluster, settings, options or default_options(cluster))
    runs = dict(known or {})
    # The ideal switch comes last: what the others do is among its candidates.
    for name in sorted(names, key=lambda name: name == "ideal"):
        try:
            runs[name] = run_with_best_lowering(name, replace(request, runs=runs), stop)
        except Stopped:
            break
        if on_run is not None:
            on_run(runs[name])
    return {name: runs[name] for name in names if name in runs}


def default_options(cluster: Cluster) -> FabricOptions:
    """Return the options of a comparison that names none: the fat-tree costs the same as the circuits."""
    return FabricOptions(equivalent_gbps=same_cost_nic_gbps(cluster))


def run_with_best_lowering(name: str, request: JobRequest, stop: Stop = never) -> FabricRun:
    """Run a task graph under one fabric, which makes the choices that the settings leave free.

    Raises
    ------
    InputError, Stopped
        As :func:`run_one`.
    """
    return run_over_every(name, request, _run_with_best_lowering(name, request, stop))


def _run_with_best_lowering(name: str, request: JobRequest, stop: Stop) -> FabricRun:
    if name == "ideal":
        return _ideal(request, stop)
    if name == "scheduled" or name in FIXED:
        with _named(name):
            go_on(stop)
            if name == "scheduled":
                return freely_scheduled(request, stop)
            return fixed_run(name, request, stop)
    return fastest_run(name, request, lambda lowered: run_one(name, lowered, stop))


def _ideal(request: JobRequest, stop: Stop) -> FabricRun:
    """Run the ideal switch, which changes in no time: whatever the delay, it is that of a job without one.

    Where another fabric found something shorter all the same, what that one does is tried as well.
    """
    at_once = replace(request.at_delay(0.0), runs={})
    given = request.options.layout  # arrays, which a key would not tell apart
    of = (at_once.task_graph.digest, at_once.cluster.digest)
    key = (*of, repr(request.settings), repr(request.options))
    run = _ideal_kept.get(key) if given is None else None
    if run is None:
        run = _ideal_of(at_once, stop)
        if given is None:
            _ideal_kept[key] = run
    if any(one.iteration_ms < run.iteration_ms * (1 - 1e-9) for one in request.runs.values()):
        run = min(run, _ideal_of(request, stop), key=lambda one: one.iteration_ms)
        if given is None:  # at every delay from now on
            _ideal_kept[key] = run
    return replace(run, execution=replace(run.execution, cluster=request.cluster))


def _ideal_of(request: JobRequest, stop: Stop) -> FabricRun:
    request = replace(request, runs=_with_candidates(request, stop))
    return fastest_run("ideal", request, lambda lowered: run_one("ideal", lowered, stop))


def _with_candidates(request: JobRequest, stop: Stop) -> dict[str, FabricRun]:
    """Return the runs with those of its candidates, so that the ideal switch can do as they do.

    Each chooses for itself what is free; where nothing is they are planned by rules, for a first
    iteration, which has no delay at its end.
    """
    every, own = dict(request.runs), request.settings
    if not own.free:
        own = replace(
            own,
            iteration="first",
            engine="printed" if own.engine == "printed" else "list",
            switching="provisioned" if own.switching == "provisioned" else "planned",
        )
        request = request.at_delay(0.0)
    for name in CANDIDATES:
        if name not in every:
            with suppress(InputError):  # ports that cannot be cabled evenly, or nobody is connected
                job = replace(request, settings=own, runs=every)
                every[name] = run_with_best_lowering(name, job, stop)
    return every


def run_one(name: str, request: FabricRequest, stop: Stop = never) -> FabricRun:
    """Run a lowered graph under one fabric, moved onto the rings of its layout where that is the fabric's right.

    Raises
    ------
    InputError
        If the fabric cannot run the graph; the fabric is named.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    with _named(name):
        go_on(stop)
        return fabric(name)(request, stop)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the fabric in errors."""
    try:
        yield
    except InputError as error:
        item = f"fabric {name}, {error.item}" if error.item else f"fabric {name}"
        raise InputError(error.problem, file=error.file, item=item, field=error.field) from None


def chosen(fabrics: Iterable[str]) -> tuple[str, ...]:
    """Return the names of fabrics in their order, each once.

    Raises
    ------
    InputError
        If there is none, or a name is no fabric.
    """
    asked = list(fabrics)
    for name in asked:
        refuse_if(
            (name not in FABRICS, f"must be some of {', '.join(FABRICS)} (got {str(name)[:80]!r})"),
            file="settings",
            field="fabrics",
        )
    refuse_if(
        (not asked, f"must name at least one of {', '.join(FABRICS)}"),
        file="settings",
        field="fabrics",
    )
    return tuple(name for name in FABRICS if name in asked)


def check_delay(cluster: Cluster) -> None:
    """Refuse a delay that no switch has, with one line."""
    refuse_if(
        (
            cluster.reconfiguration_ms > MAX_DELAY_MS,
            f"must be at most {MAX_DELAY_MS:,.0f}, an hour (got {cluster.reconfiguration_ms:g})",
        ),
        file="cluster",
        field="reconfiguration_ms",
    )


def same_time(one_ms: float, other_ms: float) -> bool:
    """Return whether two iteration times differ by less than :data:`EQUAL`."""
    return abs(one_ms - other_ms) <= EQUAL * min(one_ms, other_ms)


def ties(costs: Mapping[Name, float]) -> tuple[Name, ...]:
    """Return what costs least with all that costs the same, in the order given: none of them is best alone."""
    least = min(costs.values(), default=0.0)
    return tuple(name for name, cost in costs.items() if same_time(cost, least))


def fastest_of(times_ms: Mapping[str, float]) -> tuple[str, ...]:
    """Return the fastest fabric and those called equal to it, from the simplest controller on; none where nothing ran."""
    return ties({name: times_ms[name] for name in FABRICS if name in times_ms})


def fastest(runs: Mapping[str, FabricRun]) -> tuple[str, ...]:
    """Return the same of runs."""
    return fastest_of({name: run.iteration_ms for name, run in runs.items()})


def undecided(runs: Mapping[str, FabricRun]) -> bool:
    """Return whether the plan is behind by less than its gap: then a plan that is not found yet could win."""
    plan = runs.get("scheduled")
    if plan is None or "scheduled" in fastest(runs):
        return False
    return plan.bound_ms < min(run.iteration_ms for run in runs.values()) * (1 - EQUAL)


def fabric_bill(
    name: str, cluster: Cluster, catalogue: Catalogue, options: FabricOptions
) -> Bill | None:
    """Return the bill of the network that a fabric runs on; None for one that nobody sells.

    A fat-tree of the same cost is priced by its NIC, any other by its oversubscription; regional circuits
    by their packet ports on a fat-tree and the others on optical switches.

    Raises
    ------
    InputError
        If the port speed cannot be priced.
    """
    network = ENTRIES[name].built_as
    if not network:
        return None
    if name == "fat_tree_full":
        options = FabricOptions()
    equivalent_gbps = options.equivalent_gbps
    return cluster_bill(
        network,
        cluster,
        catalogue,
        equivalent_gbps=equivalent_gbps,
        oversubscription=1.0 if equivalent_gbps else options.oversubscription,
        packet_ports=options.packet_ports_of(cluster),
    )
