"""Compressed sparse rows: the entries of row r are numbered ``pointer[r]`` to ``pointer[r + 1] - 1``."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Pointer = NDArray[np.int32]
Whole = NDArray[np.integer[Any]]
Value = TypeVar("Value", bound=np.generic)


def row_pointer(
    counts: Sequence[int] | Whole, dtype: type[np.signedinteger[Any]] = np.int32
) -> NDArray[Any]:
    """Return the pointer of rows that have ``counts`` entries."""
    pointer = np.zeros(len(counts) + 1, dtype)
    np.cumsum(counts, out=pointer[1:])
    return pointer


def ranks(order: Whole) -> Pointer:
    """Return the place of each thing in an order of all."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def pointer_of(row: Whole, rows: int) -> Pointer:
    """Return the pointer of ``rows`` rows whose entries lie in the rows ``row``, in any order."""
    return row_pointer(np.bincount(row, minlength=rows))


def grouped(row: Whole, value: NDArray[Value], rows: int) -> tuple[Pointer, NDArray[Value]]:
    """Return (pointer, values) with the values of each row in the order given."""
    return pointer_of(row, rows), value[np.argsort(row, kind="stable")]


def flattened(
    rows: Iterable[Sequence[float]], dtype: type[Value]
) -> tuple[Pointer, NDArray[Value]]:
    """Return (pointer, values) of rows given as lists."""
    lists = list(rows)
    values = np.array([value for row in lists for value in row], dtype)
    return row_pointer([len(row) for row in lists]), values


def row_of_entry(pointer: Whole) -> Int64:
    """Return the row in which each entry lies."""
    return np.repeat(np.arange(len(pointer) - 1, dtype=np.int64), np.diff(pointer))


def transposed(pointer: Whole, column: Whole, columns: int) -> tuple[Pointer, Pointer]:
    """Return (pointer, row) of the entries by column: predecessors become successors."""
    return grouped(column, row_of_entry(pointer).astype(np.int32), columns)


def ranges(first: Whole, count: Whole) -> Int64:
    """Return first[0], first[0] + 1, ... (count[0] of them), then first[1], ... as one array."""
    skipped = np.cumsum(count, dtype=np.int64) - count
    values: Int64 = np.arange(int(count.sum()), dtype=np.int64)
    values += np.repeat(first - skipped, count)
    return values


def entries_of(pointer: Whole, rows: Whole) -> Int64:
    """Return the numbers of the entries of the given rows, one row after another."""
    return ranges(pointer[rows], np.diff(pointer)[rows])
