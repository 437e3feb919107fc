"""The ideal switch: non-blocking, d_S * B out of and into every server, and the best known way to use it.

No fabric with the same port totals is faster: whatever another one does, its circuits without the
delay, or its bytes from source to destination, is a schedule of this switch (docs/fabrics.md).
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topox_core.fabrics.fluid.links import (
    ideal_bound,
    measured_on_links,
    non_blocking,
    shared_fairly,
    switched,
)
from topox_core.fabrics.fluid.simulator import FluidTasks, Pairs
from topox_core.fabrics.kernels.events import run_until
from topox_core.fabrics.kernels.state import TaskTables, fresh
from topox_core.fabrics.options import GIVEN
from topox_core.fabrics.registry import ENTRIES
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.model.arrays.csr import ranks, row_of_entry
from topox_core.model.execution import Circuits, Execution
from topox_core.model.transfer_graph import (
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
    shortest_ms,
    work_bytes,
)
from topox_core.runs.run import Stop
from topox_core.schedule.planning.replay import replayed

FAIR, URGENT, AS_PLANNED = "fair shares", "the most urgent first", "in the order of the plan"
SEARCHED = "in the best of many orders"
# Orders that are looked at, and nodes squared in all of them: 0.1 s. Each moves tasks by one of these
# shares of the order.
MAX_ORDERS, MAX_WORK = 1_000, 10_000_000
MOVED = (0.02, 0.1, 0.3)


def run_ideal(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration on a non-blocking switch with d_S * B out of and into every server.

    The result is the best of fair shares, of priority by the longest remaining path and by the best
    plan, of the orders of every circuit fabric in ``request.runs`` without delay, and of what static
    circuits do there.

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
    for graph in (request.graph, *request.others):
        other = replace(request, graph=graph)
        yield URGENT, _by_priority(other, _urgency(other))
    planned: Execution | None = None
    for name in filter(request.runs.__contains__, ENTRIES):
        run = request.runs[name]
        if ENTRIES[name].on_ideal == "circuits":
            execution = _at_once(request, run)
            if execution is None:
                continue
            if planned is None or execution.makespan_ms < planned.makespan_ms:
                planned = execution
            yield f"as {name} without delay", execution
        elif ENTRIES[name].on_ideal == "shares" and (
            # A gating of its own moves other bytes.
            run.fabric != "regional" or request.options.gating == GIVEN
        ):
            yield f"as {name}", replace(run.execution, circuits=Circuits.none(), layout=None)
            moved = replace(request, graph=run.execution.graph)
            if moved.graph is not request.graph:
                yield FAIR, shared_fairly(moved, non_blocking(moved), stop)
                yield URGENT, _by_priority(moved, _urgency(moved))
    if planned is not None:
        in_order = replace(request, graph=planned.graph)
        rank = np.lexsort((np.arange(len(planned.graph)), planned.start_ms))
        yield AS_PLANNED, _by_priority(in_order, rank)
        yield SEARCHED, _searched(in_order, rank)
    yield SEARCHED, _searched(request, _urgency(request))


def _at_once(request: FabricRequest, run: FabricRun) -> Execution | None:
    """Return what a circuit fabric does, its changes taking no time; None where pairs share a circuit at full rate each.

    Slot by slot a transfer may move from port to port; as it is it keeps to what the ports carry.
    """
    execution, settings = run.switching, request.settings
    if run.fabric == "scheduled" and settings.circuits == "per-slot":
        return None if settings.share_circuits else replace(execution, circuits=Circuits.none())
    cluster = request.cluster.changed(reconfiguration_ms=0.0)
    return replayed(execution, cluster, settings.exclusive_devices)


def _urgency(request: FabricRequest) -> NDArray[np.intp]:
    """Return the nodes by the longest path from their start to the end at the full speed of a server."""
    graph, length = request.graph, shortest_ms(request.graph, request.cluster)
    return np.lexsort((np.arange(len(graph)), -(graph.tails(length) + length)))


def _by_priority(request: FabricRequest, nodes: NDArray[np.intp]) -> Execution:
    start, end = ran_by_rank(priority_tables(request), request.graph, ranks(nodes))
    return Execution(request.graph, request.cluster, start, end, Circuits.none())


def _searched(request: FabricRequest, nodes: NDArray[np.intp]) -> Execution:
    """Return the best of many orders: one that is no worse than the best so far is the next to be changed."""
    graph, tables, rank = request.graph, priority_tables(request), ranks(nodes)
    count, draw = len(graph), np.random.default_rng(request.settings.seed)
    start, end = ran_by_rank(tables, graph, rank)
    packets = replace(request, cluster=request.cluster.changed(duplex="full"))
    least_ms = ideal_bound(packets).ms * (1 + 1e-9)
    for _ in range(min(MAX_ORDERS, MAX_WORK // max(1, count) ** 2)):
        if end.max(initial=0.0) <= least_ms:
            break
        moved = rank + draw.normal(0.0, count * draw.choice(MOVED), count)
        changed = ranks(np.argsort(moved, kind="stable"))
        other = ran_by_rank(tables, graph, changed)
        if other[1].max(initial=0.0) <= end.max(initial=0.0):
            rank, (start, end) = changed, other
    return Execution(graph, request.cluster, start, end, Circuits.none())


def priority_tables(request: FabricRequest) -> TaskTables:
    """Return what the simulator runs where each transfer has a path of its own on the switch."""
    graph, cluster = request.graph, request.cluster
    moving = np.flatnonzero(work_bytes(graph, cluster) > 0)
    of_node = np.full(len(graph), -1, np.int32)
    of_node[moving] = np.arange(len(moving))
    ends = graph.source[moving], graph.destination[moving]
    pairs = Pairs(*ends, of_node, np.zeros(len(moving), np.bool_))
    nic_gbps = cluster.ports_per_server * cluster.port_gbps
    network = switched(pairs, cluster, nic_gbps, cluster.servers, 1.0).network
    return FluidTasks.of(graph, cluster, pairs, request.settings.exclusive_devices).on(network)


def ran_by_rank(
    tables: TaskTables, graph: TransferGraph, rank: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return (start, end): at every event the most urgent tasks take the devices and what ports have left."""
    tables = tables._replace(rank=rank)
    state = fresh(tables, np.diff(graph.pred_ptr))
    run_until(tables, state, np.zeros(len(graph)), np.inf)
    return state.start, state.end
