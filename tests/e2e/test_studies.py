"""A study from its choice to its pictures, and kept runs side by side, as a visitor goes."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import Tab
from tests.e2e.views import STUDY

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_a_study_is_computed_watched_and_a_point_of_it_opened(tab: Tab) -> None:
    tab.open(f"/Studies?study.of={quote(STUDY)}")
    panel = tab.page.locator(".st-key-study_panel")
    start = tab.button("Compute").or_(tab.button("Go on"))
    expect(start.or_(panel.get_by_text("points are there")).first).to_be_visible()
    if start.count():
        start.first.click()
    expect(panel).to_contain_text("6 points are there")
    expect(tab.chart("study_map")).to_be_visible()
    assert len(tab.still().marks("study_map")) == 6
    point = tab.chart("study_front").locator(".scatterlayer .trace").last.locator(".point").first
    box = point.bounding_box()
    assert box
    tab.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(tab.kicker).to_contain_text("Runs ·")
    expect(tab.headline).to_contain_text("an iteration takes")
    tab.still().page.locator(".st-key-open_A button").first.click()
    expect(tab.kicker).to_contain_text("Compare · blackboard")


def test_two_kept_runs_stand_side_by_side_and_survive_a_reload(tab: Tab) -> None:
    for delay in ("0", "5"):
        tab.open(f"/Schedule?sample=race&reconfiguration_ms={delay}")
        tab.button("Keep this run").click()
        expect(tab.page.get_by_text(re.compile("Kept (before )?as run"))).to_be_visible()
    tab.open("/Runs?runs.kind=schedule&runs.subject=race")
    choice = tab.control("runs_chosen").locator("input")
    for _ in range(2):
        choice.click()
        tab.page.keyboard.press("Enter")
        tab.still()
    tab.page.keyboard.press("Escape")
    expect(tab.headline).to_contain_text("instead of")
    expect(tab.chart("clock_A")).to_be_visible()
    expect(tab.chart("clock_B")).to_be_visible()
    said = tab.settled_text(tab.headline)
    tab.page.reload()
    expect(tab.headline).to_contain_text("instead of")
    assert tab.settled_text(tab.headline) == said
    assert not tab.complaints
