"""Parallel schedule generation: time moves forward, and whatever is ready and fits starts now, by rank."""

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.arrays.heap import pop, push
from topox_core.schedule.kernels.slots import lowest_bit
from topox_core.schedule.kernels.tasks import Tasks
from topox_core.schedule.problem import Int, Int32

_ONE = np.uint64(1)


@compiled
def release_successors(
    j: int, succ_ptr: Int32, succ_idx: Int32, need: Int32, ready: Int32, size: int
) -> int:
    """Count task ``j`` as done; put successors that became ready on the stack ``ready``; return its new size."""
    for e in range(succ_ptr[j], succ_ptr[j + 1]):
        k = succ_idx[e]
        need[k] -= 1
        if need[k] == 0:
            ready[size] = k
            size += 1
    return size


@compiled
def parallel(rank: Int32, tasks: Tasks) -> tuple[Int, int]:
    """Return (start ticks, makespan) of the parallel scheme (Kolisch 1996, parallel method).

    Tasks on the grid are tried only on slot boundaries, all others as soon as they are ready.
    """
    duration, slot, on_grid, pair = tasks.duration, tasks.slot, tasks.on_grid, tasks.pair
    ptr, row, amount, capacity = tasks.ptr, tasks.row, tasks.amount, tasks.capacity
    pred_ptr, succ_ptr, succ_idx = tasks.pred_ptr, tasks.succ_ptr, tasks.succ_idx
    n = len(rank)
    task = np.empty(n, np.int32)  # by rank
    waiting = np.zeros((n >> 6) + 1, np.uint64)  # a bit for every rank
    start = np.zeros(n, np.int64)
    need, ready, size = np.empty(n, np.int32), np.empty(n, np.int32), 0
    running_end, running, running_size = np.empty(n, np.int64), np.empty(n, np.int32), 0
    use = np.zeros(len(capacity), np.int32)
    active = np.zeros(tasks.pairs, np.int32)
    for j in range(n):
        task[rank[j]] = j
        need[j] = pred_ptr[j + 1] - pred_ptr[j]
        if need[j] == 0:
            ready[size] = j
            size += 1
    t = 0
    while True:
        on_slot, too_early = t % slot == 0, False
        while size > 0:
            size -= 1
            j = ready[size]
            if duration[j] == 0 and (on_slot or not on_grid[j]):
                start[j] = t
                size = release_successors(j, succ_ptr, succ_idx, need, ready, size)
            else:
                waiting[rank[j] >> 6] |= _ONE << np.uint64(rank[j] & 63)
        for word in range(len(waiting)):
            left = waiting[word]
            while left != 0:
                bit = lowest_bit(left)
                left &= left - _ONE
                j = task[(word << 6) + bit]
                if on_grid[j] and not on_slot:
                    too_early = True
                    continue
                if duration[j] > 0 and (pair[j] < 0 or active[pair[j]] == 0):
                    fits = True
                    for e in range(ptr[j], ptr[j + 1]):
                        fits = fits and use[row[e]] + amount[e] <= capacity[row[e]]
                    if not fits:
                        continue
                    for e in range(ptr[j], ptr[j + 1]):
                        use[row[e]] += amount[e]
                if pair[j] >= 0 and duration[j] > 0:
                    active[pair[j]] += 1
                waiting[word] &= ~(_ONE << np.uint64(bit))
                start[j] = t
                running_size = push(running_end, running, 0, running_size, t + duration[j], j)
        boundary = -(-t // slot) * slot
        if too_early and (running_size == 0 or boundary < running_end[0]):
            t = boundary
            continue
        if running_size == 0:
            return start, t
        t = running_end[0]
        while running_size > 0 and running_end[0] == t:
            j = pop(running_end, running, 0, running_size)
            running_size -= 1
            if duration[j] > 0 and pair[j] >= 0:
                active[pair[j]] -= 1
            if duration[j] > 0 and (pair[j] < 0 or active[pair[j]] == 0):
                for e in range(ptr[j], ptr[j + 1]):
                    use[row[e]] -= amount[e]
            size = release_successors(j, succ_ptr, succ_idx, need, ready, size)
