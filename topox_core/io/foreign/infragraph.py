"""InfraGraph (MLCommons; PyPI ``infragraph`` 3.1): a cluster out of its files of hosts, switches and links, and into one.

Its nodes are components of instances of devices (``host.0.nic.3``), its edges pairs of slices of them.
Here hosts are servers, their links to switches ports. Optical switches are a device type of ours
(``OPTICAL``); what InfraGraph has no field for stands in that device's description as ``key=value``.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import msgspec

from topox_core.errors import InputError, errors_in_file, printable, refuse_if, shown
from topox_core.io.content import decoded, loaded, whole
from topox_core.io.limits import INFRAGRAPH, MAX_NESTING, check_count
from topox_core.model.arrays.groups import by_key
from topox_core.model.cluster import Cluster
from topox_core.schema.fields import fields_of
from topox_core.schema.records import from_values

# The type of the component that makes a device an optical circuit switch.
OPTICAL = "optical-circuit-switch"
_IN_WORDS = ("reconfiguration_ms", "slot_ms", "duplex", "ports_per_server", "ports_per_switch")
_GBPS = {"gigabits_per_second": 1.0, "gigabytes_per_second": 8.0}
_FAT_TREE = {
    "equivalent_gbps": "Gbit/s per server",
    "servers_per_rack": "servers per rack",
    "oversubscription": "oversubscription above racks",
}
_US = {"ms": 1e3, "us": 1.0, "ns": 1e-3}
_SLICE = re.compile(r"([^\[\]]+)(?:\[(-?\d*)(?::(-?\d*))?(?::(-?\d*))?\])?")
_NOT_IN_A_NAME = re.compile(r"[^\sa-zA-Z0-9\-_()><\[\]]")
# Where a key begins that only InfraGraph has.
_ITS_KEYS = re.compile(rb"(?:^|[{,\s])[\"']?(?:infrastructure|instances|devices)[\"']?\s*:")


class _Custom(msgspec.Struct, frozen=True):
    type: str = ""


class _Component(msgspec.Struct, frozen=True):
    name: str
    count: int
    choice: str
    custom: _Custom = _Custom()


# A number under the name of its unit, which ``choice`` repeats.
_Quantity = dict[str, float | str | None]


class _Physical(msgspec.Struct, frozen=True):
    bandwidth: _Quantity = {}
    latency: _Quantity = {}


class _Link(msgspec.Struct, frozen=True):
    name: str
    physical: _Physical = _Physical()


class _Device(msgspec.Struct, frozen=True):
    name: str
    components: list[_Component]
    description: str = ""


class _Instance(msgspec.Struct, frozen=True):
    name: str
    device: str
    count: int


class _End(msgspec.Struct, frozen=True):
    instance: str
    component: str


class _Edge(msgspec.Struct, frozen=True):
    ep1: _End
    ep2: _End
    link: str
    scheme: Literal["one2one", "many2many"] = "one2one"


class _Infrastructure(msgspec.Struct, frozen=True):
    instances: list[_Instance]
    devices: list[_Device]
    edges: list[_Edge]
    links: list[_Link] = []
    name: str = ""
    description: str | None = None


# A component of an instance of a device: instance, its number, names and numbers of the component.
Node = tuple[str, int, str]


@dataclass(frozen=True)
class InfraCluster:
    """A cluster that an InfraGraph file describes.

    Attributes
    ----------
    fat_tree
        Options of the fabric ``fat_tree`` by name, from the file's packet switches.
    notes
        What was assumed, and what of the file has no meaning here, a sentence each.
    """

    cluster: Cluster
    fat_tree: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def is_infragraph(head: bytes) -> bool:
    """Whether a file that begins like this names no format of ours and has the keys of InfraGraph."""
    return b'"topox-' not in head and _ITS_KEYS.search(head) is not None


def read_infragraph(data: bytes, file: str) -> InfraCluster:
    """Read a file of InfraGraph, YAML or JSON: an infrastructure, or one with its annotations.

    Raises
    ------
    InputError
        If the file cannot be used, or its servers have different ports: one line names what.
    """
    values = _values(data, file)
    if isinstance(values, dict) and "infrastructure" in values:
        values = values["infrastructure"]
    try:
        found = msgspec.convert(values, _Infrastructure, strict=False)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at ")
        raise InputError(
            problem[:1].lower() + problem[1:],
            file=file,
            field=path.strip("`$.") or "infrastructure",
        ) from None
    with errors_in_file(file):
        return _Reading(found).result()


def _values(data: bytes, file: str) -> Any:
    content = whole(data, file, INFRAGRAPH)
    if content.lstrip().startswith(b"{"):
        return loaded(data, file, INFRAGRAPH)
    from topox_core.io.foreign.yaml_text import loaded_yaml  # 20 ms

    return loaded_yaml(decoded(content, file), file, INFRAGRAPH)


class _Reading:
    """What an infrastructure says of servers, ports and switches.

    Attributes
    ----------
    ports
        Of each server, by number of its instance: its links to switches (switch, link).
    """

    def __init__(self, found: _Infrastructure) -> None:
        self._found = found
        self._devices = {one.name: one for one in found.devices}
        self._instances = {one.name: one for one in found.instances}
        self._counts = {one.name: one.count for one in found.instances}
        self._links = {one.name: one for one in found.links}
        self._kinds = {one.name: self._kind(one) for one in found.instances}
        self._ports: dict[Node, tuple[Node, str]] = {}
        self._above: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._between: Counter[str] = Counter()
        for number, edge in enumerate(found.edges):
            with errors_in_file(item=f"edge {number}"):
                for one, other in self._pairs(edge):
                    self._take(one, other, edge.link)

    def _kind(self, instance: _Instance) -> str:
        """Return ``server``, ``optical`` or ``packet``: what a device is by its components."""
        inside = list(self._components(instance.device, f"instance {instance.name}"))
        refuse_if(
            (instance.count < 1, "must be at least 1"),
            item=f"instance {instance.name}",
            field="count",
        )
        if any(one.custom.type == OPTICAL for one, _ in inside):
            return "optical"
        return "server" if any(one.choice in ("xpu", "nic") for one, _ in inside) else "packet"

    def _components(
        self, device: str, item: str, times: int = 1, depth: int = 0
    ) -> Iterator[tuple[_Component, int]]:
        """Yield the components of a device and of the devices in it, with how many there are of each."""
        refuse_if(
            (
                not (device in self._devices and depth <= MAX_NESTING),
                f"{shown(device)} is none of the devices, or is within itself",
            ),
            item=item,
            field="device",
        )
        for one in self._devices[device].components:
            yield one, times * one.count
            if one.choice == "device":
                yield from self._components(one.name, item, times * one.count, depth + 1)

    def _pairs(self, edge: _Edge) -> Iterator[tuple[Node, Node]]:
        first, second = self._nodes(edge.ep1), self._nodes(edge.ep2)
        if edge.scheme == "one2one":
            yield from zip(first, second, strict=False)
            return
        check_count(len(first) * len(second), INFRAGRAPH.entries, "links an edge may stand for")
        yield from product(first, second)

    def _nodes(self, end: _End) -> list[Node]:
        """Return the nodes that an end of an edge names, as InfraGraph's service expands it."""
        name, numbers = _slice(end.instance, self._counts.get)
        device = self._instances[name].device
        paths = [""]
        for part in end.component.split("."):
            counts = {one.name: one.count for one in self._devices[device].components}
            component, at = _slice(part, counts.get)
            check_count(len(paths) * len(at), INFRAGRAPH.entries, "ends an edge may have")
            paths = [f"{path}.{component}[{k}]" for path in paths for k in at]
            device = component if component in self._devices else device
        check_count(len(paths) * len(numbers), INFRAGRAPH.entries, "ends an edge may have")
        return [(name, k, path) for k in numbers for path in paths]

    def _take(self, one: Node, other: Node, link: str) -> None:
        kinds = self._kinds[one[0]], self._kinds[other[0]]
        if kinds == ("server", "server"):
            self._between[link] += 1
            return
        if "server" not in kinds:
            self._above[one[:2]].append(link)
            self._above[other[:2]].append(link)
            return
        server, switch = (one, other) if kinds[0] == "server" else (other, one)
        refuse_if((server in self._ports, f"{_named(server)} has a link already"))
        self._ports[server] = switch, link

    def result(self) -> InfraCluster:
        """Return the cluster, or raise what keeps the file from being one."""
        servers = sorted({node[:2] for node in self._ports})
        refuse_if((not servers, "links no host (with an xpu or nic) to a switch"), field="edges")
        optical = {
            node: (switch, link)
            for node, (switch, link) in self._ports.items()
            if self._kinds[switch[0]] == "optical"
        }
        ports = optical or self._ports
        per_server = self._same_ports(ports)
        speeds = sorted({self._gbps(link) for _, link in ports.values()})
        named = ", ".join(f"{one:g}" for one in speeds[:4])
        refuse_if(
            (len(speeds) != 1, f"ports must have one speed (got {named} Gbit/s)"), field="links"
        )
        notes = [*self._left_out()]
        values: dict[str, Any] = {
            "servers": len(servers),
            "ports_per_server": per_server,
            "switches": per_server,
            "ports_per_switch": len(servers),
            "port_gbps": speeds[0],
            "latency_us": 2
            * max(
                _in_unit(self._links[link].physical.latency, _US) or 0.0
                for _, link in ports.values()
            ),
            "devices_per_server": self._gpus(servers),
        }
        if optical:
            switches = {switch[:2] for switch, _ in optical.values()}
            device = self._devices[self._instances[next(iter(switches))[0]].device]
            values |= {"switches": len(switches), **self._said(device, per_server, len(switches))}
        else:
            assumed = f"{per_server} are assumed, a port of each server on each"
            notes.insert(0, f"has no optical switch: {assumed}")
        fat_tree = self._fat_tree(servers)
        if fat_tree:
            said = ", ".join(f"{_FAT_TREE[name]} {value:g}" for name, value in fat_tree.items())
            notes.append(f"has packet switches, for the fat-tree of Compare: {said}")
        words = self._found.description
        name = self._found.name if words is None else words
        values["name"] = name and printable(name, 200)
        return InfraCluster(from_values(Cluster, values, ""), fat_tree, tuple(notes))

    def _same_ports(self, ports: Mapping[Node, tuple[Node, str]]) -> int:
        """Return how many ports every server has; each must have as many on every optical switch."""
        each = Counter(node[:2] for node in ports)
        on = Counter(
            (node[:2], switch[:2])
            for node, (switch, _) in ports.items()
            if self._kinds[switch[0]] == "optical"
        )
        (most, high), (fewest, low) = each.most_common()[0], each.most_common()[-1]
        refuse_if(
            (
                low != high,
                f"must give every server as many ports ({_named(most)} has {high}, {_named(fewest)} {low})",
            ),
            field="edges",
        )
        if len(set(on.values())) > 1:
            (at, where), count = on.most_common(1)[0]
            problem = f"must give a server as many ports on every optical switch ({_named(at)} has {count} on {_named(where)})"
            raise InputError(problem, field="edges")
        return high

    def _gbps(self, link: str) -> float:
        item = f"link {link}"
        refuse_if((link not in self._links, "is not in the list of links"), item=item)
        speed = _in_unit(self._links[link].physical.bandwidth, _GBPS)
        if speed is None or not 0 < speed < math.inf:
            raise InputError(
                "must be given in gigabits_per_second or gigabytes_per_second",
                item=item,
                field="physical.bandwidth",
            )
        return speed

    def _gpus(self, servers: list[tuple[str, int]]) -> int:
        counts = {
            name: sum(
                count
                for one, count in self._components(self._instances[name].device, "")
                if one.choice == "xpu"
            )
            for name in {one[0] for one in servers}
        }
        refuse_if(
            (len(set(counts.values())) > 1, "hosts must have one number of xpus"), field="devices"
        )
        return max(1, *counts.values())

    @staticmethod
    def _said(device: _Device, ports: int, switches: int) -> dict[str, Any]:
        """Return what the description of an optical switch says of the cluster."""
        words = dict(re.findall(r"([a-z_]+)=([^\s;]+)", device.description))
        kinds = fields_of(Cluster)
        said = {}
        for name in _IN_WORDS:
            if name in words:
                try:
                    said[name] = kinds[name].kind(words[name])
                except ValueError:
                    problem = f"must be a number (got {shown(words[name])})"
                    raise InputError(problem, item=f"device {device.name}", field=name) from None
        circuits = next((one.count for one in device.components if one.choice == "port"), None)
        if circuits is not None:
            said.setdefault("ports_per_switch", circuits)
        if said.get("ports_per_server", ports) // switches != ports // switches:
            del said["ports_per_server"]
        return said

    def _fat_tree(self, servers: list[tuple[str, int]]) -> dict[str, float]:
        """Return NIC, racks and oversubscription of the packet switches that servers are linked to."""
        below = by_key(
            (switch[:2], (node, link))
            for node, (switch, link) in self._ports.items()
            if self._kinds[switch[0]] == "packet"
        )
        if not below:
            return {}
        nic_gbps = sum(self._gbps(link) for ports in below.values() for _, link in ports)
        found = {"equivalent_gbps": nic_gbps / len(servers)}
        racks = {len({node[:2] for node, _ in ports}) for ports in below.values()}
        if len(racks) == 1 and (rack := racks.pop()) < len(servers):
            found["servers_per_rack"] = rack
        ratios = [
            sum(self._gbps(link) for _, link in ports) / sum(map(self._gbps, self._above[switch]))
            for switch, ports in below.items()
            if self._above[switch]
        ]
        if ratios and max(ratios) > 1:
            found["oversubscription"] = max(ratios)
        return found

    def _left_out(self) -> Iterator[str]:
        inside = dict.fromkeys(
            one.name
            for name, kind in self._kinds.items()
            if kind == "server"
            for one, _ in self._components(self._instances[name].device, "")
            if one.choice not in ("xpu", "nic", "port", "device")
        )
        if inside:
            yield f"has, without a meaning here, inside hosts: {', '.join(map(printable, inside))}"
        for link, count in self._between.items():
            yield f"has, without a meaning here, {count:,} links {printable(link)} between hosts"
        linked = {node[:2] for node in self._ports}
        for name, kind in self._kinds.items():
            idle = self._instances[name].count - sum(one[0] == name for one in linked)
            if kind == "server" and idle:
                yield f"has, without a meaning here, {idle:,} hosts {printable(name)} that no switch is linked to"


