"""Circuits that stay fixed beside a plan: found once, they compete with all that switch."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from topox_core.errors import InputError
from topox_core.fabrics.controllers.circuits import run_provisioned
from topox_core.fabrics.fixed.static import run_static, run_static_graph, with_rates
from topox_core.fabrics.fluid.links import ideal_bound, measured_on_links, wired
from topox_core.fabrics.fluid.simulator import Pairs, Stopped
from topox_core.fabrics.planning.lowering_search import MAX_COMPARED_NODES, fastest_run, tried
from topox_core.fabrics.run import FabricRequest, FabricRun, JobRequest, LoweringChoice
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution, Layout, PathRates
from topox_core.model.transfer_graph import TransferGraph, bytes_per_ms
from topox_core.runs.latest import Latest
from topox_core.runs.run import Stop
from topox_core.schedule.results.result import MET, ClassBound, FixedCircuits, Result
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve
from topox_core.schedule.source import TraceSource

WORDS = "circuits that nobody changes on demand; transfers take turns"


def in_turn(job: JobRequest, than_ms: float, stop: Stop) -> Iterator[FabricRun]:
    """Yield iterations on circuits that nobody changes, over what the settings leave free, as fixed circuits.

    Those of the provisioned controller where changes cost nothing, and plans of small graphs where a
    change takes ``than_ms``, an iteration. They do not depend on the delay of the job. Fair shares on
    the same circuits can take longer: two transfers that share one both end late.

    Raises
    ------
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    at_once = replace(job.at_delay(0.0), runs={})
    for lowering in tried("provisioned", at_once):
        with suppress(InputError):  # too many transfers, ports that cannot be cabled evenly
            order = at_once.lowered(lowering)
            if _few_peers(order.graph, order.cluster):
                for execution in _on_demand(order, than_ms, stop):
                    if not execution.circuits.changed.any():
                        yield from _fixed(order, execution)


def _on_demand(request: FabricRequest, than_ms: float, stop: Stop) -> Iterator[Execution]:
    yield run_provisioned(request, stop).execution
    settings = replace(request.settings.by_rules, switching="planned")
    if len(request.graph) <= MAX_COMPARED_NODES and not (settings.on_slots or settings.any_port):
        slow = request.cluster.changed(reconfiguration_ms=than_ms)
        planned = solve(request.graph, slow, settings, stop).execution
        if planned is not None:
            yield planned


def _few_peers(graph: TransferGraph, cluster: Cluster) -> bool:
    """Return whether no server sends to, or receives from, more servers than it has ports."""
    pairs = Pairs.of(graph, cluster)
    peers = (np.bincount(ends, minlength=1).max() for ends in (pairs.source, pairs.destination))
    return bool(max(peers) <= cluster.ports_per_server)


def _fixed(request: FabricRequest, execution: Execution) -> Iterator[FabricRun]:
    """Yield an execution that changes no circuit as one on fixed circuits: a transfer has one of its pair to itself.

    Raises
    ------
    InputError
        If a pair has no circuit, because all that it moves takes no time.
    """
    graph, cluster, circuits = request.graph, request.cluster, execution.circuits
    ends = np.stack([circuits.switch, circuits.source, circuits.source_port, circuits.destination])
    laid = np.zeros((cluster.servers, cluster.servers), np.int32)
    source, destination = np.unique(ends, axis=1)[[1, 3]]
    np.add.at(laid, (source, destination), 1)
    if cluster.duplex == "half" and (laid.astype(bool) & laid.T.astype(bool)).any():
        return  # fixed circuits both ways between two servers are one port at both ends
    pairs = Pairs.of(graph, cluster)
    routes: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {one: (one,) for one in pairs.ends}
    layout = Layout(laid, routes, WORDS)
    wiring = wired(layout, pairs, cluster)
    count = len(pairs)
    each, number = np.arange(count, dtype=np.int32), np.cumsum(laid.ravel() > 0).reshape(laid.shape)
    rates = PathRates(
        source=pairs.source,
        destination=pairs.destination,
        hop_path=each,
        hop_link=(number[pairs.source, pairs.destination] - 1).astype(np.int32),
        path=each,
        begin_ms=np.zeros(count),
        end_ms=np.full(count, execution.makespan_ms),
        bytes_per_ms=np.full(count, bytes_per_ms(cluster.port_gbps)),
    )
    standing = replace(execution, circuits=Circuits.none(), layout=layout, rates=rates)
    run = measured_on_links("static_graph", request, wiring, standing, WORDS)
    free = request.settings.free
    yield replace(run, chosen=LoweringChoice(request.settings.lowering, free)) if free else run


