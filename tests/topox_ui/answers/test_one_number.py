"""A sample has one iteration time on circuits, from the first page on and whichever page is the first."""

import re
from dataclasses import replace
from unittest.mock import Mock

import pytest

from tests.topox_ui.conftest import SCHEDULE, forget_answers, metric, table, turn_to, words
from tools.make_answers import first_visit
from topox_core.fabrics.planning.passed_plans import PassedPlan
from topox_core.fabrics.planning.scheduled import schedule
from topox_ui.answers import contest
from topox_ui.answers.solving import known_plans
from topox_ui.home.view import FINDINGS
from topox_ui.runs.owner import RunOwner

PLANNED, COMPARE, COST, STUDIES = "Planned circuits", "Compare", "Cost", "Studies"
ORDERS = (
    (SCHEDULE, COMPARE, COST, "Home", STUDIES),
    (STUDIES, "Home", COST, COMPARE, SCHEDULE),
)


def shown(at, page: str, name: str) -> str:
    """Return the time of planned circuits that a page shows."""
    if page == SCHEDULE:
        return metric(at, "Iteration time")
    if page == "Home":
        return re.findall("<b>(.*?)</b>", FINDINGS[name])[0]
    if page == STUDIES:
        return re.findall("now: ([0-9.]+ ms)", words(at))[0]
    column = {COMPARE: "Iteration time", COST: "Iteration"}[page]
    rows = table(at, column).set_index("Fabric")
    return str(rows.loc[PLANNED, column]).replace("\u00a0", " ")


@pytest.mark.parametrize(("name", "time"), [("moe", "106 ms"), ("race", "70.4 ms")])
def test_all_pages_show_one_time_in_whichever_order_they_are_opened(visit, name, time):
    for order in ORDERS:
        at = visit(order[0], sample=name)
        assert {page: shown(turn_to(at, page), page, name) for page in order} == dict.fromkeys(
            order, time
        )
        forget_answers()


def test_a_page_is_drawn_again_once_a_shorter_plan_is_known_than_the_one_in_view(monkeypatch):
    drawn = []
    monkeypatch.setattr(contest.st, "rerun", lambda: drawn.append(True))
    look = contest.redraw_when_shorter.__wrapped__
    job = first_visit("race")
    settings = job.by_rules.settings
    shown = schedule(job.task_graph, job.cluster, settings)
    longer_ms = 1.1 * shown.makespan_ms
    look(job, Mock(result=shown, iteration_ms=shown.makespan_ms))
    assert not drawn
    harder = schedule(job.task_graph, job.at_delay(0.001).cluster, settings)
    known_plans().add(job.key_of_plans, PassedPlan.of(harder))
    look(job, Mock(result=replace(shown, makespan_ms=longer_ms), iteration_ms=longer_ms))
    assert drawn
    forget_answers()


@pytest.mark.parametrize("page", [COMPARE, COST])
def test_pages_look_for_shorter_plans_only_while_something_is_computed_beside_them(
    visit, monkeypatch, page
):
    looked = []
    module = {COMPARE: "compare", COST: "cost"}[page]
    monkeypatch.setattr(
        f"topox_ui.{module}.view.redraw_when_shorter", lambda *given: looked.append(given)
    )
    visit(page, sample="blackboard")
    assert not looked
    monkeypatch.setattr(RunOwner, "busy", True)
    visit(page, sample="blackboard")
    assert len(looked) == 1
