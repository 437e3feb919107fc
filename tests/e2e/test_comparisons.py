"""The pages that set fabrics, jobs, rails, prices and runs side by side: watched, cancelled, kept, printed."""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError, expect

from tests.e2e.conftest import NewTab
from tests.e2e.tab import Tab, saved
from tests.e2e.views import address
from tests.patience import PATIENCE_S, wait_until
from topox_core.figures.files import DOTS, WIDTH

pytestmark = pytest.mark.browser

ROW_PX = 35  # of Streamlit's tables
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


def test_an_exact_solve_is_cancelled_and_its_best_round_kept(tab: Tab) -> None:
    tab.open("/Sharing?jobs.source=graphs&jobs.algorithm=milp")
    tab.button("Cancel").click()
    expect(tab.button("Search again")).to_be_visible()
    expect(tab.kpi("Exact model")).to_have_text(re.compile(r"\d"))
    tab.still()


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
    expect(tab.button("Simulate 15")).to_be_visible()
    tab.button("Simulate 15").click()
    expect(tab.page.get_by_text(re.compile(r"[1-9]\d* of 15"))).to_be_visible()
    tab.button("Cancel").click()
    expect(tab.message).to_contain_text("Finished simulations are kept")
    expect(
        tab.page.get_by_role("button", name=re.compile(r"Simulate (\d|1[0-4])\s"))
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
    expect(tab.page.locator(".st-key-picture .main-svg").first).to_be_visible()
    button = tab.still().page.locator('button[data-picture="picture"][data-form="png"]')
    png = saved(tab.page, tmp_path, button.click).read_bytes()
    assert png[:4] == b"\x89PNG"
    assert int.from_bytes(png[16:20]) == WIDTH * DOTS, (
        "as wide as for print, whatever the window is"
    )
    alone = tab.page.context.new_page()
    alone.goto(page.as_uri())
    expect(alone.locator(".main-svg").first).to_be_visible()
    for form, begin in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        picture = saved(alone, tmp_path, alone.get_by_text(f"Save as {form}").last.click)
        assert picture.read_bytes()[:4] == begin


def type_price(tab: Tab, dollars: str) -> None:
    """Type a price into the third row, the optical-switch port; prices stand beside the names."""
    table = tab.still().page.locator('[class*="st-key-parts_"] [data-testid="stDataFrame"]').first
    cell = tab.page.locator("#portal input.gdg-input, #portal input").first
    for _ in range(10):  # a table that is still being drawn does not hear a click
        table.dblclick(position={"x": 168 + 46, "y": ROW_PX * 3.5})
        with suppress(TimeoutError):
            cell.wait_for(timeout=2_000)
            break
    cell.fill(dollars)
    cell.press("Enter")


@pytest.mark.long
def test_a_price_that_is_typed_in_moves_every_number_and_can_be_taken_back(
    tab: Tab, tmp_path: Path
) -> None:
    tab.open(address("Network", "cost.gpus=512&cost.counting=whole-switches&cost.prices=opus-v1"))
    expect(tab.headline).to_contain_text("23 % more than rail")
    type_price(tab, "130")
    expect(tab.headline).to_contain_text(re.compile("less than rail"))
    expect(tab.kicker).to_contain_text("edited")
    link = tab.still().page.url
    assert "cost.parts=ocs_port" in link.replace("%3A", ":")

    tab.button("Parts file").click()
    tab.still()
    file = saved(tab.page, tmp_path, tab.button("Parts (JSON)").click)
    parts = json.loads(file.read_text())["parts"]
    assert next(part["price_usd"] for part in parts if part["id"] == "ocs_port") == 130
    tab.page.keyboard.press("Escape")

    tab.button("Undo edits").click()
    expect(tab.headline).to_contain_text("23 % more than rail")
    tab.open(link.removeprefix(tab.base))
    expect(tab.headline).to_contain_text(re.compile("less than rail"))
    tab.go_to("Compare")
    tab.go_to("Network")
    expect(tab.kicker).to_contain_text("edited")


@pytest.mark.long
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_to_buy_prints_whole(new_tab: NewTab, theme: str) -> None:
    tab = new_tab(color_scheme=theme)
    tab.open(address("Which switch", "sample=blackboard"))
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
    assert max(height for _, _, height in seen["figures"]) <= PAPER["height"]
    assert seen["tables"] == [1 + 10, 1 + 7 * 4]
    assert (seen["ground"], seen["ink"]) == ("rgb(255, 255, 255)", "rgb(0, 0, 0)")
