"""Compressed rows against lists of lists."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topox_core.model.csr import (
    entries_of,
    flattened,
    grouped,
    pointer_of,
    row_of_entry,
    row_pointer,
    transposed,
)

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=8)


@given(ROWS)
def test_a_pointer_marks_where_each_row_begins(rows: list[list[int]]) -> None:
    pointer, values = flattened(rows, np.int64)
    assert [values[a:b].tolist() for a, b in pairwise(pointer.tolist())] == rows
    assert pointer.tolist() == row_pointer([len(row) for row in rows]).tolist()
    assert pointer_of(row_of_entry(pointer), len(rows)).tolist() == pointer.tolist()


@given(ROWS)
def test_grouping_puts_the_entries_of_a_row_together_in_the_order_given(
    rows: list[list[int]],
) -> None:
    pointer, values = flattened(rows, np.int64)
    order = np.random.default_rng(len(values)).permutation(len(values))
    again, shuffled = grouped(row_of_entry(pointer)[order], values[order], len(rows))
    assert again.tolist() == pointer.tolist()
    for r in range(len(rows)):
        given_order = [int(values[e]) for e in order if pointer[r] <= e < pointer[r + 1]]
        assert shuffled[pointer[r] : pointer[r + 1]].tolist() == given_order


@given(ROWS)
def test_transposing_twice_gives_the_same_edges(rows: list[list[int]]) -> None:
    rows = [sorted(row) for row in rows]
    pointer, column = flattened(rows, np.int32)
    back = transposed(*transposed(pointer, column, 10), len(rows))
    assert [part.tolist() for part in back] == [pointer.tolist(), column.tolist()]
    edges = [(r, c) for r, row in enumerate(rows) for c in row]
    by_column, row = transposed(pointer, column, 10)
    assert sorted(zip(row.tolist(), row_of_entry(by_column).tolist(), strict=True)) == sorted(edges)


@given(ROWS, st.data())
def test_entries_of_chosen_rows_come_one_row_after_another(
    rows: list[list[int]], data: st.DataObject
) -> None:
    pointer, values = flattened(rows, np.int64)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    entries = entries_of(pointer, np.array(chosen, np.int64))
    assert values[entries].tolist() == [value for r in chosen for value in rows[r]]
