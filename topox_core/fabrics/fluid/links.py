"""Networks whose links transfers share max-min fairly: circuits that stay, and packet switches.

Electrical packet switches carry any mixture of transfers at once. Queues, losses and headers are not
modelled. A packet NIC sends and receives at once, also where the ports of optical switches are half
duplex.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.fabrics.fluid.simulator import (
    BATCHES_BETWEEN_STOPS,
    FluidNetwork,
    FluidTasks,
    Pairs,
    Simulation,
    go_on,
)
from topox_core.fabrics.kernels.state import TaskTables
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest, FabricRun, Traffic
from topox_core.model.arrays.csr import entries_of, grouped, row_pointer
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution, Layout
from topox_core.model.transfer_graph import (
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
    bytes_per_ms,
    latency_ms,
)
from topox_core.runs.run import Stop
from topox_core.schedule.bounds.unrounded import Bound, Loads, device_loads, lower_bound
from topox_core.topology.finder import find_layout
from topox_core.topology.ring_circuits import LayoutResult, on_rings
from topox_core.topology.traffic import demand_of

_wrong = partial(InputError, file="layout")


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
    return measured_on_links(fabric, request, wiring, replace(execution, layout=layout), message)


def shared_fairly(request: FabricRequest, wiring: LinkRoutes, stop: Stop) -> Execution:
    """Return one iteration whose transfers share the links max-min fairly; raises as :func:`run_on_links`.

    A transfer starts when it is ready, and ends ``latency_us`` after its last byte. A task that
    computes starts when it is ready and its device is free.
    """
    graph, cluster, exclusive = request.graph, request.cluster, request.settings.exclusive_devices
    run = Simulation(graph, cluster, wiring.pairs, wiring.network, exclusive)
    while run.advance(BATCHES_BETWEEN_STOPS):
        go_on(stop)
    return Execution(graph, cluster, run.state.start, run.state.end, Circuits.none())


def measured_on_links(
    fabric: str, request: FabricRequest, wiring: LinkRoutes, execution: Execution, message: str
) -> FabricRun:
    """Return an iteration on a wiring with its bound and its measures, however its bytes shared the links."""
    plan, settings = plan_on_links(request, wiring), request.settings
    bound = bound_on_links(request, wiring, plan)
    path_bytes = np.bincount(plan.part_class, plan.part_bytes, len(wiring.path_hops))
    traffic = traffic_over(wiring.path_hops, np.asarray(path_bytes, np.float64))
    return FabricRun.of(fabric, execution, bound, settings, traffic=traffic, message=message)


def plan_on_links(request: FabricRequest, wiring: LinkRoutes) -> TaskTables:
    """Return what the tasks of a graph need of a wiring."""
    graph, cluster, exclusive = request.graph, request.cluster, request.settings.exclusive_devices
    return FluidTasks.of(graph, cluster, wiring.pairs, exclusive).on(wiring.network)


def bound_on_links(request: FabricRequest, wiring: LinkRoutes, plan: TaskTables) -> Bound:
    """Return a lower bound for any way to share these links: critical path, devices, links."""
    graph, cluster, network = request.graph, request.cluster, wiring.network
    latency = latency_ms(graph, cluster)
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


def traffic_over(hops: IntArray, path_bytes: FloatArray) -> Traffic:
    """Return how far bytes went over paths of so many hops."""
    total = float(path_bytes.sum())
    mean = float((path_bytes * hops).sum()) / total if total else 1.0
    return Traffic(mean, int(hops[path_bytes > 0].max(initial=0)))


def static_layout(
    graph: TransferGraph, cluster: Cluster, variant: str, seed: int
) -> tuple[LayoutResult, TransferGraph]:
    """Return TopologyFinder's layout for a graph's own traffic, and the graph with its collectives on those rings.

    The graph stays as it is where the user chose the strides of its rings. ``seed`` decides the
    ties of the ``released`` variant's routing.

    Raises
    ------
    InputError
        As :func:`~topox_core.topology.finder.find_layout`.
    """
    result = find_layout(
        demand_of(graph, cluster.servers), cluster.ports_per_server, variant, seed=seed
    )
    return result, graph if graph.lowering.strides else on_rings(graph, result)


def wired(layout: Layout, pairs: Pairs, cluster: Cluster, partial: bool = False) -> LinkRoutes:
    """Return the links of a layout, and the routes of every pair that talks.

    Parameters
    ----------
    partial
        Whether a pair may have no route: what it sends waits.

    Raises
    ------
    InputError
        As :func:`run_static`.
    """
    _check_ports(layout, cluster)
    source, destination, parallel = layout.links
    number = {
        pair: i for i, pair in enumerate(zip(source.tolist(), destination.tolist(), strict=True))
    }
    names = [
        f"link from server {a} to {b}" + (f" ({k} circuits)" if k > 1 else "")
        for (a, b), k in zip(number, parallel.tolist(), strict=True)
    ]
    paths = [
        [
            [number[hop] for hop in hops_of(route, pair, number)]
            for route in (layout.routes.get(pair, ()) if partial else routes_of(layout, pair))
        ]
        for pair in pairs.ends
    ]
    network = FluidNetwork.of(parallel.astype(np.float64) * bytes_per_ms(cluster.port_gbps), paths)
    hops = np.diff(network.path_ptr)
    if cluster.duplex == "half":
        network = half_duplex(network, cluster, source, destination)
        both = [(a, b) for a, b in number if a < b and (b, a) in number]
        names += [f"circuits between servers {a} and {b}, both ways" for a, b in both]
        names += [f"ports of server {server}" for server in range(cluster.servers)]
    return LinkRoutes(pairs=pairs, network=network, names=names, path_hops=hops)


def _check_ports(layout: Layout, cluster: Cluster) -> None:
    """Refuse a layout with more circuits at a server than it has ports."""
    beyond = cluster.servers
    if layout.circuits[beyond:].any() or layout.circuits[:, beyond:].any():
        raise _wrong(f"joins {layout.servers} servers, but the cluster has {cluster.servers}")
    for way, counts in (
        ("out of", layout.circuits.sum(axis=1)),
        ("into", layout.circuits.sum(axis=0)),
    ):
        if len(counts) and counts.max() > cluster.ports_per_server:
            server = int(np.argmax(counts))
            raise _wrong(
                f"has {counts[server]} circuits {way} server {server}, which has {cluster.ports_per_server} ports"
            )


def routes_of(layout: Layout, pair: tuple[int, int]) -> tuple[tuple[int, ...], ...]:
    """Return the routes of a pair that talks; raises InputError if there are none."""
    routes = layout.routes.get(pair, ())
    if not routes:
        raise _wrong(f"server {pair[0]} sends to server {pair[1]}, but has no route to it")
    return routes


def hops_of(
    route: tuple[int, ...], pair: tuple[int, int], number: dict[tuple[int, int], int]
) -> list[tuple[int, int]]:
    """Return the hops of a route, each a circuit that is there."""
    written = " → ".join(map(str, route))
    if len(route) < 2 or (route[0], route[-1]) != pair:
        raise _wrong(f"the route {written} does not lead from server {pair[0]} to server {pair[1]}")
    hops = list(pairwise(route))
    for a, b in hops:
        if (a, b) not in number:
            raise _wrong(
                f"the route {written} uses a circuit from server {a} to server {b}, which is not there"
            )
    return hops


def half_duplex(
    network: FluidNetwork,
    cluster: Cluster,
    source: NDArray[np.integer],
    destination: NDArray[np.integer],
) -> FluidNetwork:
    """Return a network with what the two directions of a link and a server's ports share as further links.

    ``source`` and ``destination`` are the ends of the links that are there, by source, then
    destination.
    """
    n, links, one_way = cluster.servers, len(source), network.capacity
    number = np.full((n, n), -1, np.int64)
    number[source, destination] = np.arange(links)
    back = number[destination, source]
    first = np.flatnonzero((back >= 0) & (source < destination))
    both = np.full(links, -1, np.int64)
    both[first] = both[back[first]] = links + np.arange(len(first))
    capacity = np.concatenate(
        [
            one_way,
            np.maximum(one_way[first], one_way[back[first]]),
            np.full(n, cluster.ports_per_server * bytes_per_ms(cluster.port_gbps)),
        ]
    )
    ports = links + len(first)
    table = np.stack([np.arange(links), both, ports + source, ports + destination], axis=1)
    crossed = table[network.path_link]
    counts = np.concatenate([[0], np.cumsum((crossed >= 0).sum(axis=1))])
    path_ptr = counts[network.path_ptr].astype(np.int32)
    path_link = crossed[crossed >= 0].astype(np.int32)
    return FluidNetwork(capacity, path_ptr, path_link, network.pair_ptr)


# -- packet switches -------------------------------------------------------------------------------

# Where transfers have durations: those of a port, whatever its speed.
SLOWER_BY_PRICE = (
    ". A transfer given by duration moves what a port moves in that time: with faster ports more, while the same money "
    "buys a smaller share of their speed in packets, so that this network becomes slower"
)


def ideal_bound(request: FabricRequest) -> Bound:
    """Return a lower bound for circuits: at most d_S * B out of and into a server (half duplex: together)."""
    wiring = non_blocking(request, shared=request.cluster.duplex == "half")
    return bound_on_links(request, wiring, plan_on_links(request, wiring))


def non_blocking(request: FabricRequest, shared: bool = False) -> LinkRoutes:
    """Return every server on one switch, d_S * B each way, or both ways together where they are ``shared``."""
    cluster = request.cluster
    nic_gbps = cluster.ports_per_server * cluster.port_gbps
    pairs = Pairs.of(request.graph, cluster)
    return switched(pairs, cluster, nic_gbps, cluster.servers, 1.0, shared)


def run_fat_tree(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration on a fat-tree: a host link a server, and an up and a down link a rack.

    The host link carries d_S * B, or ``equivalent_gbps`` of the cost-equivalent fat-tree. A rack's
    links carry what its servers' host links add up to, divided by the oversubscription; above them
    the tree is non-blocking. With one rack there is nothing above it.

    Raises
    ------
    InputError
        If an option is out of range, or the graph names a server that the cluster does not have.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    options, cluster = request.options, request.cluster
    nic_gbps = options.equivalent_gbps or cluster.ports_per_server * cluster.port_gbps
    rack = min(options.servers_per_rack or cluster.servers, cluster.servers)
    wiring = switched(
        Pairs.of(request.graph, cluster), cluster, nic_gbps, rack, options.oversubscription
    )
    above = (
        f", racks of {rack}, {options.oversubscription:g}:1 above"
        if rack < cluster.servers
        else ", one rack"
    )
    words = f"{nic_gbps:g} Gbit/s per server{above}"
    given = (request.graph.kind == TRANSFER) & (request.graph.duration_ms > 0)
    if options.equivalent_gbps and nic_gbps < cluster.ports_per_server * cluster.port_gbps:
        words += SLOWER_BY_PRICE if given.any() else ""
    return run_on_links("fat_tree", request, wiring, stop, words)


def run_full_fat_tree(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration on a fat-tree with all ports of every server, whatever the options of the other fat-tree say.

    Raises
    ------
    InputError, Stopped
        As :func:`run_fat_tree`.
    """
    return replace(
        run_fat_tree(replace(request, options=FabricOptions()), stop), fabric="fat_tree_full"
    )


