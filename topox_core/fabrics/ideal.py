"""The ideal switch: non-blocking, d_S * B out of and into every server, and the best known way to use it.

No fabric with the same port totals is faster: whatever another one does, its circuits without the
delay, or its bytes from source to destination, is a schedule of this switch (docs/fabrics.md).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.fabrics.entry import OnIdeal
from topox_core.fabrics.fluid import FluidTasks, Pairs
from topox_core.fabrics.kernels.priority import PriorityTasks, by_priority
from topox_core.fabrics.links import ideal_bound, measured_on_links, non_blocking, shared_fairly
from topox_core.fabrics.options import GIVEN
from topox_core.fabrics.registry import ENTRIES, fabric
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.model.csr import row_of_entry
from topox_core.model.execution import Circuits, Execution
from topox_core.model.transfer_graph import TRANSFER, FloatArray, bytes_per_ms, shortest_ms
from topox_core.runs.stopping import Stop
from topox_core.schedule.replay import replayed

FAIR, URGENT, AS_PLANNED = "fair shares", "the most urgent first", "in the order of the plan"
SEARCHED = "in the best of many orders"
# Orders that are looked at, and nodes squared in all of them: 0.1 s. Each moves tasks by one of these
# shares of the order.
MAX_ORDERS, MAX_WORK = 1_000, 10_000_000
MOVED = (0.02, 0.1, 0.3)
# Fabrics that are run here where nobody did; the others are looked at where they were run anyway.
# (No plan on continuous time is behind the other controllers, one on slots may be.)
CANDIDATES = ("static", "reactive", "provisioned", "scheduled")


def run_ideal(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration on a non-blocking switch with d_S * B out of and into every server.

    The result is the best of fair shares, of priority by the longest remaining path and by the best
    plan, of the orders of every circuit fabric without delay, and of what static circuits do; the
    runs of those fabrics that ``request.runs`` does not hold are made here.

    Raises
    ------
    InputError
        If the graph names a server that the cluster does not have.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    best: Execution | None = None
    best_words = ""
    for words, execution in _executions(request, stop):
        if best is None or execution.makespan_ms < best.makespan_ms * (1 - 1e-12):
            best, best_words = execution, words
    assert best is not None
    gbps = request.cluster.ports_per_server * request.cluster.port_gbps
    message = f"{gbps:g} Gbit/s per server, non-blocking; {best_words}"
    # A transfer starts when it is ready, whatever its rate, as where all share fairly.
    execution = replace(best, start_ms=_ready_starts(best))
    request = replace(request, graph=best.graph)
    run = measured_on_links("ideal", request, non_blocking(request), execution, message)
    return replace(run, circuits_changed=0, dark_ms=0.0)  # not of the fabric that it does as


def _ready_starts(execution: Execution) -> FloatArray:
    """Return the starts, of transfers the end of their last predecessor."""
    graph, start_ms = execution.graph, execution.start_ms.copy()
    node = np.flatnonzero((graph.kind == TRANSFER) & (execution.end_ms > start_ms))
    ready_ms = np.zeros(len(graph))
    np.maximum.at(ready_ms, row_of_entry(graph.pred_ptr), execution.end_ms[graph.pred_idx])
    start_ms[node] = np.minimum(start_ms[node], ready_ms[node])
    return start_ms


def _executions(request: FabricRequest, stop: Stop) -> Iterator[tuple[str, Execution]]:
    """Yield schedules of the switch with the words for each."""
    yield FAIR, shared_fairly(request, non_blocking(request), stop)
    yield URGENT, _by_priority(request, _urgency(request))
    lowered = [replace(request, graph=other) for other in request.others]
    urgent = [_by_priority(other, _urgency(other)) for other in lowered]
    if urgent:
        yield URGENT, min(urgent, key=lambda execution: execution.makespan_ms)
    plans: list[Execution] = []
    others = [name for name in ENTRIES if name in request.runs and name not in CANDIDATES]
    for name in _as("circuits", CANDIDATES):
        for execution in _on_circuits(request, name, stop):
            plans.append(execution)
            yield f"as {name} without delay", execution
    at_once = request.cluster.changed(reconfiguration_ms=0.0)
    exclusive = request.settings.exclusive_devices
    for name in _as("circuits", others):
        yield (
            f"as {name} without delay",
            replayed(request.runs[name].execution, at_once, exclusive),
        )
    if plans:
        planned = min(plans, key=lambda execution: execution.makespan_ms)
        rank = np.lexsort((np.arange(len(planned.graph)), planned.start_ms))
        yield AS_PLANNED, _by_priority(replace(request, graph=planned.graph), rank)
        yield SEARCHED, _searched(replace(request, graph=planned.graph), rank)
    yield SEARCHED, _searched(request, _urgency(request))
    for name in _as("shares", CANDIDATES):
        try:
            shared = request.runs.get(name) or fabric(name)(request, stop)
        except InputError:
            continue
        yield f"as {name}", replace(shared.execution, circuits=Circuits.none(), layout=None)
        if shared.execution.graph is not request.graph:
            moved = replace(request, graph=shared.execution.graph)
            yield FAIR, shared_fairly(moved, non_blocking(moved), stop)
            yield URGENT, _by_priority(moved, _urgency(moved))
    for name in _as("shares", others):
        if _same_work(request.runs[name], request):
            also = request.runs[name].execution
            yield f"as {name}", replace(also, circuits=Circuits.none(), layout=None)


def _as(on_ideal: OnIdeal, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the fabrics that are this to the ideal switch."""
    return tuple(name for name in names if ENTRIES[name].on_ideal == on_ideal)


