"""What is remembered of one request answers no other one: two that differ in a single choice, in one process, as in two."""

import pytest

from tests.topox_core.small_graphs import cluster, collective, compute, graph, transfer
from topox_core.check.checker import check
from topox_core.fabrics.comparison.compare import run_with_best_lowering
from topox_core.fabrics.controllers import phases
from topox_core.fabrics.crossover.verdict import verdict
from topox_core.fabrics.fixed import static
from topox_core.fabrics.planning import fixed_beside
from topox_core.fabrics.planning.fixed_beside import fixed_run
from topox_core.fabrics.planning.passed_plans import PlanChoice
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.registry import CHOOSES
from topox_core.fabrics.run import JobRequest
from topox_core.model.lowering_choices import Lowering
from topox_core.runs.run import never
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample


@pytest.mark.parametrize(
    "choice", [{"clock": "slots"}, {"switching": "provisioned"}, {"switching": "fixed"}]
)
def test_plans_of_the_verdict_serve_no_job_on_slots_nor_one_whose_switching_is_chosen(choice):
    """They change circuits as planned, on continuous time: race at 0.2 ms would take 71 ms in place of 77, 86 and 86."""
    graph, of = load_sample("race")
    job = JobRequest(
        graph, of.changed(reconfiguration_ms=0.2), Settings.of(engine="list", **choice)
    )
    own, plans = schedule(graph, job.cluster, job.settings), verdict(graph, of, job.settings).plans
    assert min(float(one.end_ms.max()) for one in plans) < own.makespan_ms
    shown = PlanChoice(job, own).among(plans)
    assert shown is own
    assert check(graph, job.cluster, to_record(shown)).ok


def test_a_job_for_the_printed_model_is_planned_on_its_slots_by_rules_too_and_shares_no_answer():
    """On continuous time race takes 71 ms at 0.1 ms, on slots 77: the printed model's bound says nothing of the former."""
    graph, of = load_sample("race")
    of = of.changed(reconfiguration_ms=0.1)
    continuous, printed = (
        JobRequest(graph, of, Settings.of(engine=engine)) for engine in ("cpsat", "printed")
    )
    assert printed.key != continuous.key
    assert printed.key_of_plans != continuous.key_of_plans
    listed = schedule(graph, of, printed.by_rules.settings)
    assert listed.settings.on_slots
    on_slots = JobRequest(graph, of, Settings.of(engine="list", clock="slots"))
    assert printed.key == on_slots.key
    assert listed.makespan_ms == schedule(graph, of, on_slots.settings).makespan_ms


def forget() -> None:
    for kept in (fixed_beside._kept, static._kept, phases._kept):
        kept.clear()


def on_circuits_by_the_task_graph(*jobs: JobRequest) -> tuple[float, Lowering]:
    """Return how long the last of some jobs takes on circuits searched for it, and how it is lowered there."""
    forget()
    run = [fixed_run("static_graph", job, never) for job in jobs][-1]
    return run.iteration_ms, run.execution.graph.lowering


def assert_alone_as_after_each_other(one: JobRequest, other: JobRequest, *times_ms: float) -> None:
    alone = on_circuits_by_the_task_graph(one), on_circuits_by_the_task_graph(other)
    assert tuple(ms for ms, _ in alone) == pytest.approx(times_ms)
    assert (
        on_circuits_by_the_task_graph(other, one),
        on_circuits_by_the_task_graph(one, other),
    ) == alone


def test_circuits_that_stay_do_not_depend_on_who_asked_on_another_clock():
    """On continuous time a plan that changes no circuit takes 8 ms; on slots none is looked for, and the search finds 13."""
    jobs = graph(
        transfer("t0", 1, 0, 3),
        transfer("t1", 0, 2, 6),
        compute("f2", 2, 5),
        compute("f3", 2, 3),
        compute("f4", 0, 5, "f3"),
    )
    continuous, on_slots = (
        JobRequest(jobs, cluster(4), Settings.of(free=FREE, clock=clock))
        for clock in ("continuous", "slots")
    )
    assert_alone_as_after_each_other(continuous, on_slots, 8.0, 13.0)


def test_circuits_by_the_task_graph_do_not_depend_on_what_another_request_left_free():
    """An exchange and a broadcast on two ports: with algorithms and rings free 4 ms, as they are lowered 5."""
    jobs = graph(
        collective("all_to_all", 4, 5e7, "exchange"), collective("broadcast", 4, 5e7, "broadcast")
    )
    of = cluster(4, ports_per_server=2, switches=2)
    free, as_it_is = (JobRequest(jobs, of, Settings.of(free=free)) for free in (FREE, ()))
    assert_alone_as_after_each_other(free, as_it_is, 4.0, 5.0)


@pytest.mark.parametrize("fabric", CHOOSES)
def test_no_run_bears_the_name_of_another_request_s_cluster(fabric):
    jobs, of = load_sample("race")
    for name in ("mine", "of somebody else"):
        job = JobRequest(jobs, of.changed(name=name), Settings.of(engine="list"))
        assert run_with_best_lowering(fabric, job).execution.cluster.name == name
