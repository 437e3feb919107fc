"""What is remembered of one request answers no other one: two that differ in a single choice, in one process, as in two."""

import pytest

from topox_core.check.checker import check
from topox_core.fabrics.crossover.verdict import verdict
from topox_core.fabrics.planning.passed_plans import PlanChoice
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.run import JobRequest
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
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
