"""The walk over all pages: each opens on a sample, names what it ignored in a link, and tells every chart in words and a table."""

from __future__ import annotations

import pytest

from tests.topox_ui.conftest import address, charts, unbroken, words
from topox_ui.shell.pages import PAGES

NAMES = [page.title for page in PAGES]
OF_A_JOB = [page for page in PAGES if page.needs_graph]
# What a page shows only when it has been given something.
GIVEN = {"A recorded run": {"recorded.example": "yes"}}
# What these show stands in a table beside them.
TABLE_BESIDE = {"overview", "worth", "tour_switch"}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_page_opens_on_a_sample_and_its_charts_have_words_and_tables(visit, page):
    link = {"sample": "blackboard", **GIVEN.get(page.title, {})}
    at = visit(page.path, **link, **{f"{page.prefix}nonsense": "1"})
    assert [one.value for one in at.warning] == [f"Ignored in the link: {page.prefix}nonsense=1"]
    assert sum('<h1 class="headline">' in one.proto.body for one in at.get("html")) == 1
    assert not at.error and address(at) == link
    assert "This is a sample" not in words(at)
    drawn, before = charts(at), len(at.dataframe)
    assert all(len(one.alt) > 30 for one in drawn.values())
    tables = drawn.keys() - TABLE_BESIDE
    for key in tables:
        at.session_state[f"table_{key}"] = True
    assert len(unbroken(at.run()).dataframe) == before + len(tables)


@pytest.mark.parametrize("page", OF_A_JOB, ids=[page.title for page in OF_A_JOB])
def test_a_page_without_a_job_opens_a_sample_and_says_so(visit, monkeypatch, page):
    monkeypatch.setattr("topox_ui.state.loading.FIRST_SAMPLE", "blackboard")
    at = visit(page.path)
    assert not at.error and "This is a sample: no job was chosen." in words(at)
    assert address(at) == {"sample": "blackboard"}
