"""The cluster: servers, their ports, the optical circuit switches, and the slot clock."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Annotated, Any

from topox_core.errors import check_known
from topox_core.model.quantities import SMALL_COUNTS, DelayMs, Gbps, LatencyUs
from topox_core.schema.fields import PRINTABLE, fields_of, setting
from topox_core.schema.records import check_fields

# Limits are named before memory is spent; see docs/files.md.
MAX_SERVERS = 100_000
MAX_PORTS = 4_096


@dataclass(frozen=True)
class Cluster:
    """Servers joined by optical circuit switches (TOPO-X Table I; its symbols in brackets).

    Raises
    ------
    InputError
        If a value is missing its range; the field is named.
    """

    servers: Annotated[int, setting("Servers", "", "servers (N_S)", ge=1, le=MAX_SERVERS)]
    ports_per_server: Annotated[
        int,
        setting(
            "Ports per server",
            "",
            "optical ports of one server (d_S), spread evenly over the switches",
            ge=1,
            le=MAX_PORTS,
        ),
    ]
    switches: Annotated[
        int,
        setting(
            "Switches",
            "",
            "optical circuit switches (N_OCS)",
            ge=1,
            le=MAX_PORTS,
            steps=SMALL_COUNTS,
        ),
    ]
    ports_per_switch: Annotated[
        int,
        setting(
            "Ports per switch",
            "",
            "circuits that one switch carries at once (d_OCS, eq. 7)",
            ge=1,
            le=10 * MAX_SERVERS,
        ),
    ]
    port_gbps: Annotated[Gbps, setting(description="speed of a port, each way (B)")]
    slot_ms: Annotated[
        float,
        setting(
            "Slot",
            "ms",
            "length of a slot (tau): circuits change on slot boundaries",
            ge=1e-6,  # times keep nine decimals
            le=1e9,
            steps=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
        ),
    ] = 1.0
    reconfiguration_ms: Annotated[
        DelayMs, setting(description="dark time of a port that changes its circuit")
    ] = 0.0
    duplex: Annotated[
        str,
        setting(
            "Duplex",
            "",
            "full: a port sends and receives at once; half: eq. 8 as printed, in + out <= d_S",
            choices=("full", "half"),
        ),
    ] = "full"
    latency_us: Annotated[LatencyUs, setting(description="added to every transfer")] = 0.0
    devices_per_server: Annotated[
        int, setting("Devices per server", "", "devices of one server", ge=1, le=MAX_PORTS)
    ] = 1
    name: Annotated[str, setting("Name", max_length=200, without=PRINTABLE)] = ""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def switch_limit(self) -> int:
        """Circuits that a switch carries at once (eq. 7); 0 where its servers' ports on it allow no more."""
        each = self.ports_per_server // self.switches
        most = self.servers * each // (2 if self.duplex == "half" else 1)
        return self.ports_per_switch if self.ports_per_switch < most else 0

    def changed(self, **changes: Any) -> Cluster:
        """Return a copy with some keys replaced; an unknown key raises :class:`InputError`."""
        for key in changes:
            check_known(key, fields_of(Cluster), field=key)
        return replace(self, **changes)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON bytes of all keys but the name."""
        keys = {k: v for k, v in asdict(self).items() if k != "name"}
        return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()


def one_port_a_switch(servers: int, switches: int, port_gbps: float, **more: Any) -> Cluster:
    """Return a cluster whose servers have one port on each switch; ``more`` are other keys.

    Raises
    ------
    InputError
        If a value is out of range.
    """
    return Cluster(servers, switches, switches, servers, port_gbps, **more)
