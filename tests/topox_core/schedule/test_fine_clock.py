"""Bounds and exact solves on a clock so fine that slots mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.past import load_past
from tests.topox_core.schedule.circuit_rules import broken_rules
from topox_core.fabrics.scheduled import schedule
from topox_core.model.durations import durations_ms
from topox_core.model.lowering import lower
from topox_core.runs.stopping import never
from topox_core.schedule.bounds.circuit_bound import circuit_bound
from topox_core.schedule.continuous import ContinuousPlans, plan_on_continuous_time
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.fine_clock import continuous_bound, exact_ticks_per_ms, fine_problem
from topox_core.schedule.fine_clock_solve import solve_on_fine_clock
from topox_core.schedule.planner import prepare
from topox_core.schedule.settings import Settings

SETTINGS = Settings.of(engine="list")


@pytest.mark.parametrize(
    ("name", "delay_ms", "raised_ms"),
    [
        ("patience", 3, 12.0),
        ("race", 0, 62.905889),
        ("race", 3, 63.650183),
        ("race", 10, 74.587013),
        ("moe", 1, 148.930193),
        ("dlrm-16", 10, 93.913611),
    ],
)
def test_work_and_set_ups_of_ancestors_raise_the_bound_on_continuous_time(
    name, delay_ms, raised_ms
):
    graph, cluster = load_past(name)
    lowered, cluster = lower(graph), cluster.changed(reconfiguration_ms=delay_ms)
    raised = continuous_bound(lowered, cluster, SETTINGS).ms
    assert raised == pytest.approx(raised_ms, abs=1e-6)
    cheap = circuit_bound(lowered, cluster).ms
    assert raised >= continuous_bound(lowered, cluster, SETTINGS, near=0).ms >= cheap


def test_the_bound_grows_with_the_delay():
    graph, cluster = load_past("race")
    lowered = lower(graph)
    bounds = [
        continuous_bound(lowered, cluster.changed(reconfiguration_ms=delay_ms), SETTINGS).ms
        for delay_ms in (0, 0.001, 0.1, 1, 3, 10, 100)
    ]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]


def test_the_fine_clock_rounds_down_and_all_it_rounds_off_is_less_than_a_proof_needs():
    graph, cluster = load_past("race")
    lowered, cluster = lower(graph), cluster.changed(reconfiguration_ms=1 / 3)
    length_ms = durations_ms(lowered, cluster)
    ticks_per_ms = exact_ticks_per_ms(length_ms, 70.0)
    problem = fine_problem(lowered, cluster, SETTINGS, ticks_per_ms)
    off_ms = length_ms - problem.duration / ticks_per_ms
    assert (off_ms >= 0).all()
    assert off_ms.sum() < 70.0 * 1e-9
    assert problem.dark_ticks == np.floor(ticks_per_ms / 3)


def test_a_sample_is_proved_where_circuits_may_start_at_any_time():
    graph, cluster = load_past("race")
    prepared = prepare(graph, cluster.changed(reconfiguration_ms=1.0), SETTINGS)
    plans = ContinuousPlans.of(prepared)
    plan_on_continuous_time(plans, None, never)
    assert plans.best is not None
    solve = solve_on_fine_clock(prepared, plans.best, Limits(60.0, threads=1))
    # Ticks of a microsecond leave it between 62.962 and 62.977 ms.
    assert solve.best.makespan_ms == pytest.approx(62.974183, abs=1e-6)
    assert solve.best.makespan_ms * (1 - 1e-9) <= solve.bound.ms <= solve.best.makespan_ms
    assert (solve.stopped_by, solve.message) == ("proof", "")
    assert broken_rules(solve.best.execution) == []


@pytest.mark.long
def test_a_search_on_continuous_time_ends_with_a_proof():
    graph, cluster = load_past("patience")
    settings = Settings.of(engine="cpsat", threads=1, switching="planned", time_limit_s=60.0)
    result = schedule(graph, cluster.changed(reconfiguration_ms=3.0), settings)
    assert (result.status, result.stopped_by, result.makespan_ms) == ("optimal", "proof", 17.0)
    assert result.bound_ms == pytest.approx(17.0, rel=1e-9)
    assert result.bound_by == "constraint search with set-ups (CP-SAT)"
