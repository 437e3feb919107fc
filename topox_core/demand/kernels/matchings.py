"""Matchings of a matrix: the heaviest assignment, and the perfect matching whose smallest entry is largest."""

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.transfer_graph import FloatArray, IntArray


@compiled
def heaviest_assignment(weight: FloatArray) -> IntArray:
    """Return the column of each row in the assignment of the largest sum.

    The Hungarian method by shortest augmenting paths (Kuhn 1955; Jonker and Volgenant 1987) in
    O(n^3).

    Parameters
    ----------
    weight
        Square matrix.
    """
    n = len(weight)
    row_price, column_price = np.zeros(n + 1), np.zeros(n + 1)
    row_of = np.full(n + 1, -1, np.int32)  # of each column; the last column is the free row's
    for i in range(n):
        row_of[n] = i
        at = n
        distance = np.full(n, np.inf)
        came_from = np.full(n, n, np.int32)
        seen = np.zeros(n + 1, np.bool_)
        while row_of[at] >= 0:
            seen[at] = True
            row, nearest, least = row_of[at], -1, np.inf
            for j in range(n):
                if seen[j]:
                    continue
                reduced = -weight[row, j] - row_price[row] - column_price[j]
                if reduced < distance[j]:
                    distance[j], came_from[j] = reduced, at
                if distance[j] < least:
                    least, nearest = distance[j], j
            for j in range(n + 1):
                if seen[j]:
                    row_price[row_of[j]] += least
                    column_price[j] -= least
                elif j < n:
                    distance[j] -= least
            at = nearest
        while at != n:
            before = came_from[at]
            row_of[at] = row_of[before]
            at = before
    column_of = np.empty(n, np.int32)
    for j in range(n):
        column_of[row_of[j]] = j
    return column_of


@compiled
def _augmented(
    weight: FloatArray, least: float, start: int, column_of: IntArray, row_of: IntArray
) -> bool:
    """Give row ``start`` a column by an alternating path over entries of at least ``least``; False if there is none."""
    n = len(weight)
    came_from = np.full(n, -1, np.int32)  # of each column that was reached: the row before it
    queue = np.empty(n, np.int32)
    queue[0], head, tail = start, 0, 1
    while head < tail:
        row = queue[head]
        head += 1
        for j in range(n):
            if came_from[j] >= 0 or weight[row, j] < least:
                continue
            came_from[j] = row
            if row_of[j] >= 0:
                queue[tail] = row_of[j]
                tail += 1
                continue
            column = j
            while True:
                before = came_from[column]
                row_of[column], column, column_of[before] = before, column_of[before], column
                if before == start:
                    return True
    return False


@compiled
def _completed(weight: FloatArray, least: float, column_of: IntArray) -> bool:
    """Complete a matching over entries of at least ``least``, in place; False where no perfect one exists."""
    n = len(weight)
    row_of = np.full(n, -1, np.int32)
    for i in range(n):
        if column_of[i] >= 0 and weight[i, column_of[i]] >= least:
            row_of[column_of[i]] = i
        else:
            column_of[i] = -1
    perfect = True
    for i in range(n):
        if perfect and column_of[i] < 0:
            perfect = _augmented(weight, least, i, column_of, row_of)
    return perfect


@compiled
def bottleneck_matching(weight: FloatArray, known: IntArray) -> tuple[IntArray, float]:
    """Return the perfect matching whose smallest entry is largest, by bisection over the entries, and that entry.

    Parameters
    ----------
    weight
        Square matrix with a perfect matching over its entries above 0.
    known
        Column of each row (-1: none) of a matching to begin with.
    """
    entries = np.unique(weight.ravel())
    low, high = int(np.searchsorted(entries, 0.0, side="right")), len(entries)
    best = known.copy()
    value = 0.0
    while low < high:
        middle = (low + high) // 2
        trial = best.copy()
        if _completed(weight, entries[middle], trial):
            best, value, low = trial, entries[middle], middle + 1
        else:
            high = middle
    return best, value
