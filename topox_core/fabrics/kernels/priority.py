"""Transfers on a non-blocking switch by priority: at every event the most urgent take what ports have left."""

from typing import NamedTuple

import numpy as np

from topox_core.compiled import compiled, compiled_in_place
from topox_core.fabrics.kernels.state import earlier
from topox_core.model.heap import pop, push
from topox_core.model.transfer_graph import FloatArray, IntArray


class PriorityTasks(NamedTuple):
    """Of each task: who waits for it, how long it takes besides sending, its bytes, what it holds, its rank.

    ``length_ms`` is the compute time, or the latency after the last byte; ``source`` and
    ``destination`` number what carries ``capacity`` bytes per ms; a lower ``rank`` is more urgent.
    The queue of a device begins at ``queue_ptr``.
    """

    waits_for: IntArray
    succ_ptr: IntArray
    succ_idx: IntArray
    length_ms: FloatArray
    size_bytes: FloatArray
    device: IntArray
    queue_ptr: IntArray
    source: IntArray
    destination: IntArray
    rank: IntArray
    capacity: FloatArray


@compiled_in_place
def _share(
    tasks: PriorityTasks, active: IntArray, size: int, left: FloatArray, rate: FloatArray
) -> None:
    """Give every active transfer, the most urgent first, what both its ends have left."""
    for i in range(size):
        j = active[i]
        left[tasks.source[j]] = tasks.capacity[tasks.source[j]]
        left[tasks.destination[j]] = tasks.capacity[tasks.destination[j]]
    for i in range(size):
        j = active[i]
        a, b = tasks.source[j], tasks.destination[j]
        rate[j] = min(left[a], left[b])
        # What rounding leaves over is nothing: a millionth of a millionth would make an event each.
        if rate[j] < 1e-9 * tasks.capacity[a]:
            rate[j] = 0.0
        left[a] -= rate[j]
        left[b] -= rate[j]


@compiled
def by_priority(tasks: PriorityTasks) -> tuple[FloatArray, FloatArray]:
    """Return (start, end): ready tasks take devices and ports by rank, transfers at changing rates."""
    n = len(tasks.rank)
    start, end = np.zeros(n), np.zeros(n)
    waiting, left_bytes = tasks.waits_for.copy(), tasks.size_bytes.copy()
    rate, active = np.zeros(n), np.empty(n + 1, np.int32)
    finish_keys, finish_items = np.empty(n + 1), np.empty(n + 1, np.int32)
    queue_keys, queue_items = np.empty(n + 1), np.empty(n + 1, np.int32)
    devices = len(tasks.queue_ptr) - 1
    queued, busy = np.zeros(devices, np.int64), np.zeros(devices, np.bool_)
    left = np.zeros(len(tasks.capacity))
    stack = np.empty(n + 1, np.int32)
    size, finishing, stacked, now = 0, 0, 0, 0.0
    for j in range(n):
        if waiting[j] == 0:
            stack[stacked] = -1 - j  # ready, not ended
            stacked += 1
    while True:
        while stacked > 0:
            stacked -= 1
            entry = stack[stacked]
            if entry >= 0:  # ended
                end[entry] = now
                if tasks.device[entry] >= 0 and tasks.length_ms[entry] > 0:
                    busy[tasks.device[entry]] = False
                for e in range(tasks.succ_ptr[entry], tasks.succ_ptr[entry + 1]):
                    s = tasks.succ_idx[e]
                    waiting[s] -= 1
                    if waiting[s] == 0:
                        stack[stacked] = -1 - s
                        stacked += 1
                continue
            j = -1 - entry
            start[j] = now
            if tasks.size_bytes[j] > 0:
                at = size
                while at > 0 and tasks.rank[active[at - 1]] > tasks.rank[j]:
                    active[at] = active[at - 1]
                    at -= 1
                active[at] = j
                size += 1
                start[j] = -1.0  # until it sends
            elif tasks.length_ms[j] <= 0:
                stack[stacked] = j
                stacked += 1
            elif tasks.device[j] >= 0:
                d = tasks.device[j]
                queued[d] = push(
                    queue_keys, queue_items, tasks.queue_ptr[d], queued[d], float(tasks.rank[j]), j
                )
            else:
                finishing = push(
                    finish_keys, finish_items, 0, finishing, now + tasks.length_ms[j], j
                )
        for d in range(devices):
            if not busy[d] and queued[d] > 0:
                j = pop(queue_keys, queue_items, tasks.queue_ptr[d], queued[d])
                queued[d] -= 1
                busy[d] = True
                start[j] = now
                finishing = push(
                    finish_keys, finish_items, 0, finishing, now + tasks.length_ms[j], j
                )
        _share(tasks, active, size, left, rate)
        later = np.inf
        for i in range(size):
            j = active[i]
            if rate[j] > 0:
                if start[j] < 0:
                    start[j] = now
                later = min(later, now + left_bytes[j] / rate[j])
        if finishing > 0:
            later = min(later, finish_keys[0])
        if later == np.inf:
            return start, end
        kept = 0
        for i in range(size):
            j = active[i]
            if rate[j] > 0 and not earlier(later, now + left_bytes[j] / rate[j]):
                if tasks.length_ms[j] > 0:
                    finishing = push(
                        finish_keys, finish_items, 0, finishing, later + tasks.length_ms[j], j
                    )
                else:
                    stack[stacked] = j
                    stacked += 1
                continue
            left_bytes[j] -= rate[j] * (later - now)
            active[kept] = j
            kept += 1
        size, now = kept, later
        while finishing > 0 and not earlier(now, finish_keys[0]):
            stack[stacked] = pop(finish_keys, finish_items, 0, finishing)
            finishing -= 1
            stacked += 1
