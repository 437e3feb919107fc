"""Heads of tasks from what their ancestors need of single resources (and tails, with the precedence turned round)."""

from typing import NamedTuple

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.arrays.heap import Heap, pop, push
from topox_core.model.arrays.loads import Load, load_bound
from topox_core.schedule.kernels.loads import pair_load_bound
from topox_core.schedule.kernels.tasks import Flags, Precedence
from topox_core.schedule.problem import Int, Int32

DARK_THRESHOLDS = 12  # the same where circuits must be counted
THRESHOLDS = 48  # head and tail thresholds tried for a resource of one cone


class Uses(NamedTuple):
    """Which devices and ports a task works on, and for how many ticks; ports first, then devices (CSR over tasks).

    ``pair`` numbers the servers that a circuit must be set up between, 0 to ``pairs`` - 1 (-1: no circuit).
    """

    ptr: Int32
    resource: Int32
    work: Int
    pair: Int32
    pairs: int
    capacity: Int


class Room(NamedTuple):
    """Room to work in: all of ``path`` is 0 and all of ``inside`` False between two tasks.

    ``later`` is minus the topological place of a task; ``seen`` belongs to
    :func:`~topox_core.schedule.kernels.loads.pair_load_bound`.
    """

    later: Int32
    path: Int
    inside: Flags
    heap: Heap
    cone: Int32
    seen: Int32


@compiled
def still_counting(
    used: Int32, owner: Int32, count: int, best: int, head: Int, path: Int, uses: Uses
) -> int:
    """Move the entries that may raise a bound above ``best`` to the front, and return how many there are.

    What is counted between H and Q has heads from H and ways from Q on: a task whose head, way and
    all the work left on the resource come to no more than ``best`` is in no set that says more.
    """
    work = np.zeros(len(uses.capacity), np.int64)
    for e in range(count):
        work[uses.resource[used[e]]] += uses.work[used[e]]
    while True:
        kept = 0
        for e in range(count):
            u, i = used[e], owner[e]
            r = uses.resource[u]
            if head[i] + path[i] + -(-work[r] // uses.capacity[r]) > best:
                used[kept], owner[kept] = u, i
                kept += 1
            else:
                work[r] -= uses.work[u]
        if kept == count:
            return count
        count = kept


@compiled
def resource_bound(j: int, size: int, head: Int, uses: Uses, dark: int, room: Room) -> int:
    """Return the head of ``j`` that the work of the ``size`` tasks in the cone on single resources gives."""
    entries = 0
    for c in range(size):
        entries += uses.ptr[room.cone[c] + 1] - uses.ptr[room.cone[c]]
    used, owner = np.empty(entries, np.int32), np.empty(entries, np.int32)
    count = 0
    for c in range(size):
        i = room.cone[c]
        for e in range(uses.ptr[i], uses.ptr[i + 1]):
            used[count], owner[count] = e, i
            count += 1
    if dark == 0:
        count = still_counting(used, owner, count, head[j], head, room.path, uses)
        used, owner = used[:count], owner[:count]
    resource = uses.resource[used]
    best = head[j]
    order = np.argsort(resource, kind="mergesort")
    begin = 0
    while begin < count:
        r = resource[order[begin]]
        stop = begin
        while stop < count and resource[order[stop]] == r:
            stop += 1
        if stop - begin > 1:
            part = order[begin:stop]
            own, pair = owner[part], uses.pair[used[part]]
            load = Load(head[own], uses.work[used[part]], room.path[own])
            if dark > 0 and pair[0] >= 0:
                bound = pair_load_bound(
                    load, pair, DARK_THRESHOLDS, uses.capacity[r], 1, dark, False, room.seen
                )[0]
            else:
                bound = load_bound(load, THRESHOLDS, uses.capacity[r], 1)[0]
            best = max(best, bound)
        begin = stop
    return int(best)


@compiled
def cone_head(
    j: int, near: int, edges: Precedence, head: Int, uses: Uses, dark: int, room: Room
) -> int:
    """Return a lower bound on the start of ``j`` from at most ``near`` of its ancestors, the nearest first."""
    pred_ptr, pred_idx, duration = edges.pred_ptr, edges.pred_idx, edges.duration
    later, path, inside, cone = room.later, room.path, room.inside, room.cone
    keys, items = room.heap
    waiting, size = 0, 0
    for e in range(pred_ptr[j], pred_ptr[j + 1]):
        p = pred_idx[e]
        if not inside[p]:
            inside[p] = True
            waiting = push(keys, items, 0, waiting, later[p], p)
    while waiting > 0 and size < near:
        i = pop(keys, items, 0, waiting)
        waiting -= 1
        cone[size] = i
        size += 1
        for e in range(pred_ptr[i], pred_ptr[i + 1]):
            p = pred_idx[e]
            path[p] = max(path[p], path[i] + duration[i])
            if not inside[p]:
                inside[p] = True
                waiting = push(keys, items, 0, waiting, later[p], p)
    best = resource_bound(j, size, head, uses, dark, room)
    for c in range(-1, size):
        i = j if c < 0 else cone[c]
        inside[i] = False
        path[i] = 0
        for e in range(pred_ptr[i], pred_ptr[i + 1]):
            inside[pred_idx[e]] = False
            path[pred_idx[e]] = 0
    return best


@compiled
def ancestor_heads(head: Int, edges: Precedence, uses: Uses, near: int, dark: int) -> None:
    """Raise the heads of all tasks, in place, by their ``near`` nearest ancestors.

    A server's ports are dark for ``dark`` ticks before every circuit that they must set up.
    """
    order, pred_ptr, pred_idx = edges.order, edges.pred_ptr, edges.pred_idx
    n = len(order)
    later = np.empty(n, np.int32)
    later[order] = -np.arange(n).astype(np.int32)
    room = Room(
        later,
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        Heap(np.empty(n, np.int32), np.empty(n, np.int32)),
        np.empty(n, np.int32),
        np.zeros(uses.pairs + 1, np.int32),
    )
    for j in order:
        t = head[j]
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            t = max(t, head[pred_idx[e]] + edges.duration[pred_idx[e]])
        head[j] = t
        t = cone_head(j, near, edges, head, uses, dark, room)
        head[j] = -(-t // edges.clock[j]) * edges.clock[j]
