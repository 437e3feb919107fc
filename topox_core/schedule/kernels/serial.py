"""Serial schedule generation: tasks in order of rank, each as early as its predecessors and resources allow."""

from __future__ import annotations

import numpy as np

from topox_core.compiled import compiled
from topox_core.schedule.kernels.heap import pop, push
from topox_core.schedule.problem import Int, Int32


@compiled
def device_slack(begin: Int, end: Int, base: int, count: int, earliest: int, length: int) -> tuple[int, int]:
    """Return the earliest start of ``length`` ticks on a device, and where in its sorted intervals it goes."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if end[base + middle] > earliest:
            high = middle
        else:
            low = middle + 1
    t = earliest
    i = low
    while i < count and begin[base + i] < t + length:
        t = max(t, end[base + i])
        i += 1
    return t, i


@compiled
def hold_device(begin: Int, end: Int, count: Int32, device: int, base: int, earliest: int, length: int) -> int:
    """Book a device for the first gap of ``length`` ticks from ``earliest`` on; return the start."""
    t, i = device_slack(begin, end, base, count[device], earliest, length)
    for e in range(base + count[device], base + i, -1):
        begin[e] = begin[e - 1]
        end[e] = end[e - 1]
    begin[base + i] = t
    end[base + i] = t + length
    count[device] += 1
    return t


@compiled
def fit_in_slots(
    use: np.ndarray, pair_use: np.ndarray, first: int, slots: int, lo: int, hi: int,
    resource: Int32, amount: Int32, capacity: Int32, pair: int,
) -> int:
    """Return the first slot at or after ``first`` where ``slots`` slots are free, or -1 past the horizon.

    Scans a candidate window from its last slot backwards and jumps past the last full slot found.
    """
    horizon = use.shape[1]
    s = first
    while True:
        if s + slots > horizon:
            return -1
        jumped = False
        u = s + slots - 1
        while u >= s:
            if pair < 0 or pair_use[pair, u] == 0:
                for e in range(lo, hi):
                    if use[resource[e], u] + amount[e] > capacity[resource[e]]:
                        jumped = True
                        break
            if jumped:
                s = u + 1
                break
            u -= 1
        if not jumped:
            return s


@compiled
def serial(
    rank: Int32, pred_ptr: Int32, pred_idx: Int32, succ_ptr: Int32, succ_idx: Int32, duration: Int, on_grid: np.ndarray,
    slot: int, device: Int32, device_ptr: Int32, demand_ptr: Int32, resource: Int32, amount: Int32, capacity: Int32,
    pair: Int32, pairs: int, horizon: int,
) -> tuple[Int, int]:
    """Return (start ticks, makespan) of the serial scheme, or makespan -1 if ``horizon`` slots do not suffice.

    Kolisch (1996), serial method, with the next task always the eligible one of least ``rank``.
    Called with the edges turned round it schedules backwards in time: the slot grid is symmetric.
    """
    n = len(rank)
    use = np.zeros((len(capacity), horizon), np.int32)
    pair_use = np.zeros((pairs, horizon if pairs > 0 else 0), np.int32)
    begin = np.zeros(device_ptr[-1], np.int64)
    end = np.zeros(device_ptr[-1], np.int64)
    count = np.zeros(len(device_ptr) - 1, np.int32)
    start = np.zeros(n, np.int64)
    waiting = np.empty(n, np.int32)
    heap = np.empty(n, np.int32)
    size = 0
    for j in range(n):
        waiting[j] = pred_ptr[j + 1] - pred_ptr[j]
        if waiting[j] == 0:
            size = push(heap, size, rank, j)
    makespan = 0
    while size > 0:
        j = pop(heap, size, rank)
        size -= 1
        t = 0
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            p = pred_idx[e]
            t = max(t, start[p] + duration[p])
        if on_grid[j]:
            s = -(-t // slot)
            slots = duration[j] // slot
            lo, hi = demand_ptr[j], demand_ptr[j + 1]
            if slots > 0 and hi > lo:
                s = fit_in_slots(use, pair_use, s, slots, lo, hi, resource, amount, capacity, pair[j])
                if s < 0:
                    return start, -1
                for u in range(s, s + slots):
                    if pair[j] >= 0:
                        pair_use[pair[j], u] += 1
                        if pair_use[pair[j], u] > 1:
                            continue
                    for e in range(lo, hi):
                        use[resource[e], u] += amount[e]
            t = s * slot
        elif device[j] >= 0 and duration[j] > 0:
            t = hold_device(begin, end, count, device[j], device_ptr[device[j]], t, duration[j])
        start[j] = t
        makespan = max(makespan, t + duration[j])
        for e in range(succ_ptr[j], succ_ptr[j + 1]):
            k = succ_idx[e]
            waiting[k] -= 1
            if waiting[k] == 0:
                size = push(heap, size, rank, k)
    return start, makespan
