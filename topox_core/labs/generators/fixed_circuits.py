"""Generators of traffic on circuits that are fixed before the job.

``pairs``: an all-reduce over all servers and five pairs that exchange data; TopologyFinder lays the circuits, and its
matching is checked against every matching of the five pairs. ``mix``: an all-reduce and an all-to-all, on fixed
circuits or on a fat-tree of the same cost; the simulator of both says who is faster at which size, and a table of
cheapest jumps says why.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain, combinations
from math import ceil
from typing import Any

from topox_core.economics.clusters import cost_equivalent_gbps
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.comparison.compare import compare, same_time
from topox_core.fabrics.options import FabricOptions
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
from topox_core.labs.lab import LESSON_SETTINGS
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.topology.finder import LayoutResult, find_layout, traffic_of
from topox_core.topology.ring_circuits import totient_strides
from topox_core.topology.routing import RoutedNetwork, coin_sequences

PAIRS = 5
PORTS = 3
PORT_GBPS = 100.0
MS_PER_MB = 8.0 / PORT_GBPS
STRIDES = (1, 3)
KEPT_LAYOUTS, KEPT_TIMES = 1_000, 10_000  # of all instances together
Pair = tuple[int, int]


@dataclass(frozen=True)
class Pairs(Instance):
    """One instance of ``pairs``.

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
        every = list(zip(self.pairs, self.each_way_mb, strict=True))
        sets = chain.from_iterable(combinations(every, count) for count in range(1, PAIRS + 1))
        found = [
            (len(some), 2 * sum(mb for _, mb in some), tuple(pair for pair, _ in some))
            for some in sets
            if len({server for pair, _ in some for server in pair}) == 2 * len(some)
        ]
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

    @lru_cache(maxsize=KEPT_LAYOUTS)  # noqa: B019 (instances are kept as long)
    def layout(self, degree: int) -> LayoutResult:
        """Return TopologyFinder's layout with some ports per server."""
        return find_layout(traffic_of(self.graph(), self.servers), degree)

    def hops(self, degree: int, both_ways: bool = False) -> tuple[Row, ...]:
        """Return the fewest hops of each pair, there and back; ``both_ways``: as if rings could be taken in both directions."""
        circuits = self.layout(degree).layout.circuits
        far = RoutedNetwork(circuits + circuits.T if both_ways else circuits).hop_matrix()
        return tuple((int(far[a, b]), int(far[b, a])) for a, b in self.pairs)

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


def _drawn_pairs(draws: Draws) -> dict[str, Any]:
    servers = draws.pick("servers", (6, 7, 8))
    every = draws.shuffle("pairs", list(combinations(range(servers), 2)))
    return {
        "servers": servers,
        "sum_mb": draws.whole("sum_mb", 6, 20),
        "pairs": tuple(sorted(every[:PAIRS])),
        "each_way_mb": draws.row("mb", PAIRS, 4, 20),
    }


def _is_hard_pairs(one: Pairs) -> bool:
    """Whether both kinds of traffic matter, and one matching beats all others, the greedy one among them."""
    share = one.all_reduce_mb / (one.all_reduce_mb + one.pairs_mb)
    best = one.matchings[0]
    alone = len(one.matchings) < 2 or one.matchings[1][:2] < best[:2]
    return 0.36 <= share <= 0.64 and best[0] >= 2 and alone and one.greedy_pairs != one.best_pairs


def _every_pair(one: Pairs) -> Matrix:
    servers = tuple(map(str, range(one.servers)))
    return Matrix(servers, servers, marks=True, symmetric=True)


