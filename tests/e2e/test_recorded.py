"""A recorded run, from its files to a schedule, as a visitor with a folder of traces goes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import ROOT
from tests.e2e.tab import Tab

pytestmark = [pytest.mark.browser, pytest.mark.long]

FILES = [ROOT / "sample_data" / f"recorded-run_rank{rank}.json.gz" for rank in range(4)]


def bring(tab: Tab, *files: object) -> None:
    tab.page.locator(".st-key-up_recording input[type=file]").set_input_files(list(files))


def test_files_of_a_run_become_a_finding_and_then_a_schedule(tab: Tab) -> None:
    tab.open("/?way=files")
    tab.page.get_by_role("link", name="A recorded run: files of PyTorch").click()
    expect(tab.headline).to_contain_text("Bring a recording of your own job")
    bring(tab.still(), *FILES)
    expect(tab.headline).to_contain_text("Step 101 takes 36.2")
    expect(tab.headline).to_contain_text("the network accounts for at most 17.6")
    expect(tab.kpi("At 400 Gbit/s")).to_have_text("22.4 ms")
    assert "?" not in tab.still().page.url, "files leave no trace in an address that may be shared"
    box = tab.chart("recorded_steps").locator(".point").last.bounding_box()
    assert box
    tab.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(tab.headline).to_contain_text("Step 103 takes 36.2")
    tab.still().push("recorded_nic_gbps")
    expect(tab.kpi("At 800 Gbit/s")).to_be_visible()
    tab.still().button("Schedule it").click()
    expect(tab.kicker).to_contain_text("Schedule · recorded step 103")
    expect(tab.kicker).to_contain_text("400G ports")
    expect(tab.job).to_contain_text("75 tasks · 4 servers")
    assert not tab.outside


def test_a_bad_file_costs_a_line_and_a_reload_keeps_the_run(tab: Tab, tmp_path) -> None:
    tab.open("/Recorded")
    bring(tab, *FILES[:2])
    expect(tab.headline).to_contain_text("the network accounts for")
    bad = tmp_path / "rank7.json"
    bad.write_text("not a trace")
    tab.still().unfold("recorded_files")
    bring(tab, bad)
    expect(tab.message.filter(has_text="rank7.json")).to_be_visible()
    before = tab.settled_text(tab.headline)
    tab.page.reload()
    expect(tab.headline).to_have_text(re.compile("the network accounts for"))
    assert tab.settled_text(tab.headline) == before
