"""How long an iteration takes under a strategy: the fast simulator of the search, or any other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topox_core.errors import InputError
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import IntArray
from topox_core.strategy.kernel import iteration_ms
from topox_core.strategy.network import StrategyNetwork
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.strategy.task_graph import task_graph

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
        self._producer = np.array([position[edge.producer] for edge in graph.edges], np.int32)
        self._consumer = np.array([position[edge.consumer] for edge in graph.edges], np.int32)
        self._bytes = np.array([edge.bytes_per_sample for edge in graph.edges], np.float64)
        self._out = _rows(self._producer, count)
        self._in = _rows(self._consumer, count)
        sizes = [
            [float(weight.size_bytes) for weight in operator.weights]
            for operator in graph.operators
        ]
        self._weight_ptr = np.concatenate([[0], np.cumsum([len(row) for row in sizes])]).astype(
            np.int32
        )
        self._weight_bytes = np.array([size for row in sizes for size in row], np.float64)
        self._known: list[Placement | None] = [None] * count
        self._parts, self._start = np.ones(count, np.int32), np.zeros(count, np.int32)
        self._forward, self._backward = np.zeros(count), np.zeros(count)

    def __call__(self, strategy: Strategy) -> float:
        """Return the iteration time in ms."""
        if strategy.servers != self.network.servers:
            raise InputError(
                f"has {strategy.servers} servers and the network {self.network.servers}",
                file="strategy",
                field="servers",
            )
        for k, placement in enumerate(strategy.placements):
            if placement is not self._known[k]:
                self._known[k] = placement
                cost = self.graph.operators[k].costs[placement.partitions]
                self._parts[k], self._start[k] = placement.partitions, placement.start
                self._forward[k], self._backward[k] = cost.forward_ms, cost.backward_ms
        net = self.network
        return float(
            iteration_ms(
                self.graph.samples,
                net.servers,
                self._parts,
                self._start,
                self._forward,
                self._backward,
                self._producer,
                self._consumer,
                self._bytes,
                *self._out,
                *self._in,
                self._weight_ptr,
                self._weight_bytes,
                net.route_ptr,
                net.route_link,
                net.byte_ms,
                net.latency_ms,
                net.ring_ptr,
                net.ring_stride,
            )
        )


class FabricEvaluator:
    """Times an iteration by its task graph on ``fabric``, such as a simulator."""

    def __init__(
        self,
        graph: OperatorGraph,
        fabric: Callable[[TaskGraph], float],
        memory_gb: float | None = None,
    ) -> None:
        self.graph, self.fabric, self.memory_gb = graph, fabric, memory_gb

    def __call__(self, strategy: Strategy) -> float:
        """Return the iteration time in ms."""
        return self.fabric(task_graph(self.graph, strategy, self.memory_gb))


def _rows(ends: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Return edge numbers by operator, in compressed rows."""
    ptr = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(ends, minlength=count), out=ptr[1:])
    return ptr, np.argsort(ends, kind="stable").astype(np.int32)
