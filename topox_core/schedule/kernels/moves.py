"""Moves of the local search: how the keys of a schedule's tasks are changed before it is generated anew."""

from __future__ import annotations

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
TRIES = 20  # to meet a late task by chance


class Neighbours(NamedTuple):
    """Tasks of each resource and device, and transfers of each pair of servers, as compressed rows."""

    resource_ptr: Int32
    resource_task: Int32
    pair_ptr: Int32
    pair_task: Int32


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
def shift_few(random: Random, key: Float, slot: int) -> None:
    """Move one to six tasks by up to a good many slots."""
    for _ in range(random.integers(1, 7)):
        key[random.integers(0, len(key))] += random.normal(0.0, slot * spread(random, 1.0, 30.0))


@compiled
def shuffle_window(random: Random, key: Float, slot: int) -> None:
    """Deal the tasks that start within a window anew."""
    middle = key[random.integers(0, len(key))]
    width = slot * spread(random, 1.5, 40.0)
    for j in range(len(key)):
        if abs(key[j] - middle) < width:
            key[j] = middle + random.uniform(-width, width)


@compiled
def pull_chain(random: Random, key: Float, start: Int, tail: Int, enough: int, tasks: Tasks) -> None:
    """Pull a task that ends too late, and those that it waited for, earlier."""
    j = int(random.integers(0, len(key)))
    for _ in range(TRIES):
        if start[j] + tasks.duration[j] + tail[j] > enough:
            break
        j = int(random.integers(0, len(key)))
    earlier = tasks.slot * spread(random, 1.0, 30.0)
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
def shuffle_resource(random: Random, key: Float, slot: int, rows: Neighbours) -> None:
    """Shake the tasks of one resource or device within a window."""
    if len(rows.resource_task) == 0:
        return
    e = random.integers(0, len(rows.resource_task))
    r = np.searchsorted(rows.resource_ptr, e, side="right") - 1
    middle = key[rows.resource_task[e]]
    width = slot * spread(random, 2.0, 100.0)
    sigma = slot * spread(random, 0.5, 20.0)
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
        one, other = rows.pair_task[e], rows.pair_task[random.integers(rows.pair_ptr[p], rows.pair_ptr[p + 1])]
        if one != other:
            key[one] = key[other] + 0.1 * slot


@compiled
def thrown(random: Random, start: Int, makespan: int) -> Float:
    """Return the keys of a schedule far from this one: noise of up to half the iteration on all of them."""
    sigma = makespan * spread(random, 0.02, 0.5)
    key = start.astype(np.float64)
    for j in range(len(key)):
        key[j] += random.normal(0.0, sigma)
    return key


@compiled
def moved(random: Random, kind: int, start: Int, tail: Int, enough: int, tasks: Tasks, rows: Neighbours) -> Float:
    """Return the keys of a neighbour of a schedule; ``enough`` is the last end that is not late."""
    key = start.astype(np.float64)
    if kind == ALL:
        shake_all(random, key, tasks.slot)
    elif kind == FEW:
        shift_few(random, key, tasks.slot)
    elif kind == WINDOW:
        shuffle_window(random, key, tasks.slot)
    elif kind == CHAIN:
        pull_chain(random, key, start, tail, enough, tasks)
    elif kind == RESOURCE:
        shuffle_resource(random, key, tasks.slot, rows)
    else:
        join_circuits(random, key, tasks.slot, rows)
    return key
