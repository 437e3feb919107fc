"""How long an iteration takes under a strategy: the fast simulator of the search, or any other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topox_core.errors import InputError
from topox_core.model.csr import flattened, grouped
from topox_core.model.transfer_graph import FloatArray
from topox_core.strategy.kernel import Exchanged, Placed, iteration_ms
from topox_core.strategy.network import StrategyNetwork
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import Placement, Strategy


def computing_ms(graph: OperatorGraph, strategy: Strategy) -> FloatArray:
    """Return how long each server computes in one iteration, forward and backward, in ms.

    A server computes one thing at a time, so that no iteration is shorter than the largest of them.
    """
    busy = np.zeros(strategy.servers)
    for placement in strategy.placements:
        cost = graph.operator(placement.operator).costs[placement.partitions]
        busy[list(placement.servers(strategy.servers))] += cost.forward_ms + cost.backward_ms
    return busy


# What a search asks: the iteration time of a strategy in ms.
Evaluator = Callable[[Strategy], float]


class FastEvaluator:
    """Times an iteration on a simplified fabric in compiled code.

    Only operators that changed since the last call are looked up again; the iteration itself is
    simulated whole.

    Raises
    ------
    InputError
        From the call, if the strategy is for another number of servers than the network.
    """

    def __init__(self, graph: OperatorGraph, network: StrategyNetwork) -> None:
        self.graph, self.network = graph, network
        count = len(graph.operators)
        position = graph.position
        producer = np.array([position[edge.producer] for edge in graph.edges], np.int32)
        consumer = np.array([position[edge.consumer] for edge in graph.edges], np.int32)
        number = np.arange(len(graph.edges), dtype=np.int32)
        sizes = [[weight.size_bytes for weight in one.weights] for one in graph.operators]
        self._exchanged = Exchanged(
            producer,
            consumer,
            np.array([edge.bytes_per_sample for edge in graph.edges], np.float64),
            *grouped(producer, number, count),
            *grouped(consumer, number, count),
            *flattened(sizes, np.float64),
        )
        self._routes = network.routes
        self._known: list[Placement | None] = [None] * count
        self._placed = Placed(
            np.ones(count, np.int32), np.zeros(count, np.int32), np.zeros(count), np.zeros(count)
        )

    def __call__(self, strategy: Strategy) -> float:
        """Return the iteration time in ms."""
        if strategy.servers != self._routes.servers:
            problem = f"has {strategy.servers} servers and the network {self._routes.servers}"
            raise InputError(problem, file="strategy", field="servers")
        placed = self._placed
        for k, placement in enumerate(strategy.placements):
            if placement is not self._known[k]:
                self._known[k] = placement
                cost = self.graph.operators[k].costs[placement.partitions]
                placed.parts[k], placed.start[k] = placement.partitions, placement.start
                placed.forward_ms[k], placed.backward_ms[k] = cost.forward_ms, cost.backward_ms
        return float(iteration_ms(self.graph.samples, placed, self._exchanged, self._routes))
