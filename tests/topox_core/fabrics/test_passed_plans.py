"""Plans passed from longer delays to shorter ones: valid, checked, and never longer than where they came from."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import long_after
from tests.past import load_past
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.check.checker import check
from topox_core.fabrics.compare import run_freely
from topox_core.fabrics.passed_plans import PassedPlan, with_passed_plans
from topox_core.fabrics.run import JobRequest
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import FREE, Settings

DELAYS_MS = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0)
SLACK = 1 + 1e-9


def random_case(seed: int) -> tuple[TaskGraph, Cluster]:
    """Return a random graph on one of 16 kinds of cluster."""
    ports, switches = ((1, 1), (2, 1), (2, 2), (4, 2))[seed % 4]
    return random_graph(seed, tasks=30), cluster(
        4,
        ports_per_server=ports,
        switches=switches,
        ports_per_switch=(8, 2)[seed // 4 % 2],
        duplex=("full", "half")[seed // 8 % 2],
    )


def assert_monotone(
    task_graph: TaskGraph, of: Cluster, settings: Settings, passes: bool = False
) -> None:
    """Planned with the plans of longer delays, no time grows as the delay shrinks, and the checker accepts each."""
    plans: list[PassedPlan] = []
    before_ms, better = float("inf"), 0
    for delay_ms in DELAYS_MS:
        job = JobRequest(task_graph, of.changed(reconfiguration_ms=delay_ms), settings)
        alone = run_freely("scheduled", job)
        passed = with_passed_plans(job, alone, plans)
        assert passed.iteration_ms <= min(alone.iteration_ms, before_ms) * SLACK
        before_ms = passed.iteration_ms
        fixed_ms = passed.result.bound_fixed_ms or math.inf
        assert passed.bound_ms <= min(passed.iteration_ms, fixed_ms) * SLACK
        if passed is not alone:
            better += 1
            assert passed.iteration_ms < alone.iteration_ms
            assert check(task_graph, job.cluster, to_record(passed.result)).lines() == ()
        if (plan := PassedPlan.of(passed)) is not None:
            plans.append(plan)
    assert better or not passes


@pytest.mark.parametrize(
    ("name", "free"),
    long_after(
        2,
        [
            ("race", ()),
            ("patience", ()),
            *((one, FREE) for one in ("race", "moe", "fsdp", "dlrm-16")),
        ],
    ),
)
def test_the_planned_time_never_grows_as_the_delay_shrinks(name: str, free: Any) -> None:
    assert_monotone(*load_past(name), Settings.of(engine="list", free=free))


@pytest.mark.parametrize(
    ("clock", "seed"),
    long_after(
        4,
        [
            *(("continuous", 18), ("continuous", 61), ("continuous", 62), ("slots", 37)),
            *(("continuous", 26), ("continuous", 47), ("continuous", 60)),
            *(("slots", 57), ("slots", 71)),
        ],
    ),
)
def test_plans_are_passed_on_where_planning_alone_is_not_monotone(clock: str, seed: int) -> None:
    assert_monotone(*random_case(seed), Settings.of(engine="list", clock=clock), passes=True)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(192))
def test_the_planned_time_never_grows_on_many_random_graphs(seed: int) -> None:
    assert_monotone(*random_case(seed), Settings.of(engine="list"))


def test_a_plan_comes_back_with_its_own_lowering_but_never_for_a_longer_delay() -> None:
    """Planned on two rings for 1 ms, it is carried out on two rings where one was chosen for 0 ms."""
    task_graph, of = load_past("fsdp")
    two = Settings.of(engine="list", lowering=Lowering(rings=2))
    slow = JobRequest(task_graph, of.changed(reconfiguration_ms=1.0), two)
    plan = PassedPlan.of(run_freely("scheduled", slow))
    quick = JobRequest(task_graph, of, Settings.of(engine="list", switching="planned"))
    alone = run_freely("scheduled", quick)
    passed = with_passed_plans(quick, alone, [plan])
    assert passed.iteration_ms < alone.iteration_ms
    assert passed.execution.graph.lowering.rings == 2
    assert check(task_graph, of, to_record(passed.result)).ok
    slower = replace(quick, cluster=of.changed(reconfiguration_ms=2.0))
    planned = run_freely("scheduled", slower)
    assert with_passed_plans(slower, planned, [plan]) is planned
