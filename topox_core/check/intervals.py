"""Sweeps over thousands of intervals: how many are open at once, and what a set of them covers.

Intervals are half open, ``[start, end)``. Ends are drawn in by a tolerance, so that an interval
that ends where the next begins never meets it, whatever the last digit of the numbers in the file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Openings:
    """Events of a set of intervals in the order of time, closings before openings."""

    interval: Int
    step: Int

    @staticmethod
    def of(start: Float, end: Float, tolerance: float) -> Openings:
        """Return the events of the intervals that last longer than the tolerance."""
        kept = np.flatnonzero(end - tolerance > start)
        interval = np.concatenate([kept, kept])
        step = np.repeat(np.array([1, -1], np.int64), len(kept))
        order = np.lexsort((step, np.concatenate([start[kept], end[kept] - tolerance])))
        return Openings(interval[order], step[order])

    def above(self, group: Int, capacity: int | Int) -> tuple[Int, Int]:
        """Return the intervals whose opening takes their group above its capacity, and how many are open then.

        ``group`` is a number for each interval; ``capacity`` one for all groups or one for each
        interval.
        """
        groups = group[self.interval]
        order = np.argsort(groups, kind="stable")
        interval, step = self.interval[order], self.step[order]
        # Every group's events sum to nothing, so one running sum serves all groups.
        open_now = np.cumsum(step)
        limit = capacity if isinstance(capacity, int) else capacity[interval]
        over = np.flatnonzero((step > 0) & (open_now > limit))
        return interval[over], open_now[over]


def running_end(group: Int, end: Float) -> Float:
    """Return, over rows sorted by group, the largest end so far within each row's group."""
    if not len(end):
        return end
    by_end = np.argsort(end, kind="stable")
    rank = np.empty(len(end), np.int64)
    rank[by_end] = np.arange(len(end))
    number = np.cumsum(np.concatenate([[False], group[1:] != group[:-1]])) * len(end)
    return np.asarray(end[by_end[np.maximum.accumulate(rank + number) - number]])


def united(group: Int, start: Float, end: Float, tolerance: float) -> tuple[Int, Float, Float]:
    """Return the union of the intervals of each group as separate intervals: a row that began each, starts, ends."""
    order = np.lexsort((start, group))
    g, s = group[order], start[order]
    reach = running_end(g, end[order])
    first = np.ones(len(order), np.bool_)
    first[1:] = (g[1:] != g[:-1]) | (s[1:] > reach[:-1] + tolerance)
    begins = np.flatnonzero(first)
    lasts = np.append(begins, len(order))[1:] - 1
    return order[begins], s[begins], reach[lasts]


def covered(
    start: Float, end: Float, owner: Int, piece_start: Float, piece_end: Float, tolerance: float
) -> Bool:
    """Return for each interval whether the pieces that it owns cover it without a hole."""
    row, begin, reach = united(owner, piece_start, piece_end, tolerance)
    result = np.zeros(len(start), np.bool_)
    mine = owner[row]
    holds = (begin <= start[mine] + tolerance) & (reach >= end[mine] - tolerance)
    result[mine[holds]] = True
    return result
