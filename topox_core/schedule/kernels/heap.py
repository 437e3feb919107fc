"""A binary heap of tasks ordered by a key of any whole-number type (numba compiles one for each)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled

Whole = NDArray[np.signedinteger[Any]]


@compiled
def push(heap: Whole, size: int, key: Whole, task: int) -> int:
    """Put ``task`` on a binary heap ordered by ``key``; return the new size."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if key[heap[parent]] <= key[task]:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = task
    return size + 1


@compiled
def pop(heap: Whole, size: int, key: Whole) -> int:
    """Take the task of least ``key`` off the heap (the caller lowers the size by one)."""
    top = int(heap[0])
    moved = heap[size - 1]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[moved]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = moved
    return top
