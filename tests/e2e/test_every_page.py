"""Every page: by a click, in light and in dark, on a laptop and on a phone, folded and unfolded."""

import pytest
from playwright.sync_api import expect

from tests.e2e.page_checks import (
    FOLDED,
    at_rest,
    cut,
    findings,
    first_look,
    menu_out_and_in,
    what_stays,
)
from tests.e2e.tab import LAPTOP, Tab
from tests.e2e.views import SAMPLE, address, every_face
from topox_ui.shell.pages import PAGES

pytestmark = pytest.mark.browser

OPEN_ALL = "folds => document.querySelectorAll(folds).forEach(one => one.click())"
LARGE = [(title, "large=yes") for title in ("Home", "Schedule", "Compare")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_a_page_that_is_clicked_to_can_be_read_by_everybody_and_fits_a_phone_in_the_dark(
    tab: Tab, page
) -> None:
    sample = f"sample={SAMPLE.get(page.title, 'blackboard')}" if page.needs_graph else ""
    if page.listed:
        tab.open(address("Glossary" if page.title == "Home" else "Home", sample)).go_to(page.title)
    else:
        tab.open(address(page.title))
    assert what_stays(tab, findings) == []
    tab.in_window(390, "dark").page.reload()
    first_look(tab.still(), page.title, "")
    assert cut(tab) == []
    if page.title == "Schedule":
        menu_out_and_in(tab)


def in_narrow_windows(tab: Tab, title: str, choice: str, *widths: int) -> None:
    """Open a page anew in each narrow window: charts keep a place or two that a window had before."""
    for width in widths:
        first_look(at_rest(tab.in_window(width).open(address(title, choice))), title, choice)
        assert cut(tab) == []


@pytest.mark.long
@pytest.mark.parametrize(("title", "choice"), LARGE)
def test_large_text_is_nowhere_cut_in_a_narrow_window(tab: Tab, title: str, choice: str) -> None:
    in_narrow_windows(tab, title, choice, 390, 700)


@pytest.mark.long
@pytest.mark.parametrize(("title", "choice"), every_face())
def test_no_face_of_a_page_is_cut_in_a_narrow_window_nor_axe_finds_anything_serious_unfolded_in_the_dark(
    tab: Tab, title: str, choice: str
) -> None:
    in_narrow_windows(tab, title, choice, *((390,) if choice else (390, 700)))
    at_rest(tab.in_window(1366, "light").open(address(title, choice)))
    assert what_stays(tab, findings) == []
    for _ in range(20):
        if not tab.page.locator(FOLDED).count():
            break
        tab.page.evaluate(OPEN_ALL, FOLDED)
        tab.still()
    at_rest(tab.in_window(1366, "dark"))
    assert what_stays(tab, findings) == []


def test_the_menu_of_a_narrow_window_folds_after_a_click_and_zoom_breaks_no_word(tab: Tab) -> None:
    tab.in_window(390).open("/?sample=blackboard")
    tab.page.get_by_test_id("stExpandSidebarButton").click()
    tab.go_to("Schedule")
    expect(tab.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    assert cut(tab) == []
    # A laptop's window at 150 %.
    assert cut(tab.in_window(911).open("/Schedule?sample=moe")) == []


def test_a_page_is_as_wide_as_the_paper_that_it_is_printed_on(tab: Tab) -> None:
    tab.open("/Schedule?sample=race")
    tab.page.emulate_media(media="print")
    try:
        box = tab.page.get_by_test_id("stMainBlockContainer").bounding_box()
        assert box and box["width"] > 0.95 * LAPTOP["width"]
        expect(tab.page.get_by_test_id("stSidebar")).to_be_hidden()
    finally:
        tab.page.emulate_media(media="screen")


@pytest.mark.long
def test_a_page_follows_a_theme_that_is_switched_while_it_is_open(tab: Tab) -> None:
    tab.in_window(1366, "light").open("/Schedule?sample=patience")
    ink = "document.querySelector('.st-key-gantt .js-plotly-plot')?.layout?.font?.color"
    light = tab.page.evaluate(ink)
    assert light
    tab.page.emulate_media(color_scheme="dark")
    # While the chart is replaced there is none.
    tab.page.wait_for_function(f"({ink} ?? {light!r}) !== {light!r}")


def test_the_watch_over_requests_to_other_machines_sees_those_to_this_one(tab: Tab) -> None:
    """Every tab of every test is watched; here the watch itself is."""
    tab.open()
    assert len(tab.requests) > 10
    expect(tab.headline).to_be_visible()
    assert tab.outside == []
