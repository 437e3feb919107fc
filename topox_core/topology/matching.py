"""Circuits for model-parallel traffic: rounds of maximum-weight matching."""

from __future__ import annotations

from dataclasses import dataclass

import networkx
import numpy as np
from numpy.typing import NDArray

from topox_core.model.transfer_graph import FloatArray


@dataclass(frozen=True)
class Round:
    """One matching round.

    Attributes
    ----------
    pairs
        Matched pairs, the smaller server first, ascending.
    weights
        Bytes both ways of each pair as this round saw them.
    before, after
        Bytes over all pairs before and after the matched ones were halved.
    """

    pairs: tuple[tuple[int, int], ...]
    weights: tuple[float, ...]
    before: float
    after: float


def matching_rounds(model_parallel: FloatArray, free: NDArray[np.int64]) -> list[Round]:
    """Return rounds of maximum-weight matching until no two talking servers have a free port each.

    A matched pair gets a circuit each way, so it uses one out-port and one in-port at both ends,
    and its demand is halved for the rounds that follow (TopoOpt, NSDI 2023, Algorithm 1:
    diminishing return).

    Parameters
    ----------
    model_parallel
        Matrix of bytes; not changed.
    free
        Free ports a server; where all servers have d_MP, there are at most d_MP rounds.
    """
    weight = np.triu(model_parallel + model_parallel.T, 1)
    left = free.copy()
    rounds: list[Round] = []
    while True:
        open_pairs = (weight > 0) & (left > 0)[:, None] & (left > 0)[None, :]
        if not open_pairs.any():
            return rounds
        pairs = _maximum_weight(weight, open_pairs)
        before = float(weight.sum())
        weights = tuple(float(weight[a, b]) for a, b in pairs)
        for a, b in pairs:
            weight[a, b] /= 2
            left[a] -= 1
            left[b] -= 1
        rounds.append(Round(pairs, weights, before, float(weight.sum())))


def _maximum_weight(weight: FloatArray, allowed: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Return the matching of most pairs and, among those, of most bytes (Edmonds' Blossom)."""
    graph = networkx.Graph()
    first, second = np.nonzero(allowed)
    # Relative weights: bytes of 1e18 would leave the algorithm's differences no digits.
    largest = float(weight[allowed].max())
    graph.add_weighted_edges_from(
        (a, b, float(weight[a, b]) / largest)
        for a, b in zip(first.tolist(), second.tolist(), strict=True)
    )
    return tuple(
        sorted(
            (min(a, b), max(a, b))
            for a, b in networkx.max_weight_matching(graph, maxcardinality=True)
        )
    )
