"""Words of the field are explained where they stand: by pointer, keyboard and touch; the tour is walked to its end."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.conftest import NewTab
from tests.e2e.tab import Tab
from topox_core.labs.tour import SCREENS, screen

pytestmark = pytest.mark.browser
NARROW = {"width": 390, "height": 844}


def box(tab: Tab) -> Locator:
    return tab.page.locator(".term-box")


def term(tab: Tab) -> Locator:
    return tab.page.locator(".lesson button.term").first


def test_a_term_is_explained_by_pointer_and_by_keyboard(tab: Tab) -> None:
    tab.open("/Learn")
    expect(box(tab)).to_be_hidden()
    term(tab).hover()
    expect(box(tab)).to_have_text(re.compile("joins fibres with light|exchange|reads every packet"))
    tab.page.mouse.move(2, 700)
    expect(box(tab)).to_be_hidden()
    term(tab).focus()
    expect(box(tab)).to_be_visible()
    tab.page.keyboard.press("Tab")
    expect(tab.page.locator("button.term:focus")).to_have_count(1)
    tab.page.keyboard.press("Enter")
    tab.page.mouse.move(2, 700)
    expect(box(tab)).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(box(tab)).to_be_hidden()


def test_a_rerun_keeps_the_terms_alive(tab: Tab) -> None:
    tab.open("/Learn?learn.step=4")
    for _ in range(2):
        tab.push("learn_ports")
        tab.still()
    live = tab.page.locator(".live button.term").first
    live.hover()
    expect(box(tab)).to_be_visible()
    tab.push("learn_ports", "ArrowLeft")
    expect(tab.page.locator(".live")).to_contain_text("2 ports")
    tab.page.mouse.move(2, 700)
    expect(box(tab)).to_be_hidden()


def test_a_box_stays_in_a_narrow_window_and_lies_on_top(new_tab: NewTab) -> None:
    tab: Tab = new_tab()
    tab.page.set_viewport_size(NARROW)
    tab.open("/Learn?learn.step=3")
    for one in tab.page.locator("[data-testid=stMain] button.term").all()[:6]:
        one.focus()
        expect(box(tab)).to_be_visible()
        place = box(tab).bounding_box()
        assert place is not None
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= NARROW["width"]
        middle = [place["x"] + place["width"] / 2, place["y"] + place["height"] / 2]
        top = tab.page.evaluate("([x, y]) => document.elementFromPoint(x, y)?.className", middle)
        assert top == "term-box"


def test_the_tour_is_walked_to_its_end_and_every_line_follows_its_slider(tab: Tab) -> None:
    tab.open("/Learn")
    for number, name in enumerate(SCREENS, 1):
        expect(tab.headline).to_have_text(screen(name).title)
        live = tab.page.locator(".live")
        before = live.inner_text()
        for _ in range(6 if name == "circuits" else 1):
            tab.push(f"learn_{name}", "ArrowRight")
            tab.still()
        if name != "sharing":
            expect(live).not_to_have_text(before)
        fits = tab.page.evaluate(
            "document.querySelector('.st-key-tour_steps').getBoundingClientRect().bottom"
        )
        assert fits <= 768
        if number < len(SCREENS):
            tab.button("Next").click()
    expect(tab.page.get_by_role("link", name="Bring your own job")).to_be_visible()


def test_the_question_mark_leads_to_the_glossary_and_keeps_the_session(tab: Tab) -> None:
    tab.open("/Learn?learn.step=2")
    tab.page.locator(".kicker .ask").click()
    expect(tab.headline).to_contain_text("words of the field")
    assert "learn.step=2" in tab.page.url
