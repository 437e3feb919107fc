"""The critical path of an execution: the tasks, waits and dark time that add up to its length."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.model.execution import EPS_MS, Execution, in_port, out_port
from topox_core.model.transfer_graph import BARRIER, COMPUTE, TRANSFER, FloatArray, IntArray

Waits = Literal["start", "dependency", "device", "port", "circuits"]
# Of ties, the order in which they are followed.
PREFERENCE: tuple[Waits, ...] = ("dependency", "device", "port", "circuits")


@dataclass(frozen=True)
class CriticalPath:
    """Nodes in time order, what each waited for, and how the time up to its end was spent.

    Between the end of one node and the end of the next lie, in this order: ``slack_ms`` in which
    nothing happened (waiting for a slot), the dark time from ``begin_ms`` to ``start_ms``, and the
    work until ``end_ms``. The first node counts from 0, so all of them add up to the makespan.
    ``waits`` names what tied a node to the one before it: a dependency, its device, a port of its
    circuit, or the number of circuits that may exist at once.
    """

    nodes: IntArray
    begin_ms: FloatArray
    start_ms: FloatArray
    end_ms: FloatArray
    slack_ms: FloatArray
    waits: tuple[Waits, ...]

    def __len__(self) -> int:
        return len(self.nodes)

    def shares(self, kind: NDArray[np.int8]) -> dict[str, float]:
        """Return what the time along the path is spent on, as shares of it.

        ``compute``; ``transfer``; ``port``: a transfer that holds a port (or a place on a switch)
        which the next one on the path waits for; ``circuit``: ports being set up; ``slot``: waiting for
        a slot to begin.

        Parameters
        ----------
        kind
            Of every node of the graph.
        """
        work_ms = self.end_ms - self.start_ms
        held = np.array(
            [why in ("port", "circuits") for why in (*self.waits[1:], "start")], np.bool_
        )
        moves = kind[self.nodes] != COMPUTE
        spent = {
            "compute": work_ms[~moves].sum(),
            "transfer": work_ms[moves & ~held].sum(),
            "port": work_ms[moves & held].sum(),
            "circuit": (self.start_ms - self.begin_ms).sum(),
            "slot": self.slack_ms.sum(),
        }
        whole = float(sum(spent.values()))
        return {what: float(ms) / whole if whole > 0 else 0.0 for what, ms in spent.items()}

    def mask(self, n: int) -> NDArray[np.bool_]:
        """Return for n nodes whether each lies on the path."""
        on = np.zeros(n, np.bool_)
        on[self.nodes] = True
        return on


def critical_path(execution: Execution, exclusive_devices: bool = True) -> CriticalPath:
    """Return the path back from the last end through the tightest constraint of each node.

    A node starts when its last predecessor has ended, its device is free, and the circuit before
    its own has left both ports and the set-up is over. The constraint that leaves the smallest gap
    is followed. A port's gap counts to the set-up, so the whole delay is dark where a port decided
    the start, and only the part after the predecessor's end where that decided it.

    Parameters
    ----------
    execution
        Of any fabric; where circuits say nothing (packet fabrics, static circuits) nothing is dark.
    exclusive_devices
        Whether a task may have waited for its device.
    """
    graph, end = execution.graph, execution.end_ms
    rows: list[tuple[int, float, float, float, float, Waits]] = []
    if len(graph):
        constraints = _Constraints(execution, exclusive_devices)
        latest = np.flatnonzero(end >= execution.makespan_ms - EPS_MS)
        # Of equal last ends, work rather than a barrier, and the first in the graph.
        node = int(max(latest.tolist(), key=lambda i: (end[i], graph.kind[i] != BARRIER, -i)))
        until = float(end[node])
        while node >= 0:
            before, why = constraints.tightest(node)
            start = min(until, float(constraints.start[node]))
            freed = min(start, float(end[before])) if before >= 0 else 0.0
            begin = min(start, max(freed, float(constraints.setup[node])))
            rows.append((node, begin, start, until, begin - freed, why))
            node, until = before, freed
    columns = list(zip(*reversed(rows), strict=True)) or [()] * 6
    begin_ms, start_ms, end_ms, slack_ms = (np.array(c, np.float64) for c in columns[1:5])
    nodes = np.array(columns[0], np.int32)
    return CriticalPath(nodes, begin_ms, start_ms, end_ms, slack_ms, tuple(columns[5]))


class _Constraints:
    """What each node of an execution may have waited for: its work's start, its set-up, who held its lanes before."""

    def __init__(self, execution: Execution, exclusive_devices: bool) -> None:
        graph, circuits = execution.graph, execution.circuits
        self.execution = execution
        self.end = execution.end_ms
        self.start, self.setup = execution.start_ms.copy(), execution.start_ms.copy()
        self.device_before = np.full(len(graph), -1, np.int64)
        self.ports_before = np.full((2, len(graph)), -1, np.int64)
        if exclusive_devices:
            held = np.flatnonzero((graph.kind == COMPUTE) & (self.end > self.start))
            before = _before(graph.devices()[0][held], self.start[held])
            known = before >= 0
            self.device_before[held[known]] = held[before[known]]
        # Of each transfer the circuit that begins first.
        in_time = np.argsort(circuits.start_ms, kind="stable")
        self.carried, first = np.unique(circuits.node[in_time], return_index=True)
        if len(circuits):
            first, node = in_time[first], self.carried
            self.setup[node] = circuits.setup_ms[first]
            self.start[node] = np.maximum(self.start[node], circuits.start_ms[first])
            for row, before in enumerate(_port_holders(execution)):
                known = before[first] >= 0
                self.ports_before[row, node[known]] = circuits.node[before[first[known]]]

    def tightest(self, node: int) -> tuple[int, Waits]:
        """Return what ``node`` waited for with the smallest gap, -1 and ``start`` if nothing; ties by :data:`PREFERENCE`."""
        start = float(self.start[node])
        if start <= EPS_MS:
            return -1, "start"
        options = self._options(node)
        gap = min((option[0] for option in options), default=math.inf)
        slot_ms = self.execution.cluster.slot_ms
        on_slot = abs(start - round(start / slot_ms) * slot_ms) <= EPS_MS
        if gap > 2 * EPS_MS and not (on_slot and gap < slot_ms - EPS_MS):
            options += self._freed_circuit(node)
        if not options:
            return -1, "start"
        gap = min(option[0] for option in options)
        _, _, before, rank = min(
            (rank, size, other, rank) for size, rank, other in options if size <= gap + EPS_MS
        )
        return before, PREFERENCE[rank]

    def _options(self, node: int) -> list[tuple[float, int, int]]:
        """Return (gap in ms, place in :data:`PREFERENCE`, other node) for each constraint that may have held."""
        graph, end = self.execution.graph, self.end
        start, setup = float(self.start[node]), float(self.setup[node])
        options: list[tuple[float, int, int]] = []
        preds = graph.pred_idx[graph.pred_ptr[node] : graph.pred_ptr[node + 1]]
        if len(preds):
            last = int(preds[np.argmax(end[preds])])
            options.append((max(0.0, start - float(end[last])), 0, last))
            if setup < start and abs(setup - float(end[last])) <= EPS_MS:
                # A controller that asks for a circuit when its transfer is ready; a port that was
                # freed just then explains the same start and goes first.
                options.append((2 * EPS_MS, 0, last))
        device = int(self.device_before[node])
        if self._may_block(device, node, start):
            options.append((max(0.0, start - float(end[device])), 1, device))
        cluster = self.execution.cluster
        dark_ms = math.ceil(cluster.reconfiguration_ms / cluster.slot_ms - 1e-9) * cluster.slot_ms
        for other in self.ports_before[:, node].tolist():
            if self._may_block(other, node, setup):
                gap = max(0.0, setup - float(end[other]))
                if setup < start and abs(start - float(end[other]) - dark_ms) <= EPS_MS:
                    gap = 0.0  # on slots the delay takes whole slots
                options.append((gap, 2, other))
        return options

    def _may_block(self, other: int, node: int, by_ms: float) -> bool:
        """Whether ``other`` ended by a time; starting strictly earlier keeps the path from turning in a circle."""
        if other < 0:
            return False
        return bool(self.start[other] < self.start[node] and self.end[other] <= by_ms + EPS_MS)

    def _freed_circuit(self, node: int) -> list[tuple[float, int, int]]:
        """Return a transfer whose end freed a circuit, where the total or the duplex of ports was the limit."""
        graph = self.execution.graph
        if graph.kind[node] != TRANSFER:
            return []
        ended = self.carried[np.abs(self.end[self.carried] - self.setup[node]) <= EPS_MS]
        ended = ended[self.start[ended] < self.start[node]]
        if not len(ended):
            return []
        mine = (int(graph.source[node]), int(graph.destination[node]))
        shares = np.isin(graph.source[ended], mine) | np.isin(graph.destination[ended], mine)
        return [(0.0, 3, int(ended[np.argmax(shares)]))]


def _port_holders(execution: Execution) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for every circuit the row that held its out-port before, and its in-port; -1 where none did.

    With half duplex a port is held in either direction.
    """
    circuits, n = execution.circuits, len(execution.circuits)
    ports = np.concatenate((out_port(circuits), in_port(circuits)))
    if execution.cluster.duplex != "half":
        ports[n:] += int(ports.max()) + 1
    before = _before(ports, np.tile(circuits.start_ms, 2))
    before = np.where(before >= 0, before % n, -1)
    return before[:n], before[n:]


def _before(lane: IntArray | NDArray[np.int64], start_ms: FloatArray) -> NDArray[np.int64]:
    """Return for every interval the one before it on its lane, -1 for the first."""
    order = np.lexsort((start_ms, lane))
    same = lane[order][1:] == lane[order][:-1]
    before = np.full(len(lane), -1, np.int64)
    before[order[1:][same]] = order[:-1][same]
    return before