def _in_unit(given: _Quantity, units: Mapping[str, float]) -> float | None:
    """Return a quantity in the one unit that all units are a number of times; None if it is given in none of them."""
    found = ((given.get(unit), factor) for unit, factor in units.items())
    return next((one * factor for one, factor in found if isinstance(one, int | float)), None)


def _named(node: tuple[Any, ...]) -> str:
    return f"{node[0]}[{node[1]}]{node[2] if len(node) > 2 else ''}"


def _slice(text: str, count_of: Any) -> tuple[str, range]:
    """Return the name and the numbers of ``name``, ``name[3]``, ``name[0:4]`` or ``name[::2]``."""
    parts = _SLICE.fullmatch(text)
    count = None if parts is None else count_of(parts[1])
    if parts is None or count is None:
        raise InputError(f"{shown(text)} is none of the file's instances or components")
    first, last, step = (int(one) if one else None for one in parts.groups()[1:])
    if "[" not in text or ":" in text:
        refuse_if((step == 0, f"{shown(text)} has a step of 0"))
        return parts[1], range(count)[slice(first, last, step)]
    at = range(count)
    if first is None:
        return parts[1], at
    refuse_if((not -count <= first < count, f"{shown(text)} is beyond the {count:,} there are"))
    return parts[1], at[first : first + 1 or None]


