"""The Cost page in a browser: a price typed into the table, taken back, and a link that opens the same state."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError, expect

from tests.e2e.tab import Tab

pytestmark = pytest.mark.browser
ROW_PX = 35  # of Streamlit's tables


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
    tab.open("/Cost?cost.gpus=512&cost.counting=whole-switches")
    expect(tab.headline).to_contain_text("23 % more than rail")
    type_price(tab, "130")
    expect(tab.headline).to_contain_text(re.compile("less than rail"))
    expect(tab.kicker).to_contain_text("edited")
    link = tab.still().page.url
    assert "cost.parts=ocs_port" in link.replace("%3A", ":")

    tab.button("Parts file").click()
    tab.still()
    with tab.page.expect_download() as download:
        tab.button("Parts (JSON)").click()
    file = tmp_path / "mine.parts.json"
    download.value.save_as(file)
    saved = json.loads(file.read_text())
    assert next(part["price_usd"] for part in saved["parts"] if part["id"] == "ocs_port") == 130
    tab.page.keyboard.press("Escape")

    tab.button("Undo edits").click()
    expect(tab.headline).to_contain_text("23 % more than rail")
    tab.open(link.removeprefix(tab.base))
    expect(tab.headline).to_contain_text(re.compile("less than rail"))
    tab.go_to("Compare")
    tab.go_to("Cost")
    expect(tab.kicker).to_contain_text("edited")
