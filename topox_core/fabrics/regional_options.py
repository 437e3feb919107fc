"""What may be chosen of regional circuits for experts."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.errors import InputError
from topox_core.io.ranges import check_one_of, check_whole, is_number
from topox_core.model.cluster import Cluster

HALF = "half"
MODES = ("gate", "foreseen", "fixed")
DEALS = ("bottleneck", "bytes")
GIVEN = "given"
GATINGS = (GIVEN, "walk", "dirichlet", "zipf")
MAX_ITERATIONS = 1_000


@dataclass(frozen=True)
class RegionalOptions:
    """How a packet network and regional optical switches share the ports, and which tokens go where.

    Parameters
    ----------
    packet_ports
        Ports of a server on the packet switch; ``half`` of them, rounded up, by default. The others
        are on the optical switch of its region.
    region_servers
        Servers of a region, neighbours by number; 0 for one region.
    mode
        When circuits are asked for: ``gate`` (the first transfer of an exchange is ready),
        ``foreseen`` (the exchange before it has ended) or ``fixed`` (once, for all exchanges).
    deal
        ``bottleneck`` or ``bytes``: what a circuit goes by.
    gating
        ``given``: the bytes of the graph, in every iteration. Else they are drawn for each layer
        and iteration: ``walk`` (log-popularities that persist), ``dirichlet``, ``zipf`` (a ranking
        in which two servers change places an iteration).
    skew
        Spread of the log-popularities, concentration of the Dirichlet draws, or exponent of Zipf's
        law.
    persistence
        Of a walk: correlation of a log-popularity with that of the iteration before.
    iterations
        How many are run, one after the other.
    """

    packet_ports: int | str = HALF
    region_servers: int = 0
    mode: str = "gate"
    deal: str = "bottleneck"
    gating: str = GIVEN
    skew: float = 1.0
    persistence: float = 0.9
    iterations: int = 1

    def packet_ports_of(self, cluster: Cluster) -> int:
        """Return how many ports of a server are on the packet switch."""
        ports = cluster.ports_per_server
        return ports - ports // 2 if isinstance(self.packet_ports, str) else self.packet_ports

    def check(self, cluster: Cluster) -> None:
        """Refuse what a cluster cannot have.

        Raises
        ------
        InputError
            Naming the field and what was expected.
        """
        if self.packet_ports != HALF:
            check_whole(
                self.packet_ports,
                0,
                cluster.ports_per_server,
                file="settings",
                field="regional_packet_ports",
            )
        check_whole(
            self.region_servers, 0, cluster.servers, file="settings", field="region_servers"
        )
        check_one_of(self.mode, MODES, file="settings", field="regional_circuits")
        check_one_of(self.deal, DEALS, file="settings", field="regional_dealt")
        check_one_of(self.gating, GATINGS, file="settings", field="gating")
        check_whole(self.iterations, 1, MAX_ITERATIONS, file="settings", field="gating_iterations")
        least = 1e-3 if self.gating == "dirichlet" else 0.0
        for field, value, low, high in (
            ("gating_skew", self.skew, least, 100.0),
            ("gating_persistence", self.persistence, 0.0, 1.0),
        ):
            if not is_number(value, low, high):
                raise InputError(
                    f"must be from {low:g} to {high:g} (got {value!r})",
                    file="settings",
                    field=field,
                )
