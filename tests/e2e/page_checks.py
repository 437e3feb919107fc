"""What is wrong with a page as it stands: what axe finds, text too faint in charts, what is cut or covered."""

from collections.abc import Callable

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Locator, expect

from tests.e2e.tab import LAPTOP, Tab

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AXE = """async (rules) => {
  const answer = await axe.run(document, {runOnly: rules, resultTypes: ['violations']});
  const serious = answer.violations.filter(one => ['serious', 'critical'].includes(one.impact));
  return serious.flatMap(rule => rule.nodes.map(node => {
    const why = [...node.any, ...node.all, ...node.none].map(check => check.message).join('; ');
    return `${rule.id}: ${node.html.slice(0, 160)}: ${why}`;
  }));
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
# What is wrong in a window as it is. Tables and rows of buttons that scroll by themselves may be
# wider than it; text of a chart has to be inside the chart, and apart from other text.
CUT = """() => {
  const wrong = [];
  const name = one => `${one.textContent.trim().slice(0, 50)} (${one.tagName} ${one.getAttribute('class') || ''})`;
  const main = document.querySelector('[data-testid="stMain"]');
  for (const one of [document.scrollingElement, main])
    if (one.scrollWidth > one.clientWidth + 1) wrong.push(`scrolls sideways: ${one.scrollWidth} in ${one.clientWidth}`);
  const scrolls = one => one !== main && (getComputedStyle(one).overflowX !== 'visible' || scrolls(one.parentElement));
  for (const element of main.querySelectorAll('*')) {
    const box = element.getBoundingClientRect(), seen = box.width > 1 && box.height > 1 && !element.closest('svg');
    if (seen && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(element)) wrong.push(`beyond the edge: ${name(element)}`);
  }
  for (const element of main.querySelectorAll('[data-testid="stMetric"] *, .headline, button p, a p'))
    if (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== 'visible')
      wrong.push(`cut: ${name(element)}`);
  // A key figure may take several lines; a word of it may not.
  for (const metric of main.querySelectorAll('[data-testid="stMetric"]')) {
    const texts = document.createTreeWalker(metric, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode())
      for (const word of text.data.matchAll(/\\S+/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) wrong.push(`broken within: ${word[0]}`);
      }
  }
  for (const chart of main.querySelectorAll('.js-plotly-plot')) {
    const whole = chart.getBoundingClientRect();
    const texts = [...chart.querySelectorAll('text')]
      .filter(one => one.textContent.trim() && getComputedStyle(one).visibility !== 'hidden')
      .map(one => [one, one.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
    for (const [one, box] of texts)
      if (box.left < whole.left - 1 || box.right > whole.right + 1) wrong.push(`beyond its chart: ${name(one)}`);
    texts.forEach(([one, a], k) => texts.slice(k + 1).forEach(([other, b]) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      // Lines of type may touch: a box has room for accents and tails.
      const down = (Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)) / Math.min(a.height, b.height);
      if (across > 2 && down > 0.5)
        wrong.push(`one over the other: ${name(one)}, ${name(other)}`);
    }));
  }
  return wrong;
}"""


def at_rest(tab: Tab) -> Tab:
    """Wait until nothing runs beside the page either."""
    expect(tab.still().page.get_by_test_id("stProgress")).to_have_count(0, timeout=600_000)
    return tab.still()


def findings(tab: Tab) -> list[str]:
    """Return what axe finds serious or critical on the page as it is, and text in charts that is too faint."""
    if not tab.page.evaluate("() => 'axe' in window"):
        tab.page.evaluate(AXE_SCRIPT)
    return [*tab.page.evaluate(AXE, RULES), *tab.page.evaluate(CHART_TEXT)]


def what_stays(tab: Tab, look: Callable[[Tab], list[str]]) -> list[str]:
    """Return what is wrong and stays so: charts find their width, and greyed parts their colour, in a moment."""
    wrong: list[str] = []
    for _ in range(80):
        wrong = look(tab)
        if not wrong:
            break
        tab.page.wait_for_timeout(250)
    return wrong


def cut(tab: Tab) -> list[str]:
    """Return what is cut or covered."""
    return what_stays(tab, lambda one: list(one.page.evaluate(CUT)))


def first_look(tab: Tab, title: str, choice: str) -> None:
    """In a narrow window the menu is folded, and the finding with its first figure stands in view."""
    menu, unfold = (
        tab.page.locator(".st-key-menu"),
        tab.page.get_by_test_id("stExpandSidebarButton"),
    )
    expect(menu).not_to_be_in_viewport()
    assert what_stays(tab, lambda one: _overlap(unfold, one.kicker)) == []
    figures = tab.page.get_by_test_id("stMetricValue")
    # Home has none of its own; those of Rails and of changing gating belong to a section further down.
    below = title in ("Home", "Rails") or "gated" in choice
    for one in [tab.headline, *([figures.first] if figures.count() and not below else [])]:
        expect(one).to_be_visible()
        assert what_stays(tab, lambda _, one=one: _below_the_window(one)) == []


def _overlap(upper: Locator, lower: Locator) -> list[str]:
    """Say where one thing reaches down into another, or where one of them is not drawn."""
    above, below = upper.bounding_box(), lower.bounding_box()
    stands = above and below and above["y"] + above["height"] <= below["y"]
    return [] if stands else [f"{above} above {below}"]


def _below_the_window(one: Locator) -> list[str]:
    """Say where something ends below the window, or is not drawn."""
    box = one.bounding_box()
    return [] if box and box["y"] + box["height"] <= LAPTOP["height"] else [f"{box}"]


def menu_out_and_in(tab: Tab) -> None:
    """Unfold the menu of a narrow window and fold it again."""
    menu = tab.page.locator(".st-key-menu")
    tab.page.get_by_test_id("stExpandSidebarButton").click()
    expect(menu.locator("a").first).to_be_in_viewport(ratio=1)
    fold = tab.page.get_by_test_id("stSidebarCollapseButton").get_by_role("button")
    expect(fold).to_be_in_viewport(ratio=1)
    fold.click()
    expect(menu).not_to_be_in_viewport()
