"""Chakra execution traces of all ranks into one run's graph: dependencies are given, nothing is found."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Annotated

from topox_core.errors import InputError, needed, refuse_if
from topox_core.io.limits import (
    MAX_CALL_MEMBERS,
    MAX_RANKS,
    MAX_RUN_DEPENDENCIES,
    check_count,
    is_number,
)
from topox_core.model.arrays.waiting_order import order_of
from topox_core.schema.fields import setting
from topox_core.schema.records import check_fields
from topox_core.traces.chakra.nodes import (
    COLLECTIVE,
    COMPUTE,
    MEMORY_LOAD,
    MEMORY_STORE,
    RECEIVE,
    SEND,
    ChakraNode,
    ChakraRank,
    read_chakra,
)
from topox_core.traces.checks import PASSED, WARNED, Check
from topox_core.traces.importing import Imported, made_import
from topox_core.traces.run_graph import LinkedNodes, Node, RunGraph, at_speed, replay_ms, spans
from topox_core.traces.source import ImportSettings, Progress, Refused, Source, with_ranks

# Nodes of ranks: (rank, position).
Members = list[tuple[int, int]]
KINDS = (
    *("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all"),
    *("reduce_scatter", "reduce_scatter", "barrier"),
)
# A task of no time passes its dependencies on if that adds no more edges than this.
FEW_EDGES = 8
# An attribute of our own exports: nanoseconds of a node whose duration is rounded to microseconds. It
# holds only beside a duration that it can have been rounded to.
EXACT_NS, ROUNDED_US = "exact_ns", 2.0
# A message of so many bytes stands for a dependency between servers.
DEPENDENCY_BYTES = 1
_DEPENDENCIES = "dependencies a run may have"
# Calls of a group share its set.
_set_of = lru_cache(1_000)(frozenset[int])
# The group that ASTRA-sim knows without a groups file: all ranks.
ALL_RANKS = "0"


_WITHOUT = "of nodes without a duration"


@dataclass(frozen=True)
class Machine:
    """What a node without a duration is computed on."""

    tflops: Annotated[float, setting("Operations", "TFLOP/s", _WITHOUT, gt=0, le=1e12)] = 400.0
    memory_gb_per_s: Annotated[float, setting("Memory", "GB/s", _WITHOUT, gt=0, le=1e12)] = 3_350.0

    def __post_init__(self) -> None:
        check_fields(self, "settings")

    def time_ms(self, node: ChakraNode) -> float:
        """Return how long a node computes: its duration, else by its operations and bytes."""
        exact_ns = node.attributes.get(EXACT_NS)
        if exact_ns is not None and abs(_number(exact_ns) / 1000 - node.duration_us) <= ROUNDED_US:
            return _number(exact_ns) / 1e6
        if node.duration_us:
            return node.duration_us / 1000
        operations, size = (_number(node.attributes.get(key)) for key in ("num_ops", "tensor_size"))
        return max(operations / (self.tflops * 1e9), size / (self.memory_gb_per_s * 1e6))


def import_chakra(
    sources: Sequence[Source],
    settings: ImportSettings,
    groups: Mapping[str, tuple[int, ...]],
    machine: Machine | None = None,
    progress: Progress | None = None,
    name: str = "recorded run",
) -> Imported:
    """Read execution traces and return their task graph.

    Parameters
    ----------
    groups
        Ranks by name, where the traces do not list them.
    machine
        For nodes without a duration.

    Raises
    ------
    InputError
        If a file cannot be used, a group is unknown, or a rank comes twice.
    Refused
        If sends and receives do not match, or the graph cannot be made small enough.
    """
    ranks: dict[int, ChakraRank] = {}
    for source, rank in with_ranks(sources, settings, progress):
        one = read_chakra(source, rank)
        if settings.ranks is not None and one.rank not in settings.ranks:
            continue
        if one.rank in ranks:
            raise InputError(
                f"rank {one.rank} was already read from {ranks[one.rank].file}", file=source.name
            )
        ranks[one.rank] = one
    refuse_if((not ranks, "none of the files is of these ranks"), file="settings", field="ranks")
    builder = _Builder(ranks, groups, settings.world, machine or Machine())
    builder.build()
    world = builder.world
    graph = RunGraph(_merged(builder.nodes), world, tuple(sorted(ranks)), 0.0)
    if absent := sorted(set(range(world)) - set(ranks)):
        graph.notes.append(
            f"files of ranks {spans(absent)} of {world} are absent: they have no computing"
        )
    graph.recorded_ms = replay_ms(graph, at_speed(settings.nic_gbps))
    facts = {
        "files": [source.name for source in sources],
        "ranks": sorted(ranks),
        "world": world,
        "nodes": sum(len(one.nodes) for one in ranks.values()),
        "host_wrappers": builder.wrappers,
    }
    before = RunGraph(builder.nodes, world, (), 0.0)
    # What tells a receiver that a message has come is none of the file's own.
    calls = [node for node in builder.nodes if node.size_from]
    found = made_import(graph, graph, settings, name, _checks(ranks), facts, before, calls)
    found.report["coarsening"]["nodes_merged"] = len(graph.nodes)
    return found


def _checks(ranks: Mapping[int, ChakraRank]) -> tuple[Check, ...]:
    dropped = sum(one.dropped for one in ranks.values())
    ignored = sum(one.control_ignored for one in ranks.values())
    words = f"{dropped:,} dependencies name nodes that do not exist"
    if ignored:
        words += f"; {ignored:,} control dependencies form cycles and are ignored"
    # What finds no counterpart is refused before.
    return (
        Check("dependencies", WARNED if dropped or ignored else PASSED, words),
        Check("matching", PASSED, "0 sends, receives or collectives have no counterpart"),
    )


@dataclass
class _Builder:
    ranks: Mapping[int, ChakraRank]
    given: Mapping[str, tuple[int, ...]]
    world: int
    machine: Machine
    nodes: list[Node] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    wrappers: int = 0
    named: dict[str, frozenset[int]] = field(default_factory=dict)
    everyone: tuple[int, ...] = ()
    # What stands for a node of a rank: a position in ``nodes``.
    place: dict[tuple[int, int], int] = field(default_factory=dict)

    def build(self) -> None:
        """Make nodes of all ranks, then their dependencies."""
        self.world = max(self.world, 1 + max(self.ranks), self._highest_of_groups())
        self.everyone = tuple(range(self.world))
        collectives: dict[tuple[frozenset[int], int], Members] = defaultdict(list)
        names: dict[frozenset[int], str] = {}
        transfers: dict[tuple[int, int, int], tuple[Members, Members]] = defaultdict(
            lambda: ([], [])
        )
        total = 0
        for rank, one in sorted(self.ranks.items()):
            counts: Counter[frozenset[int]] = Counter()
            for at, node in enumerate(one.nodes):
                if node.type in (SEND, RECEIVE) and not node.attributes.get("is_cpu_op"):
                    transfers[_pair(node, rank, one.file)][node.type == RECEIVE].append((rank, at))
                # A host's wrapper is no call, nor is a node without a kind.
                elif (
                    node.type == COLLECTIVE
                    and not node.attributes.get("is_cpu_op")
                    and node.attributes.get("comm_type") is not None
                ):
                    same = _set_of(self._group(node, one))
                    total += len(same)
                    if total > MAX_CALL_MEMBERS:
                        raise InputError(
                            f"has collectives of more than the {MAX_CALL_MEMBERS:,} members, added up, "
                            "that a run may have",
                            file=one.file,
                        )
                    names.setdefault(same, str(node.attributes.get("pg_name") or ""))
                    collectives[same, counts[same]].append((rank, at))
                    counts[same] += 1
                elif node.type in (COMPUTE, MEMORY_LOAD, MEMORY_STORE, SEND, RECEIVE, COLLECTIVE):
                    self._compute(rank, at, node)
        for (same, k), members in collectives.items():
            self._collective(names[same], k, members)
        for key, (sent, received) in sorted(transfers.items()):
            self._transfers(key, sent, received)
        if self.unmatched:
            more = f" (and {len(self.unmatched) - 1:,} more)" if len(self.unmatched) > 1 else ""
            raise Refused(self.unmatched[0] + more)
        self._link()

    def _highest_of_groups(self) -> int:
        told = (ranks for one in self.ranks.values() for ranks in one.groups.values())
        highest = max((max(ranks) for ranks in (*self.given.values(), *told) if ranks), default=0)
        refuse_if(
            (
                highest >= MAX_RANKS,
                f"names rank {highest:,}, more than the {MAX_RANKS:,} a run may have",
            )
        )
        return 1 + highest

    def _group(self, node: ChakraNode, one: ChakraRank) -> tuple[int, ...]:
        name = node.attributes.get("pg_name")
        if name in (None, ""):
            refuse_if(
                (
                    len(self.everyone) < 2 and len(self.ranks) == 1,
                    "its collectives name no group: give --groups, or --world",
                ),
                file=one.file,
                kind=Refused,
            )
            return self.everyone
        ranks = one.groups.get(str(name), self.given.get(str(name)))
        if ranks is None and str(name) == ALL_RANKS:
            return self.everyone
        listed = needed(
            ranks,
            f"{str(name)[:40]!r} is not in the groups file",
            file=one.file,
            item=f"node {node.id}",
            field="pg_name",
        )
        return listed or self.everyone

    def _compute(self, rank: int, at: int, node: ChakraNode) -> None:
        self.wrappers += node.type in (SEND, RECEIVE, COLLECTIVE)
        name = f"r{rank}.n{node.id}"
        lane = 1 if node.attributes.get("is_cpu_op") else 0
        made = Node(name, "forward", [], self.machine.time_ms(node), (rank,), lane=lane)
        self._add(made, [(rank, at)])

    def _add(self, made: Node, members: Members) -> None:
        """Take a node that stands for some of ranks, and will wait for what they wait for."""
        self.place.update(dict.fromkeys(members, len(self.nodes)))
        self.nodes.append(made)

    def _collective(self, name: str, k: int, members: Members) -> None:
        nodes = [self.ranks[rank].nodes[at] for rank, at in members]
        ranks = self._group(nodes[0], self.ranks[members[0][0]])
        same, there = _set_of(ranks), {rank for rank, _ in members}
        absent = sorted(r for r in self.ranks if r in same and r not in there)
        kinds = {int(_number(node.attributes.get("comm_type"))) for node in nodes}
        if absent or len(kinds) > 1:
            what = f"absent on rank {absent[0]}" if absent else "of different kinds on its ranks"
            self.unmatched.append(f"group {name or 'of all ranks'}, call {k + 1}: is {what}")
            return
        (number,) = kinds
        refuse_if(
            (number >= len(KINDS), f"must be from 0 to {len(KINDS) - 1} (got {number})"),
            file=self.ranks[members[0][0]].file,
            item=f"node {nodes[0].id}",
            field="comm_type",
        )
        kind = KINDS[number]
        size = max(_number(node.attributes.get("comm_size")) for node in nodes)
        if kind == "all_gather":  # a node tells what its rank puts in
            size *= len(ranks)
        listed = name or "all"
        plain = len(listed) <= 40 and listed.isprintable() and " " not in listed
        group = listed if plain else "group"
        # Ranks may call different groups alike.
        while self.named.setdefault(group, same) != same:
            group += "'"
        made = Node(
            f"coll.{group}.{k}",
            kind,
            [],
            0.0,
            ranks,
            True,
            0.0 if kind == "barrier" else size,
            "metadata",
            group,
            stream=group,
        )
        self._add(made, members)

    def _transfers(
        self,
        key: tuple[int, int, int],
        sent: Members,
        received: Members,
    ) -> None:
        source, destination, tag = key
        for k, (send, receive) in enumerate(zip_longest(sent, received)):
            here = {source: send, destination: receive}
            if any(one is None and rank in self.ranks for rank, one in here.items()):
                what = "send" if send is None else "receive"
                rank = source if send is None else destination
                self.unmatched.append(
                    f"send {source} to {destination}, tag {tag}, number {k + 1}: has no {what} on rank {rank}"
                )
                continue
            ends = [one for one in (send, receive) if one is not None]
            sizes = [
                _number(self.ranks[rank].nodes[at].attributes.get("comm_size")) for rank, at in ends
            ]
            name = f"p2p.{source}-{destination}.{tag}.{k}"
            if max(sizes) <= DEPENDENCY_BYTES and send is not None and receive is not None:
                self._add(Node(name, "forward", [], 0.0, (source,)), [send])
                waits = [len(self.nodes) - 1]
                self._add(Node(f"{name}.in", "forward", waits, 0.0, (destination,)), [receive])
                continue
            made = Node(
                name,
                "send",
                [],
                0.0,
                (source, destination),
                True,
                max(sizes),
                "metadata",
                f"{source}-{destination}",
                parallelism="pp",
            )
            # It waits for what the sender waited for: waiting for both ends makes circles.
            self._add(made, ends[:1])
            if send is not None and receive is not None:
                waits = [len(self.nodes) - 1]
                inside = Node(f"{made.id}.in", "barrier", waits, 0.0, (destination,), True, 0.0)
                self._add(inside, [receive])

    def _link(self) -> None:
        """Give every node what it waits for, looking through nodes that stand for nothing."""
        found = [dict.fromkeys(node.waits) for node in self.nodes]
        counted: Counter[bool] = Counter()
        for rank, one in sorted(self.ranks.items()):
            waits = [node.waits for node in one.nodes]
            # Of every node of the rank the positions that whoever waits for it waits for.
            stands: dict[int, tuple[int, ...]] = {}
            for at in order_of(waits):
                own = self.place.get((rank, at))
                # Counted before it is done, those that are passed on by themselves: a file of 48 kB can
                # ask for 10 s of it.
                counted[own is None] += sum(len(stands[before]) for before in waits[at])
                check_count(counted[own is None], MAX_RUN_DEPENDENCIES, _DEPENDENCIES)
                through = dict.fromkeys(chain.from_iterable(map(stands.__getitem__, waits[at])))
                stands[at] = tuple(through) if own is None else (own,)
                if own is not None:
                    found[own].update(through)
        for number, node in enumerate(self.nodes):
            found[number].pop(number, None)
            node.waits = list(found[number])


def _pair(node: ChakraNode, rank: int, file: str) -> tuple[int, int, int]:
    found = []
    for key, default in (("comm_src", rank), ("comm_dst", rank), ("comm_tag", 0)):
        value = node.attributes.get(key)
        if value is None and (key, node.type) in (("comm_dst", SEND), ("comm_src", RECEIVE)):
            raise InputError("is missing", file=file, item=f"node {node.id}", field=key)
        found.append(int(_number(default if value is None else value)))
    source, destination, tag = found
    if max(source, destination) >= MAX_RANKS or source == destination:
        raise InputError(
            f"must be two ranks below {MAX_RANKS:,} (got {source} and {destination})",
            file=file,
            item=f"node {node.id}",
            field="comm_dst",
        )
    return source, destination, tag


def _number(value: object) -> float:
    return float(value) if is_number(value, 0.0, 1e18) else 0.0


def _merged(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes with chains of computing joined and tasks of no time passed through."""
    links = LinkedNodes(nodes)
    for at, node in enumerate(links.nodes):
        come, go = len(links.waits[at]), len(links.waiters[at])
        # One that passes its dependencies on may not add many.
        few = come * go - come - go <= FEW_EDGES
        if few and not node.is_call and node.duration_ms <= 0:
            links.take_out(at)
    for at, node in enumerate(links.nodes):
        while at not in links.out and not node.is_call and len(links.waits[at]) == 1:
            (before,) = links.waits[at]
            other = links.nodes[before]
            same = not other.is_call and other.ranks == node.ranks and other.lane == node.lane
            if not same or links.waiters[before] != {at}:
                break
            node.duration_ms += other.duration_ms
            links.take_out(before)
    return links.left()
