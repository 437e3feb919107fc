"""Bounds and exact solves on a clock so fine that slots mean nothing."""

from __future__ import annotations

import pytest
from topox_core.fabrics.circuit_bounds import circuit_bound

from topox_core.model.lowering import lower
from topox_core.schedule.fine_clock import continuous_bound, fine_problem
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

SETTINGS = Settings.of(engine="list")


@pytest.mark.parametrize(
    ("name", "delay_ms", "raised_ms"),
    [
        ("patience", 3, 12.0),
        ("race", 0, 62.905889),
        ("race", 3, 63.650183),
        ("race", 10, 74.587013),
        ("moe", 1, 147.386927),
        ("dlrm-16", 10, 91.308754),
    ],
)
def test_work_and_set_ups_of_ancestors_raise_the_bound_on_continuous_time(
    name, delay_ms, raised_ms
):
    graph, cluster = load_sample(name)
    lowered, cluster = lower(graph), cluster.changed(reconfiguration_ms=delay_ms)
    raised = continuous_bound(lowered, cluster, SETTINGS).ms
    assert raised == pytest.approx(raised_ms, abs=1e-6)
    cheap = circuit_bound(lowered, cluster)
    assert raised >= cheap.ms * (1 - 1e-9)
    assert continuous_bound(lowered, cluster, SETTINGS, near=0).ms >= cheap.ms * (1 - 1e-9)


def test_the_bound_grows_with_the_delay():
    graph, cluster = load_sample("race")
    lowered = lower(graph)
    bounds = [
        continuous_bound(lowered, cluster.changed(reconfiguration_ms=delay_ms), SETTINGS).ms
        for delay_ms in (0, 0.001, 0.1, 1, 3, 10, 100)
    ]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]


def test_durations_and_delay_are_rounded_down_for_bounds_and_up_for_plans():
    graph, cluster = load_sample("race")
    lowered, cluster = lower(graph), cluster.changed(reconfiguration_ms=0.0125)
    down = fine_problem(lowered, cluster, SETTINGS)
    up = fine_problem(lowered, cluster, SETTINGS, up=True)
    assert (down.dark_ticks, up.dark_ticks) == (12, 13)
    assert set((up.duration - down.duration).tolist()) == {0, 1}
