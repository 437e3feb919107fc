"""How long an iteration takes under a strategy: the fast simulator of the search on its network, or any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from math import gcd

import numpy as np

from topox_core.errors import InputError
from topox_core.io.limits import check_number, check_whole
from topox_core.model.arrays.csr import flattened, grouped
from topox_core.model.execution import Layout
from topox_core.model.transfer_graph import FloatArray, transfer_ms
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search.kernel import Exchanged, Placed, Routes, iteration_ms
from topox_core.strategy.strategy import Placement, Strategy, check_servers
from topox_core.topology.routing import RoutedNetwork


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
            raise InputError(
                f"has {strategy.servers} servers and the network {self._routes.servers}",
                file="strategy",
                field="servers",
            )
        placed = self._placed
        for k, placement in enumerate(strategy.placements):
            if placement is not self._known[k]:
                self._known[k] = placement
                cost = self.graph.operators[k].costs[placement.partitions]
                placed.parts[k], placed.start[k] = placement.partitions, placement.start
                placed.forward_ms[k], placed.backward_ms[k] = cost.forward_ms, cost.backward_ms
        return float(iteration_ms(self.graph.samples, placed, self._exchanged, self._routes))


@dataclass(frozen=True)
class StrategyNetwork:
    """Links and routes for the compiled simulator (:func:`non_blocking`, :func:`laid_out`).

    Attributes
    ----------
    symmetric
        Every rotation of the servers leaves the network as it is.
    """

    routes: Routes
    symmetric: bool


def non_blocking(
    servers: int, ports: int = 4, port_gbps: float = 100.0, latency_us: float = 0.0
) -> StrategyNetwork:
    """Return the simplified fabric: a server's ports are one link out and one link in.

    Raises
    ------
    InputError
        If a number is out of range.
    """
    speed = _checked(servers, port_gbps, latency_us)
    check_whole(ports, file="network", field="ports")
    links = np.array(
        [[a, servers + b] for a in range(servers) for b in range(servers)], np.int32
    ).ravel()
    ptr = np.arange(0, 2 * servers * servers + 1, 2, dtype=np.int32)
    ring_ptr = np.maximum(np.arange(servers + 2, dtype=np.int32) - 1, 0).astype(
        np.int32
    )  # one ring of stride 1 a group size
    routes = Routes(
        servers,
        ptr,
        links,
        np.full(2 * servers, speed / ports),
        latency_us / 1000,
        ring_ptr,
        np.ones(servers, np.int32),
    )
    return StrategyNetwork(routes, symmetric=True)


def laid_out(layout: Layout, port_gbps: float = 100.0, latency_us: float = 0.0) -> StrategyNetwork:
    """Return static circuits: parallel ones add up, a transfer takes its first route.

    An all-reduce uses all strides whose circuits join every member to the next one, else stride 1
    over routes.

    Raises
    ------
    InputError
        If two servers are not connected, or a number is out of range.
    """
    servers = layout.servers
    speed = _checked(servers, port_gbps, latency_us)
    source, destination, parallel = layout.links
    number = {
        pair: k for k, pair in enumerate(zip(source.tolist(), destination.tolist(), strict=True))
    }
    network, ptr, links = RoutedNetwork(layout.circuits), [0], []
    for a, b in product(range(servers), range(servers)):
        first, *_ = layout.routes.get((a, b)) or network.shortest_paths(a, b)
        links += [number[pair] for pair in pairwise(first)]
        ptr.append(len(links))
    ring_ptr, strides = [0, 0], []
    for members in range(1, servers + 1):
        strides += _ring_strides(layout, members)
        ring_ptr.append(len(strides))
    routes = Routes(
        servers,
        np.array(ptr, np.int32),
        np.array(links, np.int32),
        speed / parallel,
        latency_us / 1000,
        np.array(ring_ptr, np.int32),
        np.array(strides, np.int32),
    )
    return StrategyNetwork(routes, symmetric=False)


def _checked(servers: object, port_gbps: float, latency_us: float) -> float:
    """Return ms a byte of one port."""
    check_servers(servers)
    check_number(port_gbps, above=True, file="network", field="port_gbps")
    check_number(latency_us, file="network", field="latency_us")
    return transfer_ms(1.0, port_gbps)


def _ring_strides(layout: Layout, members: int) -> list[int]:
    if layout.servers % members or members == 1:
        return [1]
    step = layout.servers // members
    at = np.arange(layout.servers)
    direct = [
        k
        for k in range(1, members)
        if gcd(k, members) == 1 and layout.circuits[at, (at + k * step) % layout.servers].all()
    ]
    return direct or [1]
