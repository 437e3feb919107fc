"""One iteration on links shared max-min fairly: packet fabrics and static circuits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topox_core.fabrics.fluid import (
    FluidNetwork,
    Pairs,
    plan_of,
    simulate,
)
from topox_core.fabrics.kernels.state import TaskTables
from topox_core.fabrics.run import Breakdown, FabricRequest, FabricRun, Traffic
from topox_core.model.cluster import Cluster
from topox_core.model.critical_path import critical_path
from topox_core.model.csr import entries_of, grouped
from topox_core.model.durations import latency_ms
from topox_core.model.execution import Circuits, Execution
from topox_core.model.layout import Layout
from topox_core.model.transfer_graph import IntArray, TransferGraph
from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.unrounded import Bound, Loads, device_loads, lower_bound


@dataclass(frozen=True)
class LinkRoutes:
    """A network with words for what is shared.

    Attributes
    ----------
    pairs, network
        Who talks, and over which links.
    names
        Words for each link of the network.
    path_hops
        How often bytes leave a server on each path: 1 is direct.
    """

    pairs: Pairs
    network: FluidNetwork
    names: Sequence[str]
    path_hops: IntArray


def run_on_links(
    fabric: str,
    request: FabricRequest,
    wiring: LinkRoutes,
    stop: Stop,
    message: str = "",
    layout: Layout | None = None,
) -> FabricRun:
    """Run one iteration on a wiring, with its bound and its measures.

    Raises
    ------
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    graph, cluster, exclusive = request.graph, request.cluster, request.settings.exclusive_devices
    start, end = simulate(graph, cluster, wiring.pairs, wiring.network, exclusive, stop)
    execution = Execution(graph, cluster, start, end, Circuits.none(), layout)
    return measured_on_links(fabric, request, wiring, execution, message)


def measured_on_links(
    fabric: str, request: FabricRequest, wiring: LinkRoutes, execution: Execution, message: str
) -> FabricRun:
    """Return an iteration on a wiring with its bound and its measures, however its bytes shared the links."""
    graph, cluster, exclusive = request.graph, request.cluster, request.settings.exclusive_devices
    plan = plan_of(graph, cluster, wiring.pairs, wiring.network, exclusive)
    bound = bound_on_links(graph, cluster, wiring, plan, exclusive)
    makespan = execution.makespan_ms
    # The two add the same numbers up in another order; a last bit must not put the bound above the
    # time.
    bound_ms = makespan if makespan < bound.ms <= makespan * (1 + 1e-9) else bound.ms
    path = critical_path(execution, exclusive)
    return FabricRun(
        fabric=fabric,
        execution=execution,
        bound_ms=bound_ms,
        bound_by=bound.text,
        traffic=traffic_on_links(wiring, plan),
        path=path,
        breakdown=Breakdown.of(graph, path),
        message=message,
    )


def bound_on_links(
    graph: TransferGraph,
    cluster: Cluster,
    wiring: LinkRoutes,
    plan: TaskTables,
    exclusive_devices: bool,
) -> Bound:
    """Return a lower bound for any way to share these links: critical path, devices, links."""
    network, latency = wiring.network, latency_ms(graph, cluster)
    # Alone, a transfer is as fast as the slowest of the paths that its bytes are split over.
    part_ms = plan.part_bytes / network.path_capacity[plan.part_class]
    length = plan.length_ms.copy()
    np.maximum.at(length, plan.part_node, part_ms + latency[plan.part_node])
    link = network.path_link[entries_of(network.path_ptr, plan.part_class)]
    hops = np.diff(network.path_ptr)[plan.part_class]
    ptr, part = grouped(link, np.repeat(np.arange(len(hops)), hops), len(network.capacity))
    node = plan.part_node[part]
    work = plan.part_bytes[part] / np.repeat(network.capacity, np.diff(ptr))
    links = Loads(ptr, node, work, latency[node], lambda i: wiring.names[i])
    devices = [device_loads(graph, cluster)] if exclusive_devices else []
    return lower_bound(graph, length, [*devices, links])


def traffic_on_links(wiring: LinkRoutes, plan: TaskTables) -> Traffic:
    """Return how far the bytes went."""
    path_bytes = np.bincount(plan.part_class, plan.part_bytes, len(wiring.path_hops))
    total = float(path_bytes.sum())
    mean = float((path_bytes * wiring.path_hops).sum()) / total if total else 1.0
    return Traffic(mean, int(wiring.path_hops[path_bytes > 0].max(initial=0)))
