"""Every choice that belongs to a fabric rather than to the cluster, said once: type, range, words."""

from dataclasses import dataclass
from typing import Annotated, Any

from topox_core.errors import InputError, refuse_if
from topox_core.model.cluster import MAX_PORTS, MAX_SERVERS, Cluster
from topox_core.model.quantities import Gbps
from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields

HALF, GIVEN = "half", "given"
MAX_STEPS = 1_000_000
MIN_SKEW = {"dirichlet": 1e-3}  # what can be drawn from


@dataclass(frozen=True)
class FabricOptions:
    """Choices that belong to a fabric; what is not used is ignored.

    Of gating ``given`` has the bytes of the graph in every iteration; else they are drawn for each
    layer and iteration: ``walk`` (log-popularities that persist), ``dirichlet``, ``zipf`` (a
    ranking in which two servers change places from iteration to iteration).

    Raises
    ------
    InputError
        If a value is out of its range; the field is named.
    """

    oversubscription: Annotated[
        float,
        setting(
            "Oversubscription of the fat-tree",
            description="fat-tree of full bandwidth with this oversubscription above its racks (default 1)",
            ge=1,
            le=1e12,
            steps=(1.0, 2.0, 3.0, 4.0, 8.0),
        ),
    ] = 1.0
    servers_per_rack: Annotated[
        int,
        setting(
            "Servers per rack",
            description="fat-tree of full bandwidth with racks of this size (default: all in one rack)",
            ge=0,
            le=MAX_SERVERS,
        ),
    ] = 0
    equivalent_gbps: (
        Annotated[
            Gbps,
            setting(
                "NIC of the fat-tree",
                description="one NIC of this speed per server in the fat-tree, in place of the speed of the same cost",
            ),
        ]
        | None
    ) = None
    # A Layout, the circuits of the static fabric; None lets TopologyFinder compute them. (Its type would
    # load what computes, and commands read the words of options before that.)
    layout: Any = None
    topology_variant: Annotated[
        str,
        plain_setting(
            "TopologyFinder",
            "how TopologyFinder lays out the static circuits (default published)",
            "published",
            "released",
        ),
    ] = "published"
    layout_by: Annotated[
        str,
        plain_setting(
            "Fixed circuits laid by",
            "whose circuits the static fabric has: TopologyFinder's (default), those that the matrix of bytes "
            "asks for, or those searched for the task graph",
            "topoopt",
            "matrix",
            "graph",
        ),
    ] = "topoopt"
    layout_steps: Annotated[
        int,
        setting(
            "Layouts tried",
            description="static_graph, --layout-by graph: layouts that the search tries (default: as many as a "
            "first answer has time for)",
            ge=0,
            le=MAX_STEPS,
        ),
    ] = 0
    reevaluate_ms: Annotated[
        float,
        setting(
            "Time between re-evaluations",
            "ms",
            "reevaluated: time between two choices of circuits (default 50)",
            ge=0.001,
            le=1e12,
            steps=(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0),
        ),
    ] = 50.0
    pause: Annotated[
        str,
        plain_setting(
            "Circuits that a re-evaluation darkens",
            "reevaluated: a change darkens all circuits (default), or those that change",
            "all",
            "changed",
        ),
    ] = "all"
    forwarding: Annotated[
        bool,
        setting(
            "Forwarding between re-evaluations",
            description="reevaluated: servers forward for pairs without a circuit (default yes)",
        ),
    ] = True
    regional_packet_ports: (
        Annotated[
            int,
            setting(
                "Packet ports per server beside regional circuits",
                description="regional: ports of a server on the packet switch (default half, rounded up)",
                ge=0,
                le=MAX_PORTS,
            ),
        ]
        | Annotated[str, setting(choices=(HALF,))]
    ) = HALF
    region_servers: Annotated[
        int,
        setting(
            "Servers per region",
            description="regional: servers of a region, neighbours by number (default: all)",
            ge=0,
            le=MAX_SERVERS,
        ),
    ] = 0
    regional_circuits: Annotated[
        str,
        plain_setting(
            "Regional circuits asked for",
            "regional: circuits are asked for when the gate is known (default), ahead of each exchange, or once",
            "gate",
            "foreseen",
            "fixed",
        ),
    ] = "gate"
    regional_dealt: Annotated[
        str,
        plain_setting(
            "Regional circuits dealt by",
            "regional: a circuit goes to the bottleneck (default), or to most bytes",
            "bottleneck",
            "bytes",
        ),
    ] = "bottleneck"
    gating: Annotated[
        str,
        plain_setting(
            "Gating of experts",
            "regional: bytes between experts as the graph has them (default), or drawn for each layer and iteration",
            GIVEN,
            "walk",
            "dirichlet",
            "zipf",
        ),
    ] = GIVEN
    gating_skew: Annotated[
        float,
        setting(
            "Skew of the gating",
            description="regional: skew of the drawn gating (default 1): spread of the log-popularities, "
            "concentration of the Dirichlet draws, or exponent of Zipf's law",
            ge=0,
            le=100,
            steps=(0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0),
        ),
    ] = 1.0
    gating_persistence: Annotated[
        float,
        setting(
            "Persistence of the gating",
            description="regional: how much of a walk's popularity stays from iteration to iteration (default 0.9)",
            ge=0,
            le=1,
        ),
    ] = 0.9
    gating_iterations: Annotated[
        int,
        setting(
            "Iterations of the gating",
            description="regional: iterations one after the other (default 1)",
            ge=1,
            le=1_000,
        ),
    ] = 1

    def __post_init__(self) -> None:
        check_fields(self, "settings")
        if self.gating_skew < (least := MIN_SKEW.get(self.gating, 0.0)):
            problem = f"must be at least {least:g} with {self.gating} (got {self.gating_skew:g})"
            raise InputError(problem, file="settings", field="gating_skew")

    def packet_ports_of(self, cluster: Cluster) -> int:
        """Return how many ports of a server are on the packet switch of the regional fabric."""
        ports, given = cluster.ports_per_server, self.regional_packet_ports
        return ports - ports // 2 if isinstance(given, str) else given

    def check_regions(self, cluster: Cluster) -> None:
        """Refuse regions that a cluster cannot have.

        Raises
        ------
        InputError
            If they have more ports or servers than there are.
        """
        for field, given, most in (
            ("regional_packet_ports", self.packet_ports_of(cluster), cluster.ports_per_server),
            ("region_servers", self.region_servers, cluster.servers),
        ):
            refuse_if(
                (given > most, f"must be a whole number from 0 to {most:,} (got {given:,})"),
                file="settings",
                field=field,
            )
