"""Lower bound from the work on one resource between thresholds of heads and tails, on any clock."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled


class Load(NamedTuple):
    """Of each task on a resource: its head, the work that it brings, and its tail."""

    head: NDArray[Any]
    work: NDArray[Any]
    tail: NDArray[Any]


@compiled
def load_bound(load: Load, limit: int, capacity: int = 1, unit: Any = None) -> tuple[Any, Any, Any]:
    """Return the best of ``head + work / capacity + tail`` over head and tail thresholds, and the two thresholds.

    Whatever starts no earlier than a head and has at least a tail behind it shares the resource in between.
    At most ``limit`` thresholds of each kind are tried. With a ``unit`` (slots of ports, in whole ticks) the
    work is counted in it, and starts and ends on its multiples; without one ``capacity`` is 1.
    """
    head, work, tail = load
    k = len(head)
    by_head = np.argsort(-head, kind="mergesort")
    stride = max(1, k // limit)
    levels = np.unique(np.sort(tail)[::stride])
    sums = np.zeros(len(levels), work.dtype)
    best, best_head, best_tail = head.dtype.type(0), head.dtype.type(0), tail.dtype.type(0)
    i = 0
    while i < k:
        stop = min(k, i + stride)
        # Tasks with the same head enter together, so that a threshold covers all of them.
        while stop < k and head[by_head[stop]] == head[by_head[stop - 1]]:
            stop += 1
        for e in range(i, stop):
            j = by_head[e]
            sums[np.searchsorted(levels, tail[j], side="right") - 1] += work[j]
        i = stop
        start = head[by_head[stop - 1]]
        if unit is not None:
            start = -(-start // unit) * unit
        total = work.dtype.type(0)
        for level in range(len(levels) - 1, -1, -1):
            total += sums[level]
            if total <= 0:
                continue
            busy = total
            if unit is not None:
                busy = (total + capacity - 1) // capacity * unit
            if start + busy + levels[level] > best:
                best = start + busy + levels[level]
                best_head, best_tail = start, levels[level]
    return best, best_head, best_tail
