"""What an execution amounts to: how busy devices and ports are, how often circuits change, which chain sets the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.model.execution import Circuits, Execution
from topox_core.model.transfer_graph import BARRIER, COMPUTE, FloatArray, IntArray

EPS_MS = 1e-6


@dataclass(frozen=True)
class Measures:
    """Shares are of the whole cluster over the whole iteration, 0 to 1; times in ms.

    Attributes
    ----------
    device_busy
        Share of device time spent computing (a device that runs two tasks at once counts once).
    port_carrying, port_dark
        Share of out-port time with data on the circuit, and with the circuit being set up.
    circuits_changed
        Set-ups of a circuit that its ports did not hold before.
    mean_life_ms
        Mean time from a circuit's first use to the end of its last use before a port turns away;
        None without circuits.
    dark_ms
        Dark time summed over circuits.
    """

    makespan_ms: float
    device_busy: float
    port_carrying: float
    port_dark: float
    circuits_changed: int
    circuits_used: int
    mean_life_ms: float | None
    dark_ms: float

    @property
    def port_idle(self) -> float:
        """Share of out-port time with neither data nor set-up."""
        return max(0.0, 1.0 - self.port_carrying - self.port_dark)


def covered_ms(group: NDArray[np.int64], start_ms: FloatArray, end_ms: FloatArray) -> float:
    """Return the time covered by intervals, summed over groups; overlap within a group counts once."""
    if not len(group):
        return 0.0
    order = np.lexsort((start_ms, group))
    group, start, end = group[order], start_ms[order], end_ms[order]
    # Shift every group beyond the last, so that one running maximum serves all.
    shift = (float(end.max()) + 1.0) * np.searchsorted(np.unique(group), group)
    start, end = start + shift, end + shift
    reach = np.maximum.accumulate(end)
    before = np.concatenate(([-np.inf], reach[:-1]))
    return float(np.clip(end - np.maximum(start, before), 0.0, None).sum())


def out_port(circuits: Circuits) -> NDArray[np.int64]:
    """Return one number for each circuit's out-port: server, switch and port together."""
    return _port_number(circuits.source, circuits.switch, circuits.source_port)


def in_port(circuits: Circuits) -> NDArray[np.int64]:
    """Return one number for each circuit's in-port: server, switch and port together."""
    return _port_number(circuits.destination, circuits.switch, circuits.destination_port)


def _port_number(server: IntArray, switch: IntArray, port: IntArray) -> NDArray[np.int64]:
    return (server.astype(np.int64) * 8192 + switch) * 8192 + port


def measures(execution: Execution) -> Measures:
    """Return the measures of an execution."""
    graph, cluster, circuits = execution.graph, execution.cluster, execution.circuits
    makespan = execution.makespan_ms
    compute = graph.kind == COMPUTE
    device = (
        graph.server[compute].astype(np.int64) * cluster.devices_per_server + graph.device[compute]
    )
    busy = covered_ms(device, execution.start_ms[compute], execution.end_ms[compute])
    port = out_port(circuits)
    carrying = covered_ms(port, circuits.start_ms, circuits.end_ms)
    held = covered_ms(port, circuits.setup_ms, circuits.end_ms)
    device_time = makespan * cluster.servers * cluster.devices_per_server
    port_time = makespan * cluster.servers * cluster.ports_per_server
    lives = circuit_lives_ms(circuits)
    return Measures(
        makespan_ms=makespan,
        device_busy=busy / device_time if device_time else 0.0,
        port_carrying=carrying / port_time if port_time else 0.0,
        port_dark=(held - carrying) / port_time if port_time else 0.0,
        circuits_changed=int(circuits.changed.sum()),
        circuits_used=len(circuits),
        mean_life_ms=float(lives.mean()) if len(lives) else None,
        dark_ms=float((circuits.start_ms - circuits.setup_ms).sum()),
    )


