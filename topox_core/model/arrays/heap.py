"""A binary heap of numbered items with their keys beside them; of equal keys the lower number comes first."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled_in_place

Keys = NDArray[Any]
Items = NDArray[np.int32]


class Heap(NamedTuple):
    """Room for heaps, each in places of its own: the keys in order of the heap, and whose they are.

    The functions below take the two arrays: passing the record on costs as much as they do.
    """

    keys: Keys
    items: Items


@compiled_in_place
def push(keys: Keys, items: Items, base: int, size: int, key: Any, item: int) -> int:
    """Put ``item`` on the heap of ``size`` items that begins at ``base``; return the new size."""
    i = base + size
    while i > base:
        above = base + ((i - base - 1) >> 1)
        if keys[above] < key or (keys[above] == key and items[above] < item):
            break
        keys[i], items[i] = keys[above], items[above]
        i = above
    keys[i], items[i] = key, item
    return size + 1


@compiled_in_place
def pop(keys: Keys, items: Items, base: int, size: int) -> int:
    """Take the first item off the heap (the caller lowers the size by one)."""
    first = int(items[base])
    end = base + size - 1
    key, item = keys[end], items[end]
    i = base
    while True:
        below = 2 * i + 1 - base
        if below >= end:
            break
        beside = below + 1
        if beside < end and (
            keys[beside] < keys[below]
            or (keys[beside] == keys[below] and items[beside] < items[below])
        ):
            below = beside
        if key < keys[below] or (key == keys[below] and item < items[below]):
            break
        keys[i], items[i] = keys[below], items[below]
        i = below
    keys[i], items[i] = key, item
    return first
