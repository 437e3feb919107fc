"""Moves of the local search: how the keys of a schedule's tasks are changed before it is generated anew."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.kernels.tasks import Tasks
from topox_core.schedule.problem import Int, Int32

Float = NDArray[np.float64]
Random = np.random.Generator
MOVES = 8
ALL, FEW, WINDOW, CHAIN, TREE, RESOURCE, HOLE, CIRCUIT = range(MOVES)
CHAIN_LENGTH = 40
TREE_SIZE = 400
NEAR_SLOTS, FAR_SHARE = 30.0, 0.2  # how far tasks move at most: slots, or a part of the iteration


class Neighbours(NamedTuple):
    """Tasks of each resource and device, and transfers of each pair of servers, as compressed rows."""

    resource_ptr: Int32
    resource_task: Int32
    pair_ptr: Int32
    pair_task: Int32


class Move(NamedTuple):
    """Which kind of move, made how many times in different places, and whether it may be a long one."""

    kind: int
    times: int
    afar: bool


@compiled
def spread(random: Random, low: float, high: float) -> float:
    """Return a random number between two others, evenly on a logarithmic scale."""
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


@compiled
def shake_all(random: Random, key: Float, slot: int) -> None:
    """Add noise of a fraction of a slot up to a few slots to all keys."""
    sigma = slot * spread(random, 0.3, 3.0)
    for j in range(len(key)):
        key[j] += random.normal(0.0, sigma)


@compiled
def shift_few(random: Random, key: Float, slot: int, far: float) -> None:
    """Move one to six tasks by up to ``far`` ticks."""
    for _ in range(random.integers(1, 7)):
        key[random.integers(0, len(key))] += random.normal(0.0, spread(random, slot, far))


@compiled
def shuffle_window(random: Random, key: Float, slot: int) -> None:
    """Deal the tasks that start within a window anew."""
    middle = key[random.integers(0, len(key))]
    width = slot * spread(random, 1.5, 40.0)
    for j in range(len(key)):
        if abs(key[j] - middle) < width:
            key[j] = middle + random.uniform(-width, width)


@compiled
def a_late_task(random: Random, start: Int, duration: Int, tail: Int, enough: int) -> int:
    """Return one of the tasks that end too late, or any task: every other time, and without a late one."""
    chosen, seen = int(random.integers(0, len(start))), 0
    if random.random() < 0.5:  # always the same late task, or two, would be all that is ever moved
        return chosen
    for j in range(len(start)):
        if start[j] + duration[j] + tail[j] > enough:
            seen += 1
            if seen == 1 or random.integers(0, seen) == 0:
                chosen = j
    return chosen


@compiled
def pull_chain(
    random: Random, key: Float, start: Int, tail: Int, enough: int, tasks: Tasks, far: float
) -> None:
    """Pull a task that ends too late, and those that it waited for, earlier."""
    j = a_late_task(random, start, tasks.duration, tail, enough)
    earlier = spread(random, tasks.slot, far)
    for _ in range(CHAIN_LENGTH):
        key[j] -= earlier
        last, ended = -1, -1
        for e in range(tasks.pred_ptr[j], tasks.pred_ptr[j + 1]):
            p = tasks.pred_idx[e]
            if start[p] + tasks.duration[p] > ended:
                last, ended = p, start[p] + tasks.duration[p]
        if last < 0:
            break
        j = last


@compiled
def pull_tree(
    random: Random, key: Float, start: Int, tail: Int, enough: int, tasks: Tasks, far: float
) -> None:
    """Pull a task that ends too late earlier, and all ancestors that would be in its way."""
    j = a_late_task(random, start, tasks.duration, tail, enough)
    key[j] -= spread(random, tasks.slot, far)
    waiting = np.empty(TREE_SIZE, np.int32)
    waiting[0] = j
    first, last = 0, 1
    while first < last:
        j = waiting[first]
        first += 1
        for e in range(tasks.pred_ptr[j], tasks.pred_ptr[j + 1]):
            p = tasks.pred_idx[e]
            if key[p] + tasks.duration[p] > key[j]:
                key[p] = key[j] - tasks.duration[p]
                if last < TREE_SIZE:
                    waiting[last] = p
                    last += 1


@compiled
def shuffle_resource(random: Random, key: Float, slot: int, rows: Neighbours, far: float) -> None:
    """Shake the tasks of one resource or device within a window."""
    if len(rows.resource_task) == 0:
        return
    e = random.integers(0, len(rows.resource_task))
    r = np.searchsorted(rows.resource_ptr, e, side="right") - 1
    middle = key[rows.resource_task[e]]
    width = spread(random, 2.0 * slot, 3.0 * far)
    sigma = spread(random, 0.5 * slot, far)
    for i in range(rows.resource_ptr[r], rows.resource_ptr[r + 1]):
        j = rows.resource_task[i]
        if abs(key[j] - middle) < width:
            key[j] += random.normal(0.0, sigma)


@compiled
def fill_holes(
    random: Random, key: Float, start: Int, tail: Int, enough: int, tasks: Tasks, rows: Neighbours
) -> None:
    """Pull tasks of one resource into slots in which it idles, on a resource that a late task needs."""
    j = a_late_task(random, start, tasks.duration, tail, enough)
    demands = tasks.demand_ptr[j + 1] - tasks.demand_ptr[j]
    uses = demands + (1 if tasks.device[j] >= 0 else 0)
    if uses == 0:
        return
    k = random.integers(0, uses)
    ports = len(tasks.capacity)
    r = tasks.resource[tasks.demand_ptr[j] + k] if k < demands else ports + tasks.device[j]
    capacity = tasks.capacity[r] if k < demands else 1
    slot = tasks.slot
    first, last = rows.resource_ptr[r], rows.resource_ptr[r + 1]
    used = np.zeros(start[j] // slot + 1, np.int32)
    for e in range(first, last):
        i = rows.resource_task[e]
        for u in range(
            start[i] // slot, min(len(used), -(-(start[i] + tasks.duration[i]) // slot))
        ):
            used[u] += 1
    for _ in range(random.integers(1, 5)):
        hole, seen = -1, 0
        for u in range(len(used)):
            if used[u] < capacity:
                seen += 1
                if random.integers(0, seen) == 0:
                    hole = u
        if hole < 0:
            return
        chosen, seen = -1, 0
        for e in range(first, last):
            i = rows.resource_task[e]
            if start[i] <= hole * slot:
                continue
            ready = True
            for d in range(tasks.pred_ptr[i], tasks.pred_ptr[i + 1]):
                p = tasks.pred_idx[d]
                if start[p] + tasks.duration[p] > hole * slot:
                    ready = False
                    break
            if ready:
                seen += 1
                if random.integers(0, seen) == 0:
                    chosen = i
        if chosen >= 0:
            key[chosen] = (hole - 0.5) * slot
        used[hole] = capacity


@compiled
def join_circuits(random: Random, key: Float, slot: int, rows: Neighbours) -> None:
    """Move a transfer of a pair of servers right behind another of that pair, so that both may use one circuit."""
    if len(rows.pair_task) == 0:
        return
    for _ in range(random.integers(1, 5)):
        e = random.integers(0, len(rows.pair_task))
        p = np.searchsorted(rows.pair_ptr, e, side="right") - 1
        one, other = (
            rows.pair_task[e],
            rows.pair_task[random.integers(rows.pair_ptr[p], rows.pair_ptr[p + 1])],
        )
        if one != other:
            key[one] = key[other] + 0.1 * slot


@compiled
def moved(
    random: Random,
    move: Move,
    start: Int,
    tail: Int,
    enough: int,
    tasks: Tasks,
    rows: Neighbours,
) -> Float:
    """Return the keys of a neighbour of a schedule; ``enough`` is the last end that is not late."""
    kind = move.kind
    key = start.astype(np.float64)
    far = max(NEAR_SLOTS * tasks.slot, FAR_SHARE * enough) if move.afar else NEAR_SLOTS * tasks.slot
    for _ in range(1 if kind == ALL else move.times):
        if kind == ALL:
            shake_all(random, key, tasks.slot)
        elif kind == FEW:
            shift_few(random, key, tasks.slot, far)
        elif kind == WINDOW:
            shuffle_window(random, key, tasks.slot)
        elif kind == CHAIN:
            pull_chain(random, key, start, tail, enough, tasks, far)
        elif kind == TREE:
            pull_tree(random, key, start, tail, enough, tasks, far)
        elif kind == RESOURCE:
            shuffle_resource(random, key, tasks.slot, rows, far)
        elif kind == HOLE:
            fill_holes(random, key, start, tail, enough, tasks, rows)
        else:
            join_circuits(random, key, tasks.slot, rows)
    return key
