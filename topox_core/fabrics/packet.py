"""Packet switches: a fat-tree with racks, and the links of a non-blocking switch.

Electrical packet switches carry any mixture of transfers at once; transfers share the links they
cross max-min fairly. Queues, losses and headers are not modelled. A packet NIC sends and receives at
once, also where the ports of optical switches are half duplex.
"""

from dataclasses import replace

import numpy as np

from topox_core.fabrics.fluid import FluidNetwork, Pairs
from topox_core.fabrics.links import LinkRoutes, bound_on_links, plan_on_links, run_on_links
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.model.cluster import Cluster
from topox_core.model.csr import row_pointer
from topox_core.model.transfer_graph import TRANSFER, bytes_per_ms
from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.unrounded import Bound

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
    run = run_fat_tree(replace(request, options=FabricOptions()), stop)
    return replace(run, fabric="fat_tree_full")


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
