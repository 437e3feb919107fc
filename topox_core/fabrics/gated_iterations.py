"""A job whose gating changes from iteration to iteration, on regional circuits and on the networks they compete with.

Every network runs the same iterations: the bytes that one seeded gating draws for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from types import MappingProxyType

from topox_core.economics.clusters import cluster_bill, regional_parts
from topox_core.economics.parts import Catalogue
from topox_core.errors import InputError
from topox_core.fabrics.compare import run_one
from topox_core.fabrics.gating import Gating
from topox_core.fabrics.reevaluated import reevaluated_in_turn
from topox_core.fabrics.regional import regional_iterations
from topox_core.fabrics.run import FabricRequest
from topox_core.fabrics.static import laid_by
from topox_core.model.cluster import Cluster
from topox_core.runs.stopping import Stop

REGIONAL, FAT_TREE, OVERSUBSCRIBED = "regional", "fat_tree", "oversubscribed"
PACKET_PORTS, STATIC, REEVALUATED = "packet_ports", "static", "reevaluated"
# In the order of every list, legend and table.
NETWORKS: Mapping[str, str] = MappingProxyType(
    {
        FAT_TREE: "Fat-tree on all ports",
        OVERSUBSCRIBED: "Fat-tree on all ports, 4:1",
        PACKET_PORTS: "Packet ports alone",
        STATIC: "Fixed circuits",
        REEVALUATED: "Re-evaluated circuits",
        REGIONAL: "Regional circuits",
    }
)
# Above racks of a quarter of the servers.
OVERSUBSCRIPTION, RACKS = 4.0, 4


_Times = Callable[[FabricRequest, Gating, Stop], Iterable[float]]


@dataclass(frozen=True)
class GatedNetwork:
    """What one network makes of the iterations.

    Attributes
    ----------
    iterations_ms
        Of each iteration, in their order.
    packet_usd, optical_usd
        What its packet part and its optical part cost, NICs and transceivers included.
    """

    network: str
    iterations_ms: tuple[float, ...]
    packet_usd: float
    optical_usd: float

    @property
    def mean_ms(self) -> float:
        """Mean of the iterations."""
        return fmean(self.iterations_ms)

    @property
    def usd(self) -> float:
        """What the whole network costs."""
        return self.packet_usd + self.optical_usd

    def work_a_dollar_over(self, other: GatedNetwork) -> float:
        """Return iterations a dollar over those of another network."""
        return other.mean_ms * other.usd / (self.mean_ms * self.usd)


def gated_networks(
    request: FabricRequest, catalogue: Catalogue, names: Iterable[str], stop: Stop
) -> dict[str, GatedNetwork]:
    """Run the iterations that ``request.options`` draw on each of some networks; those that cannot run the job are left out.

    Fixed and re-evaluated circuits start from TopologyFinder's layout for the bytes of the job as
    it is given, which know nothing of the gating that is drawn.

    Parameters
    ----------
    request
        The job; its options have gating, iterations, regional circuits and re-evaluation.
    catalogue
        Prices of parts.
    names
        Some of :data:`NETWORKS`.

    Raises
    ------
    InputError
        If an option is out of range, or regional circuits cannot run the job.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    options = request.options
    options.check_regions(request.cluster)
    gating = Gating(request.graph, request.cluster, options, request.settings.seed)
    found: dict[str, GatedNetwork] = {}
    for name in NETWORKS:
        if name not in names:
            continue
        try:
            times_ms = tuple(_TIMES[name](request, gating, stop))
        except InputError:
            if name == REGIONAL:
                raise
            continue
        found[name] = GatedNetwork(name, times_ms, *_prices(name, request, catalogue))
    return found


def _regional_ms(request: FabricRequest, gating: Gating, stop: Stop) -> Iterator[float]:  # noqa: ARG001 (one shape for all networks)
    return (one.execution.makespan_ms for one in regional_iterations(request, stop))


def _packets_ms(ports: Callable[[FabricRequest], int], over: float) -> _Times:
    """Return the times on a fat-tree with so many ports of every server."""

    def times(request: FabricRequest, gating: Gating, stop: Stop) -> Iterator[float]:
        count = ports(request)
        if count < 1:
            raise InputError("must be at least 1 for a packet network", field="packet_ports")
        fewer = request.cluster.changed(ports_per_server=count, switches=count)
        rack = max(1, request.cluster.servers // RACKS)
        options = replace(
            request.options, equivalent_gbps=None, oversubscription=over, servers_per_rack=rack
        )
        of = replace(request, cluster=fewer, options=options, runs={})
        for number in range(request.options.gating_iterations):
            one = replace(of, graph=gating.graph_of(number))
            yield run_one("fat_tree", one, stop).iteration_ms

    return times


def _static_ms(request: FabricRequest, gating: Gating, stop: Stop) -> Iterator[float]:
    layout, graph = laid_by(request, stop)
    moved = gating.on(graph)
    options = replace(request.options, layout=layout)
    for number in range(request.options.gating_iterations):
        one = replace(request, graph=moved.graph_of(number), options=options)
        yield run_one("static", one, stop).iteration_ms


def _reevaluated_ms(request: FabricRequest, gating: Gating, stop: Stop) -> Iterator[float]:
    layout, graph = laid_by(request, stop)
    moved = gating.on(graph)
    graphs = map(moved.graph_of, range(request.options.gating_iterations))
    found = reevaluated_in_turn(replace(request, graph=graph), layout, graphs, stop)
    return (one.execution.makespan_ms for one in found)


_TIMES: Mapping[str, _Times] = {
    FAT_TREE: _packets_ms(lambda order: order.cluster.ports_per_server, 1.0),
    OVERSUBSCRIBED: _packets_ms(lambda order: order.cluster.ports_per_server, OVERSUBSCRIPTION),
    PACKET_PORTS: _packets_ms(lambda order: order.options.packet_ports_of(order.cluster), 1.0),
    STATIC: _static_ms,
    REEVALUATED: _reevaluated_ms,
    REGIONAL: _regional_ms,
}


def _prices(name: str, request: FabricRequest, catalogue: Catalogue) -> tuple[float, float]:
    """Return the dollars of a network's packet part and of its optical part."""
    cluster: Cluster = request.cluster
    packet_ports = request.options.packet_ports_of(cluster)
    if name in (REGIONAL, PACKET_PORTS):
        packet, optical = regional_parts(cluster, catalogue, packet_ports)
        return packet.cost_usd, optical.cost_usd if name == REGIONAL else 0.0
    if name in (FAT_TREE, OVERSUBSCRIBED):
        over = OVERSUBSCRIPTION if name == OVERSUBSCRIBED else 1.0
        bill = cluster_bill("fat_tree", cluster, catalogue, oversubscription=over)
        return bill.cost_usd, 0.0
    built_as = "topoopt_patch_panel" if name == STATIC else "topoopt_ocs"
    return 0.0, cluster_bill(built_as, cluster, catalogue).cost_usd
