"""Circuits that stay for the whole iteration: on which switch and port each is, which transfers cross it, and how fast.

Transfers share them: each has paths, and a rate on each of its paths over time.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

import numpy as np

from topox_core.compiled import at_once
from topox_core.model.arrays.csr import entries_of, grouped
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution, Layout, PathRates
from topox_core.model.transfer_graph import TRANSFER, IntArray, latency_ms, work_bytes
from topox_core.schedule.kernels.colouring import colour_slots

# Of the bytes of a part: what is left when a sum of floats says that all has arrived.
LEFT = 1e-9
# from_ms, to_ms, gbps
Row = list[float]


def standing(execution: Execution) -> Execution:
    """Return an execution on fixed circuits with each of them as one row, from the beginning to the end.

    ``node`` is a transfer that crosses the circuit. Another execution stays as it is.
    """
    layout, rates = execution.layout, execution.rates
    if layout is None or rates is None:
        return execution
    link, switch, port = places_of_circuits(layout, execution.cluster)
    user = _users(execution, rates, len(layout.links[0]))
    used = user[link] >= 0
    link, switch, port = link[used], switch[used], port[used]
    whole = np.full(len(link), execution.makespan_ms)
    circuits = _rows(layout, link, (switch, port), user[link], np.zeros(len(link)), whole)
    return replace(execution, circuits=circuits)


def crossed(execution: Execution) -> Execution:
    """Return an execution on fixed circuits with a row for every transfer and every circuit that it crosses.

    Transfers that share a circuit overlap there. Another execution stays as it is.
    """
    layout, rates = execution.layout, execution.rates
    if layout is None or rates is None:
        return execution
    link, switch, port = places_of_circuits(layout, execution.cluster)
    pointer, circuit = grouped(link, np.arange(len(link)), len(layout.links[0]))
    hops, hop_link = grouped(rates.hop_path, rates.hop_link, len(rates.source))
    node, path = paths_of_transfers(execution, rates)
    # A row for each transfer, path and hop, and one for each circuit of the hop's link.
    crossing = hop_link[entries_of(hops, path)]
    place = circuit[entries_of(pointer, crossing)]
    users = np.repeat(np.repeat(node, np.diff(hops)[path]), np.diff(pointer)[crossing])
    circuits = _rows(
        layout,
        link[place],
        (switch[place], port[place]),
        users,
        execution.start_ms[users],
        execution.end_ms[users],
    )
    return replace(execution, circuits=circuits)


def places_of_circuits(layout: Layout, cluster: Cluster) -> tuple[IntArray, IntArray, IntArray]:
    """Return (link, switch, port) of every circuit: a balanced edge colouring, as for the circuits of a slot."""
    source, destination, count = layout.links
    link = np.repeat(np.arange(len(source)), count)
    k = max(1, cluster.ports_per_server // cluster.switches)
    colour = coloured(
        source[link], destination[link], k * cluster.switches, k, cluster.ports_per_switch
    )
    return link.astype(np.int32), colour // k, colour % k


def coloured(
    source: IntArray, destination: IntArray, colours: int, k: int, most: int | None = None
) -> IntArray:
    """Return a colour for each circuit, no server's equal one way; switch ``c // k`` has at most so many circuits.

    In the order given each takes the first colour that is free at both ends, of the switch with fewest;
    where none is, an alternating chain of two colours is turned over (Koenig).
    """
    talking, ends = np.unique(np.concatenate([source, destination]), return_inverse=True)
    begin, servers = np.zeros(len(source), np.int64), len(talking)
    # Without the compiler where nothing is compiled: 512 circuits take 6 ms, and compiling 9 s.
    _, colour, _, _ = at_once(colour_slots)(
        ends.reshape(2, -1).astype(np.int32),
        begin,
        begin + 1,
        servers,
        colours,
        k,
        servers * k if most is None else most,
    )
    return np.asarray(colour, np.int32)


def paths_of_transfers(execution: Execution, rates: PathRates) -> tuple[IntArray, IntArray]:
    """Return (transfer, path) for every path of every transfer that takes time."""
    graph = execution.graph
    node = np.flatnonzero((graph.kind == TRANSFER) & (execution.end_ms > execution.start_ms))
    wide = execution.cluster.servers
    pairs, of_path = np.unique(
        rates.source.astype(np.int64) * wide + rates.destination, return_inverse=True
    )
    pointer, path = grouped(of_path, np.arange(len(rates.source)), len(pairs))
    pair = np.searchsorted(
        pairs, graph.source[node].astype(np.int64) * wide + graph.destination[node]
    )
    transfer = np.repeat(node, np.diff(pointer)[pair])
    return transfer.astype(np.int32), path[entries_of(pointer, pair)].astype(np.int32)


def _users(execution: Execution, rates: PathRates, links: int) -> IntArray:
    """Return of each link a transfer that crosses it, -1 if none does."""
    node, path = paths_of_transfers(execution, rates)
    of_path = np.full(len(rates.source), -1, np.int32)
    of_path[path[::-1]] = node[::-1]
    user = np.full(links, -1, np.int32)
    np.maximum.at(user, rates.hop_link, of_path[rates.hop_path])
    return user


def _rows(
    layout: Layout,
    link: IntArray,
    place: tuple[IntArray, IntArray],
    node: IntArray,
    start_ms: np.ndarray,
    end_ms: np.ndarray,
) -> Circuits:
    switch, port = place
    source, destination = layout.links[0][link], layout.links[1][link]
    order = np.lexsort((port, source, switch, start_ms))
    return Circuits(
        switch=switch[order],
        source=source[order],
        destination=destination[order],
        source_port=port[order],
        destination_port=port[order],
        setup_ms=start_ms[order],
        start_ms=start_ms[order],
        end_ms=end_ms[order],
        node=node[order],
        changed=np.zeros(len(order), np.bool_),
    )


@dataclass(frozen=True)
class Part:
    """The share of a transfer that takes one path: the servers it passes, and its rate from when until when."""

    servers: tuple[int, ...]
    share: float
    rows: list[Row]


def parts_of_transfers(execution: Execution) -> dict[int, list[Part]]:
    """Return the parts of every transfer that takes time, by node, of an execution on fixed circuits.

    A transfer is split evenly over the paths of its pair; the part on a path ends when its bytes
    have crossed. What a link carries is the same on every hop of a path at the same time, so that
    no byte is forwarded before it arrived.

    Raises
    ------
    ValueError
        If the rates of the execution were not recorded.
    """
    layout, rates = execution.layout, execution.rates
    if layout is None or rates is None:
        raise ValueError("only circuits that stay fixed have paths, once their rates are recorded")
    node, path = paths_of_transfers(execution, rates)
    split = np.bincount(node, minlength=len(execution.graph))
    size = work_bytes(execution.graph, execution.cluster) / np.maximum(split, 1)
    last_ms = execution.end_ms - latency_ms(execution.graph, execution.cluster)
    servers, known = _servers(layout, rates), _known_rates(rates)
    parts: dict[int, list[Part]] = {}
    for j, p in zip(node.tolist(), path.tolist(), strict=True):
        rows = known[p].of(float(execution.start_ms[j]), float(size[j]), float(last_ms[j]))
        parts.setdefault(j, []).append(Part(servers[p], 1 / int(split[j]), rows))
    return parts


def total_rows(parts: list[Part]) -> list[Row]:
    """Return the rate of a whole transfer over time: the sum over its parts."""
    if len(parts) == 1:
        return parts[0].rows
    times = sorted({time for part in parts for row in part.rows for time in row[:2]})
    gbps = np.zeros(len(times))
    for part in parts:
        for begin, end, rate in part.rows:
            gbps[bisect_left(times, begin) : bisect_left(times, end)] += rate
    return [
        [begin, end, rate]
        for begin, end, rate in zip(times, times[1:], gbps.tolist(), strict=False)
        if rate > 0
    ]


@dataclass(frozen=True)
class _PathRate:
    """The rate of one transfer on one path, in rows by time, and the bytes moved up to the end of each row."""

    begin_ms: list[float]
    end_ms: list[float]
    bytes_per_ms: list[float]
    gbps: list[float]
    moved: list[float]

    def of(self, start_ms: float, size: float, last_ms: float) -> list[Row]:
        """Return the rows of a transfer that begins at ``start_ms`` and moves ``size`` bytes, done at ``last_ms`` at the latest."""
        row = bisect_right(self.end_ms, start_ms)
        if row == len(self.end_ms):
            return []
        before = self.moved[row] - self.bytes_per_ms[row] * (
            self.end_ms[row] - max(start_ms, self.begin_ms[row])
        )
        target = before + size
        last = min(bisect_left(self.moved, target - LEFT * size, row), len(self.moved) - 1)
        mine = slice(row, last + 1)
        rows = list(
            map(list, zip(self.begin_ms[mine], self.end_ms[mine], self.gbps[mine], strict=True))
        )
        rows[0][0] = max(start_ms, rows[0][0])
        through = self.end_ms[last] - (self.moved[last] - target) / self.bytes_per_ms[last]
        rows[-1][1] = min(last_ms, through, rows[-1][1])
        return rows if rows[-1][1] > rows[-1][0] else rows[:-1]


def _known_rates(rates: PathRates) -> list[_PathRate]:
    order = np.lexsort((rates.begin_ms, rates.path))
    paths = len(rates.source)
    pointer, row = grouped(rates.path[order], order, paths)
    known = []
    for p in range(paths):
        mine = row[pointer[p] : pointer[p + 1]]
        begin, end, speed = rates.begin_ms[mine], rates.end_ms[mine], rates.bytes_per_ms[mine]
        moved = np.cumsum(speed * (end - begin))
        columns = (begin, end, speed, speed * 8 / 1e6, moved)
        known.append(_PathRate(*(column.tolist() for column in columns)))
    return known


def _servers(layout: Layout, rates: PathRates) -> list[tuple[int, ...]]:
    """Return the servers that each path passes, both ends included."""
    servers = [[source] for source in rates.source.tolist()]
    destination = layout.links[1].tolist()
    for path, link in zip(rates.hop_path.tolist(), rates.hop_link.tolist(), strict=True):
        servers[path].append(destination[link])
    return [tuple(one) for one in servers]
