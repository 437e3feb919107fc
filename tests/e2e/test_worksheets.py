"""Worksheets in a printer: two pages a student on A4 and on Letter, no question split, keys only where they were asked for."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from topox_core.labs.lab_file import ready_labs
from topox_core.labs.worksheet import worksheets

pytestmark = [pytest.mark.browser, pytest.mark.long]

SEEDS = [*range(20), *(58157343 + 7919 * k for k in range(20))]
# Inner height of a page at 96 dots an inch: Letter is the lower one, less its margins of 11 mm.
PAGE_PX = (279.4 - 22) / 25.4 * 96


def pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page[^s]", pdf))


@pytest.mark.parametrize("lab", ready_labs().values(), ids=lambda lab: lab.id)
def test_forty_sheets_are_eighty_pages(chromium: Browser, tmp_path: Path, lab) -> None:
    page = chromium.new_page(viewport={"width": 720, "height": 1000})
    file = tmp_path / "sheets.html"
    file.write_text(worksheets(lab, [("", seed) for seed in SEEDS]), encoding="utf-8")
    page.goto(file.as_uri())
    for form in ("A4", "Letter"):
        assert pages(page.pdf(format=form)) == 2 * len(SEEDS), form
    page.emulate_media(media="print")
    heights = page.locator("section.page").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().height)"
    )
    assert len(heights) == 80 and max(heights) <= PAGE_PX  # so no question is on two pages
    wide = page.locator("section.page *").evaluate_all(
        "all => all.filter(one => one.getBoundingClientRect().right > document.body.getBoundingClientRect().right + 1)"
        ".map(one => one.outerHTML.slice(0, 80))"
    )
    assert wide == []
    file.write_text(worksheets(lab, [("", seed) for seed in SEEDS[:5]], with_key=True), "utf-8")
    page.goto(file.as_uri())
    assert pages(page.pdf(format="A4")) == 15
    page.close()
