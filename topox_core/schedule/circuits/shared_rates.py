"""Transfers that share fixed circuits: the paths of each, and its rate on each of them over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from topox_core.model.csr import grouped
from topox_core.model.durations import latency_ms, work_bytes
from topox_core.model.execution import Execution
from topox_core.schedule.circuits.standing import paths_of_transfers

# Of the bytes of a part: what is left when a sum of floats says that all has arrived.
LEFT = 1e-9
# from_ms, to_ms, gbps
Row = list[float]


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
    servers, known = _servers(execution), _known_rates(execution)
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


def _known_rates(execution: Execution) -> list[_PathRate]:
    rates = execution.rates
    assert rates is not None
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


def _servers(execution: Execution) -> list[tuple[int, ...]]:
    """Return the servers that each path passes, both ends included."""
    layout, rates = execution.layout, execution.rates
    assert layout is not None
    assert rates is not None
    servers = [[source] for source in rates.source.tolist()]
    destination = layout.links[1].tolist()
    for path, link in zip(rates.hop_path.tolist(), rates.hop_link.tolist(), strict=True):
        servers[path].append(destination[link])
    return [tuple(one) for one in servers]
