"""Heads of tasks from what their ancestors need of single resources (and tails, with the precedence turned round)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.kernels.heap import pop, push
from topox_core.schedule.kernels.passes import load_bound
from topox_core.schedule.problem import Int, Int32

DARK_THRESHOLDS = 12  # the same where circuits must be counted
THRESHOLDS = 48  # head and tail thresholds tried for a resource of one cone


@compiled
def fluid_dark(
    head: Int,
    work: Int,
    tail: Int,
    pair: Int32,
    capacity: int,
    limit: int,
    dark: int,
    seen: Int32,
    mark: int,
) -> int:
    """Return the load bound of a server's ports with ``dark`` ticks for every circuit beyond the first of each port.

    ``seen`` has room for every pair and holds marks below ``mark``; one mark is used up a tail
    threshold.
    """
    k = len(head)
    by_head = np.argsort(-head)
    levels = np.unique(np.sort(tail)[:: max(1, k // limit)])
    best = 0
    for level in levels:
        mark += 1
        total, circuits = 0, 0
        for e in range(k):
            j = by_head[e]
            if tail[j] < level:
                continue
            total += work[j]
            if seen[pair[j]] != mark:
                seen[pair[j]] = mark
                circuits += 1
            if e + 1 < k and head[by_head[e + 1]] == head[j]:
                continue
            needed = total + max(0, circuits - capacity) * dark
            best = max(best, head[j] + -(-needed // capacity) + level)
    return best


@compiled
def cone_head(
    j: int,
    reach: int,
    pred_ptr: Int32,
    pred_idx: Int32,
    duration: Int,
    head: Int,
    use_ptr: Int32,
    use_resource: Int32,
    use_work: Int,
    use_pair: Int32,
    capacity: Int,
    dark: int,
    seen: Int32,
    later: Int32,
    path: Int,
    inside: NDArray[np.bool_],
    heap: Int32,
    cone: Int32,
) -> int:
    """Return a lower bound on the start of ``j`` from at most ``reach`` of its ancestors, the nearest first.

    ``later`` is minus the topological place; ``path`` (all 0), ``inside`` (all False), ``heap`` and
    ``cone`` are room to work in, left as they were.
    """
    size, found, uses = 0, 0, 0
    for e in range(pred_ptr[j], pred_ptr[j + 1]):
        p = pred_idx[e]
        if not inside[p]:
            inside[p] = True
            size = push(heap, size, later, p)
    while size > 0 and found < reach:
        i = pop(heap, size, later)
        size -= 1
        cone[found] = i
        found += 1
        uses += use_ptr[i + 1] - use_ptr[i]
        for e in range(pred_ptr[i], pred_ptr[i + 1]):
            p = pred_idx[e]
            path[p] = max(path[p], path[i] + duration[i])
            if not inside[p]:
                inside[p] = True
                size = push(heap, size, later, p)
    resource, owner, pair = (
        np.empty(uses, np.int32),
        np.empty(uses, np.int32),
        np.empty(uses, np.int32),
    )
    work = np.empty(uses, np.int64)
    count = 0
    for c in range(found):
        i = cone[c]
        for e in range(use_ptr[i], use_ptr[i + 1]):
            resource[count], owner[count], work[count], pair[count] = (
                use_resource[e],
                i,
                use_work[e],
                use_pair[e],
            )
            count += 1
    best = head[j]
    order = np.argsort(resource)
    begin = 0
    while begin < count:
        r = resource[order[begin]]
        stop = begin
        while stop < count and resource[order[stop]] == r:
            stop += 1
        if stop - begin > 1:
            part = order[begin:stop]
            own = owner[part]
            if dark > 0 and pair[part[0]] >= 0:
                mark = seen[len(seen) - 1]
                best = max(
                    best,
                    fluid_dark(
                        head[own],
                        work[part],
                        path[own],
                        pair[part],
                        capacity[r],
                        DARK_THRESHOLDS,
                        dark,
                        seen,
                        mark,
                    ),
                )
                seen[len(seen) - 1] = mark + DARK_THRESHOLDS + 2
            else:
                best = max(
                    best,
                    load_bound(head[own], work[part], path[own], capacity[r], 1, THRESHOLDS)[0],
                )
        begin = stop
    for c in range(found):
        i = cone[c]
        inside[i] = False
        path[i] = 0
        for e in range(pred_ptr[i], pred_ptr[i + 1]):
            inside[pred_idx[e]] = False
            path[pred_idx[e]] = 0
    for e in range(pred_ptr[j], pred_ptr[j + 1]):
        inside[pred_idx[e]] = False
        path[pred_idx[e]] = 0
    return int(best)


@compiled
def cone_heads(
    order: Int32,
    near: int,
    place: Int32,
    pred_ptr: Int32,
    pred_idx: Int32,
    duration: Int,
    clock: Int,
    head: Int,
    use_ptr: Int32,
    use_resource: Int32,
    use_work: Int,
    use_pair: Int32,
    capacity: Int,
    dark: int,
    pairs: int,
) -> None:
    """Raise the heads of all tasks, in a topological order and in place, by their ``near`` nearest ancestors.

    ``dark`` ticks for every circuit that a server's ports must set up, ``use_pair`` its pair of
    servers (-1: no circuit).
    """
    seen = np.zeros(pairs + 1, np.int32)
    n = len(order)
    later = -place
    path, inside = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    heap, cone = np.empty(n, np.int32), np.empty(n, np.int32)
    for i in range(n):
        j = order[i]
        t = head[j]
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            p = pred_idx[e]
            t = max(t, head[p] + duration[p])
        head[j] = t
        t = cone_head(
            j,
            near,
            pred_ptr,
            pred_idx,
            duration,
            head,
            use_ptr,
            use_resource,
            use_work,
            use_pair,
            capacity,
            dark,
            seen,
            later,
            path,
            inside,
            heap,
            cone,
        )
        head[j] = -(-t // clock[j]) * clock[j]
