"""What a strategy gives each server to compute in an iteration."""

from __future__ import annotations

import numpy as np

from topox_core.model.transfer_graph import FloatArray
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import Strategy


def computing_ms(graph: OperatorGraph, strategy: Strategy) -> FloatArray:
    """Return how long each server computes in one iteration, forward and backward, in ms.

    A server computes one thing at a time, so that no iteration is shorter than the largest of them.
    """
    busy = np.zeros(strategy.servers)
    for placement in strategy.placements:
        cost = graph.operator(placement.operator).costs[placement.partitions]
        busy[list(placement.servers(strategy.servers))] += cost.forward_ms + cost.backward_ms
    return busy
