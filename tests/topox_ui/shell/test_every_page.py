"""The walk over all pages: each opens on a sample, names what it ignored in a link, and tells every chart in words and a table."""

import re
from html import unescape

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import SCHEDULE, address, charts, unbroken, ways_on, words
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.model.execution import Execution
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample
from topox_ui.shell.charts import PICTURES
from topox_ui.shell.pages import PAGES, groups, page_of
from topox_ui.state.loading import FIRST_SAMPLE

NAMES = [page.title for page in PAGES]
OF_A_JOB = [page for page in PAGES if page.needs_graph]
# What a page shows only when it has been given something.
GIVEN = {"Your trace": {"recorded.example": "yes"}}
# What these show stands in a table and in files beside them.
TABLE_BESIDE = {"overview", "tour_switch"}


class Asked(dict):
    """The states of a session, and which of them were asked for."""

    def __init__(self):
        super().__init__()
        self.asked = set()

    def get(self, name, default=None):
        self.asked.add(name)
        return super().get(name, default)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_page_opens_on_a_sample_and_its_charts_have_words_and_tables(
    visit, monkeypatch, page
):
    known = Asked()
    monkeypatch.setattr("topox_ui.state.session._STATES.get_or", lambda _make: known)
    link = {"sample": "blackboard", **GIVEN.get(page.title, {})}
    at = visit(page.title, **link, **{f"{page.prefix}nonsense": "1"})
    assert [one.value for one in at.warning] == [f"Ignored in the link: {page.prefix}nonsense=1"]
    # What is drawn of work in the background gives way to what came of it.
    wait_until(lambda: not any(one.label == "Cancel" for one in at.button), at.run)
    (first,) = [
        one.proto.body for one in at.get("html") if '<h1 class="headline">' in one.proto.body
    ]
    finding = " ".join(unescape(re.sub("<[^>]+>", "", first.partition("<h1")[2][18:])).split())
    assert [one.value.startswith(f"“{finding}” (") for one in at.code].count(True) == 1, "Cite"
    assert not at.error and address(at) == link
    assert "This is a sample" not in words(at)
    assert not page.then or ways_on(at)[-1] == page_of(page.then).question
    assert known.asked <= {*page.carried}, "counts here and is in no link"
    drawn, before = charts(at), len(at.dataframe)
    assert all(len(one.alt) > 30 for one in drawn.values())
    tables = drawn.keys() - TABLE_BESIDE
    for key in tables:
        at.session_state[f"table_{key}"] = True
    assert len(unbroken(at.run()).dataframe) == before + len(tables)
    # As files each of them: pictures by the browser, numbers and figure from here.
    html = "".join(one.proto.body for one in at.get("html"))
    assert all(html.count(f'data-picture="{key}"') == len(PICTURES) for key in tables)
    files = [one.proto.label for one in at.get("download_button")]
    assert [files.count(form) for form in ("CSV", "JSON")] == [len(tables)] * 2


@pytest.mark.parametrize("page", OF_A_JOB, ids=[page.title for page in OF_A_JOB])
def test_a_page_without_a_job_opens_a_sample_and_says_so(visit, monkeypatch, page):
    monkeypatch.setattr("topox_ui.state.loading.FIRST_SAMPLE", "blackboard")
    at = visit(page.title)
    assert not at.error and "This is a sample: no job was chosen." in words(at)
    assert address(at) == {}, "a reload begins here before it finds own files again"


def test_the_sample_that_opens_by_itself_is_one_whose_circuits_change():
    run = schedule(*load_sample(FIRST_SAMPLE), Settings.of(engine="list", free=FREE)).execution
    assert isinstance(run, Execution) and run.layout is None
    assert run.circuits.changed.any()


def test_the_menu_says_which_job_is_loaded_and_opens_every_group(visit):
    headings = [name for name, pages in groups().items() if name and len(pages) > 1]
    for at, job in (
        (visit(), "No job loaded"),
        (visit(SCHEDULE, sample="blackboard"), "Blackboard6 tasks · 3 servers · 1 switch"),
    ):
        folds = {one.label: one.proto.expanded for one in at.sidebar.expander}
        assert [name for name in headings if folds[name]] == headings
        assert job in words(at)
