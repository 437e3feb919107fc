"""Matchings of a matrix against all of them, and decompositions with as few as Koenig promises."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from topox_core.demand.decomposition import evened, extended, few_matchings, peeled
from topox_core.demand.kernels.matchings import bottleneck_matching, heaviest_assignment


@pytest.mark.parametrize("seed", range(12))
def test_matchings_are_the_heaviest_and_the_least_narrow_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 1 + seed % 6
    weight = rng.integers(0, 6, (n, n)).astype(float)
    every = [np.array(order) for order in permutations(range(n))]
    lines = np.arange(n)
    column = heaviest_assignment(weight)
    assert sorted(column) == list(range(n))
    assert weight[lines, column].sum() == max(weight[lines, order].sum() for order in every)
    even = evened(weight + np.eye(n))
    column, value = bottleneck_matching(even, np.full(n, -1, np.int32))
    widest = max(even[lines, order].min() for order in every)
    assert even[lines, column].min() == pytest.approx(widest) == pytest.approx(value)


@pytest.mark.parametrize("seed", range(10))
def test_there_are_as_many_matchings_as_the_fullest_line_has_entries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand = rng.random((12, 12)) * (rng.random((12, 12)) < 0.4)
    there = demand > 0
    matchings = few_matchings(demand)
    assert len(matchings) == max(there.sum(axis=0).max(), there.sum(axis=1).max())
    pairs = [pair for one in matchings for pair in one]
    assert sorted(pairs) == [tuple(pair) for pair in np.argwhere(there).tolist()]
    for short, longer in zip(matchings, extended(demand, matchings), strict=True):
        assert set(short) <= set(longer)
        assert all(len({pair[side] for pair in longer}) == len(longer) for side in (0, 1))


@pytest.mark.parametrize("seed", range(5))
def test_a_peeled_matrix_adds_up_to_at_least_itself(seed: int) -> None:
    rng = np.random.default_rng(seed)
    demand = rng.random((9, 9)) * (rng.random((9, 9)) < 0.5)
    even = evened(demand)
    assert np.allclose(even.sum(axis=0), even.sum(axis=1))
    sent = np.zeros_like(demand)
    for one in peeled(demand):
        sent[tuple(zip(*one.circuits, strict=True))] += one.weight_ms
    assert (demand - 1e-9 <= sent).all() and (sent <= even + 1e-9).all()
