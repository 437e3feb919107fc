"""Words of the field are explained where they stand, by pointer, keyboard and touch; the tour is walked to its end."""

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.conftest import NewTab
from tests.e2e.tab import Tab
from topox_core.labs.tour import SCREENS, live_line, screen
from topox_core.text.glossary import entry_of

pytestmark = pytest.mark.browser
NARROW = {"width": 390, "height": 844}
# Where neither the menu nor a term is, at the foot of either window.
NOWHERE = (380, 740)


def box(tab: Tab) -> Locator:
    return tab.page.locator(".term-box")


def term(tab: Tab, entry: str) -> Locator:
    """Return the first use of a term on the page."""
    main = tab.page.get_by_test_id("stMain")
    return main.locator(f'button.term[aria-describedby="term-{entry}"]').first


def test_a_term_is_explained_by_pointer_and_by_keyboard_until_escape(tab: Tab) -> None:
    tab.open("/Learn")
    expect(box(tab)).to_be_hidden()
    term(tab, "ocs").hover()
    expect(box(tab)).to_have_text(entry_of("ocs").text)
    tab.page.mouse.move(*NOWHERE)
    expect(box(tab)).to_be_hidden()
    tab.page.locator(".kicker .ask").focus()
    expect(box(tab)).to_be_hidden()
    tab.page.keyboard.press("Tab")
    expect(tab.page.locator("button.term:focus")).to_have_count(1)
    expect(box(tab)).to_have_text(entry_of("ocs").text)
    tab.page.keyboard.press("Enter")
    tab.page.mouse.move(NOWHERE[0], NOWHERE[1] - 9)
    expect(box(tab)).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(box(tab)).to_be_hidden()


@pytest.mark.long
def test_a_tap_explains_a_term_in_a_narrow_window_and_lies_over_everything(
    new_tab: NewTab,
) -> None:
    tab: Tab = new_tab(has_touch=True)
    tab.page.set_viewport_size(NARROW)
    tab.open("/Learn?learn.step=3")
    term(tab, "dark").tap()
    expect(box(tab)).to_have_text(entry_of("dark").text)
    place = box(tab).bounding_box()
    assert place is not None
    assert 0 <= place["x"] <= NARROW["width"] - place["width"]
    middle = [place["x"] + place["width"] / 2, place["y"] + place["height"] / 2]
    top = tab.page.evaluate("([x, y]) => document.elementFromPoint(x, y)?.className", middle)
    assert top == "term-box"
    tab.page.locator(".step").tap()  # where no term is
    expect(box(tab)).to_be_hidden()


@pytest.mark.long
def test_the_tour_is_walked_to_its_end_and_back_and_reload_keep_the_screen(tab: Tab) -> None:
    tab.open("/Learn")
    live = tab.page.locator(".live")
    for number, name in enumerate(SCREENS, 1):
        one = screen(name)
        expect(tab.headline).to_have_text(one.title)
        expect(live).to_have_text(said(name, one.start))
        at = one.values.index(one.start)
        tab.push(f"learn_{name}", "ArrowRight" if at + 1 < len(one.values) else "ArrowLeft")
        moved = one.values[at + 1 if at + 1 < len(one.values) else at - 1]
        expect(live).to_have_text(said(name, moved))
        tab.still()
        steps = tab.page.locator(".st-key-tour_steps").bounding_box()
        assert steps is not None and steps["y"] + steps["height"] <= 768
        if number < len(SCREENS):  # by keyboard alone: the slider was too
            tab.reach(tab.button("Next"))
            tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("link", name="Bring your own job")).to_be_visible()

    tab.button("Back").click()
    expect(tab.headline).to_have_text(screen(SCREENS[-2]).title)
    tab.still()
    tab.page.go_back()
    expect(tab.headline).to_have_text(screen(SCREENS[-1]).title)
    tab.still()
    before = live.inner_text()
    tab.page.reload()
    expect(tab.headline).to_have_text(screen(SCREENS[-1]).title)
    expect(live).to_have_text(before)
    tab.still()

    term(tab, "circuit").or_(term(tab, "tdm")).first.hover()  # what a rerun drew is alive
    expect(box(tab)).to_be_visible()
    tab.page.locator(".kicker .ask").click()
    expect(tab.headline).to_contain_text("words of the field")
    assert "learn.step" not in tab.page.url  # an address carries its own page
    expect(tab.page.locator("#entry-ocs")).to_contain_text(entry_of("ocs").text)


def said(name: str, value: float) -> str:
    """Return the line of a screen with its slider at a value, as it is read."""
    return live_line(name, value).replace("<b>", "").replace("</b>", "").replace("&nbsp;", "\xa0")
