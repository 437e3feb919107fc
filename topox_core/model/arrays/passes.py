"""Topological order and critical-path passes over a precedence in compressed rows, on any clock.

The passes are compiled for the type of the durations: whole ticks or milliseconds.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled

Index = NDArray[np.int32]
Time = TypeVar("Time", bound=np.generic)


@compiled
def topological_order(pred_ptr: Index, succ_ptr: Index, succ_idx: Index) -> Index:
    """Return the tasks so that each comes after its predecessors, by number among equals (Kahn 1962).

    Tasks on a cycle, and those behind one, are missing.
    """
    n = len(pred_ptr) - 1
    waiting = np.empty(n, np.int32)
    order = np.empty(n, np.int32)
    last = 0
    for j in range(n):
        waiting[j] = pred_ptr[j + 1] - pred_ptr[j]
        if waiting[j] == 0:
            order[last] = j
            last += 1
    first = 0
    while first < last:
        j = order[first]
        first += 1
        for e in range(succ_ptr[j], succ_ptr[j + 1]):
            k = succ_idx[e]
            waiting[k] -= 1
            if waiting[k] == 0:
                order[last] = k
                last += 1
    return order[:last]


@compiled
def heads(
    order: Index, pred_ptr: Index, pred_idx: Index, duration: NDArray[Time], clock: Any = None
) -> NDArray[Time]:
    """Return the earliest start of each task: when its predecessors have ended, nothing else counted.

    With a ``clock`` (whole numbers) a start is rounded up to a multiple of the task's own.
    """
    head = np.zeros_like(duration)
    for i in range(len(order)):
        j = order[i]
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            p = pred_idx[e]
            head[j] = max(head[j], head[p] + duration[p])
        if clock is not None:
            head[j] = -(-head[j] // clock[j]) * clock[j]
    return head


@compiled
def tails(
    order: Index,
    succ_ptr: Index,
    succ_idx: Index,
    duration: NDArray[Time],
    clock: Any = None,
    horizon: int = 0,
) -> NDArray[Time]:
    """Return the least time from the end of each task to the end of the iteration.

    With a ``clock`` the iteration ends at ``horizon``, and starts are rounded down to a multiple of
    the task's own.
    """
    tail = np.zeros_like(duration)
    for i in range(len(order) - 1, -1, -1):
        j = order[i]
        for e in range(succ_ptr[j], succ_ptr[j + 1]):
            s = succ_idx[e]
            needed = tail[s] + duration[s]
            if clock is not None:
                needed = horizon - (horizon - needed) // clock[s] * clock[s]
            tail[j] = max(tail[j], needed)
    return tail
