"""Moves of the local search: how the keys of a schedule's tasks are changed before it is generated anew."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.kernels.tasks import Tasks
from topox_core.schedule.problem import Int, Int32

Float = NDArray[np.float64]
Random = np.random.Generator
MOVES = 6
ALL, FEW, WINDOW, CHAIN, RESOURCE, CIRCUIT = range(MOVES)
CHAIN_LENGTH = 40
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
        elif kind == RESOURCE:
            shuffle_resource(random, key, tasks.slot, rows, far)
        else:
            join_circuits(random, key, tasks.slot, rows)
    return key
