"""Parallel schedule generation: time moves forward, and whatever is ready and fits starts now, by rank."""

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.heap import pop, push
from topox_core.schedule.kernels.tasks import Tasks
from topox_core.schedule.problem import Int, Int32


@compiled
def merge_by_rank(waiting: Int32, old: int, new: int, rank: Int32) -> None:
    """Sort ``waiting[:new]`` by rank, whose first ``old`` entries are sorted already."""
    if new == old:
        return
    fresh = waiting[old:new].copy()
    fresh = fresh[np.argsort(rank[fresh])]
    i, k, w = old - 1, len(fresh) - 1, new - 1
    while k >= 0:
        if i >= 0 and rank[waiting[i]] > rank[fresh[k]]:
            waiting[w] = waiting[i]
            i -= 1
        else:
            waiting[w] = fresh[k]
            k -= 1
        w -= 1


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

    Transfers are tried only on slot boundaries; devices take the ready task of least rank when
    free.
    """
    duration, slot, on_grid, pair = tasks.duration, tasks.slot, tasks.on_grid, tasks.pair
    device, device_ptr, demand_ptr = tasks.device, tasks.device_ptr, tasks.demand_ptr
    resource, amount, capacity = tasks.resource, tasks.amount, tasks.capacity
    pred_ptr, succ_ptr, succ_idx = tasks.pred_ptr, tasks.succ_ptr, tasks.succ_idx
    n = len(rank)
    devices = len(device_ptr) - 1
    start = np.zeros(n, np.int64)
    end = np.zeros(n, np.int64)
    need = np.empty(n, np.int32)
    running_end, running = np.empty(n, np.int64), np.empty(n, np.int32)
    running_size = 0
    use = np.zeros(len(capacity), np.int64)
    pair_active = np.zeros(max(tasks.pairs, 1), np.int32)
    busy = np.zeros(devices, np.bool_)
    queue_rank, queue = np.empty(device_ptr[-1], np.int32), np.empty(device_ptr[-1], np.int32)
    queued = np.zeros(devices, np.int32)
    ready = np.empty(n, np.int32)
    ready_size = 0
    sorted_size = 0
    now_stack = np.empty(n, np.int32)
    stack = 0
    for j in range(n):
        need[j] = pred_ptr[j + 1] - pred_ptr[j]
        if need[j] == 0:
            now_stack[stack] = j
            stack += 1
    t = 0
    makespan = 0
    touched = np.empty(devices, np.int32)
    is_touched = np.zeros(devices, np.bool_)
    touched_size = 0
    while True:
        # Everything that became ready at t: zero-time tasks are over at once, others queue.
        while stack > 0:
            stack -= 1
            j = now_stack[stack]
            if on_grid[j] and (duration[j] > 0 or t % slot != 0):
                ready[ready_size] = j
                ready_size += 1
            elif duration[j] == 0:
                start[j] = t
                stack = release_successors(j, succ_ptr, succ_idx, need, now_stack, stack)
            elif device[j] >= 0:
                d = device[j]
                queued[d] = push(queue_rank, queue, device_ptr[d], queued[d], rank[j], j)
                if not is_touched[d]:
                    is_touched[d] = True
                    touched[touched_size] = d
                    touched_size += 1
            else:
                start[j] = t
                end[j] = t + duration[j]
                running_size = push(running_end, running, 0, running_size, end[j], j)
        for i in range(touched_size):
            d = touched[i]
            is_touched[d] = False
            if not busy[d] and queued[d] > 0:
                j = pop(queue_rank, queue, device_ptr[d], queued[d])
                queued[d] -= 1
                busy[d] = True
                start[j] = t
                end[j] = t + duration[j]
                running_size = push(running_end, running, 0, running_size, end[j], j)
        touched_size = 0
        if ready_size > 0 and t % slot == 0:
            merge_by_rank(ready, sorted_size, ready_size, rank)
            kept = 0
            for i in range(ready_size):
                j = ready[i]
                fits = True
                if duration[j] > 0 and (pair[j] < 0 or pair_active[pair[j]] == 0):
                    for e in range(demand_ptr[j], demand_ptr[j + 1]):
                        if use[resource[e]] + amount[e] > capacity[resource[e]]:
                            fits = False
                            break
                    if fits:
                        for e in range(demand_ptr[j], demand_ptr[j + 1]):
                            use[resource[e]] += amount[e]
                if not fits:
                    ready[kept] = j
                    kept += 1
                    continue
                if pair[j] >= 0 and duration[j] > 0:
                    pair_active[pair[j]] += 1
                start[j] = t
                end[j] = t + duration[j]
                running_size = push(running_end, running, 0, running_size, end[j], j)
            ready_size = kept
            sorted_size = kept
        if running_size == 0 and ready_size == 0:
            return start, makespan
        later = running_end[0] if running_size > 0 else -1
        # Transfers that became ready off the grid are tried at the next slot boundary.
        if ready_size > sorted_size:
            boundary = -(-t // slot) * slot
            if boundary > t and (later < 0 or boundary < later):
                later = boundary
        if later < 0:
            return start, -1
        t = later
        makespan = max(makespan, t)
        while running_size > 0 and running_end[0] == t:
            j = pop(running_end, running, 0, running_size)
            running_size -= 1
            if on_grid[j] and duration[j] > 0:
                release = True
                if pair[j] >= 0:
                    pair_active[pair[j]] -= 1
                    release = pair_active[pair[j]] == 0
                if release:
                    for e in range(demand_ptr[j], demand_ptr[j + 1]):
                        use[resource[e]] -= amount[e]
            elif device[j] >= 0 and duration[j] > 0:
                d = device[j]
                busy[d] = False
                if not is_touched[d]:
                    is_touched[d] = True
                    touched[touched_size] = d
                    touched_size += 1
            stack = release_successors(j, succ_ptr, succ_idx, need, now_stack, stack)