def _same_work(run: FabricRun, request: FabricRequest) -> bool:
    """Return whether a run moves the bytes of the request; a gating of its own moves others."""
    return run.fabric != "regional" or request.options.gating == GIVEN


def _on_circuits(base: FabricRequest, name: str, stop: Stop) -> Iterator[Execution]:
    """Yield a circuit fabric's orders without delay: as it runs here, and as it runs where changes cost nothing.

    Without the second the yardstick would move with the delay.
    """
    own = base.settings
    # What was searched or proved comes with ``runs``. Without delay there is nothing to come back to.
    own = replace(own, iteration="first", engine="printed" if own.engine == "printed" else "list")
    base = replace(base, settings=own)
    at_once = replace(base, runs={}, cluster=base.cluster.changed(reconfiguration_ms=0.0))
    if name == "scheduled" and own.switching != "provisioned":
        at_once = replace(at_once, settings=replace(own, switching="planned"))
    for request in [base] if base.cluster == at_once.cluster else [at_once, base]:
        try:
            execution = (request.runs.get(name) or fabric(name)(request, stop)).switching
        except InputError:  # ports that cannot be cabled evenly: no circuits at all
            return
        if name == "scheduled" and base.settings.circuits == "per-slot":
            # Slot by slot a transfer may move from port to port; as it is it keeps to what the
            # ports carry, unless pairs share a circuit at full rate each.
            if not base.settings.share_circuits:
                yield replace(execution, circuits=Circuits.none())
            return
        yield replayed(execution, at_once.cluster, base.settings.exclusive_devices)


def _urgency(request: FabricRequest) -> NDArray[np.intp]:
    """Return the nodes by the longest path from their start to the end at the full speed of a server."""
    graph, length = request.graph, shortest_ms(request.graph, request.cluster)
    return np.lexsort((np.arange(len(graph)), -(graph.tails(length) + length)))


def _by_priority(request: FabricRequest, nodes: NDArray[np.intp]) -> Execution:
    start, end = by_priority(priority_tasks(request, nodes))
    return Execution(request.graph, request.cluster, start, end, Circuits.none())


def _searched(request: FabricRequest, nodes: NDArray[np.intp]) -> Execution:
    """Return the best of many orders: one that is no worse than the best so far is the next to be changed."""
    tasks, count = priority_tasks(request, nodes), len(request.graph)
    draw = np.random.default_rng(request.settings.seed)
    start, end = by_priority(tasks)
    packets = replace(request, cluster=request.cluster.changed(duplex="full"))
    least_ms = ideal_bound(packets).ms * (1 + 1e-9)
    for _ in range(min(MAX_ORDERS, MAX_WORK // max(1, count) ** 2)):
        if end.max(initial=0.0) <= least_ms:
            break
        moved = tasks.rank + draw.normal(0.0, count * draw.choice(MOVED), count)
        rank = np.empty(count, np.int32)
        rank[np.argsort(moved, kind="stable")] = np.arange(count)
        changed = tasks._replace(rank=rank)
        other = by_priority(changed)
        if other[1].max(initial=0.0) <= end.max(initial=0.0):
            tasks, (start, end) = changed, other
    return Execution(request.graph, request.cluster, start, end, Circuits.none())


def priority_tasks(request: FabricRequest, nodes: NDArray[np.intp]) -> PriorityTasks:
    """Return what the compiled loop runs: ``nodes`` from the most urgent to the least."""
    graph, cluster, n = request.graph, request.cluster, request.cluster.servers
    pairs = Pairs.of(graph, cluster)
    tasks = FluidTasks.of(graph, cluster, pairs, request.settings.exclusive_devices)
    rank = np.empty(len(graph), np.int32)
    rank[nodes] = np.arange(len(graph))
    return PriorityTasks(
        np.diff(graph.pred_ptr),
        *graph.successors,
        tasks.length_ms,
        tasks.work_bytes,
        tasks.device,
        tasks.queue_ptr,
        np.maximum(graph.source, 0),
        (np.maximum(graph.destination, 0) + n).astype(np.int32),
        rank,
        np.full(2 * n, cluster.ports_per_server * bytes_per_ms(cluster.port_gbps)),
    )
