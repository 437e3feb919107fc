"""Every page in both themes by axe, the contrast of text in charts, and the whole way to a proof by keyboard."""

from __future__ import annotations

from typing import Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from tests.e2e.tab import Tab
from tests.e2e.views import address, every_face

pytestmark = pytest.mark.browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Elements that Streamlit draws and we cannot change: rule of axe, selector, reason.
OF_STREAMLIT: tuple[tuple[str, str, str], ...] = ()
AXE = """async ([rules, excepted]) => {
  const answer = await axe.run(document, {runOnly: rules, resultTypes: ['violations']});
  const serious = answer.violations.filter(one => ['serious', 'critical'].includes(one.impact));
  return serious.flatMap(rule => rule.nodes.map(node => {
    const element = document.querySelector(node.target[0]);
    if (excepted.some(([id, selector]) => id === rule.id && element && element.matches(selector))) return null;
    const why = [...node.any, ...node.all, ...node.none].map(check => check.message).join('; ');
    return `${rule.id}: ${node.html.slice(0, 160)}: ${why}`;
  })).filter(Boolean);
}"""
# Of text in charts axe says nothing. What lies under a label is the page, or what was drawn before
# it and covers its middle; an image or a pattern there is left to the tests of the palette.
CHART_TEXT = """() => {
  const numbers = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
  const over = (under, colour, opacity) => {
    const [r, g, b, a = 1] = numbers(colour), share = a * opacity;
    return [r, g, b].map((value, i) => share * value + (1 - share) * under[i]);
  };
  const light = ([r, g, b]) => [r, g, b].map(value => value / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const page = element => {
    const own = getComputedStyle(element).backgroundColor, alpha = numbers(own)[3] ?? 1;
    return alpha === 1 || !element.parentElement ? over([255, 255, 255], own, 1) : over(page(element.parentElement), own, 1);
  };
  const opacity = element => element.closest('.main-svg') === element ? 1
    : Number(getComputedStyle(element).opacity) * opacity(element.parentElement);
  const faint = [];
  for (const chart of document.querySelectorAll('.js-plotly-plot')) {
    const drawn = [...chart.querySelectorAll('path, rect, image, text')]
      .map(element => ({element, box: element.getBoundingClientRect()}));
    drawn.forEach(({element, box}, k) => {
      if (element.tagName !== 'text' || !element.textContent.trim() || !box.width || !opacity(element)) return;
      const x = box.left + box.width / 2, y = box.top + box.height / 2;
      let under = page(chart.querySelector('.main-svg')), known = true; // pictures for print are on white
      for (const {element: shape, box: around} of drawn.slice(0, k)) {
        if (x < around.left || x > around.right || y < around.top || y > around.bottom || shape.tagName === 'text') continue;
        if (shape.tagName === 'image') { known = false; continue; }
        const style = getComputedStyle(shape), matrix = shape.getScreenCTM();
        if (style.fill === 'none' || style.display === 'none' || !matrix || shape.closest('defs, clipPath')) continue;
        const point = new DOMPoint(x, y).matrixTransform(matrix.inverse());
        if (!shape.isPointInFill(point)) continue;
        if (style.fill.startsWith('url')) { known = false; continue; }
        const share = Number(style.fillOpacity) * opacity(shape);
        under = over(under, style.fill, share);
        if (share > 0.99 && (numbers(style.fill)[3] ?? 1) > 0.99) known = true;
      }
      const style = getComputedStyle(element), contrast = ratio(over(under, style.fill, opacity(element)), under);
      const words = `${element.textContent}: ${style.fill} on ${under.map(Math.round)} is ${contrast.toFixed(2)}`;
      if (known && contrast < 4.5) faint.push(words);
    });
  }
  return faint;
}"""
# Everything that a page keeps folded; a fold within another one opens with the next look.
FOLDED = '[data-testid="stMain"] details:not([open]) > summary, [data-testid="stSidebar"] details:not([open]) > summary'
FIRST = [
    ("Home", "", "light"),
    ("Schedule", "sample=blackboard", "dark"),
    ("Compare", "fabrics=ideal,scheduled", "light"),
]
EVERY = [(title, choice, theme) for title, choice in every_face() for theme in ("light", "dark")]


def at_rest(tab: Tab) -> Tab:
    """Wait until nothing runs beside the page either."""
    expect(tab.still().page.get_by_test_id("stProgress")).to_have_count(0, timeout=600_000)
    return tab.still()


def findings(tab: Tab) -> list[str]:
    """Return what axe finds serious or critical on the page as it is, and text in charts that is too faint."""
    if not tab.page.evaluate("() => 'axe' in window"):
        tab.page.evaluate(AXE_SCRIPT)
    excepted = [(rule, selector) for rule, selector, _ in OF_STREAMLIT]
    return [*tab.page.evaluate(AXE, [RULES, excepted]), *tab.page.evaluate(CHART_TEXT)]


@pytest.mark.parametrize(("title", "choice", "theme"), FIRST)
def test_axe_finds_nothing_serious_on_the_first_pages(
    tab: Tab, title: str, choice: str, theme: Literal["light", "dark"]
) -> None:
    tab.in_window(1366, theme).open(address(title, choice))
    assert findings(at_rest(tab)) == []


@pytest.mark.long
@pytest.mark.parametrize(("title", "choice", "theme"), EVERY)
def test_axe_finds_nothing_serious_on_any_page_folded_or_unfolded(
    tab: Tab, title: str, choice: str, theme: Literal["light", "dark"]
) -> None:
    tab.in_window(1366, theme).open(address(title, choice))
    assert findings(at_rest(tab)) == []
    for _ in range(20):
        folded = tab.page.locator(FOLDED)
        if not folded.count():
            break
        folded.first.click()
        tab.still()
    assert findings(at_rest(tab)) == []
