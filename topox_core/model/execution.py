"""What every fabric returns: when each task ran and which circuits carried the transfers, changing or laid before; its measures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.intervals import Line, added_ms, covered_ms
from topox_core.model.cluster import Cluster
from topox_core.model.transfer_graph import COMPUTE, FloatArray, IntArray, TransferGraph


@dataclass(frozen=True)
class PortsHeld:
    """The switch and the ports that carry each transfer, ports numbered within (server, switch) from 0."""

    node: IntArray
    switch: IntArray
    source_port: IntArray
    destination_port: IntArray


@dataclass(frozen=True)
class BookedPorts(PortsHeld):
    """Ports that are held, and whether one of the two changed its circuit for the transfer."""

    changed: NDArray[np.bool_]


@dataclass(frozen=True)
class Circuits(BookedPorts):
    """Circuit intervals as arrays, ordered by start, then switch, source and port.

    A circuit is dark from ``setup_ms`` to ``start_ms`` (equal where the ports already held it or
    nothing is charged), carries until ``end_ms``. ``node`` is the transfer it carries. Ports matter
    only with several of a server on a switch. ``changed`` is true where one of the two ports held
    another circuit before. Where the iteration repeats, a port begins with its last circuit, and what
    its first one takes to be set up may begin in the iteration before, at a time below 0; else the
    first circuit of a port stands before the iteration begins and is no change.
    """

    source: IntArray
    destination: IntArray
    setup_ms: FloatArray
    start_ms: FloatArray
    end_ms: FloatArray

    def __len__(self) -> int:
        return len(self.switch)

    def dark_times(self, period_ms: float) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Return (row, begin, end) of all times within an iteration in which a circuit is dark.

        What began in the iteration before stands at the end of this one, which is as long.
        """
        row = np.flatnonzero(self.start_ms > self.setup_ms)
        begin, end = self.setup_ms[row], self.start_ms[row]
        early = np.flatnonzero(begin < 0)
        row = np.concatenate([row, row[early]])
        end = np.concatenate([end, np.full(len(early), period_ms)])
        begin = np.concatenate([np.maximum(begin, 0.0), begin[early] + period_ms])
        lasts = np.flatnonzero(end > begin)
        return row[lasts], begin[lasts], end[lasts]

    @staticmethod
    def none() -> Circuits:
        """Return no circuits at all."""
        i, f = np.zeros(0, np.int32), np.zeros(0)
        return Circuits(i, i, i, i, np.zeros(0, np.bool_), i, i, f, f, f)

    @staticmethod
    def at(
        graph: TransferGraph,
        ports: BookedPorts,
        start_ms: FloatArray,
        end_ms: FloatArray,
        delay_ms: float,
    ) -> Circuits:
        """Return the circuits of transfers that run at given times; a port that changes is dark up to the start."""
        node = ports.node
        source, begin = graph.source[node], start_ms[node]
        rows = np.lexsort((ports.source_port, source, ports.switch, begin))
        return Circuits(
            switch=ports.switch[rows],
            source=source[rows],
            destination=graph.destination[node][rows],
            source_port=ports.source_port[rows],
            destination_port=ports.destination_port[rows],
            setup_ms=np.where(ports.changed, begin - delay_ms, begin)[rows],
            start_ms=begin[rows],
            end_ms=end_ms[node][rows],
            node=node[rows],
            changed=ports.changed[rows],
        )


