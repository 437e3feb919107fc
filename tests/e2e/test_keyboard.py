"""The workbench without a pointer: the way from Home to a proof, the table of a chart."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.tab import Tab

pytestmark = pytest.mark.browser

MAX_STOPS = 60
HAVE_FOCUS = "all => all.map(one => one.contains(document.activeElement))"


def go_on_to(tab: Tab, goal: Locator, key: str = "Tab") -> None:
    """Press Tab, or Shift+Tab, until something has the focus; it must be in view then, and be seen to have it."""
    for _ in range(MAX_STOPS):
        tab.page.keyboard.press(key)
        if any(goal.evaluate_all(HAVE_FOCUS)):
            break
    else:
        pytest.fail(f"{MAX_STOPS} times {key} do not lead to {goal}")
    focused = tab.page.evaluate_handle("document.activeElement").as_element()
    assert focused is not None
    box = focused.bounding_box()
    size = tab.page.viewport_size
    # The browser scrolls by whole pixels.
    assert box and size and box["y"] > -1 and box["y"] + box["height"] < size["height"] + 1
    around = {
        "x": max(0, box["x"] - 20),
        "y": max(0, box["y"] - 20),
        "width": box["width"] + 40,
        "height": box["height"] + 40,
    }
    tab.page.wait_for_timeout(250)  # a ring may fade in
    with_focus = tab.page.screenshot(clip=around, animations="disabled")
    focused.evaluate("one => one.blur()")
    tab.page.wait_for_timeout(250)
    without = tab.page.screenshot(clip=around, animations="disabled")
    focused.focus()
    assert with_focus != without, f"nobody sees that {goal} has the focus"


def skip_menu(tab: Tab) -> None:
    """Take the link that comes first on every page."""
    tab.page.keyboard.press("Tab")
    expect(tab.page.locator(":focus")).to_have_text("Skip to main content")
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "stMain"


def test_the_terms_of_a_page_are_one_stop_and_arrows_lead_from_one_to_the_next(tab: Tab) -> None:
    tab.open("/Schedule?sample=race")
    skip_menu(tab)
    on_term, stops = "document.activeElement.matches('button.term')", 0
    for _ in range(MAX_STOPS):
        tab.page.keyboard.press("Tab")
        stops += tab.page.evaluate(on_term)
        if tab.button("Prove it").evaluate_all(HAVE_FOCUS)[0]:
            break
    assert stops == 1
    which = "document.activeElement.getAttribute('aria-describedby')"
    go_on_to(tab, tab.page.locator("button.term"), "Shift+Tab")
    first = tab.page.evaluate(which)
    tab.page.keyboard.press("ArrowRight")
    assert tab.page.evaluate(on_term) and tab.page.evaluate(which) != first
    tab.page.keyboard.press("ArrowLeft")
    assert tab.page.evaluate(which) == first


def test_a_menu_link_that_has_the_focus_is_told_from_the_page_in_view(tab: Tab) -> None:
    tab.open("/Schedule?sample=race")
    here, other = tab.menu_link("Schedule"), tab.menu_link("Compare")
    looks = "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).outlineStyle]"
    chosen = here.evaluate(looks)
    tab.page.keyboard.press("Tab")
    other.focus()
    focused = other.evaluate(looks)
    assert focused[1] == "solid" != chosen[1] and focused[0] != chosen[0]


def test_the_keyboard_leads_from_home_to_a_proved_schedule(tab: Tab) -> None:
    tab.open()
    skip_menu(tab)
    go_on_to(tab, tab.page.locator(".st-key-card_race a"))
    tab.page.keyboard.press("Enter")
    expect(tab.kicker).to_contain_text("race")
    tab.still()
    # The focus is where the schedule begins; the what-ifs lie before it. Plans alone are soon proved.
    go_on_to(tab, tab.slider("reconfiguration_ms"), "Shift+Tab")
    go_on_to(tab, tab.page.locator(".st-key-more_what_ifs summary"))
    tab.page.keyboard.press("Enter")
    go_on_to(tab, tab.control("switching").get_by_role("radio"))
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Space")
    expect(tab.page).to_have_url(re.compile("switching=planned"))
    tab.still()
    go_on_to(tab, tab.button("Prove it"))
    tab.page.keyboard.press("Enter")
    expect(tab.seal).to_contain_text("Proved optimal")
    tab.still()
    go_on_to(tab, tab.page.locator(".st-key-table_gantt summary"))
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".st-key-table_gantt").get_by_test_id("stDataFrame")).to_be_visible()
