"""Every page in a narrow window, a phone's and a small tablet's: nothing is cut, nothing is covered."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import LAPTOP, Tab
from tests.e2e.test_accessibility import at_rest
from tests.e2e.views import address, every_face

pytestmark = pytest.mark.browser

WIDTHS = (390, 700)
LARGE = [(title, "large=yes") for title in ("Home", "Schedule", "Compare")]
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


def check(tab: Tab, title: str, choice: str, width: int) -> None:
    """Open a page in a narrow window; fold its menu out and in again."""
    at_rest(tab.in_window(width).open(address(title, choice)))
    menu, unfold = (
        tab.page.locator(".st-key-menu"),
        tab.page.get_by_test_id("stExpandSidebarButton"),
    )
    expect(menu).not_to_be_in_viewport()
    button, kicker = unfold.bounding_box(), tab.kicker.bounding_box()
    assert button and kicker and button["y"] + button["height"] <= kicker["y"]
    figures = tab.page.get_by_test_id("stMetricValue")
    # Home has none of its own, and those of changing gating belong to a section further down.
    below = title == "Home" or "gated" in choice
    first = [tab.headline, *([figures.first] if figures.count() and not below else [])]
    for one in first:
        box = one.bounding_box()
        assert box and box["y"] + box["height"] <= LAPTOP["height"], one
    for _ in range(20):  # a chart is laid out anew when its width or its font has come
        wrong = tab.page.evaluate(CUT)
        if not wrong:
            break
        tab.page.wait_for_timeout(250)
    assert wrong == []
    unfold.click()
    expect(menu.locator("a").first).to_be_in_viewport(ratio=1)
    fold = tab.page.get_by_test_id("stSidebarCollapseButton").get_by_role("button")
    expect(fold).to_be_in_viewport(ratio=1)
    fold.click()
    expect(menu).not_to_be_in_viewport()


@pytest.mark.parametrize(
    ("title", "choice", "width"),
    [("Schedule", "large=yes", 390), ("Compare", "fabrics=ideal,scheduled", 390)],
)
def test_on_a_phone_the_menu_is_folded_and_nothing_is_cut(
    tab: Tab, title: str, choice: str, width: int
) -> None:
    check(tab, title, choice, width)


@pytest.mark.long
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("title", "choice"), [*every_face(), *LARGE])
def test_no_page_is_cut_in_a_narrow_window(tab: Tab, title: str, choice: str, width: int) -> None:
    check(tab, title, choice, width)