def dump_infragraph(cluster: Cluster) -> bytes:
    """Write a cluster as InfraGraph's YAML; reading it back gives an equal one."""
    each = cluster.ports_per_server // cluster.switches
    words = " ".join(f"{name}={getattr(cluster, name)}" for name in _IN_WORDS)
    edges = [
        {
            "ep1": {"instance": "server", "component": f"nic[{switch * each + k}]"},
            "ep2": {
                "instance": f"ocs[{switch}]",
                "component": f"port[{k * cluster.servers}:{(k + 1) * cluster.servers}]",
            },
            "scheme": "one2one",
            "link": "fibre",
        }
        for switch in range(cluster.switches)
        for k in range(each)
    ]
    latency = {"choice": "us", "us": cluster.latency_us / 2}
    speed = {"choice": "gigabits_per_second", "gigabits_per_second": cluster.port_gbps}
    record = {
        "name": _NOT_IN_A_NAME.sub("-", cluster.name)[:200] or "cluster",
        "description": cluster.name,
        "devices": [
            _device("server", "xpu", cluster.devices_per_server, "nic", cluster.ports_per_server),
            _device("ocs", "mirrors", 1, "port", cluster.servers * each, words),
        ],
        "links": [{"name": "fibre", "physical": {"bandwidth": speed, "latency": latency}}],
        "instances": [
            {"name": "server", "device": "server", "count": cluster.servers},
            {"name": "ocs", "device": "ocs", "count": cluster.switches},
        ],
        "edges": edges,
    }
    import yaml

    text: str = yaml.dump(record, sort_keys=False, allow_unicode=True, Dumper=yaml.CSafeDumper)
    return text.encode()


def _device(name: str, inner: str, inners: int, outer: str, outers: int, words: str = "") -> Any:
    """Return a device of two kinds of components, each of one joined to each of the other."""
    optical = {"choice": "custom", "custom": {"type": OPTICAL}}
    return {
        "name": name,
        "description": words,
        "components": [
            {"name": inner, "count": inners, **(optical if words else {"choice": inner})},
            {"name": outer, "count": outers, "choice": outer},
        ],
        "links": [{"name": "inside"}],
        "edges": [
            {
                "ep1": {"component": inner},
                "ep2": {"component": outer},
                "scheme": "many2many",
                "link": "inside",
            }
        ],
    }