FIXED = {
    "static": TraceSource("fixed", "TopologyFinder's circuits"),
    "static_graph": TraceSource("fixed", "circuits searched for the task graph"),
}
# Iterations on fixed circuits that are kept: they serve every delay, those of a map at each of its speeds.
MAX_KEPT = 16
_kept = Latest[FabricRun](MAX_KEPT)


@dataclass(frozen=True)
class FixedBeside:
    """An iteration on circuits that never change, and what of it competes with plans."""

    run: FabricRun
    standing: FixedCircuits


def fixed_run(name: str, job: JobRequest, stop: Stop) -> FabricRun:
    """Run a job on TopologyFinder's circuits (``static``), or on those searched for its task graph (``static_graph``).

    They do not know the delay, so that one run serves every cluster that differs in nothing else.

    Raises
    ------
    InputError, Stopped
        As :func:`~topox_core.fabrics.fixed.static.run_static`.
    """
    if name == "static_graph" and "static" not in job.runs:
        with suppress(InputError):  # a search may connect those whom TopologyFinder does not
            job = replace(job, runs={**job.runs, "static": fixed_run("static", job, stop)})
    run_lowered = {"static": run_static, "static_graph": run_static_graph}[name]
    settings, options, started = job.settings, job.options, job.runs.get("static")
    key = (
        *(name, job.task_graph.digest, job.cluster.changed(reconfiguration_ms=0.0).digest),
        *(replace(settings.question, switching="auto"), settings.seed),
        *(options.topology_variant, options.layout_by, options.layout_steps),
        started and name != "static" and (started.execution.graph.digest, started.iteration_ms),
    )
    run = _kept.get(key) if options.layout is None else None
    if run is None:
        run = fastest_run(name, job, lambda order: run_lowered(order, stop))
        if name == "static_graph":
            for other in in_turn(job, run.iteration_ms, stop):
                if other.iteration_ms < run.iteration_ms * (1 - 1e-9):
                    run = other
        if options.layout is None:  # arrays, which a key would not tell apart
            _kept[key] = run
    return replace(run, execution=replace(run.execution, cluster=job.cluster))


def beside_fixed(job: JobRequest, stop: Stop) -> JobRequest:
    """Return the job with both kinds of fixed circuits among its runs, as far as they may be kept and can run."""
    if may_stay_fixed(job.settings):
        for name in FIXED:
            if name not in job.runs:
                with suppress(InputError):  # two servers that talk are not connected
                    job = replace(job, runs={**job.runs, name: fixed_run(name, job, stop)})
    return job


def beside_first_fixed(job: JobRequest, stop: Stop) -> JobRequest:
    """Return the job with the circuits that the matrix of bytes asks for, with which the search for its task graph begins.

    They stand for those that are searched, where somebody waits; the job runs on them as its settings lower it.
    """
    settings, options = job.settings, replace(job.options, layout_by="matrix")
    if may_stay_fixed(settings):
        with suppress(InputError):  # two servers that talk are not connected
            run = run_static(replace(job, options=options).lowered(settings.lowering), stop)
            chosen = LoweringChoice(settings.lowering, settings.free)
            run = replace(run, fabric="static_graph", chosen=chosen)
            return replace(job, runs={"static_graph": run})
    return job


