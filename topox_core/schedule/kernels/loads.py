"""Loads of ports whose circuits may be shared, or take time to set up."""

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.arrays.loads import Load, load_bound
from topox_core.model.transfer_graph import FloatArray, IntArray
from topox_core.schedule.problem import Int32


@compiled
def largest_load(
    ptr: IntArray, head: FloatArray, work: FloatArray, tail: FloatArray, limit: int
) -> tuple[int, float, float, float]:
    """Return which of the rows ``ptr[r]:ptr[r + 1]`` has the largest load bound, and that (-1 if none has work)."""
    which, best, best_head, best_tail = -1, 0.0, 0.0, 0.0
    for r in range(len(ptr) - 1):
        lo, hi = ptr[r], ptr[r + 1]
        if hi > lo:
            bound, first, last = load_bound(Load(head[lo:hi], work[lo:hi], tail[lo:hi]), limit)
            if bound > best:
                which, best, best_head, best_tail = r, bound, first, last
    return which, best, best_head, best_tail


@compiled
def pair_load_bound(
    load: Load,
    pair: Int32,
    limit: int,
    ports: int,
    unit: int,
    dark: int,
    shares: bool,
    seen: Int32,
) -> tuple[int, int, int]:
    """Return the load bound of a server's ports with ``dark`` units for every circuit that they must set up.

    Whatever transfers are counted, P pairs of them on c ports take at least P - c changes between
    the first start and the last end: only the first circuit of a port among them may stand already.
    And some port serves at least P / c of the pairs, rounded up: it carries as many transfers, none
    shorter than the shortest, with a change between any two.

    Where a circuit ``shares`` its time, a pair's transfers count once, by the longest of them (eq. 6
    as printed), and nothing is dark.
    ``seen`` has room for every pair and one entry more, which says the highest mark in it.
    """
    head, work, tail = load
    k = len(head)
    by_head = np.argsort(-head, kind="mergesort")
    levels = np.unique(np.sort(tail)[:: max(1, k // limit)])
    best, best_head, best_tail = 0, 0, 0
    for level in levels:
        mark = seen[-1] + 1
        seen[-1] = mark
        longest = np.zeros(len(seen) if shares else 0, np.int64)
        total, circuits, least = 0, 0, work.max()
        for e in range(k):
            j = by_head[e]
            if tail[j] < level:
                continue
            total += work[j]
            if not shares:
                least = min(least, work[j])
                if seen[pair[j]] != mark:
                    seen[pair[j]] = mark
                    circuits += 1
            elif pair[j] >= 0:
                total -= min(work[j], longest[pair[j]])
                longest[pair[j]] = max(work[j], longest[pair[j]])
            if e + 1 < k and head[by_head[e + 1]] == head[j]:
                continue
            start = -(-head[j] // unit)
            needed = total + max(0, circuits - ports) * dark
            fullest = -(-circuits // ports)
            on_one = fullest * least + (fullest - 1) * dark
            bound = (start + max((needed + ports - 1) // ports, on_one)) * unit + level
            if total > 0 and bound > best:
                best, best_head, best_tail = bound, start * unit, level
    return best, best_head, best_tail
