"""What no iteration goes below, however its collectives are lowered: bytes and steps that every algorithm has."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from topox_core.model.arrays.csr import grouped, row_of_entry, row_pointer
from topox_core.model.cluster import Cluster
from topox_core.model.facts import longest_chain
from topox_core.model.lowering.algorithm_choice import DEFAULT, on_rings
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import COLLECTIVE_KINDS, TaskGraph
from topox_core.model.transfer_graph import (
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
    durations_ms,
    latency_ms,
    shortest_ms,
    transfer_ms,
)
from topox_core.schedule.bounds.unrounded import (
    Bound,
    Loads,
    device_loads,
    lower_bound,
    with_set_ups,
)
from topox_core.schedule.settings import Settings

# Who carries the bytes: circuits of one port each that may change, circuits that stay and whose bytes
# share and forward, or packets, which no half-duplex port holds up.
Way = Literal["changing", "fixed", "packets"]


def open_kinds(graph: TaskGraph, settings: Settings) -> frozenset[str]:
    """Return the kinds of collective whose algorithm or rings are not decided yet."""
    lowering = settings.lowering
    words: dict[str, list[str]] = {}
    for key, word in lowering.algorithm:
        words.setdefault(key.split(":")[0], []).append(word)

    def is_open(kind: str) -> bool:
        if kind == "all_reduce" and not lowering.all_reduce_on_network:
            return False
        if "algorithm" in settings.free and kind not in words:
            return True
        rides = any(on_rings(kind, w) or w == DEFAULT for w in words.get(kind, [DEFAULT]))
        chain = kind != "broadcast" or lowering.broadcast == "chain"
        on_any = "rings" in settings.free and not lowering.strides
        return on_any and rides and chain and kind != "all_to_all"

    return frozenset(filter(is_open, graph.group_sizes.keys() & set(COLLECTIVE_KINDS)))


class Least(NamedTuple):
    """What every algorithm moves, as shares of a collective's bytes: out of and into each member, and in all.

    An all-reduce by a tree sends only the tensor from a leaf, and that twice in all for each member
    but one; a broadcast sends nothing from its last member.
    """

    out: FloatArray
    into: FloatArray
    total: float


def least_moved(kind: str, members: int, root: int = 0) -> Least:
    """Return the least that members move by any algorithm; ``root`` is a position, of a broadcast alone."""
    every = np.ones(members)
    if kind == "all_reduce":
        return Least(every, every, 2.0 * (members - 1))
    if kind == "broadcast":
        at_root = np.zeros(members)
        at_root[root] = 1.0
        return Least(at_root, every - at_root, members - 1.0)
    share = (members - 1) / members
    return Least(every * share, every * share, members - 1.0)


def open_bound(graph: TaskGraph, cluster: Cluster, settings: Settings, way: Way) -> Bound | None:
    """Return a bound over every lowering that the settings leave open; None where nothing is.

    A collective that is open is one node that takes a latency and what its busiest member moves on
    all ports; it loads the ports of each member with the least that any algorithm moves there, and
    the ports of all members together with what it moves in all.
    """
    if not open_kinds(graph, settings):
        return None
    lowered, length, sides = _opened(graph, cluster, settings, way)
    devices = [device_loads(lowered, cluster)] if settings.exclusive_devices else []
    servers = [side.of_servers(cluster.servers) for side in sides]
    best = lower_bound(
        lowered, length, [*devices, *servers, *(side.of_groups(cluster.servers) for side in sides)]
    )
    if way == "changing" and servers:
        best = with_set_ups(lowered, cluster, length, devices, servers, best)
    return best


def least_chain(
    graph: TaskGraph, cluster: Cluster, settings: Settings
) -> tuple[float, tuple[str, ...]]:
    """Return the critical path in ms and its ids, whatever carries the bytes and however the open collectives are lowered."""
    lowered, length, _ = _opened(graph, cluster, settings, "fixed")
    return longest_chain(lowered, length)


def busiest_sending(graph: TaskGraph, cluster: Cluster, settings: Settings) -> tuple[str, float]:
    """Return the ports that send or receive most in an iteration, in words, and for how long at least, in the mean (ms).

    The bound holds over every lowering that the settings leave open, and for circuits that change or stay; dark
    time does not count. Of jobs on the same ports those of all add up. 0 where transfers of one pair share a circuit.
    """
    words, longest_ms = "", 0.0
    for side in _opened(graph, cluster, settings, "fixed")[2]:
        for load in (side.of_servers(cluster.servers), side.of_groups(cluster.servers)):
            sums = np.append(np.bincount(row_of_entry(load.ptr), load.work_ms), 0.0)
            which = int(np.round(sums, 6).argmax())  # of equals the first, as Schedule names it
            if sums[which] > longest_ms:
                words, longest_ms = load.name(which), float(sums[which])
    return words, longest_ms


class _Open(NamedTuple):
    """An open collective at the ports of one side: its node, its members, the least that each works, and all together (ms)."""

    node: int
    members: IntArray
    least_ms: FloatArray
    total_ms: float


@dataclass(frozen=True)
class _Side:
    """What loads the ports of servers one way (or both): given transfers, entry by entry, and open collectives."""

    words: str
    node: IntArray
    server: IntArray
    work_ms: FloatArray
    after_ms: FloatArray
    open: list[_Open]

    def of_servers(self, servers: int) -> Loads:
        """Return the load of each server's ports."""
        node = [self.node, *(np.full(len(one.members), one.node, np.int32) for one in self.open)]
        work = [self.work_ms, *(one.least_ms for one in self.open)]
        server = np.concatenate([self.server, *(one.members for one in self.open)])
        after = np.concatenate([self.after_ms, np.zeros(len(server) - len(self.after_ms))])
        ptr, order = grouped(server, np.arange(len(server)), servers)
        return Loads(
            ptr,
            np.concatenate(node)[order],
            np.concatenate(work)[order],
            after[order],
            lambda i: f"{self.words} of server {i}",
        )

    def of_groups(self, servers: int) -> Loads:
        """Return the mean load of the members of each group that moves more in all than its members must each."""
        alike: dict[tuple[int, ...], list[_Open]] = {}
        for one in self.open:
            alike.setdefault(tuple(one.members.tolist()), []).append(one)
        groups = {
            tuple(sorted(members)): None
            for members, ones in alike.items()
            if any(one.total_ms > one.least_ms.sum() * (1 + 1e-9) for one in ones)
        }
        nodes, works, afters = [self.node[:0]], [self.work_ms[:0]], [self.after_ms[:0]]
        for group in groups:
            inside = np.zeros(servers, np.bool_)
            inside[list(group)] = True
            own = inside[self.server]
            moved: list[tuple[int, float]] = []
            for members, ones in alike.items():
                among = inside[list(members)]
                if among.all():
                    moved += [(one.node, one.total_ms) for one in ones]
                elif among.any():
                    moved += [(one.node, float(one.least_ms[among].sum())) for one in ones]
            node, work = zip(*moved, strict=True)
            nodes.append(np.append(self.node[own], node).astype(np.int32))
            works.append(np.append(self.work_ms[own], work) / len(group))
            afters.append(np.append(self.after_ms[own], np.zeros(len(node))))
        named = list(groups)
        return Loads(
            row_pointer([len(node) for node in nodes[1:]]),
            np.concatenate(nodes),
            np.concatenate(works),
            np.concatenate(afters),
            lambda i: f"{self.words} of {len(named[i])} servers",
        )


