"""A job whose gating changes from iteration to iteration, on regional circuits and on the networks they compete with.

Every network runs the same iterations: the bytes that one seeded gating draws for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from types import MappingProxyType

from topox_core.economics.clusters import cluster_bill
from topox_core.economics.price_sets import Catalogue
from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import run_one
from topox_core.fabrics.controllers.gating import Gating
from topox_core.fabrics.controllers.reevaluated import reevaluated_in_turn
from topox_core.fabrics.controllers.regional import regional_iterations
from topox_core.fabrics.fixed.static import laid_by
from topox_core.fabrics.run import FabricRequest
from topox_core.runs.run import Stop

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
        """Return iterations per dollar over those of another network."""
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
            times_ms = tuple(_times_ms(name, request, gating, stop))
        except InputError:
            if name == REGIONAL:
                raise
            continue
        found[name] = GatedNetwork(name, times_ms, *_prices(name, request, catalogue))
    return found


def _times_ms(name: str, request: FabricRequest, gating: Gating, stop: Stop) -> Iterable[float]:
    """Return how long each iteration takes on a network; raises as :func:`gated_networks`."""
    options, cluster = request.options, request.cluster
    if name == REGIONAL:
        return (one.execution.makespan_ms for one in regional_iterations(request, stop))
    iterations = range(options.gating_iterations)
    if name in (STATIC, REEVALUATED):
        layout, graph = laid_by(request, stop)
        graphs = map(gating.on(graph).graph_of, iterations)
        if name == REEVALUATED:
            found = reevaluated_in_turn(replace(request, graph=graph), layout, graphs, stop)
            return (one.execution.makespan_ms for one in found)
        laid = replace(request, options=replace(options, layout=layout))
        return (run_one("static", replace(laid, graph=one), stop).iteration_ms for one in graphs)
    ports = options.packet_ports_of(cluster) if name == PACKET_PORTS else cluster.ports_per_server
    packets = replace(
        options,
        equivalent_gbps=None,
        oversubscription=OVERSUBSCRIPTION if name == OVERSUBSCRIBED else 1.0,
        servers_per_rack=max(1, cluster.servers // RACKS),
    )
    fewer = cluster.changed(ports_per_server=ports, switches=ports)
    of = replace(request, cluster=fewer, options=packets, runs={})
    graphs = map(gating.graph_of, iterations)
    return (run_one("fat_tree", replace(of, graph=one), stop).iteration_ms for one in graphs)


def _prices(name: str, request: FabricRequest, catalogue: Catalogue) -> tuple[float, float]:
    """Return the dollars of a network's packet part and of its optical part."""
    cluster, every = request.cluster, request.cluster.ports_per_server
    some = request.options.packet_ports_of(cluster)
    packets = {FAT_TREE: every, OVERSUBSCRIBED: every, PACKET_PORTS: some, REGIONAL: some}
    circuits = {REGIONAL: every - some, STATIC: every, REEVALUATED: every}
    over = OVERSUBSCRIPTION if name == OVERSUBSCRIBED else 1.0

    def usd(network: str, ports: int) -> float:
        of = cluster.changed(ports_per_server=max(1, ports), switches=max(1, ports))
        bill = cluster_bill(network, of, catalogue, oversubscription=over)
        return bill.cost_usd if ports else 0.0

    built_as = "topoopt_patch_panel" if name == STATIC else "topoopt_ocs"
    return usd("fat_tree", packets.get(name, 0)), usd(built_as, circuits.get(name, 0))
