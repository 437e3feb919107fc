"""A reader of execution traces that follows ASTRA-sim's rules and shares no code with the product.

What it does is what was measured of ASTRA-sim 2, congestion-unaware: a rank computes one node at a time
and has one send or collective under way, of those that are ready the one with the lowest number;
receivers never contend; a collective begins when all its ranks have come to it, and holds them until it
ends; it takes as long as its ring, an all-to-all as long as its bytes; a reduction costs nothing.
"""

import heapq
import json
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 5, 6, 7


class Halted(Exception):
    """Some rank never finishes, or a node is one that ASTRA-sim refuses."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of a protobuf message, and where what follows begins."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a protobuf message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value: Any
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value
        yield tag >> 3, value


def numbers(value: int | bytes) -> Iterator[int]:
    """Yield the numbers of a repeated field, in one piece or one by one."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        number, at = varint(value, at)
        yield number


@dataclass
class PeerNode:
    rank: int
    id: int = 0
    type: int = 0
    us: int = 0
    waits: set[int] = field(default_factory=set)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def lane(self) -> tuple[int, bool]:
        return self.rank, self.type == COMPUTE

    @property
    def ends(self) -> tuple[int, int, int]:
        source, destination, tag = (self.facts.get(f"comm_{k}", 0) for k in ("src", "dst", "tag"))
        return source, destination, tag

    @property
    def size(self) -> int:
        size = self.facts.get("comm_size", 0)
        if size < 1:
            raise Halted(f"rank {self.rank}, node {self.id} has no bytes")
        return int(size)


def nodes_of(rank: int, data: bytes) -> Iterator[PeerNode]:
    """Yield the nodes of a file; its first message tells of the file itself."""
    at, first = 0, True
    while at < len(data):
        length, at = varint(data, at)
        message, at = data[at : at + length], at + length
        if not first:
            node = PeerNode(rank)
            for number, value in fields(message):
                if number in (4, 5):
                    node.waits.update(numbers(value))
                elif number == 10:
                    attribute = dict(fields(value))
                    name = attribute.pop(1).decode()
                    node.facts[name] = next(iter(attribute.values()))
                elif number in (1, 3, 7):
                    setattr(node, {1: "id", 3: "type", 7: "us"}[number], value)
            yield node
        first = False


class Peer:
    """All ranks, each of which sends at ``gbps``."""

    def __init__(self, files: Mapping[int, bytes], groups: bytes, gbps: float) -> None:
        self.members = {name: len(ranks) for name, ranks in json.loads(groups).items()}
        self.bytes_per_ms = gbps * 1e6 / 8
        self.nodes = {(r, one.id): one for r, data in files.items() for one in nodes_of(r, data)}
        self.ready: dict[tuple[int, bool], list[int]] = defaultdict(list)
        self.busy: set[tuple[int, bool]] = set()
        self.sent: dict[tuple[int, int, int], int] = defaultdict(int)
        self.receiving: dict[tuple[int, int, int], deque[PeerNode]] = defaultdict(deque)
        self.calls: dict[tuple[int, str], int] = defaultdict(int)
        self.came: dict[tuple[str, int], list[PeerNode]] = defaultdict(list)
        self.events: list[tuple[float, int, int]] = []
        self.now_ms = 0.0
        self.link()

    def link(self) -> None:
        """Take what nodes wait for."""
        self.missing = {key: len(node.waits) for key, node in self.nodes.items()}
        self.waiters: dict[tuple[int, int], list[PeerNode]] = defaultdict(list)
        for node in self.nodes.values():
            for before in node.waits:
                self.waiters[node.rank, before].append(node)

    def run_ms(self) -> float:
        """Return how long all nodes take; raises Halted."""
        ended, lanes = 0, {node.lane for node in self.nodes.values()}
        for node in self.nodes.values():
            if not self.missing[node.rank, node.id]:
                self.make_ready(node)
        self.begin(lanes)
        while self.events:
            self.now_ms, lanes = self.events[0][0], set()
            while self.events and self.events[0][0] <= self.now_ms:
                _, rank, number = heapq.heappop(self.events)
                lanes |= self.end(self.nodes[rank, number])
                ended += 1
            self.begin(lanes)
        if ended < len(self.nodes):
            raise Halted(f"{len(self.nodes) - ended} of {len(self.nodes)} nodes never ran")
        return self.now_ms

    def end(self, node: PeerNode) -> set[tuple[int, bool]]:
        """End a node; return where another one may begin."""
        if node.type != RECEIVE:
            self.busy.discard(node.lane)
        if node.type == SEND:
            self.sent[node.ends] += 1
            self.receive(node.ends)
        for after in self.waiters[node.rank, node.id]:
            self.missing[after.rank, after.id] -= 1
            if not self.missing[after.rank, after.id]:
                self.make_ready(after)
        return {(node.rank, True), (node.rank, False)}

    def make_ready(self, node: PeerNode) -> None:
        if node.type == RECEIVE:
            self.receiving[node.ends].append(node)
            self.receive(node.ends)
        else:
            heapq.heappush(self.ready[node.lane], node.id)

    def receive(self, ends: tuple[int, int, int]) -> None:
        while self.sent[ends] and self.receiving[ends]:
            self.sent[ends] -= 1
            self.ends_at(self.receiving[ends].popleft(), self.now_ms)

    def ends_at(self, node: PeerNode, ms: float) -> None:
        heapq.heappush(self.events, (ms, node.rank, node.id))

    def begin(self, lanes: set[tuple[int, bool]]) -> None:
        for lane in sorted(lanes):
            if lane in self.busy or not self.ready[lane]:
                continue
            node = self.nodes[lane[0], heapq.heappop(self.ready[lane])]
            self.busy.add(lane)
            if node.type == COMPUTE:
                self.ends_at(node, self.now_ms + node.us / 1000)
            elif node.type == SEND:
                self.ends_at(node, self.now_ms + node.size / self.bytes_per_ms)
            else:
                self.join(node)

    def join(self, node: PeerNode) -> None:
        """Let a rank come to a collective, which begins with the last of them."""
        group = node.facts["pg_name"].decode()
        k = self.calls[node.rank, group]
        self.calls[node.rank, group] += 1
        there = self.came[group, k]
        there.append(node)
        if len({one.id for one in there}) > 1:
            raise Halted(f"group {group}: its ranks come to different collectives")
        if len(there) == self.members[group]:
            ms = self.collective_ms(node, len(there))
            for one in there:
                self.ends_at(one, self.now_ms + ms)

    def collective_ms(self, node: PeerNode, n: int) -> float:
        kind = node.facts.get("comm_type", 0)
        if kind == BROADCAST:
            return node.us / 1000
        if kind not in (ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER):
            raise Halted(f"rank {node.rank}, node {node.id} is of kind {kind}, which is not known")
        times = {ALL_REDUCE: 2, ALL_GATHER: n}.get(kind, 1)
        return times * (n - 1) / n * node.size / self.bytes_per_ms
