"""Plans passed from longer delays to shorter ones: valid, checked, and never longer than where they came from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.past import load_past
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.check.checker import check
from topox_core.fabrics.compare import run_freely
from topox_core.fabrics.passed_plans import PassedPlan, with_passed_plans
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import FREE, Settings

DELAYS_MS = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0)
SLACK = 1 + 1e-9


def column(
    task_graph: TaskGraph, of: Cluster, settings: Settings
) -> dict[float, tuple[FabricRun, FabricRun]]:
    """Return what is planned alone and with the plans of longer delays, from the longest delay on."""
    plans: list[PassedPlan] = []
    runs = {}
    for delay_ms in DELAYS_MS:
        job = JobRequest(task_graph, of.changed(reconfiguration_ms=delay_ms), settings)
        alone = run_freely("scheduled", job)
        passed = with_passed_plans(job, alone, plans)
        runs[delay_ms] = alone, passed
        if (plan := PassedPlan.of(passed)) is not None:
            plans.append(plan)
    return runs


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
    """The planned time never grows as the delay shrinks, and each schedule passes the checker."""
    before_ms = float("inf")
    runs = column(task_graph, of, settings)
    assert not passes or any(passed is not alone for alone, passed in runs.values())
    for delay_ms, (alone, passed) in runs.items():
        assert passed.iteration_ms <= min(alone.iteration_ms, before_ms) * SLACK
        before_ms = passed.iteration_ms
        assert passed.bound_ms <= passed.iteration_ms * SLACK
        if passed is not alone:
            assert passed.iteration_ms < alone.iteration_ms
            slow = of.changed(reconfiguration_ms=delay_ms)
            report = check(task_graph, slow, to_record(passed.result))
            assert report.ok, report.lines()


@pytest.mark.parametrize("name", ["race", "patience"])
def test_the_planned_time_never_grows_as_the_delay_shrinks(name: str) -> None:
    assert_monotone(*load_past(name), Settings.of(engine="list"))


@pytest.mark.long
@pytest.mark.parametrize("name", ["dlrm-16", "moe", "fsdp", "llama3-8b", "race"])
def test_the_planned_time_never_grows_on_any_sample_that_chooses(name: str) -> None:
    assert_monotone(*load_past(name), Settings.of(engine="list", free=FREE))


# Seeds on which planning alone is not monotone, with room on the switches and without (eq. 7).
@pytest.mark.parametrize(
    ("seed", "clock"),
    [
        *((seed, "continuous") for seed in (18, 26, 47, 60, 61, 62)),
        *((seed, "slots") for seed in (37, 57, 71)),
    ],
)
def test_the_planned_time_never_grows_on_random_graphs(seed: int, clock: str) -> None:
    assert_monotone(*random_case(seed), Settings.of(engine="list", clock=clock), passes=True)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(192))
def test_the_planned_time_never_grows_on_many_random_graphs(seed: int) -> None:
    assert_monotone(*random_case(seed), Settings.of(engine="list"))


def test_a_plan_for_a_shorter_delay_is_no_candidate() -> None:
    task_graph, of = load_past("race")
    job = JobRequest(task_graph, of.changed(reconfiguration_ms=1.0), Settings.of(engine="list"))
    quick = replace(job, cluster=of.changed(reconfiguration_ms=0.0))
    plan = PassedPlan.of(run_freely("scheduled", quick))
    assert plan is not None
    alone = run_freely("scheduled", job)
    assert with_passed_plans(job, alone, [plan]) is alone


def test_a_plan_comes_back_with_its_own_lowering() -> None:
    """Planned on two rings for 1 ms, it is carried out on two rings where one was chosen for 0 ms."""
    task_graph, of = load_past("fsdp")
    slow = JobRequest(task_graph, of.changed(reconfiguration_ms=1.0), Settings.of(engine="list"))
    two = replace(slow.settings, lowering=replace(slow.settings.lowering, rings=2))
    plan = PassedPlan.of(run_freely("scheduled", replace(slow, settings=two)))
    assert plan is not None
    quick = replace(slow, cluster=of, settings=replace(slow.settings, switching="planned"))
    alone = run_freely("scheduled", quick)
    passed = with_passed_plans(quick, alone, [plan])
    assert passed.iteration_ms < alone.iteration_ms
    assert passed.execution.graph.lowering.rings == 2
    assert check(task_graph, of, to_record(passed.result)).ok
