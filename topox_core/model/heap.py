"""A binary heap of numbered items, each with a key of its own; of equal keys the lower number comes first."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from topox_core.compiled import compiled

Whole = NDArray[Any]


@compiled
def before(key: NDArray[Any], one: int, other: int) -> bool:
    """Return whether item ``one`` comes before item ``other``: by key, then by number."""
    return bool(key[one] < key[other] or (key[one] == key[other] and one < other))


@compiled
def push(heap: Whole, base: int, size: int, key: NDArray[Any], item: int) -> int:
    """Put ``item`` on the heap in ``heap[base:base + size]``; return the new size."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        above = heap[base + parent]
        if before(key, above, item):
            break
        heap[base + i] = above
        i = parent
    heap[base + i] = item
    return size + 1


@compiled
def pop(heap: Whole, base: int, size: int, key: NDArray[Any]) -> int:
    """Take the first item off the heap (the caller lowers the size by one)."""
    top = int(heap[base])
    last = size - 1
    moved = heap[base + last]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and before(key, heap[base + child + 1], heap[base + child]):
            child += 1
        if before(key, moved, heap[base + child]):
            break
        heap[base + i] = heap[base + child]
        i = child
    heap[base + i] = moved
    return top