def fixed_beside(request: FabricRequest, stop: Stop) -> FixedBeside | None:
    """Return the shorter iteration on circuits that never change; None where the settings or the graph rule it out.

    Fixed circuits share and forward, so that bounds that give a transfer one circuit at full speed
    do not hold for them: theirs lets a server send and receive on all its ports at once.
    """
    began, settings = time.monotonic(), request.settings
    if not may_stay_fixed(settings):
        return None
    try:
        known = [request.runs[name] for name in FIXED if name in request.runs]
        fixed = min(known or [run_static(request, stop)], key=lambda run: run.iteration_ms)
        layout, cluster = fixed.execution.layout, request.cluster
        room = cluster.switches * cluster.ports_per_switch
        if layout is not None and layout.circuits.sum() > room:
            # A patch panel has a place for every port; these switches have not (eq. 7).
            raise InputError(
                f"must be at least {-(-int(layout.circuits.sum()) // cluster.switches)} for circuits "
                f"that stay fixed (got {cluster.ports_per_switch})",
                file="cluster",
                field="ports_per_switch",
            )
    except InputError:
        if settings.switching == "fixed":
            raise
        return None  # too few places, or two servers that talk are not connected: only switching serves them
    except Stopped:
        return None
    bound, source, fixed_ms = ideal_bound(request), FIXED[fixed.fabric], fixed.iteration_ms
    bound_ms, wall_s = min(bound.ms, fixed_ms), time.monotonic() - began
    alone = settings.switching == "fixed"
    return FixedBeside(fixed, FixedCircuits(fixed_ms, bound_ms, bound.text, wall_s, source, alone))


def with_fixed(request: FabricRequest, result: Result, fixed: FixedBeside | None) -> Result:
    """Return the better of a schedule that switches and fixed circuits, as far as the settings allow both.

    The bound of the result is the smaller one of what was allowed.
    """
    if fixed is None or result.makespan_ms is None:
        return result
    standing, alone, chosen = fixed.standing, fixed.standing.alone, fixed.run.chosen
    keeps_fixed = alone or standing.makespan_ms < result.makespan_ms * (1 - MET)
    makespan_ms = standing.makespan_ms if keeps_fixed else result.makespan_ms
    weaker = alone or standing.bound_ms < result.bound_ms
    bound_ms = min(makespan_ms, standing.bound_ms if weaker else result.bound_ms)
    proved = makespan_ms <= bound_ms * (1 + MET)
    was_proof = result.stopped_by == "proof"
    beside = ClassBound(False, standing.makespan_ms, standing.bound_ms)
    return replace(
        result,
        status="optimal" if proved else "feasible",
        stopped_by="proof" if proved else "heuristic" if was_proof else result.stopped_by,
        makespan_ms=makespan_ms,
        bound_ms=bound_ms,
        bound_by=standing.bound_by if weaker else result.bound_by,
        unrounded_bound_ms=bound_ms,
        execution=with_rates(fixed.run.execution, request.settings.exclusive_devices)
        if keeps_fixed
        else result.execution,
        settings=replace(result.settings, lowering=chosen.lowering)
        if keeps_fixed and chosen is not None
        else result.settings,
        switching="fixed" if keeps_fixed else result.switching,
        classes=(beside,) if alone else (*result.classes, beside),
        alternative=result if keeps_fixed else None,
        trace=standing.joined(result.trace),
        wall_s=standing.wall_s + result.wall_s,  # on the clock of the trace
    )


def stays_fixed(result: Result, fixed: FabricRun) -> str:
    """Return why the circuits stay fixed, and which those are, in words."""
    which = f"They are {FIXED[fixed.fabric].name}."
    if result.alternative is None or result.settings.switching == "fixed":
        return f"The circuits stay fixed, as asked. {which}"
    return (
        "No plan found that switches is shorter: the circuits stay fixed; "
        f"the best one that switches takes {result.alternative.makespan_ms:.6g} ms. {which}"
    )


def may_stay_fixed(settings: Settings) -> bool:
    """Return whether circuits that never change are a choice; slots have no place for them."""
    return not settings.on_slots and settings.switching in ("auto", "fixed")