def circuit_lives_ms(circuits: Circuits) -> FloatArray:
    """Return, for every circuit that was set up, how long it served: first use to end of last use before its port turned."""
    if not len(circuits):
        return np.zeros(0)
    port = out_port(circuits)
    order = np.lexsort((circuits.start_ms, port))
    port = port[order]
    begins = circuits.changed[order].copy()
    begins[0] = True
    begins[1:] |= port[1:] != port[:-1]
    first = np.flatnonzero(begins)
    start = circuits.start_ms[order][first]
    last = np.maximum.reduceat(circuits.end_ms[order], first)
    lives: FloatArray = last - start
    return lives


def port_table(execution: Execution) -> dict[str, list[float | int]]:
    """Return one row an out-port in use: server, switch, port, transfers, changes, carrying and dark ms and share."""
    circuits = execution.circuits
    port, inverse = np.unique(out_port(circuits), return_inverse=True)
    n = len(port)
    carrying = np.bincount(inverse, circuits.end_ms - circuits.start_ms, n)
    dark = np.bincount(inverse, circuits.start_ms - circuits.setup_ms, n)
    makespan = execution.makespan_ms or 1.0
    return {
        "server": (port // 8192 // 8192).tolist(),
        "switch": (port // 8192 % 8192).tolist(),
        "port": (port % 8192).tolist(),
        "transfers": np.bincount(inverse, minlength=n).tolist(),
        "circuit changes": np.bincount(inverse, circuits.changed, n).astype(int).tolist(),
        "carrying (ms)": carrying.tolist(),
        "dark (ms)": dark.tolist(),
        "carrying (%)": (100 * carrying / makespan).tolist(),
        "dark (%)": (100 * dark / makespan).tolist(),
    }


def ports_in_use(start_ms: FloatArray, end_ms: FloatArray, edges_ms: FloatArray) -> FloatArray:
    """Return the mean number of intervals active between consecutive edges, exactly."""
    starts, ends = np.sort(start_ms), np.sort(end_ms)

    def elapsed(points: FloatArray) -> FloatArray:
        """Return the sum over intervals of the time since each point in ``points``, up to now."""
        sums = np.concatenate(([0.0], np.cumsum(points)))
        k = np.searchsorted(points, edges_ms, "right")
        result: FloatArray = k * edges_ms - sums[k]
        return result

    total = elapsed(starts) - elapsed(ends)
    mean: FloatArray = np.clip(np.diff(total) / np.diff(edges_ms), 0.0, None)
    return mean


Waits = Literal["start", "dependency", "device", "port", "circuits"]


@dataclass(frozen=True)
class CriticalChain:
    """Nodes in time order, when each begins to hold the chain, and what each waited for.

    ``begin_ms`` is a transfer's ``setup_ms`` where its dark stretch lies on the chain, else the
    start. ``waits`` says what tied a node to the one before it: a dependency, its device, a port of
    its circuit, or the number of circuits that may exist at once. ``slack_ms`` is what the tie
    leaves open: a transfer waiting for its slot to begin, or 0.
    """

    nodes: IntArray
    begin_ms: FloatArray
    waits: tuple[Waits, ...]
    slack_ms: FloatArray

    def __len__(self) -> int:
        return len(self.nodes)

    def mask(self, n: int) -> NDArray[np.bool_]:
        """Return for n nodes whether each lies on the chain."""
        on = np.zeros(n, np.bool_)
        on[self.nodes] = True
        return on


def critical_tasks(execution: Execution) -> CriticalChain:
    """Walk back from the last end through whatever each node waited for: a chain that realises the makespan."""
    graph = execution.graph
    if not len(graph):
        return CriticalChain(np.zeros(0, np.int32), np.zeros(0), (), np.zeros(0))
    blockers = _Blockers(execution)
    # Of equal last ends, prefer work over a barrier, so that the chain ends in something visible.
    last = np.flatnonzero(execution.end_ms >= execution.makespan_ms - EPS_MS)
    node = int(
        max(
            last,
            key=lambda i: (graph.kind[i] != BARRIER, execution.end_ms[i] - execution.start_ms[i]),
        )
    )
    nodes, begins, waits, slacks = [], [], [], []
    seen: set[int] = set()
    while node >= 0 and node not in seen:
        seen.add(node)
        before, why, begin, slack = blockers.of(node)
        nodes.append(node)
        begins.append(begin)
        waits.append(why)
        slacks.append(slack)
        node = before
    return CriticalChain(
        np.array(nodes[::-1], np.int32),
        np.array(begins[::-1]),
        tuple(waits[::-1]),
        np.array(slacks[::-1]),
    )


class _Blockers:
    """For one execution: who ran before on each device and port, found once by sorting."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        graph, circuits = execution.graph, execution.circuits
        n = len(graph)
        self.start, self.end = execution.start_ms, execution.end_ms
        self.setup = self.start.copy()
        self.device_before = np.full(n, -1, np.int64)
        compute = np.flatnonzero((graph.kind == COMPUTE) & (self.end > self.start))
        device = graph.server[compute].astype(np.int64) * 8192 + graph.device[compute]
        self._previous(compute.astype(np.int64), device, self.start[compute], self.device_before)
        self.out_before = np.full(n, -1, np.int64)
        self.in_before = np.full(n, -1, np.int64)
        if len(circuits):
            # The first circuit of a transfer (circuits come in order of start) is the one it waited
            # for.
            node, first = np.unique(circuits.node, return_index=True)
            self.setup[node] = circuits.setup_ms[first]
            for port, before in (
                (out_port(circuits), self.out_before),
                (in_port(circuits), self.in_before),
            ):
                self._previous(node.astype(np.int64), port[first], circuits.start_ms[first], before)
        self.transfers = np.unique(circuits.node)

    @staticmethod
    def _previous(
        node: NDArray[np.int64],
        lane: NDArray[np.int64],
        start: FloatArray,
        before: NDArray[np.int64],
    ) -> None:
        order = np.lexsort((start, lane))
        same = lane[order][1:] == lane[order][:-1]
        before[node[order][1:][same]] = node[order][:-1][same]

    def of(self, node: int) -> tuple[int, Waits, float, float]:
        """Return who let ``node`` start, why, when the node begins to hold the chain, and the slack left."""
        graph, start = self.execution.graph, float(self.start[node])
        if start <= EPS_MS:
            return -1, "start", start, 0.0
        options: list[tuple[float, int, int, Waits, float]] = []
        preds = graph.pred_idx[graph.pred_ptr[node] : graph.pred_ptr[node + 1]]
        if len(preds):
            best = int(preds[np.argmax(self.end[preds])])
            slack = start - float(self.end[best])
            # A transfer waits for the next slot: within one slot the tie is as tight as the clock
            # allows.
            on_grid = (
                graph.kind[node] not in (COMPUTE, BARRIER)
                and slack < self.execution.cluster.slot_ms - EPS_MS
            )
            options.append((0.0 if on_grid else slack, 0, best, "dependency", start))
        setup = float(self.setup[node])
        held: list[tuple[int, Waits]] = [
            (int(self.device_before[node]), "device"),
            (int(self.out_before[node]), "port"),
            (int(self.in_before[node]), "port"),
        ]
        for other, why in held:
            if other >= 0 and self.end[other] <= setup + EPS_MS:
                options.append((max(0.0, setup - float(self.end[other])), 1, other, why, setup))
        if min((option[0] for option in options), default=np.inf) > EPS_MS and graph.kind[
            node
        ] not in (COMPUTE, BARRIER):
            options += self._any_circuit(node, setup)
        options = [o for o in options if self.end[o[2]] <= start + EPS_MS]
        if not options:
            return -1, "start", setup if setup > EPS_MS else start, 0.0
        _, _, before, why, begin = min(options)
        return before, why, begin, max(0.0, begin - float(self.end[before]))

    def _any_circuit(self, node: int, setup: float) -> list[tuple[float, int, int, Waits, float]]:
        """Return a transfer whose end freed a circuit, where the total or the duplex of ports was the limit."""
        ended = self.transfers[np.abs(self.end[self.transfers] - setup) <= EPS_MS]
        ended = ended[ended != node]
        if not len(ended):
            return []
        graph = self.execution.graph
        mine = (int(graph.source[node]), int(graph.destination[node]))
        shares = np.isin(graph.source[ended], mine) | np.isin(graph.destination[ended], mine)
        return [(0.0, 2, int(ended[np.argmax(shares)]), "circuits", setup)]
