"""Transfers phase by phase: few matchings, and shorter iterations where changes take long."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import suite_instance
from tests.past import load_past
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.api import load_cluster, load_graph
from topox_core.check.checker import check
from topox_core.fabrics.circuit_requests import Profile
from topox_core.fabrics.phases import matching_of_pairs, one_way_matchings, phased, run_phased
from topox_core.fabrics.run import FabricRequest
from topox_core.fabrics.scheduled import schedule
from topox_core.model.lowering import lower
from topox_core.runs.stopping import never
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import Settings


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), unique=True, max_size=64))
def test_pairs_fall_into_as_many_matchings_as_the_busiest_server_has_peers(
    pairs: list[tuple[int, int]],
) -> None:
    matching = matching_of_pairs(pairs)
    assert matching.keys() == set(pairs)
    for side in (0, 1):
        assert len({(pair[side], number) for pair, number in matching.items()}) == len(pairs)
    degree = max(
        (max(Counter(p[side] for p in pairs).values()) for side in (0, 1) if pairs), default=0
    )
    assert len(set(matching.values())) == degree


@pytest.mark.parametrize("seed", range(12))
def test_every_port_serves_one_phase_after_the_other(seed: int) -> None:
    task_graph, of = random_graph(seed, tasks=30), cluster(4, ports_per_server=2, switches=2)
    request = FabricRequest(lower(task_graph), of.changed(reconfiguration_ms=1.0), Settings.of())
    profile = Profile.of(request)
    by_phases = phased(profile, exclusive_devices=True)
    graph, start_ms = profile.graph, by_phases.provisioned_start_ms()
    end_ms = start_ms + profile.length_ms
    for j in range(len(graph)):
        before = graph.pred_idx[graph.pred_ptr[j] : graph.pred_ptr[j + 1]]
        assert (end_ms[before] <= start_ms[j] + 1e-9).all()
    for before in (by_phases.known.orders.before_out, by_phases.known.orders.before_in):
        for j in (before >= 0).nonzero()[0].tolist():
            assert end_ms[before[j]] <= start_ms[j] + 1e-9


@pytest.mark.parametrize(
    ("name", "delay_ms", "most_ms"),
    [("moe", 5.0, 358.0), ("moe", 10.0, 500.0), ("dlrm-16", 10.0, 112.0)],
)
def test_long_delays_are_paid_less_often_phase_by_phase(
    name: str, delay_ms: float, most_ms: float
) -> None:
    """By rules and the provisioned order alone it is 386, 608 and 123 ms."""
    task_graph, of = load_past(name)
    of = of.changed(reconfiguration_ms=delay_ms)
    result = schedule(task_graph, of, Settings.of(engine="list", switching="planned"))
    assert result.makespan_ms <= most_ms
    assert check(task_graph, of, to_record(result)).ok


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), unique=True, max_size=40))
def test_a_half_duplex_port_is_in_one_pair_of_a_matching(pairs: list[tuple[int, int]]) -> None:
    pairs = [(x, y) for x, y in pairs if x != y]
    matching = one_way_matchings(pairs)
    assert matching.keys() == set(pairs)
    for number in set(matching.values()):
        ends = [end for pair in pairs if matching[pair] == number for end in pair]
        assert len(ends) == len(set(ends))


@pytest.mark.parametrize(
    ("name", "delay_ms", "stated_ms"),
    [
        ("moe", 0.0, 214.201621),
        ("moe", 0.1, 217.101621),
        ("moe", 1.0, 238.770864),
        ("moe", 10.0, 481.843193),
        ("dlrm-16", 0.0, 45.002229),
        ("dlrm-16", 0.1, 45.302229),
        ("dlrm-16", 1.0, 50.362924),
        ("dlrm-16", 10.0, 111.116514),
        ("race", 1.0, 89.890209),
        ("race", 10.0, 165.980086),
        ("fsdp", 0.0, 362.203057),
        ("small-moe-n4l4", 10.0, 381.661608),
    ],
)
def test_no_iteration_is_later_than_the_reference_says(
    name: str, delay_ms: float, stated_ms: float
) -> None:
    """The reference leaves ties, and which transfers stay when a configuration is divided, open: ours are sooner."""
    if name.startswith("small-"):
        files = suite_instance(name)
        task_graph, of = load_graph(files[0]), load_cluster(files[1])
    else:
        task_graph, of = load_past(name)
    of = of.changed(reconfiguration_ms=delay_ms)
    run = run_phased(FabricRequest(lower(task_graph), of, Settings.of(engine="list")), never)
    assert run.bound_ms <= run.iteration_ms <= stated_ms + 1e-6
    if name == "race":  # one port a server and one transfer a pair: nothing is left open
        assert run.iteration_ms == pytest.approx(stated_ms, abs=1e-6)


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("seed", range(6))
def test_starts_are_as_early_as_the_orders_allow_and_switches_carry_no_more_than_they_may(
    seed: int, duplex: str
) -> None:
    task_graph = random_graph(seed, tasks=40)
    of = cluster(4, ports_per_server=2, switches=1, ports_per_switch=2, duplex=duplex)
    request = FabricRequest(lower(task_graph), of.changed(reconfiguration_ms=0.5), Settings.of())
    by_phases = phased(Profile.of(request), exclusive_devices=True)
    start_ms, node = by_phases.known.start, by_phases.node
    assert start_ms == pytest.approx(by_phases.provisioned_start_ms(), abs=1e-9)
    end_ms = start_ms + by_phases.length_ms
    begin_ms = start_ms - 0.5 * by_phases.known.orders.changed
    for j in node.tolist():
        at = begin_ms[j] + 1e-9
        assert ((begin_ms[node] <= at) & (end_ms[node] > at)).sum() <= 2
