"""What every page has: a job in view, the menu by groups, the way to change the job."""

import pytest

from tests.topox_ui.conftest import SCHEDULE, address, words
from topox_core.fabrics.scheduled import schedule
from topox_core.model.execution import Execution
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample
from topox_ui.shell.pages import PAGES, groups
from topox_ui.state.loading import FIRST_SAMPLE

OF_A_JOB = [page for page in PAGES if page.needs_graph]


@pytest.mark.parametrize("page", OF_A_JOB, ids=[page.title for page in OF_A_JOB])
def test_a_page_without_a_job_opens_a_sample_and_says_so(visit, monkeypatch, page):
    monkeypatch.setattr("topox_ui.state.loading.FIRST_SAMPLE", "blackboard")
    at = visit(page.path)
    assert not at.exception and not at.error
    assert "This is a sample: no job was chosen." in words(at)
    assert address(at) == {"sample": "blackboard"}
    at = visit(page.path, sample="blackboard")
    assert "This is a sample" not in words(at)


def test_the_sample_that_opens_by_itself_is_one_whose_circuits_change():
    run = schedule(*load_sample(FIRST_SAMPLE), Settings.of(engine="list", free=FREE)).execution
    assert isinstance(run, Execution) and run.layout is None
    assert run.circuits.changed.any()


def test_only_the_group_of_the_page_is_open_and_all_are_on_home(visit):
    headings = [name for name, pages in groups().items() if name and len(pages) > 1]
    for path, open_ones in ((SCHEDULE, ["Your job"]), ("app.py", headings)):
        at = visit(path, sample="blackboard")
        folds = {one.label: one.proto.expanded for one in at.sidebar.expander}
        assert [name for name in headings if folds[name]] == open_ones


def test_the_menu_says_which_job_and_cluster_are_loaded(visit):
    assert "No job loaded" in words(visit())
    at = visit("pages/8_Cost.py", sample="blackboard")
    assert "Blackboard6 tasks · 3 servers · 1 switch" in words(at)
