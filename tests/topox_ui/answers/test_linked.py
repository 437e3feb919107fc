"""A proved result travels with its link: somebody else sees the same number at once, and nothing that is wrong."""

import json
from dataclasses import replace

import pytest

from tests.topox_ui.conftest import (
    SCHEDULE,
    address,
    bring,
    metric,
    the_error,
    turn_to,
    words,
)
from topox_core.errors import InputError
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.run import JobRequest
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.schedule.results.result_file import to_record
from topox_core.workloads.samples import load_sample
from topox_ui.answers import keeping
from topox_ui.shell.downloads import result_json
from topox_ui.state.scenario import Scenario

LINK = {"sample": "patience", "clock": "slots"}
WRONG = (
    ({"graph_digest": "another"}, "belongs to another task graph"),
    ({"bound_ms": 99.0, "makespan_ms": 99.0}, "breaks the model: makespan, bound and gap"),
    ({"link": 5}, "field link: must be an object"),
    ({"status": "infeasible", "makespan_ms": None}, "holds no schedule"),
)


@pytest.fixture(scope="module")
def proved():
    """The sample patience on slots, which an exact engine schedules in 14 ms, and list scheduling does not."""
    chosen = Scenario.of_query(LINK)[0]
    graph, cluster = load_sample("patience")
    job = JobRequest(graph, chosen.cluster(cluster), replace(chosen.settings(), time_limit_s=20.0))
    return job, schedule(job.task_graph, job.cluster, job.settings)


def test_a_file_shows_its_number_without_a_solve_and_one_that_is_wrong_costs_a_line(visit, proved):
    good = result_json(lambda: keeping.linked_record(*proved, LINK), {})()
    at = visit(SCHEDULE, **LINK)
    for change, says in WRONG:
        bring(at, keeping.UPLOAD, "wrong.link.json", json.dumps(json.loads(good) | change).encode())
        assert says in the_error(at) and "Feasible" in words(at)
    # On Home it brings its choices as well, and whoever brings it has said that it may open its job.
    at = bring(visit(way="files"), "up_graph", "mine.json", dump_graph_json(proved[0].task_graph))
    bring(at, keeping.UPLOAD, "patience.link.json", good)
    assert "patience.link.json is read." in at.success[-1].value
    turn_to(at, SCHEDULE)
    assert not at.error and address(at).items() >= LINK.items()
    assert metric(at, "Iteration time") == "14 ms" and "Proved optimal" in words(at)
    assert "This page has checked the schedule" in words(at)
    assert [note.value.replace("\u00a0", " ") for note in at.info] == [
        "patience.link.json is open: a schedule of 14 ms, found on another machine."
    ]


def test_a_bound_above_a_schedule_that_this_page_has_is_not_believed(monkeypatch, proved):
    job, _ = proved
    theirs = schedule(job.task_graph, job.cluster, job.by_rules.settings)
    classes = tuple(replace(one, bound_ms=13.5) for one in theirs.classes)
    record = to_record(replace(theirs, bound_ms=13.5, classes=classes))
    file = keeping.Linked("theirs.link.json", job.task_graph.digest, record)
    monkeypatch.setattr(
        keeping, "first_answer", lambda _job, _over: replace(theirs, makespan_ms=13.0)
    )
    with pytest.raises(InputError, match=r"shorter than 13\.5 ms, but this page has one of 13 ms"):
        keeping._checked(job, file)
