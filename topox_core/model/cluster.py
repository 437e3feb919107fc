"""The cluster: servers, their ports, the optical circuit switches, and the slot clock."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from topox_core.errors import InputError

DUPLEXES = ("full", "half")
# Limits are named before memory is spent; see docs/files.md.
MAX_SERVERS = 100_000
MAX_PORTS = 4_096
SHORTEST_SLOT_MS, LONGEST_SLOT_MS = (
    1e-6,
    1e9,
)  # a tick is a thousandth at the least, and times keep nine decimals
MAX_NUMBER = 1e30  # also turns away whole numbers too long for a float, and NaN


@dataclass(frozen=True)
class Cluster:
    """Servers joined by optical circuit switches (TOPO-X Table I; its symbols in brackets).

    Parameters
    ----------
    servers
        Number of servers (N_S).
    ports_per_server
        Optical ports of one server (d_S), spread evenly over the switches.
    switches
        Number of optical circuit switches (N_OCS).
    ports_per_switch
        Circuits that one switch carries at once (d_OCS, eq. 7).
    port_gbps
        Speed of a port in gigabits a second, each way (B).
    slot_ms
        Length of a slot (tau): circuits change on slot boundaries.
    reconfiguration_ms
        Dark time of a port that changes its circuit.
    duplex
        ``full``: a port sends and receives at once; ``half``: eq. 8 as printed, in + out <= d_S.
    latency_us
        Added to every transfer.

    Raises
    ------
    InputError
        If a value is missing its range; the field is named.
    """

    servers: int
    ports_per_server: int
    switches: int
    ports_per_switch: int
    port_gbps: float
    slot_ms: float = 1.0
    reconfiguration_ms: float = 0.0
    duplex: str = "full"
    latency_us: float = 0.0
    devices_per_server: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        counts = {
            "servers": MAX_SERVERS,
            "ports_per_server": MAX_PORTS,
            "switches": MAX_PORTS,
            "ports_per_switch": MAX_SERVERS * 10,
            "devices_per_server": MAX_PORTS,
        }
        for field, limit in counts.items():
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"must be a whole number (got {value!r})", field=field)
            if not 1 <= value <= limit:
                raise InputError(f"must be from 1 to {limit:,} (got {value})", field=field)
        for field, least in (
            ("port_gbps", None),
            ("slot_ms", None),
            ("reconfiguration_ms", 0.0),
            ("latency_us", 0.0),
        ):
            value = getattr(self, field)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not -MAX_NUMBER < value < MAX_NUMBER
            ):
                raise InputError(f"must be a finite number (got {str(value)[:40]})", field=field)
            if least is None and value <= 0:
                raise InputError(f"must be greater than 0 (got {value:g})", field=field)
            if field == "slot_ms" and not SHORTEST_SLOT_MS <= value <= LONGEST_SLOT_MS:
                raise InputError(
                    f"must be from {SHORTEST_SLOT_MS:g} to {LONGEST_SLOT_MS:g} ms (got {value:g})",
                    field=field,
                )
            if least is not None and value < least:
                raise InputError(f"must be at least {least:g} (got {value:g})", field=field)
            object.__setattr__(
                self, field, float(value)
            )  # 40 and 40.0 are one cluster, with one digest
        if self.duplex not in DUPLEXES:
            raise InputError(f"must be 'full' or 'half' (got {self.duplex!r})", field="duplex")

    def changed(self, **changes: Any) -> Cluster:
        """Return a copy with some keys replaced; an unknown key raises :class:`InputError`."""
        known = {field.name for field in fields(self)}
        for key in changes:
            if key not in known:
                raise InputError(
                    f"unknown key (expected one of {', '.join(sorted(known))})", field=key
                )
        return replace(self, **changes)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON bytes of all keys but the name."""
        keys = {k: v for k, v in asdict(self).items() if k != "name"}
        return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()
