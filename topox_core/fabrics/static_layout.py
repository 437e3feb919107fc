"""A layout of circuits that stay: TopologyFinder's for a graph, and the links and routes of any."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from topox_core.errors import InputError
from topox_core.fabrics.fluid import FluidNetwork, Pairs
from topox_core.fabrics.layout_times import half_duplex
from topox_core.fabrics.links import LinkRoutes
from topox_core.model.cluster import Cluster
from topox_core.model.durations import bytes_per_ms
from topox_core.model.layout import Layout
from topox_core.model.transfer_graph import TransferGraph
from topox_core.topology.finder import find_layout
from topox_core.topology.mutation import on_rings
from topox_core.topology.result import LayoutResult
from topox_core.topology.traffic import demand_of

_wrong = partial(InputError, file="layout")


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
        for pair in zip(pairs.source.tolist(), pairs.destination.tolist(), strict=True)
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
        raise _wrong(f"server {pair[0]} sends to server {pair[1]}, but no route leads there")
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
