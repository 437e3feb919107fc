"""Compressed rows, topological order, heads and tails on a clock, load bounds and a heap, each against its definition."""

from itertools import pairwise
from math import ceil

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from topox_core.model.arrays.csr import (
    flattened,
    grouped,
    row_of_entry,
    transposed,
)
from topox_core.model.arrays.heap import Heap, pop, push
from topox_core.model.arrays.loads import Load, load_bound
from topox_core.model.arrays.passes import heads, tails, topological_order

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, cycles: bool = False) -> tuple[int, Edges]:
    n = draw(st.integers(1, 9))
    number = draw(st.permutations(range(n)))
    pairs = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=16))
    return n, [(number[a], number[b]) for a, b in sorted(pairs) if (a != b if cycles else a < b)]


def compressed(n: int, edges: Edges) -> tuple[NDArray[np.int32], ...]:
    """Predecessors and successors in compressed rows."""
    before = np.array([a for a, _ in edges], np.int32)
    after = np.array([b for _, b in edges], np.int32)
    predecessors = grouped(after, before, n)
    return (*predecessors, *transposed(*predecessors, n))


@given(graphs(cycles=True))
def test_the_order_leaves_out_what_is_on_or_behind_a_cycle(given_graph: tuple[int, Edges]) -> None:
    n, edges = given_graph
    pred_ptr, _, succ_ptr, succ_idx = compressed(n, edges)
    order = topological_order(pred_ptr, succ_ptr, succ_idx).tolist()
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(n))
    on_cycle = {
        v for part in nx.strongly_connected_components(graph) if len(part) > 1 for v in part
    }
    stuck = on_cycle | {v for u in on_cycle for v in nx.descendants(graph, u)}
    assert sorted(order) == sorted(set(range(n)) - stuck)
    place = {v: i for i, v in enumerate(order)}
    assert all(place[a] < place[b] for a, b in edges if b in place)


@given(graphs(), st.data())
def test_on_a_clock_every_start_is_the_nearest_multiple_that_its_neighbours_allow(
    given_graph: tuple[int, Edges], data: st.DataObject
) -> None:
    n, edges = given_graph
    pred_ptr, pred_idx, succ_ptr, succ_idx = compressed(n, edges)
    order = topological_order(pred_ptr, succ_ptr, succ_idx)
    whole = st.lists(st.integers(0, 9), min_size=n, max_size=n)
    duration = np.array(data.draw(whole), np.int64)
    clock = 1 + np.array(data.draw(whole), np.int64)
    horizon = data.draw(st.integers(0, 60))
    head = heads(order, pred_ptr, pred_idx, duration, clock)
    tail = tails(order, succ_ptr, succ_idx, duration, clock, horizon)
    latest = (horizon - tail - duration) // clock * clock
    for v in range(n):
        ready = max((int(head[a] + duration[a]) for a, b in edges if b == v), default=0)
        due = min((int(latest[b]) for a, b in edges if a == v), default=horizon)
        assert head[v] == -(-ready // clock[v]) * clock[v]
        assert latest[v] == (due - duration[v]) // clock[v] * clock[v]
    # Without a clock they are longest paths, in ticks and in milliseconds alike.
    for passed, of in ((heads, (pred_ptr, pred_idx)), (tails, (succ_ptr, succ_idx))):
        in_ticks, in_ms = passed(order, *of, duration), passed(order, *of, duration * 0.25)
        assert in_ms.tolist() == (in_ticks * 0.25).tolist()
        assert (in_ticks <= (head if passed is heads else tail)).all()


@pytest.mark.parametrize(("kind", "capacity"), [(np.float64, 1), (np.int64, 1), (np.int64, 3)])
def test_a_load_bound_is_the_best_over_all_thresholds(kind: type, capacity: int) -> None:
    random = np.random.default_rng(3)
    slots = () if kind is np.float64 else (capacity, 1)
    for _ in range(50):
        head, work, tail = (random.integers(low, 9, 8) for low in (0, 1, 0))
        best = max(
            h + ceil(work[(head >= h) & (tail >= q)].sum() / capacity) + q
            for h in head.tolist()
            for q in tail.tolist()
            if ((head >= h) & (tail >= q)).any()
        )
        load = Load(head.astype(kind), work.astype(kind), tail.astype(kind))
        assert load_bound(load, 200, *slots)[0] == best


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(0, 3))
def test_a_heap_gives_items_by_key_then_by_number(keys: list[int], base: int) -> None:
    heap = Heap(np.zeros(base + len(keys), np.int64), np.zeros(base + len(keys), np.int32))
    size = 0
    for item in np.random.default_rng(len(keys)).permutation(len(keys)):
        size = push(heap.keys, heap.items, base, size, keys[item], item)
    taken = [pop(heap.keys, heap.items, base, size - i) for i in range(size)]
    assert taken == sorted(range(len(keys)), key=lambda item: (keys[item], item))


# -- compressed rows, against lists of lists --------------------------------------------------------

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=8)


@given(ROWS)
def test_grouping_puts_the_entries_of_a_row_together_in_the_order_given(
    rows: list[list[int]],
) -> None:
    pointer, values = flattened(rows, np.int64)
    order = np.random.default_rng(len(values)).permutation(len(values))
    again, shuffled = grouped(row_of_entry(pointer)[order], values[order], len(rows))
    assert again.tolist() == pointer.tolist()
    for first, last in pairwise(pointer.tolist()):
        given_order = [int(values[e]) for e in order if first <= e < last]
        assert shuffled[first:last].tolist() == given_order
