"""A link to a large workload: bounded before work begins, generated beside the page, cancelled, ended with the session."""

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import SCHEDULE, press, the_error, unbroken, words
from topox_core.io.task_graph_rules import MAX_TASKS
from topox_core.runs.executor import WorkerDied
from topox_core.workloads.catalogue import generate
from topox_ui.runs.owner import RunOwner, worker_run
from topox_ui.runs.slots import SolverPlaces, solver_places
from topox_ui.state import loading

WIDE = {"set.data": "512", "set.expert": "512", "set.experts": "512"}
LARGE = {"workload": "moe", "set.data": "4", "set.expert": "4", "switches": "2"}


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(loading, "AT_ONCE", 10)


def ended() -> bool:
    return solver_places().free == solver_places().places


def test_a_link_beyond_the_limit_is_refused_before_anything_begins(visit, monkeypatch):
    monkeypatch.setattr("topox_ui.runs.owner.call_in_worker", None)
    at = visit(workload="moe", **WIDE, **{"set.layers": "200"})
    assert "would have more than 200,000 tasks" in the_error(at) and ended()


@pytest.mark.long
def test_a_large_graph_is_generated_beside_the_page_and_then_the_link_holds(visit):
    at = visit(SCHEDULE, **LARGE)
    assert not at.warning
    assert "generated beside this page" in words(at) and "loaded" not in at.session_state
    wait_until(ended)
    unbroken(at.run())
    assert not at.warning and not at.error and at.metric
    assert at.session_state["loaded"].cluster.servers == 4
    assert at.session_state["page_states"]["Scenario"].switches == 2


def never_done(*_args, stop, on_step):
    wait_until(stop)
    raise WorkerDied("it was stopped")


def test_cancel_ends_the_run_and_says_so(visit, monkeypatch):
    monkeypatch.setattr("topox_ui.runs.owner.call_in_worker", never_done)
    at = visit(SCHEDULE, **LARGE)
    assert not ended()
    told = [*press(at, "cancel_generate").info]
    wait_until(ended)
    told += unbroken(at.run()).info
    assert "awaited" not in at.session_state
    assert at.session_state["loaded"].by_itself  # the page opened a sample in place of the graph
    assert "was not generated" in told[0].value


def test_the_end_of_the_session_ends_the_generator():
    places = SolverPlaces(1)
    owner = RunOwner(places)
    parameters = {key.removeprefix("set."): value for key, value in WIDE.items()} | {"layers": "40"}
    begin = worker_run("was not generated", "", generate, "moe", parameters, MAX_TASKS)
    owner.start(loading.GENERATE, "a", begin)
    assert places.free == 0
    owner.close()
    wait_until(lambda: places.free == 1)
    assert not owner.results(loading.GENERATE)
