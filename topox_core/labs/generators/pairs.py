"""Generator ``pairs``: an all-reduce over all servers and five pairs that exchange data, on circuits fixed before.

TopologyFinder lays the circuits; its matching is checked against every matching of the five pairs.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import networkx

from topox_core.io.task_graph_rules import validated
from topox_core.labs.generators.generator import (
    Draws,
    Generator,
    GivenTable,
    Instance,
    Matrix,
    Row,
    small_cluster,
)
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.topology.finder import LayoutResult, find_layout, traffic_of
from topox_core.topology.ring_circuits import totient_strides

PAIRS = 5
PORTS = 3
KEPT = 1_000  # layouts, of all instances together
Pair = tuple[int, int]


@dataclass(frozen=True)
class Pairs(Instance):
    """One instance.

    Attributes
    ----------
    servers, sum_mb
        Of the all-reduce: its members and its tensor.
    pairs, each_way_mb
        Who exchanges data, the smaller server first, and how much goes each way.
    """

    servers: int
    sum_mb: int
    pairs: tuple[Pair, ...]
    each_way_mb: tuple[int, ...]

    @property
    def all_reduce_mb(self) -> int:
        """What all servers together send in the all-reduce, on any ring: 2 (n - 1) S."""
        return 2 * (self.servers - 1) * self.sum_mb

    @property
    def pairs_mb(self) -> int:
        """What all pairs send, both ways."""
        return 2 * sum(self.each_way_mb)

    def ring_ports(self, degree: int) -> int:
        """Return how many of a server's ports TopologyFinder gives to rings: d_A."""
        share = self.all_reduce_mb * degree
        return max(1, -(-share // (self.all_reduce_mb + self.pairs_mb)))

    @cached_property
    def matchings(self) -> tuple[tuple[int, int, tuple[Pair, ...]], ...]:
        """Every set of pairs without a server in common: number of pairs, MB, the pairs; the best first."""
        found = []
        for count in range(1, PAIRS + 1):
            for chosen in combinations(range(PAIRS), count):
                ends = [server for k in chosen for server in self.pairs[k]]
                if len(set(ends)) == len(ends):
                    size_mb = 2 * sum(self.each_way_mb[k] for k in chosen)
                    found.append((count, size_mb, tuple(self.pairs[k] for k in chosen)))
        return tuple(sorted(found, reverse=True))

    @property
    def best_pairs(self) -> tuple[Pair, ...]:
        """The matching of most pairs and, among those, of most MB."""
        return self.matchings[0][2]

    @property
    def greedy_pairs(self) -> tuple[Pair, ...]:
        """The heaviest pair first, then the next that fits."""
        taken: list[Pair] = []
        for k in sorted(range(PAIRS), key=lambda k: -self.each_way_mb[k]):
            if not {*self.pairs[k]} & {server for pair in taken for server in pair}:
                taken.append(self.pairs[k])
        return tuple(sorted(taken))

    def marks(self, pairs: tuple[Pair, ...]) -> tuple[Row, ...]:
        """Return pairs as a symmetric matrix of 0 and 1."""
        n = self.servers
        return tuple(
            tuple(int((min(i, j), max(i, j)) in pairs) for j in range(n)) for i in range(n)
        )

    @lru_cache(maxsize=KEPT)  # noqa: B019 (instances are kept as long)
    def layout(self, degree: int) -> LayoutResult:
        """Return TopologyFinder's layout with some ports a server."""
        return find_layout(traffic_of(self.graph(), self.servers), degree)

    def hops(self, degree: int, both_ways: bool = False) -> tuple[Row, ...]:
        """Return the fewest hops of each pair, there and back; ``both_ways``: as if rings could be taken in both directions."""
        source, destination, _ = (ends.tolist() for ends in self.layout(degree).layout.links)
        links = networkx.DiGraph(zip(source, destination, strict=True))
        if both_ways:
            links.add_edges_from(zip(destination, source, strict=True))
        far = networkx.shortest_path_length
        return tuple((far(links, a, b), far(links, b, a)) for a, b in self.pairs)

    def tax(self, degree: int, both_ways: bool = False) -> float:
        """Return the bandwidth tax by hand: all-reduce bytes cross one link, the others their hops."""
        hops = self.hops(degree, both_ways)
        carried = sum(mb * sum(row) for mb, row in zip(self.each_way_mb, hops, strict=True))
        return (self.all_reduce_mb + carried) / (self.all_reduce_mb + self.pairs_mb)

    def graph(self) -> TaskGraph:
        """Return the instance as a task graph."""
        members = tuple(range(self.servers))
        tasks = [Task("sum", "all_reduce", members=members, size_bytes=self.sum_mb * 1e6)]
        for (a, b), mb in zip(self.pairs, self.each_way_mb, strict=True):
            tasks += [
                Task(
                    f"{source}to{destination}",
                    "nominal_communication",
                    source=source,
                    destination=destination,
                    size_bytes=mb * 1e6,
                )
                for source, destination in ((a, b), (b, a))
            ]
        return validated(f"pairs, seed {self.seed}", tasks)

    def cluster(self, degree: int = PORTS) -> Cluster:
        """Return its servers with some ports each, one on each switch."""
        return small_cluster(self.servers, degree)

    def given(self) -> GivenTable:
        """Return the pairs, and the all-reduce."""
        rows = [
            (f"{a}–{b}", f"{2 * mb} MB", f"{mb} MB")
            for (a, b), mb in zip(self.pairs, self.each_way_mb, strict=True)
        ]
        return GivenTable(("pair", "both ways", "each way"), tuple(rows))


def _drawn(draws: Draws) -> dict[str, Any]:
    servers = draws.pick("servers", (6, 7, 8))
    every = draws.shuffle("pairs", list(combinations(range(servers), 2)))
    return {
        "servers": servers,
        "sum_mb": draws.whole("sum_mb", 6, 20),
        "pairs": tuple(sorted(every[:PAIRS])),
        "each_way_mb": draws.row("mb", PAIRS, 4, 20),
    }


def _is_hard(one: Pairs) -> bool:
    """Whether both kinds of traffic matter, and one matching beats all others, the greedy one among them."""
    share = one.all_reduce_mb / (one.all_reduce_mb + one.pairs_mb)
    best = one.matchings[0]
    alone = len(one.matchings) < 2 or one.matchings[1][:2] < best[:2]
    return 0.36 <= share <= 0.64 and best[0] >= 2 and alone and one.greedy_pairs != one.best_pairs


def _every_pair(one: Pairs) -> Matrix:
    servers = tuple(map(str, range(one.servers)))
    return Matrix(servers, servers, marks=True, symmetric=True)


GENERATOR = Generator(
    "pairs",
    1,
    "c",
    Pairs,
    _drawn,
    _is_hard,
    {
        "n": "servers",
        "sum_mb": "sum_mb",
        "all_reduce_mb": "all_reduce_mb",
        "pairs_mb": "pairs_mb",
    },
    {
        # Strides of rings that visit every server, and every stride.
        "strides": lambda one: tuple(map(str, totient_strides(one.servers))),
        "all_strides": lambda one: tuple(map(str, range(1, one.servers))),
        # The ports of rings if the share were rounded down.
        "split_down": lambda one: one.all_reduce_mb * PORTS // (one.all_reduce_mb + one.pairs_mb),
        # Whether the heaviest pair first gives the best matching.
        "greedy_best": lambda one: "yes" if one.greedy_pairs == one.best_pairs else "no",
        "matching": lambda one: one.marks(one.best_pairs),
        "greedy": lambda one: one.marks(one.greedy_pairs),
        "hops": lambda one: one.hops(PORTS),
        "two_way_hops": lambda one: one.hops(PORTS, both_ways=True),
        "ring_ports": lambda one: one.ring_ports(PORTS),
        "tax": lambda one: one.tax(PORTS),
        "tax_two": lambda one: one.tax(2),
        "two_way_tax": lambda one: one.tax(PORTS, both_ways=True),
    },
    {"strides": lambda one: tuple(map(str, range(1, one.servers)))},
    {
        "matching": _every_pair,
        "hops": lambda one: Matrix(
            tuple(f"{a}–{b}" for a, b in one.pairs), ("there", "back"), marks=False
        ),
    },
)
