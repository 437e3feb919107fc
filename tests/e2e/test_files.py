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

TASKS = [
    {"id": "f0", "kind": "forward", "server": 0, "duration_ms": 3.0, "dependencies": []},
    {
        "id": "act",
        "kind": "communication",
        "source": 0,
        "destination": 1,
        "size_bytes": 25_000_000,
        "dependencies": ["f0"],
    },
    {"id": "b1", "kind": "backward", "server": 1, "duration_ms": 6.0, "dependencies": ["act"]},
]
CLUSTER = {
    "format": "topox-cluster",
    "version": 1,
    "name": "two servers, one switch",
    "servers": 2,
    "devices_per_server": 1,
    "ports_per_server": 1,
    "switches": 1,
    "ports_per_switch": 2,
    "port_gbps": 100.0,
    "slot_ms": 1.0,
    "reconfiguration_ms": 0.0,
}


def write(folder: Path, name: str, content: dict[str, Any]) -> Path:
    file = folder / name
    file.write_text(json.dumps(content))
    return file


def graph(folder: Path, name: str, tasks: list[dict[str, Any]]) -> Path:
    return write(
        folder,
        f"{name}.taskgraph.json",
        {"format": "topox-taskgraph", "version": 1, "name": name, "tasks": tasks},
    )


def bring_files(tab: Tab) -> Tab:
    tab.page.get_by_text("Your own files", exact=True).click()
    expect(tab.page.locator(".st-key-up_graph")).to_be_visible()
    return tab.still()


def check(*arguments: Path | str) -> subprocess.CompletedProcess[str]:
    """Run the independent checker as a reader of the files would."""
    return subprocess.run(
        [sys.executable, "-m", "topox_core", "check", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_an_uploaded_graph_and_cluster_become_what_is_scheduled(tab: Tab, tmp_path: Path) -> None:
    """3 ms forward, 25 MB at 100 Gbit/s in 2 ms, 6 ms backward: 11 ms in line; ports of 50 Gbit/s take 2 ms more."""
    bring_files(tab.open())
    tab.upload("up_graph", graph(tmp_path, "my own job", TASKS))
    expect(tab.job).to_contain_text("my own job")
    expect(tab.job).to_contain_text("3 tasks · 2 servers · 4 switches")
    expect(tab.page.get_by_text("Assumed cluster")).to_be_visible()
    tab.still().upload("up_cluster", write(tmp_path, "mine.cluster.json", CLUSTER))
    expect(tab.job).to_contain_text("3 tasks · 2 servers · 1 switch")
    expect(tab.page.locator(".st-key-up_cluster")).to_be_visible()
    tab.still().go_to("Schedule")
    expect(tab.kpi("Iteration time")).to_have_text("11 ms")
    expect(tab.seal).to_contain_text("Proved optimal")
    tab.push("port_gbps", "ArrowLeft")
    expect(tab.kpi("Iteration time")).to_have_text("13 ms")
    assert "?" not in tab.page.url, "an upload must leave no trace in an address that may be shared"


def test_a_bad_file_costs_one_line_and_nothing_else(tab: Tab, tmp_path: Path) -> None:
    tab.open("/?sample=patience")
    before = tab.job.inner_text()
    circle = [{**TASKS[0], "dependencies": ["b1"]}, *TASKS[1:]]
    bring_files(tab).upload("up_graph", graph(tmp_path, "circle", circle))
    expect(tab.message).to_contain_text("circle.taskgraph.json")
    line = tab.settled_text(tab.message)
    assert "cycle" in line
    assert len([part for part in line.splitlines() if len(part) > 3]) == 1, line
    assert tab.job.inner_text() == before
    tab.upload("up_cluster", write(tmp_path, "wrong.cluster.json", {**CLUSTER, "port_gbps": -1}))
    beside = tab.message.filter(has_text="wrong.cluster.json")
    expect(beside).to_contain_text("port_gbps")
    box = tab.page.locator(".st-key-up_cluster").bounding_box()
    line = beside.bounding_box()
    assert box and line and abs(line["x"] - box["x"]) < 5, (
        "the error stands under the box of its file"
    )
    tab.still().go_to("Schedule")
    expect(tab.kicker).to_contain_text("Schedule · patience")


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
    tab.open("/Recorded")
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
