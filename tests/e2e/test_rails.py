"""Photonic rails in a real browser: a cold link, a slower switch, a section that computes beside the page, another rank."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import NewTab
from tests.e2e.tab import Tab
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS
from topox_core.rails.questions import BOTH, Question, answer
from topox_core.text.numbers import time

pytestmark = pytest.mark.browser
JOB = PRESETS["llama3-8b-perlmutter"]


def stall(dark_ms: float) -> str:
    """Return what a switch adds to the paper's job when provisioned, in the page's words."""
    (_, slow), (_, quick) = (
        answer(Question(BOTH, JOB, Rail(nic_gbps=JOB.nic_gbps), dark)) for dark in (dark_ms, 0.0)
    )
    return time(slow - quick)


@pytest.mark.long
def test_a_link_opened_cold_restores_the_rail_and_a_moved_slider_goes_into_the_address(
    tab: Tab,
) -> None:
    tab.open("/Rails?rails.delay_ms=50&rails.see=control")
    expect(tab.kicker).to_contain_text("Llama 3 8B")
    expect(tab.kpi("Added time, provisioned")).to_have_text(stall(50.0))
    expect(tab.page.get_by_text(re.compile("Who holds the rail"))).to_be_visible()
    tab.push("rails_delay_ms")
    expect(tab.kpi("Added time, provisioned")).to_have_text(stall(100.0))
    tab.still()
    assert parse_qs(urlsplit(tab.page.url).query) == {
        "rails.delay_ms": ["100"],
        "rails.see": ["control"],
    }
    tab.go_to("Schedule").go_to("Rails")
    expect(tab.kpi("Added time, provisioned")).to_have_text(stall(100.0))


@pytest.mark.long
def test_a_large_job_s_delays_are_simulated_beside_the_page_and_those_there_are_kept_when_stopped(
    new_tab: NewTab,
) -> None:
    # So many microbatches that the last delay is far away when the first is there, on a fast
    # machine as well.
    tab = new_tab(color_scheme="dark").open(
        "/Rails?rails.source=llama3.1-405b-8192&rails.microbatches=96"
    )
    expect(tab.kpi("Windows per iteration")).to_have_text(str(2 * 96 + 2 * 16 - 1))
    expect(tab.button("Simulate 12")).to_be_visible()
    tab.button("Simulate 12").click()
    expect(tab.page.get_by_text(re.compile(r"[1-9]\d* of 12"))).to_be_visible()
    tab.button("Cancel").click()
    expect(tab.message).to_contain_text("What was simulated is kept")
    expect(
        tab.page.get_by_role("button", name=re.compile(r"Simulate (\d|10|11)\s"))
    ).to_be_visible()
    tab.still()


@pytest.mark.long
def test_every_figure_of_the_page_downloads(tab: Tab, tmp_path: Path) -> None:
    tab.open("/Rails?rails.delay_ms=50")
    tab.button("Download").click()
    page = saved(tab.page, tmp_path, lambda: tab.button("Figures (HTML").click())
    assert page.read_text(encoding="utf-8").count("Plotly.newPlot(") >= 3
    tab.page.keyboard.press("Escape")
    # The page saves each of its figures without a network, and so does the menu beside it.
    tab.unfold("pictures")
    camera = tab.page.locator(".st-key-picture .modebar-btn")
    assert saved(tab.page, tmp_path, camera.click).read_bytes()[:4] == b"\x89PNG"
    alone = tab.page.context.new_page()
    alone.goto(page.as_uri())
    expect(alone.locator(".main-svg").first).to_be_visible()
    for form, begin in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        picture = saved(alone, tmp_path, alone.get_by_text(f"Save as {form}").last.click)
        assert picture.read_bytes()[:4] == begin


def saved(page: Page, folder: Path, act: Callable[[], None]) -> Path:
    """Return the file that an action of a page saves."""
    with page.expect_download() as waiting:
        act()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file
