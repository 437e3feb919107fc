"""A proved result travels with its link: somebody else sees the same number at once, and nothing that is wrong."""

import json
from dataclasses import replace

import pytest

from tests.topox_ui.conftest import SCHEDULE, address, metric, words
from topox_core.fabrics.scheduled import schedule
from topox_core.schedule.result import Result
from topox_core.workloads.samples import load_sample
from topox_ui.answers.case import Case
from topox_ui.answers.linked import UPLOAD, linked_bytes
from topox_ui.state.scenario import Scenario

LINK = {"sample": "patience", "clock": "slots"}


@pytest.fixture(scope="module")
def proved() -> tuple[Case, Result]:
    """The sample patience on slots, which an exact engine schedules in 14 ms, and list scheduling does not."""
    chosen = Scenario.of_query(LINK)[0]
    graph, cluster = load_sample("patience")
    case = Case(graph, chosen.cluster(cluster), replace(chosen.settings(), time_limit_s=20.0))
    return case, schedule(case.graph, case.cluster, case.settings)


def opened(at, data: bytes):
    at.file_uploader(key=UPLOAD).upload("patience.link.json", data).run()
    assert not at.exception
    return at


@pytest.mark.long
def test_a_proved_result_shows_the_same_number_without_a_solve(visit, proved):
    at = opened(visit(way="files"), linked_bytes(*proved, LINK))
    at.switch_page(SCHEDULE).run()
    assert not at.exception and not at.error
    assert address(at).items() >= LINK.items()
    assert metric(at, "Iteration time") == "14 ms"
    assert "Proved optimal" in words(at)
    assert "this page has checked the schedule" in words(at)
    assert [note.value.replace("\u00a0", " ") for note in at.info] == [
        "patience.link.json is open: a schedule of 14 ms, found on another machine."
    ]


WRONG = (
    ({"graph_digest": "another"}, "belongs to another task graph"),
    ({"bound_ms": 99.0, "makespan_ms": 99.0}, "breaks the model: makespan, bound and gap"),
    ({"link": 5}, "field link: must be an object"),
    ({"status": "infeasible", "makespan_ms": None}, "holds no schedule"),
)


def test_what_is_wrong_with_a_file_is_one_line_and_changes_nothing(visit, proved):
    record, at = json.loads(linked_bytes(*proved, LINK)), visit(SCHEDULE, **LINK)
    for change, says in WRONG:
        opened(at, json.dumps(record | change).encode())
        assert len(at.error) == 1 and says in at.error[0].value
        assert "Feasible" in words(at)
