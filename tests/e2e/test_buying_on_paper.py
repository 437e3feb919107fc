"""What to buy on paper: menus and buttons gone, figures whole, tables in full, black on white in both themes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import NewTab
from tests.e2e.views import address
from tests.patience import PATIENCE_S, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.long]

# What Chromium gives a page of A4 across between margins of 9 mm, at 96 dots an inch.
PAPER = {"width": round((297 - 18) / 25.4 * 96), "height": round((210 - 18) / 25.4 * 96)}
ON_PAPER = """() => {
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).display !== 'none';
  const all = (what) => [...document.querySelectorAll(what)];
  return {
    controls: all('section[data-testid="stSidebar"], button').filter(shown)
      .filter((e) => !e.classList.contains('term')).map((e) => e.textContent.slice(0, 40)),
    figures: all('[data-testid="stPlotlyChart"] .main-svg').map((e) => e.getBoundingClientRect())
      .map((r) => [r.left, r.right, r.height]),
    tables: all('.only-print table').filter(shown).map((e) => e.rows.length),
    ground: getComputedStyle(document.querySelector('.stApp')).backgroundColor,
    ink: getComputedStyle(document.querySelector('h1.headline')).color,
  };
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_prints_whole(new_tab: NewTab, theme: str) -> None:
    tab = new_tab(color_scheme=theme)
    tab.open(address("What to buy", "sample=blackboard"))
    expect(tab.page.get_by_text("What this rests on")).to_be_visible(timeout=1000 * PATIENCE_S)
    printed = tab.page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 5
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", printed)
    assert {(round(float(w)), round(float(h))) for w, h in boxes} == {(842, 595)}  # A4 across
    tab.page.emulate_media(media="print")

    # Charts follow the window: it becomes as wide as the paper, as it is for a printer.
    tab.page.set_viewport_size({"width": PAPER["width"], "height": PAPER["height"]})

    def narrow() -> bool:
        """Return whether figures have taken the width of the paper: they follow the page."""
        boxes = tab.page.evaluate(ON_PAPER)["figures"]
        return bool(boxes) and all(right - left <= PAPER["width"] + 1 for left, right, _ in boxes)

    wait_until(narrow)
    seen = tab.page.evaluate(ON_PAPER)
    assert seen["controls"] == []
    assert seen["figures"]
    for left, right, height in seen["figures"]:
        assert right - left <= PAPER["width"] + 1
        assert height <= PAPER["height"]
    assert seen["tables"] == [1 + 10, 1 + 7 * 4]
    assert (seen["ground"], seen["ink"]) == ("rgb(255, 255, 255)", "rgb(0, 0, 0)")
