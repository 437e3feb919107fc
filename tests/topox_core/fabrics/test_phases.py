"""Transfers phase by phase: few matchings, and shorter iterations where changes take long."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.past import load_past
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.check.checker import check
from topox_core.fabrics.circuit_requests import Profile
from topox_core.fabrics.phases import matching_of_pairs, phased
from topox_core.fabrics.run import FabricRequest
from topox_core.fabrics.scheduled import schedule
from topox_core.model.lowering import lower
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
    assert by_phases is not None
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