@dataclass(frozen=True)
class Mix(Instance):
    """One instance of ``mix``: ``sum_mb`` of an all-reduce over all ``servers``, beside an all-to-all of any size."""

    servers: int
    sum_mb: int

    @cached_property
    def jumps(self) -> Counter[int]:
        """How often each jump is used on the cheapest ways to all distances."""
        table = coin_sequences(self.servers, STRIDES)
        return Counter(jump for ways in table[1:] for jump in ways or ())

    @property
    def mean_hops(self) -> float:
        """Mean hops of the all-to-all."""
        return sum(self.jumps.values()) / (self.servers - 1)

    @property
    def static_alone_ms(self) -> float:
        """The all-reduce alone, on the rings of two ports."""
        return 2 * (self.servers - 1) / self.servers * self.sum_mb * MS_PER_MB / 2

    @property
    def slope_ms_per_mb(self) -> float:
        """What a MB of all-to-all adds on circuits: the busier jump decides."""
        return max(self.jumps.values()) / self.servers * MS_PER_MB

    @lru_cache(maxsize=KEPT_TIMES)  # noqa: B019 (instances are kept as long)
    def equivalent_gbps(self, ports: int = 2) -> float:
        """Return the NIC of the fat-tree that costs as much as some optical ports."""
        return cost_equivalent_gbps(self.cluster(ports), PRICE_SETS[SET_BY_SPEED])

    def fat_tree_ms(self, all_to_all_mb: float, gbps: float) -> float:
        """Return the time on a fat-tree, in closed form."""
        share = (self.servers - 1) / self.servers
        return share * (2 * self.sum_mb + all_to_all_mb) * 8 / gbps

    @lru_cache(maxsize=KEPT_TIMES)  # noqa: B019 (instances are kept as long)
    def times_ms(self, all_to_all_mb: int, ports: int = 2) -> tuple[float, float]:
        """Return the simulated times on circuits and on the fat-tree of the same cost."""
        options = FabricOptions(equivalent_gbps=self.equivalent_gbps(ports))
        graph, cluster = self.graph(all_to_all_mb), self.cluster(ports)
        runs = compare(graph, cluster, LESSON_SETTINGS, ("static", "fat_tree"), options)
        return runs["static"].iteration_ms, runs["fat_tree"].iteration_ms

    def cross_mb(self, ports: int = 2) -> int:
        """Return the smallest whole all-to-all from 1 to 2 S - 1 MB at which the fat-tree is faster.

        Two runs settle it where the guess is right: where the two lines meet with two ports, where
        a port leaves the rings with four. Otherwise the range is halved.
        """
        guess = (
            self.port_taken_mb if ports > 2 else ceil(self.lines_meet_mb(self.equivalent_gbps()))
        )
        wins = partial(self._fat_tree_wins, ports=ports)
        if 1 < guess < 2 * self.sum_mb and not wins(guess - 1) and wins(guess):
            return guess
        return 1 + bisect_left(range(1, 2 * self.sum_mb), True, key=wins)

    def _fat_tree_wins(self, all_to_all_mb: int, ports: int) -> bool:
        static_ms, fat_tree_ms = self.times_ms(all_to_all_mb, ports)
        return static_ms > fat_tree_ms

    def lines_meet_mb(self, gbps: float) -> float:
        """Return the all-to-all at which the line of two ports meets that of a fat-tree of such a speed."""
        begin_ms = self.fat_tree_ms(0, gbps)
        steeper = self.slope_ms_per_mb - (self.fat_tree_ms(1, gbps) - begin_ms)
        return (begin_ms - self.static_alone_ms) / steeper

    @property
    def change(self) -> str:
        """What four ports do to the limit."""
        two, four = self.cross_mb(2), self.cross_mb(4)
        return "stays" if two == four else "rises" if four > two else "falls"

    @property
    def faster(self) -> str:
        """Who is faster where the all-to-all is as large as the all-reduce."""
        static_ms, fat_tree_ms = self.times_ms(self.sum_mb)
        if same_time(static_ms, fat_tree_ms):
            return "equal"
        return "static" if static_ms < fat_tree_ms else "fat_tree"

    @property
    def port_taken_mb(self) -> int:
        """The smallest whole all-to-all at which TopologyFinder takes one of four ports from the rings."""
        # Their share of the bytes is then three quarters of the ports or less.
        return ceil(2 * self.sum_mb / 3)

    def graph(self, all_to_all_mb: int = 0) -> TaskGraph:
        """Return the instance with an all-to-all of some MB per server; without one if that is 0."""
        members = tuple(range(self.servers))
        tasks = [Task("sum", "all_reduce", members=members, size_bytes=self.sum_mb * 1e6)]
        if all_to_all_mb:
            size_bytes = all_to_all_mb * 1e6
            tasks.append(Task("swap", "all_to_all", members=members, size_bytes=size_bytes))
        return validated(f"mix, seed {self.seed}", tasks)

    def cluster(self, ports: int = 2) -> Cluster:
        """Return its servers with some ports of 100 Gbit/s each."""
        return small_cluster(self.servers, ports, PORT_GBPS)

    def given(self) -> GivenTable:
        """Return what is known of servers and traffic."""
        return GivenTable(
            ("what", "how much"),
            (
                ("servers", str(self.servers)),
                ("all-reduce", f"{self.sum_mb} MB"),
                ("ports a server", f"2 of {PORT_GBPS:g} Gbit/s"),
                ("strides of the rings", ", ".join(map(str, STRIDES))),
                ("fat-tree of the same cost", f"{self.equivalent_gbps():.1f} Gbit/s a server"),
            ),
        )


GENERATORS = (
    Generator(
        "pairs",
        1,
        "c",
        Pairs,
        _drawn_pairs,
        _is_hard_pairs,
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
            "split_down": lambda one: (
                one.all_reduce_mb * PORTS // (one.all_reduce_mb + one.pairs_mb)
            ),
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
    ),
    Generator(
        "mix",
        1,
        "d",
        Mix,
        # These numbers of servers have strides 1 and 3, and one cheapest set of jumps to every distance.
        lambda draws: {
            "servers": draws.pick("n", (10, 14, 16)),
            "sum_mb": 10 * draws.whole("S", 5, 15),
        },
        # The fat-tree wins where a port leaves the rings: with 14 servers it does not yet.
        lambda one: one.servers != 14,
        {
            "n": "servers",
            "S": "sum_mb",
            "fat_tree_gbps": lambda one: round(one.equivalent_gbps(), 1),
            "fat_tree_gbps_four": lambda one: round(one.equivalent_gbps(4), 1),
        },
        {
            "mean_hops": "mean_hops",
            "static_alone": "static_alone_ms",
            "slope": "slope_ms_per_mb",
            "change": "change",
            "faster": "faster",
            "port_taken": "port_taken_mb",
            # As if all circuits were equally busy.
            "mean_slope": lambda one: (
                (one.servers - 1) / one.servers * one.mean_hops / 2 * MS_PER_MB
            ),
            # As if the fat-tree had all 200G of the two ports.
            "cross_200": lambda one: round(one.lines_meet_mb(200), 9),
            "uses_of_three": lambda one: one.jumps[3],
            "uses_of_one": lambda one: one.jumps[1],
            "cross": lambda one: one.cross_mb(),
            "cross_four": lambda one: one.cross_mb(4),
            "one_ring_hops": lambda one: one.servers / 2,
        },
    ),
)
