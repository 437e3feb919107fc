"""Where the iteration's time goes, along one chain that explains all of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.fabrics.run import Breakdown
from topox_core.model.execution import Circuits, Execution
from topox_core.model.measures import in_port, out_port
from topox_core.model.transfer_graph import BARRIER, COMPUTE, FloatArray

EPS_MS = 1e-6


def breakdown(execution: Execution, exclusive_devices: bool = True) -> Breakdown:
    """Return compute, exposed transfer, dark and waiting time along the chain that sets the iteration.

    The chain runs back from the last end. Every node is followed by what it waited for and what
    ended last: a predecessor, the task before it on its device, or the circuit before its own on
    one of its two ports. From there to its start, the part in which its circuit was being set up is
    dark, and the rest is waiting. So dark time that hides behind other work on the chain does not
    count, and the four add up to the iteration.

    Parameters
    ----------
    execution
        Of any fabric; where circuits say nothing (packet fabrics, static circuits) there is no dark
        time.
    exclusive_devices
        Whether a task may have waited for its device.
    """
    graph = execution.graph
    if not len(graph):
        return Breakdown(0.0, 0.0, 0.0, 0.0)
    start, setup, before = _waited_for(execution, exclusive_devices)
    end = execution.end_ms
    latest = np.flatnonzero(end >= execution.makespan_ms - EPS_MS)
    # Of equal last ends, work rather than a barrier, and the first in the graph.
    node = int(max(latest.tolist(), key=lambda i: (end[i], graph.kind[i] != BARRIER, -i)))
    spent = {"compute": 0.0, "exposed": 0.0, "dark": 0.0, "waiting": 0.0}
    now = float(end[node])
    while True:
        kind = "compute" if graph.kind[node] == COMPUTE else "exposed"
        began = min(now, float(start[node]))
        spent[kind] += now - began
        blocker = _latest(execution, node, start, before)
        freed = min(began, float(end[blocker])) if blocker >= 0 else 0.0
        dark = began - min(began, max(freed, float(setup[node])))
        spent["dark"] += dark
        spent["waiting"] += began - freed - dark
        if blocker < 0:
            break
        node, now = blocker, freed
    return Breakdown(spent["compute"], spent["exposed"], spent["dark"], spent["waiting"])


def _latest(execution: Execution, node: int, start: FloatArray, before: NDArray[np.int64]) -> int:
    """Return what ``node`` waited for longest, -1 if nothing; among equals a predecessor, then the device, then a port."""
    graph, end = execution.graph, execution.end_ms
    if start[node] <= EPS_MS:
        return -1
    best = -1
    for other in graph.pred_idx[graph.pred_ptr[node] : graph.pred_ptr[node + 1]].tolist():
        if best < 0 or end[other] > end[best]:
            best = other
    for other in before[:, node].tolist():
        # Starting strictly earlier keeps the chain from turning in a circle.
        if (
            other >= 0
            and start[other] < start[node]
            and end[other] <= start[node] + EPS_MS
            and (best < 0 or end[other] > end[best] + EPS_MS)
        ):
            best = other
    return best


def _waited_for(
    execution: Execution, exclusive_devices: bool
) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Return when each node began to work, when its circuit began to be set up, and who was before it.

    The rows of the last: on its device, on its out-port, on its in-port; -1 where nobody was.
    """
    graph, circuits = execution.graph, execution.circuits
    start, setup = execution.start_ms.copy(), execution.start_ms.copy()
    before = np.full((3, len(graph)), -1, np.int64)
    if exclusive_devices:
        held = np.flatnonzero((graph.kind == COMPUTE) & (execution.end_ms > execution.start_ms))
        device = (
            graph.server[held].astype(np.int64) * execution.cluster.devices_per_server
            + graph.device[held]
        )
        _previous(held, device, execution.start_ms[held], before[0])
    if len(circuits):
        first = _first_rows(circuits)
        node = circuits.node[first].astype(np.int64)
        setup[node] = circuits.setup_ms[first]
        start[node] = np.maximum(start[node], circuits.start_ms[first])
        for row, port in ((1, out_port(circuits)), (2, in_port(circuits))):
            _previous_circuit(circuits, port, first, before[row])
    return start, setup, before


def _first_rows(circuits: Circuits) -> NDArray[np.int64]:
    """Return, for every transfer with a circuit, the row of its first one."""
    order = np.lexsort((circuits.start_ms, circuits.node))
    node = circuits.node[order]
    return order[np.concatenate(([True], node[1:] != node[:-1]))].astype(np.int64)


def _previous(
    node: NDArray[np.intp], lane: NDArray[np.int64], start: FloatArray, before: NDArray[np.int64]
) -> None:
    order = np.lexsort((start, lane))
    same = lane[order][1:] == lane[order][:-1]
    before[node[order][1:][same]] = node[order][:-1][same]


def _previous_circuit(
    circuits: Circuits, port: NDArray[np.int64], first: NDArray[np.int64], before: NDArray[np.int64]
) -> None:
    """Enter for each transfer whose circuit the port held before the transfer's first one."""
    order = np.lexsort((circuits.start_ms, port))
    same = port[order][1:] == port[order][:-1]
    row_before = np.full(len(circuits), -1, np.int64)
    row_before[order[1:][same]] = order[:-1][same]
    mine = row_before[first]
    known = mine >= 0
    before[circuits.node[first[known]]] = circuits.node[mine[known]]