@dataclass(frozen=True)
class Layout:
    """Circuits fixed before the job.

    Attributes
    ----------
    circuits
        Matrix servers x servers: parallel circuits from source (row) to destination (column); they
        add up.
    routes
        For (source, destination) the servers a transfer passes, both ends included, one or more
        equal-share paths: ``routes[(a, b)] == ((a, c, b),)``. A pair that never talks may be
        absent.
    name
        How it was made, in words.
    """

    circuits: NDArray[np.int32]
    routes: dict[tuple[int, int], tuple[tuple[int, ...], ...]]
    name: str = ""

    @property
    def servers(self) -> int:
        """Number of servers."""
        return len(self.circuits)

    @cached_property
    def links(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return (source, destination, circuits) of every link, by source, then destination."""
        source, destination = np.nonzero(self.circuits)
        return (
            source.astype(np.int32),
            destination.astype(np.int32),
            self.circuits[source, destination].astype(np.int32),
        )

    def link_rows(self) -> list[dict[str, int]]:
        """Return the circuits from each server to each other, as JSON has them."""
        names = ("source", "destination", "circuits")
        rows = zip(*(ends.tolist() for ends in self.links), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]


@dataclass(frozen=True)
class PathRates:
    """What fixed circuits give to the transfers that share them: the proof that an execution keeps to their speed.

    A transfer is split evenly over the paths of its pair of servers; all that are under way on a
    path at once get the same rate.

    Attributes
    ----------
    source, destination
        Ends of each path.
    hop_path, hop_link
        Which links of ``Layout.links`` a path crosses, in rows.
    path, begin_ms, end_ms, bytes_per_ms
        The rate of one transfer on a path from when until when, in rows; none where nobody sends.
    """

    source: IntArray
    destination: IntArray
    hop_path: IntArray
    hop_link: IntArray
    path: IntArray
    begin_ms: FloatArray
    end_ms: FloatArray
    bytes_per_ms: FloatArray


@dataclass(frozen=True)
class Execution:
    """One training iteration as it ran: task and circuit intervals on one clock, in ms.

    Where circuits stay fixed and transfers share them, ``layout`` says which there are, ``rates``
    what each path gives (where they were recorded), and ``circuits`` is empty.
    """

    graph: TransferGraph
    cluster: Cluster
    start_ms: FloatArray
    end_ms: FloatArray
    circuits: Circuits
    layout: Layout | None = None
    rates: PathRates | None = None

    @property
    def makespan_ms(self) -> float:
        """End of the last task."""
        return float(self.end_ms.max()) if len(self.end_ms) else 0.0


EPS_MS = 1e-6
# Some of the rows of arrays: by a mask, or all of them.
Rows = NDArray[np.bool_] | slice


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
    row, begin, end = circuits.dark_times(makespan)
    held = covered_ms(
        np.concatenate([port, port[row]]),
        np.concatenate([circuits.start_ms, begin]),
        np.concatenate([circuits.end_ms, end]),
    )
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


def held_circuits(circuits: Circuits) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows by out-port and time, and which of these begin a circuit; its port holds it until the next."""
    port = out_port(circuits)
    order = np.lexsort((circuits.start_ms, port))
    port = port[order]
    begins = circuits.changed[order].copy()
    begins[:1] = True
    begins[1:] |= port[1:] != port[:-1]
    return order, np.flatnonzero(begins)


def circuit_lives_ms(circuits: Circuits) -> FloatArray:
    """Return, for every circuit that was set up, how long it served: first use to end of last use before its port turned."""
    order, first = held_circuits(circuits)
    last = np.maximum.reduceat(circuits.end_ms[order], first)
    lives: FloatArray = last - circuits.start_ms[order][first]
    return lives


def port_table(execution: Execution) -> dict[str, list[float | int]]:
    """Return one row an out-port in use: server, switch, port, transfers, changes, carrying and dark ms and share.

    Where circuits stay fixed transfers share them: a port carries while any of them does.
    """
    circuits = execution.circuits
    port, inverse = np.unique(out_port(circuits), return_inverse=True)
    n = len(port)
    carrying = np.bincount(inverse, added_ms(inverse, circuits.start_ms, circuits.end_ms), n)
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


@dataclass(frozen=True)
class SlotState:
    """Circuits at one moment: positions of those that carry data, and of those only set up."""

    slot: int
    at_ms: float
    carrying: NDArray[np.intp]
    dark: NDArray[np.intp]

    @property
    def all(self) -> NDArray[np.intp]:
        """Carrying, then dark."""
        return np.concatenate([self.carrying, self.dark])


def slots(execution: Execution) -> int:
    """Return how many slots the iteration has (at least one)."""
    return max(1, int(np.ceil(execution.makespan_ms / execution.cluster.slot_ms - 1e-9)))


def moments(execution: Execution) -> FloatArray:
    """Return the moment that is shown of each slot: its middle, where one circuit holds a port."""
    low = np.arange(slots(execution), dtype=np.float64) * execution.cluster.slot_ms
    high = np.minimum(low + execution.cluster.slot_ms, execution.makespan_ms or np.inf)
    middle: FloatArray = (low + high) / 2
    return middle


def slot_state(execution: Execution, slot: int) -> SlotState:
    """Return what circuits do in the middle of ``slot``."""
    return state_at(execution, float(moments(execution)[slot]), slot)


def state_at(execution: Execution, at_ms: float, slot: int = 0) -> SlotState:
    """Return what circuits do at a moment."""
    circuits, edge = execution.circuits, 1e-6 * execution.cluster.slot_ms
    begun = circuits.start_ms <= at_ms + edge
    carries = begun & (circuits.end_ms > at_ms + edge)
    row, begin, end = circuits.dark_times(execution.makespan_ms)
    dark = np.unique(row[(begin <= at_ms + edge) & (end > at_ms + edge)])
    return SlotState(slot, at_ms, np.flatnonzero(carries), dark)


def ports_busy(circuits: Circuits, chosen: NDArray[np.intp]) -> int:
    """Return how many different ports the chosen circuits send from."""
    return len(np.unique(out_port(circuits)[chosen]))


def ports_carrying_a_slot(execution: Execution, of: Rows = slice(None)) -> NDArray[np.int64]:
    """Return how many out-ports carry data at the moment of each slot, as :func:`slot_state` counts them.

    Parameters
    ----------
    of
        The circuits that count.
    """
    circuits, n, edge = execution.circuits, slots(execution), 1e-6 * execution.cluster.slot_ms
    shown = moments(execution)
    first = np.searchsorted(shown, circuits.start_ms[of] - edge)
    end = np.searchsorted(shown, circuits.end_ms[of] - edge)
    # Of a port a slot counts once: each circuit counts from the end of those before it.
    line = Line.of(out_port(circuits)[of], first, end)
    shift = line.start - first[line.order]
    begin = np.maximum(line.start, line.before)
    held = begin < line.end
    begun, ended = (np.bincount((at - shift)[held], minlength=n + 1) for at in (begin, line.end))
    busy: NDArray[np.int64] = np.cumsum(begun - ended)[:n]
    return busy


def busiest_slot(execution: Execution) -> int:
    """Return the slot in which most out-ports carry traffic of the kind that changes most circuits.

    Of several the one in which most circuits are set up; without any change all traffic counts.
    """
    circuits, graph = execution.circuits, execution.graph
    kinds = [graph.parallelism[n] or graph.task_kind[n] for n in circuits.node.tolist()]
    changed = Counter(
        kind for kind, new in zip(kinds, circuits.changed.tolist(), strict=True) if new
    )
    of: Rows = slice(None)
    if changed:
        most = max(sorted(changed), key=changed.__getitem__)
        of = np.array([kind == most for kind in kinds])
    busy, changes = ports_carrying_a_slot(execution, of), changes_a_slot(execution)
    return int(np.lexsort((-changes, -busy))[0])


def changes_a_slot(execution: Execution) -> NDArray[np.int64]:
    """Return how many circuits begin to be set up in each slot."""
    circuits, n = execution.circuits, slots(execution)
    setup_ms = circuits.setup_ms[circuits.changed]
    setup_ms = np.where(setup_ms < 0, setup_ms + execution.makespan_ms, setup_ms)
    begun = np.floor(setup_ms / execution.cluster.slot_ms + 1e-6)
    return np.bincount(np.clip(begun.astype(np.int64), 0, n - 1), minlength=n)
