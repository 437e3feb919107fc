"""What every page has: the menu by groups, the job in view, the way to change it."""

from tests.topox_ui.conftest import SCHEDULE, words
from topox_core.fabrics.scheduled import schedule
from topox_core.model.execution import Execution
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample
from topox_ui.shell.pages import groups
from topox_ui.state.loading import FIRST_SAMPLE


def test_the_sample_that_opens_by_itself_is_one_whose_circuits_change():
    run = schedule(*load_sample(FIRST_SAMPLE), Settings.of(engine="list", free=FREE)).execution
    assert isinstance(run, Execution) and run.layout is None
    assert run.circuits.changed.any()


def test_the_menu_says_which_job_is_loaded_and_opens_the_group_of_the_page_or_on_home_all(visit):
    headings = [name for name, pages in groups().items() if name and len(pages) > 1]
    for at, open_ones, job in (
        (visit(), headings, "No job loaded"),
        (
            visit(SCHEDULE, sample="blackboard"),
            ["Your job"],
            "Blackboard6 tasks · 3 servers · 1 switch",
        ),
    ):
        folds = {one.label: one.proto.expanded for one in at.sidebar.expander}
        assert [name for name in headings if folds[name]] == open_ones
        assert job in words(at)
