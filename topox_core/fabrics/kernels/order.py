"""The order of readiness: the one rule by which every fabric decides who goes first.

1. Who became ready earlier goes first. A task is ready when its last predecessor has ended.
2. Of those ready at the same time, the one that stands earlier in the lowered graph (its position in
   ``TransferGraph``, which follows the order of the user's file) goes first.
3. Nobody is interrupted, and nobody waits for somebody who is not ready yet.
4. A task of no length needs no device: it ends when it is ready.

Times that differ by less than ``TIE`` of their size are the same time: everything that ends then
has ended before anybody is chosen, so that rounding of floats never decides who goes first.
"""

from __future__ import annotations

from topox_core.compiled import compiled
from topox_core.model.transfer_graph import FloatArray, IntArray

TIE = 1e-12


@compiled
def before(time: FloatArray, one: int, other: int) -> bool:
    """Return whether node ``one`` goes before node ``other``: by time, then by position."""
    return time[one] < time[other] or (time[one] == time[other] and one < other)


@compiled
def push(heap: IntArray, base: int, size: int, time: FloatArray, node: int) -> int:
    """Put ``node`` on the heap in ``heap[base:base + size]``, ordered by :func:`before`; return the new size."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        above = heap[base + parent]
        if before(time, above, node):
            break
        heap[base + i] = above
        i = parent
    heap[base + i] = node
    return size + 1


@compiled
def pop(heap: IntArray, base: int, size: int, time: FloatArray) -> int:
    """Take the first node off the heap (the caller lowers the size by one)."""
    top = int(heap[base])
    last = size - 1
    moved = heap[base + last]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and before(time, heap[base + child + 1], heap[base + child]):
            child += 1
        if before(time, moved, heap[base + child]):
            break
        heap[base + i] = heap[base + child]
        i = child
    heap[base + i] = moved
    return top
