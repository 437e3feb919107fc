"""TopologyFinder: the strides its authors published, ports never exceeded, everybody who talks connected by shortest routes."""

from collections import Counter
from dataclasses import fields
from itertools import combinations, pairwise, permutations
from math import gcd

import networkx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from tests.refusal import refusal
from tests.topox_core.small_graphs import GBIT_MS, compute, graph, transfer
from topox_core.cli.main import main
from topox_core.io.task_graph_file import dump_graph_json, load_graph
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task
from topox_core.topology.finder import (
    VARIANTS,
    Demand,
    demand_of,
    find_layout,
    matching_rounds,
    ring_strides,
    traffic_of,
)
from topox_core.topology.ring_circuits import (
    LARGE_GROUP,
    circuit_loads,
    link_loads,
    on_rings,
    released_strides,
    select_strides,
    totient_strides,
)
from topox_core.topology.routing import RoutedNetwork, coin_sequences
from topox_core.topology.traffic import all_reduce_demand
from topox_core.workloads.samples import load_sample


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
    members = st.lists(st.integers(0, n - 1), min_size=2, unique=True).map(tuple)
    groups = draw(st.lists(members, max_size=4, unique=True))
    sizes = st.floats(0, 1e9)
    ends = st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True).map(tuple)
    pairs = draw(st.dictionaries(ends, sizes, max_size=12))
    return demand(n, {group: draw(sizes) for group in groups}, pairs)


# -- the released variant --------------------------------------------------------------------------


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
    servers, degree, strides, diameter, mean_hops
):
    found = find_layout(all_reduce_demand(servers), degree, "released")
    assert found.strides == {servers: strides}
    assert (found.hops.diameter, round(found.hops.mean, 2)) == (diameter, mean_hops)


def test_twelve_servers_get_the_rings_of_the_testbed():
    found = find_layout(all_reduce_demand(12), 4, "released")
    assert sorted(ring_strides(found, range(12))) == [1, 5, 7, 11]


def test_no_port_goes_to_matchings_however_much_model_parallel_traffic_there_is():
    found = find_layout(demand(8, {tuple(range(8)): 1.0}, {(0, 4): 1e9}), 4, "released")
    assert (found.degree_all_reduce, found.degree_model_parallel) == (4, 0)
    assert found.layout.routes[0, 4] in {((0, m, 4),) for m in range(8)}


def test_one_ring_through_all_servers_is_taken_from_the_largest_group_size():
    quarters = {tuple(range(first, 16, 4)): 100.0 for first in range(4)}
    found = find_layout(demand(16, quarters), 4, "released")
    assert found.strides == {4: (1,), 16: (1,)}
    assert set(found.network.out[0]) == {4, 12, 1, 15}


def test_a_group_without_rings_runs_on_the_strides_of_fewest_hops():
    # Pairs i, i + 8 need an even distance on rings of odd strides: 8 = 5 + 3 or 9 - 1, two hops
    # each.
    whole, pairs = tuple(range(16)), {(i, i + 8): 1.0 for i in range(8)}
    found = find_layout(demand(16, {whole: 1e6, **pairs}), 8, "released")
    assert 2 not in found.strides
    assert {len(found.layout.routes[pair][0]) for pair in pairs} == {3}


def test_a_group_that_does_not_divide_the_servers_is_named():
    found = find_layout(demand(16, {(0, 1, 2): 1.0}), 4, "released")
    assert "Groups of 3" in found.steps[0].text


def test_routes_repeat_with_the_seed_and_differ_with_another():
    everybody = dict.fromkeys(permutations(range(16), 2), 1.0)
    traffic = demand(16, {tuple(range(16)): 1.0}, everybody)
    one, same, other = (
        find_layout(traffic, 4, "released", seed=seed).layout.routes for seed in (1, 1, 2)
    )
    assert one == same != other


# -- the published variant -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rings", "others", "degree", "for_rings"),
    [
        (3.0, 1.0, 4, 3),
        (1.0, 3.0, 4, 1),
        (1.0, 1.0, 3, 2),
        (0.0, 1.0, 4, 1),
        (1.0, 0.0, 4, 4),
        (1e-9, 1.0, 4, 1),
        (3.0, 7.0, 4, 2),  # 1.2 ports, rounded up
    ],
)
def test_ports_are_split_as_the_bytes_are_and_rings_keep_one(rings, others, degree, for_rings):
    found = find_layout(demand(4, {(0, 1, 2, 3): rings / 4}, {(0, 2): others}), degree)
    assert (found.degree_all_reduce, found.degree_model_parallel) == (
        for_rings,
        degree - for_rings,
    )


