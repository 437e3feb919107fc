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