def _opened(
    graph: TaskGraph, cluster: Cluster, settings: Settings, way: Way
) -> tuple[TransferGraph, FloatArray, list[_Side]]:
    """Return the graph with each open collective as one node, the least time of each node in ms, and the sides of the ports.

    Sides are out and in, or both together; none where transfers of one pair share a circuit, each at
    full speed.
    """
    whole = open_kinds(graph, settings)
    lowered = lower(graph, settings.lowering, whole)
    length = (durations_ms if way == "changing" else shortest_ms)(lowered, cluster)
    if settings.share_circuits:
        return lowered, length, []
    given = np.flatnonzero((lowered.kind == TRANSFER) & (length > 0)).astype(np.int32)
    work_ms = length[given] / cluster.ports_per_server
    after_ms = np.zeros(len(given))
    if way != "changing":  # a latency holds no port
        after_ms = latency_ms(lowered, cluster)[given]
        work_ms = length[given] - after_ms
    out, into = lowered.source[given], lowered.destination[given]
    together = cluster.duplex == "half" and way != "packets"
    if together:
        every = np.concatenate([np.arange(len(given))] * 2)
        ends = np.concatenate([out, into])
        sides = [_Side("ports", given[every], ends, work_ms[every], after_ms[every], [])]
    else:
        sides = [
            _Side("out-ports", given, out, work_ms, after_ms, []),
            _Side("in-ports", given, into, work_ms, after_ms, []),
        ]
    gbps = cluster.ports_per_server * cluster.port_gbps
    for node in np.flatnonzero(np.isin(lowered.task_kind, tuple(whole))).tolist():
        task = graph.tasks[lowered.origin[node]]
        members, size = task.members or (), task.size_bytes or 0.0
        if len(members) < 2 or size <= 0:
            continue
        root = members.index(task.root) if task.root is not None else 0
        least, alone_ms = least_moved(task.kind, len(members), root), transfer_ms(size, gbps)
        at_each = [least.out + least.into] if together else [least.out, least.into]
        total_ms = least.total * alone_ms * (2 if together else 1)
        length[node] = cluster.latency_us / 1000
        length[node] += max(total_ms / len(members), *(max(one) * alone_ms for one in at_each), 0)
        for side, each in zip(sides, at_each, strict=True):
            one = _Open(node, np.array(members, np.int32), each * alone_ms, total_ms)
            side.open.append(one)
    return lowered, length, sides
