"""The projector view in a browser: no scroll bar on any slide, keys and clickers, contrast, a tally from files, no names."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import Tab
from tests.topox_core.labs.test_answers import LABS, at, written
from topox_core.labs.classroom.statistics import slides
from topox_core.labs.classroom.student import begin, lock

pytestmark = [pytest.mark.browser, pytest.mark.long]

PROJECTOR = {"width": 1280, "height": 720}
BEYOND = """() => { const main = document.querySelector('[data-testid="stMain"]'), page = document.scrollingElement;
  return [main.scrollHeight - main.clientHeight, main.scrollWidth - main.clientWidth, page.scrollHeight - page.clientHeight]; }"""
# Contrast of every text with what lies behind it; of charts the text alone, on the page's ground.
FAINT = """() => {
  const numbers = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = c => numbers(c).slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const ground = e => !e ? 'rgb(255,255,255)' : (numbers(getComputedStyle(e).backgroundColor)[3] ?? 1) === 1
    ? getComputedStyle(e).backgroundColor : ground(e.parentElement);
  const faint = [];
  const walk = document.createTreeWalker(document.querySelector('[data-testid="stMain"]'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, style = getComputedStyle(e);
    if (!walk.currentNode.textContent.trim() || !e.getClientRects().length || style.visibility === 'hidden'
      || e.closest('style, script, button:disabled, [aria-disabled="true"], .terms')) continue;
    const colour = e.namespaceURI.endsWith('svg') ? style.fill : style.color, value = ratio(colour, ground(e));
    if (value < 7) faint.push(`${walk.currentNode.textContent.trim().slice(0, 30)}: ${value.toFixed(1)}`);
  }
  return faint;
}"""


def address(lab: str, place: str = "start", show: str = "ask") -> str:
    return f"/Learn?view=present&present.lab={lab}&present.q={place}&present.show={show}"


def slide_in(url: str) -> tuple[str, str]:
    """Return which slide an address shows: its place, and what of it."""
    chosen = parse_qs(urlsplit(url).query)
    return chosen["present.q"][0], chosen.get("present.show", ["ask"])[0]


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.id)
def test_no_slide_of_a_lab_has_a_scroll_bar(tab: Tab, lab) -> None:
    tab.page.set_viewport_size(PROJECTOR)
    tab.open(address(lab.id))
    beyond, every = {}, slides(lab)
    for slide, following in zip(every, [*every[1:], None], strict=True):
        over = tab.page.evaluate(BEYOND)
        if max(over) > 0:
            beyond[slide.place, slide.show] = over
        if following:
            tab.button("Next").click()
            tab.page.wait_for_url(lambda url, to=following: slide_in(url) == (to.place, to.show))
            tab.still()
    assert beyond == {}


def voted(folder: Path) -> list[Path]:
    """Files of twelve students: a third is right at first, all but two after the discussion."""
    lab, paths = LABS["six-tasks"], []
    for k in range(12):
        answers = lock(lab, begin(lab, "NET-401", f"Ada{k} Lovelace", at(0), 0), "P1", 8 + k, at(1))
        answers = lock(lab, answers, "P2", "y" if k % 3 == 0 else "x", at(1))
        answers = lock(lab, answers, "P2", "x" if k > 9 else "y", at(3))
        paths.append(folder / f"{k}.answers.json")
        paths[-1].write_bytes(written(lab, answers))
    return paths


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_way_through_a_question_by_keys_with_the_answers_of_a_class(
    tab: Tab, tmp_path: Path, theme
) -> None:
    tab.in_window(1280, theme).page.set_viewport_size(PROJECTOR)
    tab.open(address("six-tasks", "P2", "tally"))
    expect(tab.page.locator(".st-key-menu")).to_be_hidden()
    tab.button("Answers").click()
    tab.page.locator(".st-key-up_answers input[type=file]").set_input_files(voted(tmp_path))
    expect(tab.page.locator(".advice")).to_contain_text("33\u00a0% → 83\u00a0% right · 12 answers")
    tab.page.keyboard.press("Escape")

    def pressed(key: str, shown: str) -> None:
        tab.page.locator(".at").first.click()
        tab.page.keyboard.press(key)
        expect(tab.page).to_have_url(f"{tab.base}{shown}")
        tab.still()
        assert tab.page.evaluate(BEYOND)[0] <= 0, shown
        assert tab.page.evaluate(FAINT) == [], shown
        assert "Lovelace" not in tab.page.locator("body").inner_text()

    on = "/Learn?view=present&present.lab=six-tasks&present.q="
    pressed("t", f"{on}P2")
    pressed("ArrowRight", f"{on}P2&present.show=tally")
    assert "✓" not in tab.page.locator("body").inner_text()
    pressed("ArrowRight", f"{on}P2&present.show=reveal")
    expect(tab.page.locator(".truth")).to_contain_text("Right for the class instance: y")
    pressed("PageDown", f"{on}W1")
    pressed("PageUp", f"{on}P2&present.show=reveal")
    pressed("ArrowLeft", f"{on}P2&present.show=tally")
    pressed("e", f"{on}P2&present.show=reveal")


def test_the_clock_counts_in_the_browser_and_its_border_says_when_the_plan_is_over(
    tab: Tab,
) -> None:
    tab.page.set_viewport_size(PROJECTOR)
    tab.page.clock.install()
    tab.open(address("six-tasks", "P1"))
    tab.button("Start the clock").click()
    clock = tab.page.locator(".plan-clock")
    expect(clock).to_have_text("0 min · plan: until minute 8")
    assert "double" not in clock.evaluate("one => one.style.border")
    tab.page.clock.fast_forward("09:00")
    expect(clock).to_have_text("9 min · plan: until minute 8")
    assert "double" in clock.evaluate("one => one.style.border")