def switched(
    pairs: Pairs,
    cluster: Cluster,
    nic_gbps: float,
    rack: int,
    oversubscription: float,
    shared: bool = False,
) -> LinkRoutes:
    """Return servers on switches: out and in of each server, one link if ``shared``, then up and down of each rack."""
    n = cluster.servers
    racks = -(-n // rack) if rack < n else 0
    hosts = n if shared else 2 * n
    in_rack = np.minimum(rack, n - rack * np.arange(racks))
    rack_gbps = np.repeat(in_rack * nic_gbps / oversubscription, 2)
    names = (
        [f"ports of server {s}" for s in range(n)]
        if shared
        else (
            [f"out-ports of server {s}" for s in range(n)]
            + [f"in-ports of server {s}" for s in range(n)]
        )
    )
    names += [f"{way} link of rack {r}" for r in range(racks) for way in ("up", "down")]
    count = len(pairs)
    first, last = pairs.source.astype(np.int64), pairs.destination + (0 if shared else n)
    up = hosts + 2 * (pairs.source // rack)
    down = hosts + 2 * (pairs.destination // rack) + 1
    crosses = (
        (pairs.source // rack != pairs.destination // rack) if racks else np.zeros(count, np.bool_)
    )
    every = np.ones(count, np.bool_)
    # One row a pair; what a pair does not cross is dropped row by row.
    table, keep = (
        np.stack([first, up, down, last], axis=1),
        np.stack([every, crosses, crosses, every], axis=1),
    )
    return LinkRoutes(
        pairs=pairs,
        network=FluidNetwork(
            bytes_per_ms(1.0) * np.concatenate([np.full(hosts, float(nic_gbps)), rack_gbps]),
            row_pointer(keep.sum(axis=1)),
            table[keep].astype(np.int32),
            np.arange(count + 1, dtype=np.int32),
        ),
        names=names,
        path_hops=np.ones(count, np.int32),
    )
