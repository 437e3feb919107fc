"""Critical-path passes over a problem's precedence, with transfers aligned to the slot grid."""

from __future__ import annotations

import numpy as np

from topox_core.compiled import compiled
from topox_core.schedule.problem import Int, Int32


@compiled
def topological_order(pred_ptr: Int32, succ_ptr: Int32, succ_idx: Int32) -> Int32:
    """Return the tasks in an order where predecessors come first (Kahn, by number among equals)."""
    n = len(pred_ptr) - 1
    waiting = np.empty(n, np.int32)
    order = np.empty(n, np.int32)
    last = 0
    for j in range(n):
        waiting[j] = pred_ptr[j + 1] - pred_ptr[j]
        if waiting[j] == 0:
            order[last] = j
            last += 1
    first = 0
    while first < last:
        j = order[first]
        first += 1
        for e in range(succ_ptr[j], succ_ptr[j + 1]):
            k = succ_idx[e]
            waiting[k] -= 1
            if waiting[k] == 0:
                order[last] = k
                last += 1
    return order[:last]


@compiled
def heads(
    order: Int32, pred_ptr: Int32, pred_idx: Int32, duration: Int, on_grid: np.ndarray, slot: int
) -> Int:
    """Return earliest starts in ticks; a transfer waits for the next slot."""
    earliest = np.zeros(len(order), np.int64)
    for i in range(len(order)):
        j = order[i]
        t = 0
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            p = pred_idx[e]
            t = max(t, earliest[p] + duration[p])
        if on_grid[j]:
            t = -(-t // slot) * slot
        earliest[j] = t
    return earliest


@compiled
def tails(order: Int32, succ_ptr: Int32, succ_idx: Int32, duration: Int) -> Int:
    """Return, in ticks, the least time between the end of a task and the end of the iteration."""
    after = np.zeros(len(order), np.int64)
    for i in range(len(order) - 1, -1, -1):
        j = order[i]
        for e in range(succ_ptr[j], succ_ptr[j + 1]):
            s = succ_idx[e]
            after[j] = max(after[j], after[s] + duration[s])
    return after


@compiled
def successor_work(order: Int32, succ_ptr: Int32, succ_idx: Int32, duration: Int) -> Int:
    """Return each task's own duration plus those of its direct successors (greatest rank positional weight)."""
    weight = duration.copy()
    for j in range(len(order)):
        for e in range(succ_ptr[j], succ_ptr[j + 1]):
            weight[j] += duration[succ_idx[e]]
    return weight


@compiled
def load_bound(
    head: Int, work: Int, tail: Int, capacity: int, unit: int, limit: int
) -> tuple[int, int, int]:
    """Return the best of ``head + ceil(work / capacity) + tail`` over head and tail thresholds.

    ``head`` and ``tail`` in ticks, ``work`` in units of ``unit`` ticks (slots for ports); at most
    ``limit`` thresholds of each kind are tried. Returns (bound, head threshold, tail threshold).
    """
    k = len(head)
    by_head = np.argsort(-head)
    tail_sorted = np.sort(tail)
    stride = max(1, k // limit)
    levels = np.unique(tail_sorted[::stride])
    load = np.zeros(len(levels), np.int64)
    best, best_head, best_tail = 0, 0, 0
    i = 0
    while i < k:
        stop = min(k, i + stride)
        # Tasks with the same head enter together, so that a threshold covers all of them.
        while stop < k and head[by_head[stop]] == head[by_head[stop - 1]]:
            stop += 1
        for e in range(i, stop):
            j = by_head[e]
            level = np.searchsorted(levels, tail[j], side="right") - 1
            load[level] += work[j]
        i = stop
        threshold = head[by_head[stop - 1]]
        start = -(-threshold // unit)
        total = 0
        for level in range(len(levels) - 1, -1, -1):
            total += load[level]
            if total > 0:
                bound = (start + (total + capacity - 1) // capacity) * unit + levels[level]
                if bound > best:
                    best, best_head, best_tail = bound, start * unit, levels[level]
    return best, best_head, best_tail


@compiled
def shared_load_bound(
    head: Int, work: Int, tail: Int, pair: Int32, pairs: int, capacity: int, unit: int, limit: int
) -> tuple[int, int, int]:
    """Return :func:`load_bound` where a pair's transfers count once, by the longest of them (eq. 6 as printed)."""
    k = len(head)
    by_head = np.argsort(-head)
    levels = np.unique(np.sort(tail)[:: max(1, k // limit)])
    best, best_head, best_tail = 0, 0, 0
    for level in levels:
        longest = np.zeros(pairs, np.int64)
        total = 0
        for e in range(k):
            j = by_head[e]
            if tail[j] < level:
                continue
            if pair[j] < 0:
                total += work[j]
            elif work[j] > longest[pair[j]]:
                total += work[j] - longest[pair[j]]
                longest[pair[j]] = work[j]
            if e + 1 < k and head[by_head[e + 1]] == head[j]:
                continue
            start = -(-head[j] // unit)
            bound = (start + (total + capacity - 1) // capacity) * unit + level
            if total > 0 and bound > best:
                best, best_head, best_tail = bound, start * unit, level
    return best, best_head, best_tail


@compiled
def dark_load_bound(
    head: Int,
    work: Int,
    tail: Int,
    pair: Int32,
    pairs: int,
    ports: int,
    unit: int,
    dark: int,
    limit: int,
) -> tuple[int, int, int]:
    """Return :func:`load_bound` of a server's ports with ``dark`` slots for every circuit that they must set up.

    Whatever transfers are looked at, P pairs of them on c ports take at least P - c changes between
    the first start and the last end: only the first circuit of a port among them may stand already.
    """
    k = len(head)
    by_head = np.argsort(-head)
    levels = np.unique(np.sort(tail)[:: max(1, k // limit)])
    best, best_head, best_tail = 0, 0, 0
    for level in levels:
        seen = np.zeros(pairs, np.bool_)
        total, circuits = 0, 0
        for e in range(k):
            j = by_head[e]
            if tail[j] < level:
                continue
            total += work[j]
            if not seen[pair[j]]:
                seen[pair[j]] = True
                circuits += 1
            if e + 1 < k and head[by_head[e + 1]] == head[j]:
                continue
            start = -(-head[j] // unit)
            needed = total + max(0, circuits - ports) * dark
            bound = (start + (needed + ports - 1) // ports) * unit + level
            if total > 0 and bound > best:
                best, best_head, best_tail = bound, start * unit, level
    return best, best_head, best_tail