def test_strides_are_near_a_geometric_sequence():
    # 16^(1/4) = 2: targets 1, 2, 4, 8 and the nearest odd numbers still free.
    assert find_layout(all_reduce_demand(16), 4).strides == {16: (1, 3, 5, 7)}
    # 27^(1/3) = 3: targets 1, 3, 9, and no stride may be a multiple of 3.
    assert find_layout(all_reduce_demand(27), 3).strides == {27: (1, 2, 8)}


def test_disjoint_groups_share_the_ports_and_are_not_joined_if_they_do_not_talk():
    found = find_layout(demand(8, {(0, 2, 4, 6): 5.0, (1, 3, 5, 7): 1.0}), 2)
    assert found.rings == {(0, 2, 4, 6): (1, 3), (1, 3, 5, 7): (1, 3)}
    assert found.hops.unreachable == 2 * 4 * 4


def test_overlapping_groups_share_a_server_s_ports_by_their_bytes():
    groups = {(0, 1): 1.0, (2, 3): 1.0, (0, 2): 3.0, (1, 3): 3.0}
    rings = find_layout(demand(4, groups), 4).rings
    assert {group: len(strides) for group, strides in rings.items()} == groups


def test_a_group_left_without_ports_rides_on_the_others():
    found = find_layout(demand(16, {tuple(range(16)): 1e6, (0, 3): 1.0}), 4)
    assert (0, 3) not in found.rings
    assert ring_strides(found, (0, 3)) == (1,)
    assert found.layout.routes[0, 3] == ((0, 3),)


def test_without_all_reduce_one_ring_still_connects_who_talks():
    found = find_layout(demand(6, pairs={(0, 1): 9.0, (1, 2): 1.0, (4, 5): 1.0}), 2)
    assert [step.kind for step in found.steps][:3] == ["split", "connect", "connect"]
    assert found.network.connected(2, 0)
    assert found.layout.circuits[3].sum() == 0


@pytest.mark.parametrize("degree", [1, 2])
def test_servers_that_matchings_leave_apart_get_a_ring(degree):
    # Both the rings and the heaviest matching join 0 with 1 and 2 with 3: nothing would lead
    # from 0 to 2.
    traffic = demand(4, {(0, 1): 1.0, (2, 3): 1.0}, {(0, 1): 100.0, (2, 3): 100.0, (0, 2): 1.0})
    found = find_layout(traffic, degree)
    assert [step.kind for step in found.steps].count("connect") == 1
    assert found.hops.unreachable == 0
    assert found.layout.circuits.sum(axis=0).tolist() == [degree] * 4


def test_matched_servers_get_a_circuit_each_way_and_the_record_tells_every_step():
    found = find_layout(demand(6, {tuple(range(6)): 1.0}, {(0, 3): 90.0, (1, 4): 30.0}), 2)
    assert all(found.layout.circuits[pair] == 1 for pair in ((0, 3), (3, 0), (1, 4), (4, 1)))
    steps = {step.kind: step.data for step in found.steps}
    assert list(steps) == ["split", "candidates", "choose", "matching", "route"]
    assert (steps["matching"]["before"], steps["matching"]["after"]) == (120.0, 60.0)


# -- strides ---------------------------------------------------------------------------------------


@given(st.integers(2, 300))
def test_candidates_are_the_regular_rings_and_few_of_a_large_group(members):
    candidates = totient_strides(members)
    assert all(gcd(p, members) == 1 for p in candidates)
    if members < LARGE_GROUP:
        assert len(candidates) == sum(gcd(p, members) == 1 for p in range(1, members))
    else:
        assert candidates[0] == 1
        assert all(p % q for p in candidates[1:] for q in range(2, p))


@given(st.integers(2, 300), st.integers(1, 8))
def test_the_diameter_keeps_the_published_bound(members, degree):
    strides = select_strides(members, degree, totient_strides(members))
    hops = [len(coins) for coins in coin_sequences(members, strides)]
    # O(d * n^(1/d)); the constant is 1.02 at worst over n < 400, d < 9.
    assert max(hops) <= 1.1 * degree * members ** (1 / degree)


