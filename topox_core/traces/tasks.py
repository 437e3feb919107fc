"""A run's graph as a plain task graph, with fewer tasks where there are too many, and the cluster that fits it.

Fewer: successive calls with little work between them become one. Bundling k calls of a chain changes the
iteration by at most k times the longest segment that was allowed between two of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from topox_core.io.task_graph_rules import validated
from topox_core.model.arrays.groups import by_key
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.task_graph import COLLECTIVE_KINDS, Task, TaskGraph
from topox_core.traces.run_graph import LinkedNodes, Node, RunGraph, label_of
from topox_core.traces.source import Refused

# An exchange is uneven if its largest pair exceeds the mean by this factor.
UNEVEN = 1.05
# Segments between calls that become one last at most this share of the iteration.
MAX_SHARE = 0.01
LEAST_THETA_MS = 0.01
_ROUND = [float(f"{factor}e{power}") for power in range(-6, 16) for factor in (1, 2, 5)]


def coarsened(graph: RunGraph, most: int) -> tuple[RunGraph, float]:
    """Return a graph of at most ``most`` tasks, and the longest segment (ms) that was let go between two calls.

    That is 0 if none was.

    Raises
    ------
    Refused
        If bundles over segments of 1 % of the iteration leave more.
    """
    if len(graph.nodes) <= most:
        return graph, 0.0
    fewer = graph
    most_ms = MAX_SHARE * graph.recorded_ms
    for theta in (*(one for one in _ROUND if LEAST_THETA_MS <= one <= most_ms), most_ms):
        fewer = _bundled(graph, theta)
        if len(fewer.nodes) <= most:
            return fewer, theta
    raise Refused(
        f"{len(fewer.nodes):,} tasks even with bundles of 1 % of the iteration: give --ranks or --max-tasks"
    )


def _bundled(graph: RunGraph, theta_ms: float) -> RunGraph:
    links = LinkedNodes(graph.nodes)
    on_stream = by_key(
        ((node.stream, node.kind), at)
        for at, node in enumerate(links.nodes)
        if node.is_call and node.kind != "barrier" and node.splits_bytes is None
    )
    for calls in on_stream.values():
        for c, d in pairwise(calls):
            pairs = _between(links, c, d, theta_ms)
            if pairs is not None:
                _merge(links, c, d, pairs)
    return replace(graph, nodes=links.left())


def _posts(links: LinkedNodes, call: int) -> dict[int, int]:
    """Return, by rank, the last segment that a call waits for."""
    befores = ((links.nodes[at], at) for at in sorted(links.waits[call]))
    return {node.ranks[0]: at for node, at in befores if not node.is_call}


def _between(links: LinkedNodes, c: int, d: int, theta_ms: float) -> list[tuple[int, int]] | None:
    """Return the pairs (segment before, segment between) of two calls that may be bundled; None if not."""
    waits, waiters = links.waits, links.waiters
    first, second = _posts(links, c), _posts(links, d)
    if c not in waits[d] or not first or first.keys() != second.keys():
        return None
    pairs = [(first[rank], m) for rank, m in second.items() if m != first[rank]]
    inside = {m for _, m in pairs}
    may = (
        all(
            before in waits[m]
            and waits[m] <= {before, c}
            and links.nodes[m].duration_ms <= theta_ms
            for before, m in pairs
        )
        and all(one == d or one in inside or d in waits[one] for one in waiters[c])
        # Nothing that c waits for may wait for a segment in between.
        and not any(waiters[m] & waits[c] for m in inside)
    )
    return pairs if may else None


def _merge(links: LinkedNodes, c: int, d: int, pairs: list[tuple[int, int]]) -> None:
    """Let the second call stand for both, and join the segments that nothing parts any more."""
    one, both = links.nodes[c], links.nodes[d]
    both.size_bytes = (one.size_bytes or 0.0) + (both.size_bytes or 0.0)
    both.duration_ms += one.duration_ms
    for later in links.waiters[c] - {d}:
        links.cut(c, later)
    links.take_out(c)
    for before, m in pairs:
        links.cut(before, d)
        if links.waiters[before] == {m}:
            links.nodes[m].duration_ms += links.nodes[before].duration_ms
            links.nodes[m].kernels_ms += links.nodes[before].kernels_ms
            links.take_out(before)


def _servers(ranks: Sequence[int], gpus_per_server: int) -> tuple[int, ...]:
    """Return the servers of some ranks in order of first appearance; neighbouring ranks share one."""
    return tuple(dict.fromkeys(rank // gpus_per_server for rank in ranks))


def keep_inside_servers(graph: RunGraph, gpus_per_server: int) -> int:
    """Let calls of one server last as long as they were recorded, whatever the network; return how many."""
    inside = [one for one in graph.calls if len(_servers(one.ranks, gpus_per_server)) == 1]
    for node in inside:
        node.server_ms = max(0.0, node.end_ms - node.at_ms)
    return len(inside)


def uneven(splits: Sequence[Sequence[float]] | None) -> bool:
    """Return whether an exchange's largest pair exceeds the mean of its pairs by more than 5 %."""
    if splits is None:
        return False
    pairs = [size for row in splits for size in row]
    return max(pairs) > UNEVEN * sum(pairs) / len(pairs)


def task_graph(
    graph: RunGraph, name: str, gpus_per_server: int, labels: Mapping[str, str]
) -> tuple[TaskGraph, list[str]]:
    """Return a run's graph as a task graph, and what to know about it, a sentence each.

    Parameters
    ----------
    labels
        Parallelism by name or description of a group.

    Raises
    ------
    InputError
        If it is larger than a task graph may be.
    """
    maker = _Maker(graph, gpus_per_server, labels)
    for node in graph.nodes:
        take = maker.call if node.is_call else maker.segment
        take(node)
    return validated(name, maker.tasks, name), list(maker.notes)


