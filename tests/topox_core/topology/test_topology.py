"""TopologyFinder: the strides its authors published, ports never exceeded, everybody who talks connected by shortest routes."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations, islice, pairwise
from math import gcd

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.topox_core.small_graphs import GBIT_MS, compute, graph, transfer
from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.io.task_graph_file import load_graph
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task
from topox_core.model.transfer_graph import Lowering
from topox_core.topology.coin_change import coin_sequences
from topox_core.topology.finder import (
    VARIANTS,
    Demand,
    demand_of,
    find_layout,
    ring_strides,
    traffic_of,
)
from topox_core.topology.matching import matching_rounds
from topox_core.topology.mutation import on_rings
from topox_core.topology.permutations import (
    LARGE_GROUP,
    released_strides,
    select_strides,
    totient_strides,
)
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import all_reduce_demand
from topox_core.topology.wiring import wired


def demand(
    servers: int,
    rings: dict[tuple[int, ...], float] | None = None,
    pairs: dict[tuple[int, int], float] | None = None,
) -> Demand:
    """Bytes each member sends by group, bytes by pair."""
    matrix = np.zeros((servers, servers))
    for (a, b), size in (pairs or {}).items():
        matrix[a, b] = size
    return Demand(
        servers, rings or {}, dict.fromkeys(rings or {}, (1,)), matrix, frozenset(pairs or {})
    )


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    n = draw(st.integers(2, 14))
    groups = draw(
        st.lists(
            st.permutations(range(n)).flatmap(
                lambda order: st.integers(2, n).map(lambda size: tuple(order[:size]))
            ),
            max_size=4,
            unique=True,
        )
    )
    sizes = st.floats(0, 1e9)
    pairs = draw(
        st.dictionaries(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1]),
            sizes,
            max_size=12,
        )
    )
    return demand(n, {group: draw(sizes) for group in groups}, pairs)


class TestReleasedVariant:
    @pytest.mark.parametrize(
        ("servers", "degree", "strides", "diameter", "mean_hops"),
        [
            (16, 4, (1, 5), 4, 2.13),
            (16, 8, (1, 3, 5, 9), 2, 1.47),
            (128, 4, (1, 13), 10, 5.62),
            (128, 6, (1, 7, 27), 6, 3.67),
        ],
    )
    def test_its_strides_and_hops_are_those_of_the_released_code(
        self, servers, degree, strides, diameter, mean_hops
    ):
        found = find_layout(all_reduce_demand(servers), degree, "released")
        assert found.strides == {servers: strides}
        assert found.hops.diameter == diameter
        assert round(found.hops.mean, 2) == mean_hops

    def test_twelve_servers_get_the_rings_of_the_testbed(self):
        found = find_layout(all_reduce_demand(12), 4, "released")
        assert found.strides == {12: (1, 5)}
        assert sorted(ring_strides(found, range(12))) == [1, 5, 7, 11]

    def test_no_port_goes_to_matchings_however_much_model_parallel_traffic_there_is(self):
        found = find_layout(demand(8, {tuple(range(8)): 1.0}, {(0, 4): 1e9}), 4, "released")
        assert (found.degree_all_reduce, found.degree_model_parallel) == (4, 0)
        assert found.layout.circuits[0, 4] == 0
        assert found.layout.routes[0, 4] in {((0, m, 4),) for m in range(8)}

    def test_one_ring_through_all_servers_is_taken_from_the_largest_group_size(self):
        quarters = {tuple(range(first, 16, 4)): 100.0 for first in range(4)}
        found = find_layout(demand(16, quarters), 4, "released")
        assert found.strides == {4: (1,), 16: (1,)}
        assert set(found.network.out[0]) == {4, 12, 1, 15}
        assert found.hops.unreachable == 0

    def test_a_group_without_rings_runs_on_the_strides_of_fewest_hops(self):
        # Pairs i, i + 8 need an even distance on rings of odd strides: 8 = 5 + 3 or 9 - 1, two hops
        # each.
        whole, pairs = tuple(range(16)), {(i, i + 8): 1.0 for i in range(8)}
        found = find_layout(demand(16, {whole: 1e6, **pairs}), 8, "released")
        assert 2 not in found.strides
        assert {len(found.layout.routes[i, i + 8][0]) for i in range(8)} == {3}

    def test_a_group_that_does_not_divide_the_servers_is_named(self):
        found = find_layout(demand(16, {(0, 1, 2): 1.0}), 4, "released")
        assert "Groups of 3" in found.steps[0].text
        assert ring_strides(found, (0, 1, 2)) in ((1,), (2,), (1, 2))

    def test_routes_repeat_with_the_seed_and_differ_with_another(self):
        traffic = demand(
            16,
            {tuple(range(16)): 1.0},
            {(a, b): 1.0 for a in range(16) for b in range(16) if a != b},
        )
        routes = [
            find_layout(traffic, 4, "released", seed=seed).layout.routes for seed in (1, 1, 2)
        ]
        assert routes[0] == routes[1]
        assert routes[0] != routes[2]


class TestPublishedVariant:
    @pytest.mark.parametrize(
        ("rings", "others", "degree", "for_rings"),
        [
            (3.0, 1.0, 4, 3),
            (1.0, 3.0, 4, 1),
            (1.0, 1.0, 3, 2),
            (0.0, 1.0, 4, 1),
            (1.0, 0.0, 4, 4),
            (1e-9, 1.0, 4, 1),
        ],
    )
    def test_ports_are_split_as_the_bytes_are_and_rings_keep_one(
        self, rings, others, degree, for_rings
    ):
        found = find_layout(demand(4, {(0, 1, 2, 3): rings / 4}, {(0, 2): others}), degree)
        assert (found.degree_all_reduce, found.degree_model_parallel) == (
            for_rings,
            degree - for_rings,
        )

    def test_strides_are_near_a_geometric_sequence(self):
        # 16^(1/4) = 2: targets 1, 2, 4, 8 and the nearest odd numbers still free.
        assert find_layout(all_reduce_demand(16), 4).strides == {16: (1, 3, 5, 7)}
        # 27^(1/3) = 3: targets 1, 3, 9, and no stride may be a multiple of 3.
        assert find_layout(all_reduce_demand(27), 3).strides == {27: (1, 2, 8)}

    def test_two_servers_get_parallel_circuits(self):
        found = find_layout(all_reduce_demand(2), 4)
        assert found.layout.circuits.tolist() == [[0, 4], [4, 0]]
        assert ring_strides(found, (0, 1)) == (1, 1, 1, 1)

    def test_disjoint_groups_share_the_ports_and_are_not_joined_if_they_do_not_talk(self):
        found = find_layout(demand(8, {(0, 2, 4, 6): 5.0, (1, 3, 5, 7): 1.0}), 2)
        assert found.rings == {(0, 2, 4, 6): (1, 3), (1, 3, 5, 7): (1, 3)}
        assert found.hops.unreachable == 2 * 4 * 4

    def test_overlapping_groups_share_a_server_s_ports_by_their_bytes(self):
        rows = {(0, 1): 1.0, (2, 3): 1.0}
        columns = {(0, 2): 3.0, (1, 3): 3.0}
        found = find_layout(demand(4, rows | columns), 4)
        assert {group: len(strides) for group, strides in found.rings.items()} == {
            (0, 2): 3,
            (1, 3): 3,
            (0, 1): 1,
            (2, 3): 1,
        }

    def test_a_group_left_without_ports_rides_on_the_others(self):
        whole, pair = tuple(range(16)), (0, 3)
        found = find_layout(demand(16, {whole: 1e6, pair: 1.0}), 4)
        assert pair not in found.rings
        assert ring_strides(found, pair) == (1,)
        assert found.layout.routes[0, 3] == ((0, 3),)

    def test_matched_servers_get_a_circuit_each_way(self):
        found = find_layout(demand(6, {tuple(range(6)): 1.0}, {(0, 3): 90.0, (1, 4): 30.0}), 2)
        assert found.degree_model_parallel == 1
        assert [found.layout.circuits[a, b] for a, b in ((0, 3), (3, 0), (1, 4), (4, 1))] == [
            1,
            1,
            1,
            1,
        ]
        assert found.layout.routes[0, 3] == ((0, 3),)

    def test_without_all_reduce_one_ring_still_connects_who_talks(self):
        found = find_layout(demand(6, pairs={(0, 1): 9.0, (1, 2): 1.0, (4, 5): 1.0}), 2)
        assert [step.kind for step in found.steps][:3] == ["split", "connect", "connect"]
        assert found.network.connected(2, 0)
        assert found.layout.circuits[3].sum() == 0

    @pytest.mark.parametrize("degree", [1, 2])
    def test_servers_that_matchings_leave_apart_get_a_ring(self, degree):
        # Both the rings and the heaviest matching join 0 with 1 and 2 with 3: nothing would lead
        # from 0 to 2.
        traffic = demand(4, {(0, 1): 1.0, (2, 3): 1.0}, {(0, 1): 100.0, (2, 3): 100.0, (0, 2): 1.0})
        found = find_layout(traffic, degree)
        assert [step.kind for step in found.steps].count("connect") == 1
        assert found.hops.unreachable == 0
        assert found.layout.circuits.sum(axis=0).tolist() == [degree] * 4

    def test_the_record_tells_every_step_and_survives_json(self):
        found = find_layout(demand(6, {tuple(range(6)): 1.0}, {(0, 3): 90.0, (1, 4): 30.0}), 2)
        kinds = [step.kind for step in found.steps]
        assert kinds == ["split", "candidates", "choose", "matching", "route"]
        steps = {step.kind: json.loads(json.dumps(step.data)) for step in found.steps}
        assert steps["candidates"]["candidates"] == [1, 5]
        assert steps["choose"]["chosen"] == [1]
        assert steps["matching"]["pairs"] == [[0, 3, 90.0], [1, 4, 30.0]]
        assert (steps["matching"]["before"], steps["matching"]["after"]) == (120.0, 60.0)
        assert steps["route"]["coin_sequences"]["6"][3] == [1, 1, 1]


class TestStrides:
    @given(st.integers(2, 300))
    def test_candidates_are_the_regular_rings_and_few_of_a_large_group(self, members):
        candidates = totient_strides(members)
        assert all(gcd(p, members) == 1 for p in candidates)
        if members < LARGE_GROUP:
            assert len(candidates) == sum(gcd(p, members) == 1 for p in range(1, members))
        else:
            assert candidates[0] == 1
            assert all(p % q for p in candidates[1:] for q in range(2, p))

    @given(st.integers(2, 300), st.integers(1, 8))
    def test_the_diameter_keeps_the_published_bound(self, members, degree):
        strides = select_strides(members, degree, totient_strides(members))
        hops = [len(coins) for coins in coin_sequences(members, strides)]
        # O(d * n^(1/d)); the constant is 1.02 at worst over n < 400, d < 9.
        assert max(hops) <= 1.1 * degree * members ** (1 / degree)

    @given(
        st.integers(2, 200), st.integers(1, 12), st.sampled_from([select_strides, released_strides])
    )
    def test_as_many_rings_as_ports_and_none_twice_before_all_once(self, members, rings, select):
        candidates = totient_strides(members)
        chosen = (
            select(members, rings, candidates)
            if select is select_strides
            else select(candidates, rings)
        )
        times = Counter(chosen)
        assert len(chosen) == rings
        assert set(times) <= set(candidates)
        assert max(times.values()) <= -(-rings // len(candidates))


class TestCoinChange:
    @given(st.integers(2, 60), st.sets(st.integers(1, 59), min_size=1, max_size=4))
    def test_sequences_are_the_fewest_coins_that_pay_the_distance(self, members, coins):
        sequences = coin_sequences(members, sorted(coins))
        fewest = {0: 0}
        amounts = {0}
        for count in range(1, members):  # every sum of that many coins
            amounts = {(amount + coin) % members for amount in amounts for coin in coins}
            for amount in amounts:
                fewest.setdefault(amount, count)
        for distance, sequence in enumerate(sequences):
            if distance not in fewest:
                assert sequence is None
            else:
                assert sum(sequence) % members == distance
                assert len(sequence) == fewest[distance]

    def test_a_distance_is_paid_with_the_largest_coins_first(self):
        assert coin_sequences(16, (1, 5))[7] == (5, 1, 1)
        assert coin_sequences(16, (1, 5, 15, 11))[4] == (15, 5)


class TestMatching:
    def test_rounds_take_the_heaviest_pairs_and_halve_them(self):
        weight = np.zeros((4, 4))
        for a, b, size in ((0, 1, 8), (2, 3, 8), (0, 2, 5), (3, 1, 5)):
            weight[a, b] = size
        rounds = matching_rounds(weight, np.full(4, 3))
        # 8 + 8 against 5 + 5; then 4 + 4 against 5 + 5; then 4 + 4 against 2.5 + 2.5.
        assert [one.pairs for one in rounds] == [
            ((0, 1), (2, 3)),
            ((0, 2), (1, 3)),
            ((0, 1), (2, 3)),
        ]
        assert [one.weights for one in rounds] == [(8, 8), (5, 5), (4, 4)]
        assert [(one.before, one.after) for one in rounds] == [(26, 18), (18, 13), (13, 9)]

    def test_more_pairs_come_before_more_bytes(self):
        weight = np.zeros((4, 4))
        weight[0, 1], weight[1, 2], weight[2, 3] = 1, 10, 1
        assert matching_rounds(weight, np.full(4, 1))[0].pairs == ((0, 1), (2, 3))

    @given(st.integers(2, 6), st.randoms(use_true_random=False))
    def test_each_round_is_the_best_of_all_matchings(self, n, rng):
        weight = np.triu(
            np.array([[rng.randint(0, 9) for _ in range(n)] for _ in range(n)], float), 1
        )
        edges = [(a, b) for a, b in combinations(range(n), 2) if weight[a, b] > 0]
        best = max(
            (
                (len(some), sum(weight[e] for e in some))
                for size in range(len(edges) + 1)
                if size <= n // 2
                for some in combinations(edges, size)
                if len({s for e in some for s in e}) == 2 * size
            ),
            default=(0, 0),
        )
        rounds = matching_rounds(weight, np.ones(n, np.int64))
        assert (len(rounds[0].pairs), sum(rounds[0].weights)) == best if edges else rounds == []


class TestEveryLayout:
    @examples(150)
    @given(demands(), st.integers(1, 6), st.sampled_from(VARIANTS))
    def test_ports_routes_and_connections_hold(self, traffic, degree, variant):
        degree += degree % 2 if variant == "released" else 0
        found = find_layout(traffic, degree, variant, seed=3)
        circuits = found.layout.circuits
        assert circuits.sum(axis=0).max() <= degree
        assert circuits.sum(axis=1).max() <= degree
        assert not circuits.diagonal().any()
        wanted = set(traffic.pairs)
        for members, strides in found.riding.items():
            n = len(members)
            assert strides
            assert all(gcd(p, n) == 1 for p in strides)
            wanted |= {(members[i], members[(i + p) % n]) for p in (*strides, 1) for i in range(n)}
        assert set(found.layout.routes) == wanted
        for (a, b), paths in found.layout.routes.items():
            assert len(set(paths)) == len(paths) >= 1
            for path in paths:
                assert (path[0], path[-1]) == (a, b)
                assert len(set(path)) == len(path)
                assert all(circuits[x, y] > 0 for x, y in pairwise(path))

    @examples(60)
    @given(demands(), st.integers(1, 6))
    def test_a_group_s_own_rings_run_on_their_own_circuits(self, traffic, degree):
        found = find_layout(traffic, degree)
        ends = Counter(
            (members[i], members[(i + p) % len(members)])
            for members, strides in found.rings.items()
            for p in strides
            for i in range(len(members))
        )
        assert all(found.layout.circuits[a, b] >= count for (a, b), count in ends.items())

    @examples(60)
    @given(demands(), st.sampled_from((2, 4, 6)), st.sampled_from(VARIANTS))
    def test_its_circuits_fit_on_one_switch_a_port(self, traffic, degree, variant):
        found = find_layout(traffic, degree, variant)
        wiring = found.wiring
        assert (wiring.circuits(traffic.servers) == found.layout.circuits).all()
        assert wiring.plane.max(initial=-1) < degree
        for side in (wiring.source, wiring.destination):
            assert len(set(zip(side.tolist(), wiring.plane.tolist(), strict=True))) == len(wiring)

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_a_ring_lies_whole_on_one_switch(self, variant):
        wiring = find_layout(all_reduce_demand(16), 4, variant).wiring
        strides = ((wiring.destination - wiring.source) % 16).tolist()
        assert len(set(zip(strides, wiring.plane.tolist(), strict=True))) == 4

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_published_figures_of_dlrm_hold_on_its_own_graph(self, real_inputs, variant):
        read = load_graph(
            (real_inputs / "flexnet" / "100dlrm_16.fbuf").read_bytes(), "100dlrm_16.fbuf"
        )
        found = find_layout(traffic_of(read, 16), 4, variant)
        assert found.strides[16] == {"published": (1, 3, 5, 7), "released": (1, 5)}[variant]
        assert found.layout.circuits.sum(axis=1).tolist() == [4] * 16


class TestPaths:
    @examples(80)
    @given(st.integers(3, 8), st.randoms(use_true_random=False))
    def test_k_shortest_paths_are_as_short_as_an_independent_search_finds(self, n, rng):
        circuits = np.array(
            [[int(a != b and rng.random() < 0.4) for b in range(n)] for a in range(n)], np.int32
        )
        paths = (
            list(
                islice(
                    networkx.shortest_simple_paths(
                        networkx.from_numpy_array(circuits, create_using=networkx.DiGraph), 0, n - 1
                    ),
                    5,
                )
            )
            if RoutedNetwork(circuits).connected(0, n - 1)
            else []
        )
        if not paths:
            with pytest.raises(InputError, match=f"server 0 talks to server {n - 1}"):
                RoutedNetwork(circuits).shortest_paths(0, n - 1)
            return
        found = RoutedNetwork(circuits).shortest_paths(0, n - 1, paths=5, longer=n)
        assert [len(path) for path in found] == [len(path) for path in paths]
        assert len(set(found)) == len(found)

    @examples(40)
    @given(demands(), st.integers(1, 4))
    def test_diameter_and_mean_hops_agree_with_an_independent_count(self, traffic, degree):
        found = find_layout(traffic, degree)
        hops = [
            hop
            for source, row in networkx.all_pairs_shortest_path_length(
                networkx.from_numpy_array(found.layout.circuits > 0, create_using=networkx.DiGraph)
            )
            for end, hop in row.items()
            if end != source
        ]
        n = traffic.servers
        assert found.hops.diameter == max(hops, default=0)
        assert found.hops.mean == pytest.approx(sum(hops) / len(hops) if hops else 0.0)
        assert found.hops.unreachable == n * (n - 1) - len(hops)

    def test_rings_load_every_circuit_of_a_stride_alike(self):
        everybody = {(a, b): 1.0 for a in range(16) for b in range(16) if a != b}
        found = find_layout(demand(16, {tuple(range(16)): 1e6}, everybody), 4)
        load: Counter[tuple[int, int]] = Counter()
        for paths in found.layout.routes.values():
            for path in paths:
                load.update({hop: 1 / len(paths) for hop in pairwise(path)})
        for stride in (1, 3, 5, 7):
            assert len({round(load[a, (a + stride) % 16], 9) for a in range(16)}) == 1


class TestTraffic:
    def test_ring_bytes_and_pair_bytes_of_a_graph(self):
        members = (2, 0, 1)
        tasks = [
            Task("sum", "all_reduce", (), members=members, size_bytes=9.0),
            Task("shards", "all_gather", (), members=members, size_bytes=9.0),
            Task("swap", "all_to_all", (), members=members, size_bytes=9.0),
            Task("one", "all_reduce", (), members=(3,), size_bytes=9.0),
            transfer("act", 0, 3, 1.0),
            Task("told", "communication", (), source=3, destination=0, duration_ms=2.0),
        ]
        traffic = traffic_of(graph(*tasks), 4)
        assert traffic.all_reduce == {members: pytest.approx(2 * 2 / 3 * 9 + 2 / 3 * 9)}
        assert traffic.model_parallel[2, 0] == traffic.model_parallel[0, 1] == 3.0
        assert traffic.model_parallel[0, 3] == GBIT_MS
        assert traffic.model_parallel[3, 0] == 0
        assert (3, 0) in traffic.pairs
        assert len(traffic.pairs) == 3 * 2 + 2

    @pytest.mark.parametrize(
        "lowering",
        [Lowering(), Lowering(rings=2), Lowering(steps="stepwise"), Lowering(strides=(3,))],
    )
    def test_the_demand_does_not_depend_on_how_rings_were_lowered(self, lowering):
        tasks = [Task("sum", "all_reduce", (), members=(4, 0, 1, 3, 2), size_bytes=10.0)]
        traffic = traffic_of(graph(*tasks), 5, lowering)
        assert traffic.all_reduce == {(4, 0, 1, 3, 2): pytest.approx(16.0)}

    def test_all_reduces_off_the_network_ask_for_nothing(self):
        tasks = [Task("sum", "all_reduce", (), members=(0, 1), size_bytes=10.0)]
        assert traffic_of(graph(*tasks), 2, Lowering(all_reduce_on_network=False)).all_reduce == {}


class TestMutation:
    @staticmethod
    def job(*groups: tuple[int, ...]):
        return graph(
            compute("a", 0, 1.0),
            compute("b", 1, 1.0),
            *(
                Task(f"s{i}", "all_reduce", ("a", "b"), members=members, size_bytes=840.0)
                for i, members in enumerate(groups)
            ),
            compute("end", 0, 1.0, "s0"),
        )

    @pytest.mark.parametrize("steps", ["fluid", "stepwise"])
    def test_one_group_moves_as_the_lowering_with_these_strides_would(self, steps):
        job = self.job(tuple(range(8)))
        lowered = lower(job, Lowering(steps=steps))
        moved = on_rings(lowered, find_layout(demand_of(lowered, 8), 3))
        expected = lower(job, Lowering(rings=3, strides=(1, 3, 5), steps=steps))
        for name in ("ids", "task_kind", "lowered", "lowering"):
            assert getattr(moved, name) == getattr(expected, name)
        for name in (
            "kind",
            "origin",
            "server",
            "source",
            "destination",
            "size_bytes",
            "duration_ms",
            "pred_ptr",
            "pred_idx",
        ):
            np.testing.assert_array_equal(getattr(moved, name), getattr(expected, name))

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_groups_of_different_sizes_keep_their_bytes_and_every_transfer_has_a_route(
        self, variant
    ):
        lowered = lower(self.job((0, 3, 6, 9), tuple(range(12)), (5, 1, 2)), Lowering(rings=2))
        found = find_layout(demand_of(lowered, 12), 4, variant)
        moved = on_rings(lowered, found)
        assert demand_of(moved, 12).all_reduce == pytest.approx(demand_of(lowered, 12).all_reduce)
        sent = {
            pair
            for pair in zip(moved.source.tolist(), moved.destination.tolist(), strict=True)
            if pair[0] >= 0
        }
        assert sent <= set(found.layout.routes)
        assert moved.digest != lowered.digest

    def test_parallel_circuits_carry_parallel_rings(self):
        lowered = lower(self.job((0, 1)))
        moved = on_rings(lowered, find_layout(demand_of(lowered, 2), 4))
        assert (
            Counter(zip(moved.source.tolist(), moved.destination.tolist(), strict=True))[0, 1] == 4
        )

    def test_another_group_is_refused(self):
        with pytest.raises(InputError, match=r"other groups than \(0, 1\)"):
            ring_strides(find_layout(all_reduce_demand(4), 2), (0, 1))


class TestWiring:
    @given(
        st.integers(2, 8).flatmap(
            lambda n: st.lists(
                st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.booleans()).filter(
                    lambda c: c[0] != c[1]
                ),
                max_size=40,
            )
        )
    )
    def test_circuits_need_no_more_planes_than_the_busiest_server_has(self, circuits):
        wiring = wired(circuits)
        busiest = max(
            [
                *Counter(a for a, *_ in circuits).values(),
                *Counter(b for _, b, _ in circuits).values(),
            ],
            default=0,
        )
        assert len(wiring) == len(circuits)
        assert wiring.plane.max(initial=-1) < max(1, busiest)
        for side in (wiring.source, wiring.destination):
            assert len(set(zip(side.tolist(), wiring.plane.tolist(), strict=True))) == len(circuits)


class TestBadInput:
    @pytest.mark.parametrize(
        ("degree", "variant", "told"),
        [
            (0, "published", "degree: must be a whole number from 1"),
            (-1, "released", "degree"),
            (3, "released", "must be even"),
            (2.0, "published", "whole number"),
            (True, "published", "whole number"),
            (10**6, "published", "to 4,096"),
            (2, "secret", "variant: must be one of published, released"),
        ],
    )
    def test_a_degree_or_variant_that_cannot_be_is_named(self, degree, variant, told):
        with pytest.raises(InputError, match=told):
            find_layout(all_reduce_demand(4), degree, variant)

    def test_a_layout_too_large_is_refused_before_memory_is_spent(self):
        with pytest.raises(InputError, match="servers: must be a whole number from 1 to 4,096"):
            all_reduce_demand(10**6)
        with pytest.raises(InputError, match="409,600 circuits"):
            find_layout(all_reduce_demand(4096), 100)

    def test_a_graph_with_more_servers_is_named(self):
        with pytest.raises(InputError, match="names server 3, but there are 2"):
            traffic_of(graph(transfer("act", 0, 3, 1.0)), 2)


class TestCommand:
    def test_json_has_rings_links_diameter_and_mean_hops(self, capsys):
        assert (
            main(
                ["topology", "--servers", "16", "--degree", "4", "--variant", "released", "--json"]
            )
            == 0
        )
        told = json.loads(capsys.readouterr().out)
        assert told["rings"] == {"16": [1, 5]}
        assert told["diameter"] == 4
        assert told["mean_hops"] == pytest.approx(2.1333, abs=1e-4)
        assert len(told["links"]) == 64
        assert {"source": 0, "destination": 11, "circuits": 1} in told["links"]

    def test_a_graph_s_traffic_decides(self, tmp_path, capsys):
        from topox_core.io.task_graph_file import dump_graph_json

        file = tmp_path / "g.json"
        file.write_bytes(
            dump_graph_json(graph(transfer("act", 0, 2, 1.0), transfer("grad", 2, 0, 1.0)))
        )
        assert (
            main(["topology", "--servers", "4", "--degree", "2", "--graph", str(file), "--json"])
            == 0
        )
        told = json.loads(capsys.readouterr().out)
        assert told["rings"] == {}
        assert told["links"] == [
            {"source": 0, "destination": 2, "circuits": 2},
            {"source": 2, "destination": 0, "circuits": 2},
        ]
        assert main(["topology", "--servers", "4", "--degree", "2", "--graph", str(file)]) == 0
        assert "0>2 x2 2>0 x2" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (
                ["--servers", "16", "--degree", "0"],
                "field --degree: must be a whole number from 1 to 4,096 (got 0)",
            ),
            (
                ["--servers", "16", "--degree", "3", "--variant", "released"],
                "field --degree: must be even",
            ),
            (["--servers", "0", "--degree", "2"], "field --servers: must be a whole number from 1"),
            (
                ["--servers", "16", "--degree", "4", "--variant", "x"],
                "field --variant: must be one of published, released",
            ),
            (["--servers", "16", "--degree", "four"], "--degree: must be a whole number"),
            (["--servers", "16"], "--degree"),
            (
                ["--servers", "16", "--degree", "4", "--graph", "none.json"],
                "none.json: cannot be read",
            ),
        ],
    )
    def test_a_mistake_gets_one_clear_line(self, arguments, told, capsys):
        assert main(["topology", *arguments]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        assert told in printed.err