@given(st.integers(2, 200), st.integers(1, 12))
def test_as_many_rings_as_ports_and_none_twice_before_all_once(members, rings):
    candidates = totient_strides(members)
    for choose in (select_strides, lambda _, count, known: released_strides(known, count)):
        times = Counter(choose(members, rings, candidates))
        assert times.total() == rings
        assert set(times) <= set(candidates)
        assert max(times.values()) <= -(-rings // len(candidates))


# -- coin change -----------------------------------------------------------------------------------


@given(st.integers(2, 60), st.sets(st.integers(1, 59), min_size=1, max_size=4))
def test_sequences_are_the_fewest_coins_that_pay_the_distance(members, coins):
    sequences = coin_sequences(members, sorted(coins))
    fewest, amounts = {0: 0}, {0}
    for count in range(1, members):  # every sum of that many coins
        amounts = {(amount + coin) % members for amount in amounts for coin in coins}
        for amount in amounts:
            fewest.setdefault(amount, count)
    lengths = {d: len(coins) for d, coins in enumerate(sequences) if coins is not None}
    assert lengths == fewest
    assert all(sum(sequences[distance]) % members == distance for distance in fewest)


def test_a_distance_is_paid_with_the_largest_coins_first():
    assert coin_sequences(16, (1, 5))[7] == (5, 1, 1)
    assert coin_sequences(16, (1, 5, 15, 11))[4] == (15, 5)


# -- matchings -------------------------------------------------------------------------------------


def test_rounds_take_the_heaviest_pairs_and_halve_them():
    weight = np.zeros((4, 4))
    weight[[0, 2, 0, 3], [1, 3, 2, 1]] = 8, 8, 5, 5
    # 8 + 8 against 5 + 5; then 4 + 4 against 5 + 5; then 4 + 4 against 2.5 + 2.5.
    rounds = [one.data for one in matching_rounds(weight, np.full(4, 3))]
    assert [one["pairs"] for one in rounds] == [
        [[0, 1, 8], [2, 3, 8]],
        [[0, 2, 5], [1, 3, 5]],
        [[0, 1, 4], [2, 3, 4]],
    ]
    assert [(one["before"], one["after"]) for one in rounds] == [(26, 18), (18, 13), (13, 9)]


@given(st.integers(2, 6), st.randoms(use_true_random=False))
def test_each_round_is_the_best_of_all_matchings(n, rng):
    weight = np.triu([[rng.randint(0, 9) for _ in range(n)] for _ in range(n)], 1).astype(float)
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
    found = [bytes_both_ways for *_, bytes_both_ways in rounds[0].data["pairs"]] if rounds else []
    assert (len(found), sum(found)) == best


# -- every layout ----------------------------------------------------------------------------------


@examples(150)
@given(demands(), st.integers(1, 6), st.sampled_from(VARIANTS))
def test_ports_routes_and_connections_hold(traffic, degree, variant):
    degree += degree % 2 if variant == "released" else 0
    found = find_layout(traffic, degree, variant, seed=3)
    circuits = found.layout.circuits
    assert max(circuits.sum(axis=0).max(), circuits.sum(axis=1).max()) <= degree
    assert not circuits.diagonal().any()
    wanted = set(traffic.pairs)
    for members, strides in found.riding.items():
        n = len(members)
        assert strides and all(gcd(p, n) == 1 for p in strides)
        wanted |= {(members[i], members[(i + p) % n]) for p in (*strides, 1) for i in range(n)}
    assert set(found.layout.routes) == wanted
    for ends, paths in found.layout.routes.items():
        assert len(set(paths)) == len(paths) >= 1
        for path in paths:
            assert (path[0], path[-1]) == ends
            assert len(set(path)) == len(path)
            assert all(circuits[x, y] > 0 for x, y in pairwise(path))
    own = Counter(
        (members[i], members[(i + p) % len(members)])
        for members, strides in found.rings.items()
        for p in strides
        for i in range(len(members))
    )
    if variant == "published":  # a group's own rings run on their own circuits
        assert all(circuits[pair] >= count for pair, count in own.items())
    wiring = found.wiring  # its circuits fit on one switch a port
    assert (wiring.circuits(traffic.servers) == circuits).all()
    assert wiring.plane.max(initial=-1) < degree
    for side in (wiring.source, wiring.destination):
        assert len(set(zip(side.tolist(), wiring.plane.tolist(), strict=True))) == len(wiring)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_ring_lies_whole_on_one_switch(variant):
    wiring = find_layout(all_reduce_demand(16), 4, variant).wiring
    strides = ((wiring.destination - wiring.source) % 16).tolist()
    assert len(set(zip(strides, wiring.plane.tolist(), strict=True))) == 4


@pytest.mark.parametrize("variant", VARIANTS)
def test_published_figures_of_dlrm_hold_on_its_own_graph(real_inputs, variant):
    file = real_inputs / "flexnet" / "100dlrm_16.fbuf"
    found = find_layout(traffic_of(load_graph(file.read_bytes(), file.name), 16), 4, variant)
    assert found.strides[16] == {"published": (1, 3, 5, 7), "released": (1, 5)}[variant]
    assert found.layout.circuits.sum(axis=1).tolist() == [4] * 16


# -- paths -----------------------------------------------------------------------------------------


@examples(80)
@given(st.integers(3, 8), st.randoms(use_true_random=False))
def test_shortest_paths_are_those_that_an_independent_search_finds(n, rng):
    circuits = np.array([[a != b and rng.random() < 0.4 for b in range(n)] for a in range(n)])
    network = RoutedNetwork(circuits.astype(np.int32))
    independent = networkx.from_numpy_array(circuits, create_using=networkx.DiGraph)
    if not networkx.has_path(independent, 0, n - 1):
        assert f"server 0 talks to server {n - 1}" in refusal(network.shortest_paths, 0, n - 1)
        return
    paths = {tuple(path) for path in networkx.all_shortest_paths(independent, 0, n - 1)}
    found = network.shortest_paths(0, n - 1, paths=5)
    assert set(found) <= paths
    assert len(set(found)) == len(found) == min(5, len(paths))


@examples(40)
@given(demands(), st.integers(1, 4))
def test_diameter_and_mean_hops_agree_with_an_independent_count(traffic, degree):
    told, n = find_layout(traffic, degree), traffic.servers
    network = networkx.from_numpy_array(told.layout.circuits > 0, create_using=networkx.DiGraph)
    lengths = dict(networkx.all_pairs_shortest_path_length(network))
    hops = [lengths[a][b] for a, b in permutations(range(n), 2) if b in lengths[a]]
    assert told.hops.diameter == max(hops, default=0)
    assert told.hops.mean == pytest.approx(sum(hops) / len(hops) if hops else 0.0)
    assert told.hops.unreachable == n * (n - 1) - len(hops)


# -- traffic ---------------------------------------------------------------------------------------


def test_ring_bytes_and_pair_bytes_of_a_graph():
    members = (2, 0, 1)
    tasks = [
        Task("sum", "all_reduce", dependencies=(), members=members, size_bytes=9.0),
        Task("shards", "all_gather", dependencies=(), members=members, size_bytes=9.0),
        Task("swap", "all_to_all", dependencies=(), members=members, size_bytes=9.0),
        Task("one", "all_reduce", dependencies=(), members=(3,), size_bytes=9.0),
        transfer("act", 0, 3, 1.0),
        Task("told", "communication", dependencies=(), source=3, destination=0, duration_ms=2.0),
    ]
    traffic = traffic_of(graph(*tasks), 4)
    assert traffic.all_reduce == {members: pytest.approx(2 * 2 / 3 * 9 + 2 / 3 * 9)}
    expected = np.zeros((4, 4))
    expected[:3, :3] = 3.0 * (1 - np.eye(3))
    expected[0, 3] = GBIT_MS
    assert np.array_equal(traffic.model_parallel, expected)
    assert traffic.pairs == {*permutations(range(3), 2), (0, 3), (3, 0)}


@pytest.mark.parametrize(
    ("lowering", "size_bytes"),
    [
        *((Lowering(), 16.0), (Lowering(rings=2), 16.0), (Lowering(steps="stepwise"), 16.0)),
        *((Lowering(strides=(3,)), 16.0), (Lowering(all_reduce_on_network=False), None)),
    ],
)
def test_the_demand_does_not_depend_on_how_rings_were_lowered(lowering, size_bytes):
    members = (4, 0, 1, 3, 2)
    task = Task("sum", "all_reduce", dependencies=(), members=members, size_bytes=10.0)
    asked = demand_of(lower(graph(task), lowering), 5).all_reduce
    assert asked == ({members: pytest.approx(size_bytes)} if size_bytes else {})


# -- rings moved to a layout -----------------------------------------------------------------------


def reducing(*groups: tuple[int, ...]):
    return graph(
        compute("a", 0, 1.0),
        compute("b", 1, 1.0),
        *(
            Task(f"s{i}", "all_reduce", dependencies=("a", "b"), members=members, size_bytes=840.0)
            for i, members in enumerate(groups)
        ),
        compute("end", 0, 1.0, "s0"),
    )


@pytest.mark.parametrize("steps", ["fluid", "stepwise"])
def test_one_group_moves_as_the_lowering_with_these_strides_would(steps):
    job = reducing(tuple(range(8)))
    lowered = lower(job, Lowering(steps=steps))
    moved = on_rings(lowered, find_layout(demand_of(lowered, 8), 3))
    expected = lower(job, Lowering(rings=3, strides=(1, 3, 5), steps=steps))
    for name in {field.name for field in fields(expected)} - {"digest"}:
        np.testing.assert_array_equal(getattr(moved, name), getattr(expected, name))


@pytest.mark.parametrize("variant", VARIANTS)
def test_groups_of_different_sizes_keep_their_bytes_and_every_transfer_has_a_route(variant):
    lowered = lower(reducing((0, 3, 6, 9), tuple(range(12)), (5, 1, 2)), Lowering(rings=2))
    found = find_layout(demand_of(lowered, 12), 4, variant)
    moved = on_rings(lowered, found)
    assert demand_of(moved, 12).all_reduce == pytest.approx(demand_of(lowered, 12).all_reduce)
    ends = zip(moved.source.tolist(), moved.destination.tolist(), strict=True)
    assert set(ends) - {(-1, -1)} <= set(found.layout.routes)
    assert moved.digest != lowered.digest


def test_the_busiest_circuit_is_no_circuit_of_the_busiest_link_where_that_has_two():
    """Of *Mixture of experts* S6 -> S7 carries most, 14.0 GB on two circuits; three others have 13.3 GB on one."""
    found = traffic_of(load_sample("moe")[0], 8)
    laid = find_layout(found, 2)
    links, each = link_loads(laid, found), circuit_loads(laid, found)
    assert max(links, key=lambda pair: links[pair]) == (6, 7) and laid.layout.circuits[6, 7] == 2
    most = max(each.values())
    assert [pair for pair in sorted(each) if each[pair] > 0.999 * most] == [(3, 4), (5, 6), (7, 0)]
    assert most / (sum(links.values()) / laid.layout.circuits.sum()) == pytest.approx(
        1.99, abs=0.005
    )


def test_parallel_circuits_carry_parallel_rings():
    lowered = lower(reducing((0, 1)))
    moved = on_rings(lowered, find_layout(demand_of(lowered, 2), 4))
    assert ((moved.source == 0) & (moved.destination == 1)).sum() == 4


FOUR = all_reduce_demand(4)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (lambda: find_layout(FOUR, 0), "degree: must be a whole number from 1"),
        (lambda: find_layout(FOUR, -1, "released"), "degree"),
        (lambda: find_layout(FOUR, 3, "released"), "must be even"),
        (lambda: find_layout(FOUR, 2.0), "whole number"),
        (lambda: find_layout(FOUR, True), "whole number"),
        (lambda: find_layout(FOUR, 10**6), "to 4,096"),
        (lambda: find_layout(FOUR, 2, "secret"), "variant: must be one of published, released"),
        (lambda: find_layout(all_reduce_demand(4096), 100), "409,600 circuits"),
        (lambda: all_reduce_demand(10**6), "servers: must be a whole number from 1 to 4,096"),
        (
            lambda: traffic_of(graph(transfer("act", 0, 3, 1.0)), 2),
            "names server 3, but there are 2",
        ),
        (lambda: ring_strides(find_layout(FOUR, 2), (0, 1)), "other groups than (0, 1)"),
    ],
)
def test_what_cannot_be_laid_is_named_before_memory_is_spent(asked, told):
    assert told in refusal(asked)


# -- the command -----------------------------------------------------------------------------------


def test_a_graph_s_traffic_decides(tmp_path, capsys, ask):
    file = tmp_path / "g.json"
    both_ways = graph(transfer("act", 0, 2, 1.0), transfer("grad", 2, 0, 1.0))
    file.write_bytes(dump_graph_json(both_ways))
    asked = ["topology", "--servers", "4", "--degree", "2", "--graph", str(file)]
    told = ask(*asked)
    links = [(link["source"], link["destination"], link["circuits"]) for link in told["links"]]
    assert (told["rings"], links) == ({}, [(0, 2, 2), (2, 0, 2)])
    assert main(asked) == 0
    assert "0>2 x2 2>0 x2" in capsys.readouterr().out
