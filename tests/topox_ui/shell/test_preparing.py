"""While kernels are compiled: samples and small graphs are there, the rest says what it waits for, and nobody compiles twice."""

import pytest

from tests.topox_ui.conftest import SCHEDULE, charts, metric, words
from topox_core.model.transfer_graph import TransferGraph
from topox_ui.answers import solving
from topox_ui.shell import preparing
from topox_ui.shell.pages import PAGES
from topox_ui.state.loading import FIRST_SAMPLE

NEEDS = [page for page in PAGES if page.compiled]


class Coming:
    """A compiler that has begun."""

    ready, words = False, "31 of 244, about 40 s"


@pytest.fixture(autouse=True)
def coming(monkeypatch, visit):
    monkeypatch.setattr(preparing, "preparation", Coming)
    monkeypatch.setattr("topox_ui.shell.page.warmed", lambda: None)


def test_a_sample_is_drawn_from_its_shipped_answer_and_the_page_says_what_is_coming(
    visit, monkeypatch
):
    monkeypatch.setattr(solving, "schedule", None)  # whoever calls it fails
    at = visit(SCHEDULE, sample=FIRST_SAMPLE)
    assert charts(at)
    assert "Preparing fast kernels, once on this machine: 31 of 244, about 40 s" in words(at)


def test_a_sample_with_a_shipped_plan_has_its_time_at_once_and_no_kernel_is_waited_for(
    visit, monkeypatch
):
    for needs_kernels in ("replayed_on_circuits", "circuit_bound", "open_bound"):
        monkeypatch.setattr(f"topox_core.fabrics.planning.passed_plans.{needs_kernels}", None)
    for kernels in ("heads", "tails"):  # of a graph
        monkeypatch.setattr(TransferGraph, kernels, None)
    assert metric(visit(SCHEDULE, sample="moe"), "Iteration time") == "106 ms"


def test_a_small_graph_of_your_own_is_scheduled_without_the_compiler(visit):
    at = visit(SCHEDULE, sample="blackboard", reconfiguration_ms="3")
    assert charts(at) and not at.error


@pytest.mark.parametrize("page", NEEDS, ids=[page.title for page in NEEDS])
def test_what_needs_kernels_says_so_and_waits(visit, page):
    at = visit(page.title, sample="blackboard")
    assert "kernels are being compiled" in words(at) and not charts(at)


def test_the_tour_can_be_read_meanwhile(visit):
    at = visit("Learn")
    assert "then the page goes on by itself" in words(at) and "Six screens" in words(at)
    assert not charts(at) and not at.error


def test_a_large_graph_waits_for_the_compiler_and_says_so(visit):
    at = visit(SCHEDULE, sample="moe", reconfiguration_ms="3")
    said = words(at)
    assert "This schedule waits" in said and "then the page goes on by itself" in said
    assert not charts(at)
