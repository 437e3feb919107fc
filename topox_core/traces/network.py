"""ASTRA-sim's network file (YAML of plain keys and lists) as a cluster."""

import math

from topox_core.errors import InputError, errors_in_file, shown, wrong_setting
from topox_core.io.limits import NETWORK
from topox_core.io.ranges import number_in
from topox_core.io.yaml_text import loaded_yaml
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.traces.source import Content, Source

_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_KINDS = ("ring", "fullyconnected", "switch")
# Of its unit of bandwidth, per second.
BANDWIDTH_BYTES = 1 << 30


def read_network(
    source: Source, optical: int | None = None, ports: int = 2
) -> tuple[Cluster, tuple[str, ...]]:
    """Return the cluster that a network file describes, and what the file says beyond it, a sentence each.

    The optical dimension becomes the switches: as many servers as it has members, each with the GPUs
    of the dimensions before it. ``bandwidth`` is in 2^30 bytes per second, ``latency`` in ns of a hop,
    of which a message through a switch takes two (ASTRA-sim 2, both analytical networks).

    Parameters
    ----------
    optical
        Number of the dimension, from 1; None: the last.
    ports
        Ports of a server, which share its bandwidth; as many switches.

    Raises
    ------
    InputError
        If the file is none, or has more than one dimension after the optical one.
    """
    if not 1 <= ports <= 64:
        raise wrong_setting("ports", f"must be from 1 to 64 (got {ports})")
    data = b"".join(Content(source, NETWORK))
    found = _keys(data.decode("utf-8", "replace"), source.name)
    file = source.name
    kinds = found.get("topology", [])
    n = len(kinds)
    for key in _KEYS:
        if key not in found:
            raise InputError("is missing", file=file, field=key)
        if len(found[key]) != n or not 1 <= n <= 16:
            problem = f"must list one value for each of the {n} dimensions (got {len(found[key])})"
            raise InputError(problem, file=file, field=key)
    for kind in kinds:
        if _plain(kind) not in _KINDS:
            problem = f"must be Ring, FullyConnected or Switch (got {shown(kind)})"
            raise InputError(problem, file=file, field="topology")
    counts = [int(_number(one, "npus_count", file, whole=True)) for one in found["npus_count"]]
    at = n - 1 if optical is None else optical - 1
    if not 0 <= at < n:
        raise wrong_setting("optical", f"must be from 1 to {n} (got {optical})")
    if n - 1 - at > 1:
        raise InputError(
            f"has {n - 1 - at} dimensions after the optical one: one at most is left out", file=file
        )
    notes = []
    if at < n - 1:
        notes.append(
            f"the last dimension ({kinds[-1]} of {counts[-1]}) is left out: one of its members is the cluster"
        )
    if at:
        inner = ", ".join(f"{k} of {c}" for k, c in zip(kinds[:at], counts[:at], strict=True))
        notes.append(f"inside servers: {inner}")
    speed = 8 * BANDWIDTH_BYTES / 1e9 * _number(found["bandwidth"][at], "bandwidth", file)
    hops = 2 if _plain(kinds[at]) == "switch" else 1
    latency = hops * _number(found["latency"][at], "latency", file, least=0.0)
    with errors_in_file(file):
        cluster = one_port_a_switch(
            counts[at],
            ports,
            speed / ports,
            latency_us=latency / 1_000,
            devices_per_server=math.prod(counts[:at]),
            name=f"{counts[at]} servers, {ports} OCS, in place of a {kinds[at]}",
        )
    return cluster, tuple(notes)


def _plain(kind: str) -> str:
    return kind.lower().replace("_", "")


def _number(text: str, field: str, file: str, *, least: float = 1e-9, whole: bool = False) -> float:
    value = number_in(text)
    if not least <= value < 1e9 or (whole and value != int(value)):
        kind = (
            "a whole number from 1" if whole else "a number above 0" if least else "a number from 0"
        )
        raise InputError(f"must be {kind} (got {shown(text)})", file=file, field=field)
    return value


def _keys(text: str, file: str) -> dict[str, list[str]]:
    """Return the lists of a file of plain keys, ``key: [a, b]`` or ``key: a``, as text."""
    values = loaded_yaml(text, file, NETWORK)
    if not isinstance(values, dict):
        raise InputError(f"must be keys and values (got {shown(values)})", file=file)
    return {
        str(key): [str(one) for one in (value if isinstance(value, list) else [value])]
        for key, value in values.items()
    }
