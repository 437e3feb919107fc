"""Jobs in a browser: a slider of the set-up answers, an exact solve is watched and cancelled, a link opens the same state."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import Tab

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_more_jobs_change_the_finding_and_the_address_opens_it_again(tab: Tab) -> None:
    tab.open("/Jobs?jobs.source=generator&jobs.jobs=32&jobs.algorithm=best-grouping")
    expect(tab.headline).to_contain_text("32 jobs")
    before = tab.settled_text(tab.headline)
    tab.push("jobs_jobs")
    expect(tab.headline).to_contain_text("64 jobs")
    tab.still()
    expect(tab.page).to_have_url(re.compile(r"jobs\.jobs=64"))
    after = tab.settled_text(tab.headline)
    assert after != before
    tab.open(tab.page.url.removeprefix(tab.base))
    expect(tab.headline).to_contain_text("64 jobs")
    assert tab.settled_text(tab.headline) == after


@pytest.mark.long
def test_an_exact_solve_is_cancelled_and_its_best_round_kept(tab: Tab) -> None:
    tab.open("/Jobs?jobs.source=graphs&jobs.algorithm=milp")
    tab.button("Cancel").click()
    expect(tab.button("Search again")).to_be_visible()
    expect(tab.kpi("Exact model")).to_have_text(re.compile(r"\d"))
    tab.still()
