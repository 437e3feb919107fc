"""A user's own files and recorded runs: in, and out again in a form that others can check."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import ROOT
from tests.e2e.tab import Tab, saved

pytestmark = pytest.mark.browser


def write(folder: Path, name: str, content: dict[str, Any]) -> Path:
    file = folder / name
    file.write_text(json.dumps(content))
    return file


def check(*arguments: Path | str) -> subprocess.CompletedProcess[str]:
    """Run the independent checker as a reader of the files would."""
    return subprocess.run(
        [sys.executable, "-m", "topox_core", "check", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_the_downloaded_result_is_the_schedule_on_the_page_and_passes_the_checker(
    tab: Tab, tmp_path: Path
) -> None:
    tab.open("/Schedule?sample=race")
    tab.push("port_gbps")
    expect(tab.kicker).to_contain_text("50G ports")
    shown = tab.settled_text(tab.kpi("Iteration time"))
    tab.button("Download").click()
    tab.still()  # a click while the page is drawn anew may be lost
    result = saved(tab.page, tmp_path, tab.button("Result (JSON)").click)
    assert result.name == "race.schedule.json"
    record = json.loads(result.read_text())
    assert f"{record['makespan_ms']:.3g} ms" == shown
    files = ROOT / "sample_data" / "race.taskgraph.json", ROOT / "sample_data" / "race.cluster.json"
    passed = check(*files, result)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    # The same file, one task a little early: were this to pass, the line above would mean nothing.
    late = max(record["tasks"], key=lambda task: task["start_ms"])
    late["start_ms"] -= 5
    late["end_ms"] -= 5
    assert check(*files, write(tmp_path, "early.schedule.json", record)).returncode == 1


def test_a_figure_is_saved_as_picture_table_and_plotly_figure_without_a_browser_on_the_server(
    tab: Tab, tmp_path: Path
) -> None:
    tab.open("/Compare?sample=blackboard")
    tab.unfold("table_iterations")
    box = tab.page.locator(".st-key-table_iterations")

    def save(form: str) -> Path:
        return saved(tab.page, tmp_path, box.get_by_role("button", name=form, exact=True).click)

    png, svg, table, figure = map(save, ("PNG", "SVG", "CSV", "JSON"))
    assert png.name == "iterations.png" and png.read_bytes().startswith(b"\x89PNG")
    assert int.from_bytes(png.read_bytes()[16:20]) > 1_500, "three dots a pixel"
    assert "<svg" in svg.read_text() and "Planned circuits" in svg.read_text()
    assert "Planned circuits" in table.read_text()
    assert json.loads(figure.read_text())["data"]


RECORDED = [ROOT / "sample_data" / f"recorded-run_rank{rank}.json.gz" for rank in range(4)]


def bring(tab: Tab, *files: object) -> None:
    tab.page.locator(".st-key-up_recording input[type=file]").set_input_files(list(files))


@pytest.mark.long
def test_files_of_a_run_become_a_finding_and_then_a_schedule(tab: Tab) -> None:
    tab.open("/?way=files")
    tab.page.get_by_role("link", name="A recorded run: files of PyTorch").click()
    expect(tab.headline).to_contain_text("Bring a recording of your own job")
    bring(tab.still(), *RECORDED)
    expect(tab.headline).to_contain_text("Step 101 takes 36.2")
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


def test_a_bad_recording_costs_a_line_and_a_reload_keeps_the_run(tab: Tab, tmp_path: Path) -> None:
    tab.open("/Trace")
    bring(tab, *RECORDED[:2])
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
