"""Intervals of many groups at once: what each finds covered by those of its group before it, and what a group covers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.integer[Any]]
Times = NDArray[Any]  # whole slots, or milliseconds
Floats = NDArray[np.float64]


class Line(NamedTuple):
    """Intervals by group, then start, every group shifted beyond the last.

    Attributes
    ----------
    order
        Their places in the arrays they came from.
    start, end
        Shifted.
    before
        How far those of the same group before each reach; below the start of a group's first.
    """

    order: NDArray[np.intp]
    start: Times
    end: Times
    before: Times

    @staticmethod
    def of(group: Whole, start: Times, end: Times) -> Line:
        """Put intervals on one line, so that one running maximum serves all groups."""
        order = np.lexsort((start, group))
        place = np.unique(group, return_inverse=True)[1]
        shift = ((end.max(initial=0) + 1) * place)[order]
        start, end = start[order] + shift, end[order] + shift
        reach = np.maximum.accumulate(end)
        return Line(order, start, end, np.concatenate((start[:1] - 1, reach[:-1])))


def added_ms(group: Whole, start_ms: Floats, end_ms: Floats) -> Floats:
    """Return what each interval adds to the time that those of its group cover."""
    line, added = Line.of(group, start_ms, end_ms), np.zeros(len(group))
    added[line.order] = np.clip(line.end - np.maximum(line.start, line.before), 0.0, None)
    return added


def covered_ms(group: Whole, start_ms: Floats, end_ms: Floats) -> float:
    """Return the time covered by intervals, summed over groups; overlap within a group counts once."""
    return float(added_ms(group, start_ms, end_ms).sum())
