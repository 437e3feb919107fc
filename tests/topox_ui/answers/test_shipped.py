"""Answers of samples that come with the workbench: what is computed is what is shipped, and nothing else is taken for it."""

import gzip
import json

import pytest

from tests.conftest import long_after
from tools.make_answers import first_visit
from topox_core.fabrics.scheduled import schedule
from topox_core.schedule.story import finding
from topox_core.workloads.samples import SAMPLES
from topox_ui.answers import first
from topox_ui.answers.case import listing
from topox_ui.answers.first import answer_record, shipped_answer


def untimed(record):
    """Return an answer as a file holds it, without how long it took."""
    if record is None:
        return None
    kept = json.loads(json.dumps(record)) | {"alternative": untimed(record["alternative"])}
    kept["trace"] = [point[1:] for point in kept["trace"]]
    for key in ("wall_s", "working_s"):
        del kept["result"][key]
    return kept


@pytest.mark.parametrize("name", long_after(3, list(SAMPLES)))
def test_a_shipped_answer_is_the_one_that_is_computed_else_run_tools_make_answers(name):
    case = first_visit(name)
    made = schedule(case.graph, case.cluster, listing(case.settings))
    found = shipped_answer(case)
    assert found is not None, "none is shipped"
    assert untimed(answer_record(found)) == untimed(answer_record(made))
    assert finding(found) == finding(made)


def test_another_choice_another_graph_and_a_broken_schedule_have_no_shipped_answer(
    monkeypatch, tmp_path
):
    case = first_visit("blackboard")
    assert shipped_answer(case) is not None
    assert shipped_answer(case.at_delay(3.0)) is None
    monkeypatch.setattr(first, "FOLDER", tmp_path)
    assert shipped_answer(case) is None
    record = answer_record(schedule(case.graph, case.cluster, listing(case.settings)))
    for task in record["result"]["tasks"]:
        task["start_ms"], task["end_ms"] = 0.0, task["end_ms"] - task["start_ms"]
    file = tmp_path / f"{case.graph.digest[:16]}.json.gz"
    file.write_bytes(gzip.compress(json.dumps(record).encode()))
    assert shipped_answer(case) is None, "its tasks do not wait for one another"
