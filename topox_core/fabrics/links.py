"""One iteration on links shared max-min fairly: packet fabrics and static circuits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from topox_core.fabrics.fluid import FluidNetwork, FluidTasks, Pairs, simulate
from topox_core.fabrics.kernels.state import TaskTables
from topox_core.fabrics.run import FabricRequest, FabricRun, Traffic
from topox_core.model.csr import entries_of, grouped
from topox_core.model.durations import latency_ms
from topox_core.model.execution import Circuits, Execution
from topox_core.model.layout import Layout
from topox_core.model.transfer_graph import IntArray
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
    execution = shared_fairly(request, wiring, stop)
    return measured_on_links(
        fabric, request, wiring, replace(execution, layout=layout), message
    )


def shared_fairly(request: FabricRequest, wiring: LinkRoutes, stop: Stop) -> Execution:
    """Return one iteration whose transfers share the links max-min fairly; raises as :func:`run_on_links`."""
    graph, cluster, exclusive = request.graph, request.cluster, request.settings.exclusive_devices
    start, end = simulate(graph, cluster, wiring.pairs, wiring.network, exclusive, stop)
    return Execution(graph, cluster, start, end, Circuits.none())


def measured_on_links(
    fabric: str, request: FabricRequest, wiring: LinkRoutes, execution: Execution, message: str
) -> FabricRun:
    """Return an iteration on a wiring with its bound and its measures, however its bytes shared the links."""
    bound, settings = bound_on_links(request, wiring), request.settings
    traffic = _traffic(wiring, _plan(request, wiring))
    return FabricRun.of(fabric, execution, bound, settings, traffic=traffic, message=message)


def _plan(request: FabricRequest, wiring: LinkRoutes) -> TaskTables:
    graph, cluster, exclusive = request.graph, request.cluster, request.settings.exclusive_devices
    return FluidTasks.of(graph, cluster, wiring.pairs, exclusive).on(wiring.network)


def bound_on_links(request: FabricRequest, wiring: LinkRoutes) -> Bound:
    """Return a lower bound for any way to share these links: critical path, devices, links."""
    graph, cluster, network = request.graph, request.cluster, wiring.network
    plan, latency = _plan(request, wiring), latency_ms(graph, cluster)
    # Alone, a transfer is as fast as the slowest of the paths that its bytes are split over.
    crossed = network.capacity[network.path_link]
    slowest = np.minimum.reduceat(crossed, network.path_ptr[:-1]) if len(crossed) else crossed
    part_ms = plan.part_bytes / slowest[plan.part_class]
    length = plan.length_ms.copy()
    np.maximum.at(length, plan.part_node, part_ms + latency[plan.part_node])
    link = network.path_link[entries_of(network.path_ptr, plan.part_class)]
    hops = np.diff(network.path_ptr)[plan.part_class]
    ptr, part = grouped(link, np.repeat(np.arange(len(hops)), hops), len(network.capacity))
    node = plan.part_node[part]
    work = plan.part_bytes[part] / np.repeat(network.capacity, np.diff(ptr))
    links = Loads(ptr, node, work, latency[node], lambda i: wiring.names[i])
    devices = [device_loads(graph, cluster)] if request.settings.exclusive_devices else []
    return lower_bound(graph, length, [*devices, links])


def _traffic(wiring: LinkRoutes, plan: TaskTables) -> Traffic:
    path_bytes = np.bincount(plan.part_class, plan.part_bytes, len(wiring.path_hops))
    total = float(path_bytes.sum())
    mean = float((path_bytes * wiring.path_hops).sum()) / total if total else 1.0
    return Traffic(mean, int(wiring.path_hops[path_bytes > 0].max(initial=0)))
