"""The static fabric (TopoOpt): circuits fixed before the job, bytes forwarded by servers over several hops."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from topox_core.errors import InputError
from topox_core.fabrics.fluid import FluidNetwork, Pairs, Simulation
from topox_core.fabrics.links import LinkRoutes, run_on_links
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.model.cluster import Cluster
from topox_core.model.durations import bytes_per_ms
from topox_core.model.execution import Execution, PathRates
from topox_core.model.layout import Layout
from topox_core.model.transfer_graph import FloatArray, IntArray, TransferGraph
from topox_core.runs.stopping import Stop
from topox_core.topology.finder import find_layout
from topox_core.topology.mutation import on_rings
from topox_core.topology.result import LayoutResult
from topox_core.topology.traffic import demand_of

_wrong = partial(InputError, file="layout")


def run_static(order: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration on circuits that never change: ``options.layout``, or TopologyFinder's for this graph.

    A given layout carries the graph as it is lowered. With a layout of its own making,
    TopologyFinder also moves the ring collectives onto the rings it laid (all-reduce traffic is
    mutable, TopoOpt section 4), so that ``execution.graph`` may have other transfers than
    ``order.graph``; strides that the user chose stay as they are.

    A link carries its parallel circuits times the port speed, and the transfers that cross it share
    it max-min fairly. A server that forwards costs bandwidth on both links and no time; the latency
    is charged once a transfer. The links and their use are in ``traffic``; ``execution.circuits``
    stays empty, because no circuit belongs to a single transfer.

    On a half-duplex cluster the two directions between a pair of servers share the larger of their
    two capacities (a circuit each way is one port at both ends, used one way at a time), and all
    that enters and leaves a server, forwarded bytes twice, shares d_S * B (eq. 8 of TOPO-X as
    fluid).

    Raises
    ------
    InputError
        If two talking servers have no route, a route uses a circuit that is not there, or a server
        has more circuits than ports; the servers are named.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    layout = order.options.layout
    if layout is None:
        laid_out, graph = static_layout(
            order.graph, order.cluster, order.options.topology_variant, order.settings.seed
        )
        order, layout = replace(order, graph=graph), laid_out.layout
    wiring = wired(layout, Pairs.of(order.graph, order.cluster), order.cluster)
    return run_on_links("static", order, wiring, stop, layout.name, layout)


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
    capacity = [float(k) for k in parallel]
    shared: list[tuple[int, ...]] = [(i,) for i in range(len(number))]
    if cluster.duplex == "half":
        shared = _half_duplex(number, capacity, names, cluster)
    paths: list[list[list[int]]] = []
    hops: list[int] = []
    sender_path: list[int] = []
    sender: list[int] = []
    for pair in zip(pairs.source.tolist(), pairs.destination.tolist(), strict=True):
        of_pair = []
        for route in layout.routes.get(pair, ()) if partial else _routes(layout, pair):
            crossed = [number[hop] for hop in _hops(route, pair, number)]
            of_pair.append([resource for link in crossed for resource in shared[link]])
            sender += route[:-1]
            sender_path += [len(hops)] * len(crossed)
            hops.append(len(crossed))
        paths.append(of_pair)
    network = FluidNetwork.of(np.array(capacity) * bytes_per_ms(cluster.port_gbps), paths)
    return LinkRoutes(
        pairs=pairs,
        network=network,
        names=names,
        source=source,
        destination=destination,
        path_hops=np.array(hops, np.int32),
        path_sender=(np.array(sender_path, np.int32), np.array(sender, np.int32)),
        port_gbps=cluster.ports_per_server * cluster.port_gbps,
    )


def with_rates(execution: Execution, exclusive_devices: bool) -> Execution:
    """Return a run on a static layout with the rate of every path from event to event, run once more for it.

    Raises
    ------
    ValueError
        If the execution has no layout.
    """
    graph, cluster, layout = execution.graph, execution.cluster, execution.layout
    if layout is None:
        raise ValueError("only circuits that stay fixed have paths")
    pairs = Pairs.of(graph, cluster)
    wiring = wired(layout, pairs, cluster)
    ends = list(zip(pairs.source.tolist(), pairs.destination.tolist(), strict=True))
    paths = [(pair, route) for pair in ends for route in _routes(layout, pair)]
    link = {
        pair: i
        for i, pair in enumerate(
            zip(layout.links[0].tolist(), layout.links[1].tolist(), strict=True)
        )
    }
    hops = [
        (number, link[hop])
        for number, (pair, route) in enumerate(paths)
        for hop in _hops(route, pair, link)
    ]
    hop_path, hop_link = np.array(hops, np.int32).reshape(-1, 2).T
    simulation = Simulation(graph, cluster, pairs, wiring.network, exclusive_devices)
    rows: list[tuple[IntArray, FloatArray, float]] = []
    known, since = simulation.path_rates, np.zeros(len(paths))
    more = True
    while more:
        more = simulation.advance(1)
        rate, now = simulation.path_rates, simulation.now_ms
        ended = np.flatnonzero((rate != known) & (known > 0))
        begin_ms = since[ended]
        rows.append((ended.astype(np.int32), np.stack([begin_ms, known[ended]]), now))
        since[rate != known] = now
        known = rate
    values = np.concatenate([row[1] for row in rows], axis=1)
    until_ms = np.repeat([row[2] for row in rows], [len(row[0]) for row in rows])
    rates = PathRates(
        source=np.array([pair[0] for pair, _ in paths], np.int32),
        destination=np.array([pair[1] for pair, _ in paths], np.int32),
        hop_path=hop_path,
        hop_link=hop_link,
        path=np.concatenate([row[0] for row in rows]),
        begin_ms=values[0],
        end_ms=until_ms,
        bytes_per_ms=values[1],
    )
    return replace(execution, rates=rates)


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


def _routes(layout: Layout, pair: tuple[int, int]) -> tuple[tuple[int, ...], ...]:
    routes = layout.routes.get(pair, ())
    if not routes:
        raise _wrong(f"server {pair[0]} sends to server {pair[1]}, but no route leads there")
    return routes


def _hops(
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


def _half_duplex(
    number: dict[tuple[int, int], int], capacity: list[float], names: list[str], cluster: Cluster
) -> list[tuple[int, ...]]:
    """Add what half duplex shares, and return for each link all that its bytes use."""
    shared: list[tuple[int, ...]] = []
    both: dict[tuple[int, int], int] = {}
    for (a, b), i in number.items():
        if (a, b) not in both and (b, a) in number:
            both[a, b] = both[b, a] = len(capacity)
            capacity.append(max(capacity[i], capacity[number[b, a]]))
            names.append(f"circuits between servers {a} and {b}, both ways")
    ports = len(capacity)
    capacity += [float(cluster.ports_per_server)] * cluster.servers
    names += [f"ports of server {s}" for s in range(cluster.servers)]
    for (a, b), i in number.items():
        pair = (both[a, b],) if (a, b) in both else ()
        shared.append((i, *pair, ports + a, ports + b))
    return shared
