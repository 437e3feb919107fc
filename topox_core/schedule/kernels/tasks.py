"""The records of a problem's tasks that the compiled loops take, and the sequences that tasks are scheduled in."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.model.arrays.heap import pop, push
from topox_core.schedule.problem import Int, Int32

Flags = NDArray[np.bool_]
Key = NDArray[Any]
MOMENTS, MOMENTS_A_TASK = 2_000, 40  # counting sort up to so many


class Precedence(NamedTuple):
    """The precedence, and of each task its duration and the clock that its start lies on, in ticks."""

    order: Int32
    pred_ptr: Int32
    pred_idx: Int32
    duration: Int
    clock: Int


class Tasks(NamedTuple):
    """Arrays of a :class:`~topox_core.schedule.problem.Problem`; ``device_ptr`` says where a device's bookings begin.

    ``row`` and ``amount`` are what each task holds (CSR over tasks): rows of ports first, those of
    devices behind them. ``plain`` tells that every demand is for one circuit and no pair shares:
    then slots are full or free.
    """

    pred_ptr: Int32
    pred_idx: Int32
    succ_ptr: Int32
    succ_idx: Int32
    duration: Int
    on_grid: Flags
    slot: int
    ptr: Int32
    row: Int32
    amount: Int32
    capacity: Int32
    device_ptr: Int32
    pair: Int32
    pairs: int
    plain: bool


def turned(tasks: Tasks) -> Tasks:
    """Return the tasks with the precedence turned round: scheduling them goes backwards in time."""
    return tasks._replace(
        pred_ptr=tasks.succ_ptr,
        pred_idx=tasks.succ_idx,
        succ_ptr=tasks.pred_ptr,
        succ_idx=tasks.pred_idx,
    )


@compiled
def by_time(time: Int, order: Int32, place: Int32) -> Int32:
    """Return the tasks by time, those of one moment as in ``order`` (a topological order).

    ``place`` says where each task stands in ``order``. Counting sort, unless there are many more
    moments than tasks.
    """
    n = len(order)
    low = time.min() if n > 0 else 0
    span = (time.max() - low + 1) if n > 0 else 0
    if span > MOMENTS + MOMENTS_A_TASK * n:
        return np.argsort(time * n + place).astype(np.int32)
    begin = np.zeros(span + 1, np.int32)
    for j in range(n):
        begin[time[j] - low + 1] += 1
    for t in range(span):
        begin[t + 1] += begin[t]
    sequence = np.empty(n, np.int32)
    for i in range(n):
        j = order[i]
        t = time[j] - low
        sequence[begin[t]] = j
        begin[t] += 1
    return sequence


@compiled
def by_key(
    key: NDArray[np.float64],
    unit: float,
    order: Int32,
    place: Int32,
    pred_ptr: Int32,
    pred_idx: Int32,
) -> Int32:
    """Return the sequence of the serial scheme: always the eligible task of least ``key``, ties by ``place``.

    Keys are told apart down to ``unit``. A task comes no earlier than its predecessors: its key is
    raised to theirs and all are sorted, which gives what a queue of eligible tasks would unless a key
    is less than a predecessor's.
    """
    n = len(order)
    raised = np.empty(n, np.int64)
    for i in range(n):
        j = order[i]
        k = int(np.floor(key[j] / unit))
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            k = max(k, raised[pred_idx[e]])
        raised[j] = k
    return by_time(raised, order, place)


@compiled
def by_rank(key: Key, pred_ptr: Int32, succ_ptr: Int32, succ_idx: Int32) -> Int32:
    """Return the sequence of the serial scheme: always the eligible task of least ``key`` (Kolisch 1996)."""
    n = len(key)
    waiting = np.empty(n, np.int32)
    keys, items = np.empty_like(key), np.empty(n, np.int32)
    sequence = np.empty(n, np.int32)
    size = 0
    for j in range(n):
        waiting[j] = pred_ptr[j + 1] - pred_ptr[j]
        if waiting[j] == 0:
            size = push(keys, items, 0, size, key[j], j)
    for i in range(n):
        j = pop(keys, items, 0, size)
        size -= 1
        sequence[i] = j
        for e in range(succ_ptr[j], succ_ptr[j + 1]):
            k = succ_idx[e]
            waiting[k] -= 1
            if waiting[k] == 0:
                size = push(keys, items, 0, size, key[k], k)
    return sequence