class _Maker:
    def __init__(self, graph: RunGraph, gpus: int, labels: Mapping[str, str]) -> None:
        self._nodes, self._gpus, self._labels = graph.nodes, gpus, labels
        self.tasks: list[Task] = []
        self.notes: dict[str, None] = {}

    def segment(self, node: Node) -> None:
        """Take a segment: one task on the device of its rank."""
        (rank,) = node.ranks
        self.tasks.append(
            Task(
                node.id,
                node.kind,
                dependencies=self._waits(node),
                server=rank // self._gpus,
                device=rank % self._gpus + node.lane * self._gpus,
                duration_ms=node.duration_ms,
            )
        )

    def call(self, node: Node) -> None:
        """Take a call: one task, or several and a barrier that has its id."""
        servers = _servers(node.ranks, self._gpus)
        size = node.size_bytes or 0.0
        if len(servers) == 1:
            self._inside(node)
        elif node.kind == "barrier" or not size:
            self._together(node)
        elif node.kind == "send":
            self._transfer(node, node.id, (servers[0], servers[1]), size)
        elif node.kind in ("gather", "scatter"):
            root, gathers = self._root(node), node.kind == "gather"
            self._pairs(
                node, [(rank, root, size) if gathers else (root, rank, size) for rank in node.ranks]
            )
        elif node.splits_bytes is not None and uneven(node.splits_bytes):
            rows = zip(node.ranks, node.splits_bytes, strict=True)
            parts = ((rank, zip(node.ranks, row, strict=True)) for rank, row in rows)
            self._pairs(node, ((rank, other, part) for rank, row in parts for other, part in row))
        else:
            self._collective(node, servers, size)

    def _waits(self, node: Node) -> tuple[str, ...]:
        """Return the ids that a node waits for."""
        return tuple(dict.fromkeys([self._nodes[at].id for at in node.waits]))

    def _together(self, node: Node, parts: Sequence[str] = ()) -> None:
        """End a call of several parts, if there are any, with a barrier."""
        self.tasks.append(Task(node.id, "barrier", dependencies=tuple(parts) or self._waits(node)))

    def _notes_of(self, node: Node) -> dict[str, Any]:
        return {"parallelism": label_of(node, self._labels) or None, "group": node.group or None}

    def _collective(self, node: Node, servers: tuple[int, ...], size: float) -> None:
        kind = node.kind
        if kind not in COLLECTIVE_KINDS:
            kind = "broadcast" if kind == "reduce" else "all_to_all"
        if node.kind == "reduce":
            self.notes[
                "reduces are written as broadcasts from their root: the same bytes in the opposite direction"
            ] = None
        self.tasks.append(
            Task(
                node.id,
                kind,
                dependencies=self._waits(node),
                members=servers,
                size_bytes=size,
                root=self._root(node) // self._gpus if kind == "broadcast" else None,
                **self._notes_of(node),
            )
        )

    def _root(self, node: Node) -> int:
        if node.root is None or node.root not in node.ranks:
            self.notes[
                "roots of broadcasts are not recorded: the first rank of the group is taken"
            ] = None
            return node.ranks[0]
        return node.root

    def _transfer(self, node: Node, name: str, pair: tuple[int, int], size: float) -> None:
        self.tasks.append(
            Task(
                name,
                "communication",
                dependencies=self._waits(node),
                source=pair[0],
                destination=pair[1],
                size_bytes=size,
                **self._notes_of(node),
            )
        )

    def _pairs(self, node: Node, moved: Iterable[tuple[int, int, float]]) -> None:
        """Take what ranks send to ranks: a transfer for each two servers."""
        sizes: dict[tuple[int, int], float] = defaultdict(float)
        for rank, other, size in moved:
            sizes[rank // self._gpus, other // self._gpus] += size
        names = []
        for (source, destination), size in sorted(sizes.items()):
            if source != destination and size > 0:
                names.append(f"{node.id}.{source}-{destination}")
                self._transfer(node, names[-1], (source, destination), size)
        self._together(node, names)

    def _inside(self, node: Node) -> None:
        """Write a call inside one server: the links between its GPUs are devices of their own."""
        names = []
        for rank in node.ranks if node.server_ms else ():
            names.append(f"{node.id}.r{rank}")
            self.tasks.append(
                Task(
                    names[-1],
                    "forward",
                    dependencies=self._waits(node),
                    server=rank // self._gpus,
                    device=rank % self._gpus + self._gpus,
                    duration_ms=node.server_ms,
                )
            )
        self._together(node, names)


def fitting_cluster(graph: TaskGraph, recorded_ms: float, nic_gbps: float) -> Cluster:
    """Return a cluster for a graph: two switches, two ports a server of half the NIC's speed each.

    Its slot is the greatest of 1, 2, 5 times a power of ten that is at most a thousandth of the
    iteration.
    """
    servers = max(2, graph.servers)
    return one_port_a_switch(
        servers,
        2,
        nic_gbps / 2,
        slot_ms=slot_of(recorded_ms),
        devices_per_server=max((task.device or 0 for task in graph.tasks), default=0) + 1,
        name=f"{servers} servers of a recorded run, 2 OCS",
    )


def slot_of(recorded_ms: float) -> float:
    """Return the slot that suits an iteration: at most a thousandth of it."""
    most = recorded_ms / 1000 * (1 + 1e-12)
    return max((one for one in _ROUND if one <= most), default=_ROUND[0])
