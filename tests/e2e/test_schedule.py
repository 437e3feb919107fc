"""The schedule of a setting, and the exact engine beside the page: watched, cancelled, killed."""

import os
import re
import signal
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Server
from tests.e2e.tab import Tab
from tests.patience import wait_until

pytestmark = pytest.mark.browser

SOLVING = ("topox-cpsat", "topox-highs")  # what a worker calls itself once it is asked
# Not proved within minutes, so that whatever ends the solve early is what the test does to it.
LONG = "/Schedule?sample=moe&time_limit_s=3600"


def solvers(server: Server) -> set[int]:
    """Return the processes of the server that solve; those that wait with an engine loaded are not among them."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            name = (stat.parent / "comm").read_text().strip()
        except (OSError, ValueError):
            continue  # It ended while we were looking.
        if parent == server.process_id and name in SOLVING:
            found.add(int(stat.parent.name))
    return found


@pytest.fixture
def only_new(server: Server) -> set[int]:
    """Skip where processes cannot be seen; return those that were there before."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc to see child processes")
    return solvers(server)


def milliseconds(words: str) -> float:
    number, unit = words.split()
    assert unit == "ms"
    return float(number)


def wait_for(server: Server, before: set[int], *, some: bool) -> set[int]:
    """Wait until processes solve, or none does any longer; return those that do."""
    wait_until(lambda: bool(solvers(server) - before) == some)
    return solvers(server) - before


def query(tab: Tab) -> dict[str, list[str]]:
    return parse_qs(urlsplit(tab.page.url).query)


@pytest.mark.parametrize(
    "corner", [pytest.param((12, 12), marks=pytest.mark.long), (-12, -12)], ids=["above", "below"]
)
def test_a_click_near_a_corner_of_a_sample_card_leads_to_its_schedule(
    tab: Tab, corner: tuple[int, int]
) -> None:
    tab.open()
    box = tab.page.locator(".st-key-card_blackboard").bounding_box()
    assert box is not None
    x, y = (at % size for at, size in zip(corner, (box["width"], box["height"]), strict=True))
    tab.page.mouse.click(box["x"] + x, box["y"] + y)
    expect(tab.seal).to_contain_text("Proved optimal")
    expect(tab.kpi("Iteration time")).to_have_text("10 ms")
    assert query(tab) == {"sample": ["blackboard"]}


@pytest.mark.long
def test_arrow_keys_move_a_slot_and_play_goes_on_by_itself(tab: Tab) -> None:
    tab.open("/Schedule?view=circuits&sample=moe&slot=24")
    for stroke, slot in (("ArrowRight", 25), ("ArrowRight", 26), ("ArrowLeft", 25)):
        tab.push("slot", stroke)
        expect(tab.headline).to_contain_text(f"At {slot}.5 ms")
        tab.still()
    expect(tab.slider("slot")).to_be_focused()
    tab.button("Play").click()
    expect(tab.headline).to_contain_text(re.compile("At (2[7-9]|3)"))
    tab.button("Stop").click()
    expect(tab.button("Play")).to_be_visible()
    tab.still()


def test_a_running_solve_is_drawn_and_cancel_ends_it_and_keeps_the_schedule(
    tab: Tab, server: Server, only_new: set[int]
) -> None:
    tab.open(LONG)
    tab.prove()
    wait_for(server, only_new, some=True)
    expect(tab.page.locator(".st-key-search_live .main-svg").first).to_be_visible()
    tab.button("Cancel").click()
    expect(tab.certificate).to_contain_text("cancelled")
    wait_for(server, only_new, some=False)
    expect(tab.seal).to_contain_text("Feasible: at most")
    expect(tab.chart("gantt")).to_be_visible()
    expect(tab.still().button("Prove it")).to_be_enabled()


@pytest.mark.long
def test_sliders_stay_live_while_the_engine_proves(tab: Tab) -> None:
    tab.open(LONG)
    tab.prove()
    expect(tab.button("Cancel")).to_be_visible()
    before = tab.kpi("Iteration time").inner_text()
    tab.push("port_gbps", "Home")
    expect(tab.kicker).to_contain_text("10G ports")
    expect(tab.kpi("Iteration time")).not_to_have_text(before)
    expect(tab.button("Cancel")).to_be_visible()


def test_a_killed_solver_is_reported_and_the_page_goes_on(
    tab: Tab, server: Server, only_new: set[int]
) -> None:
    tab.open(LONG + "&engine=highs")
    before = tab.kpi("Iteration time").inner_text()
    tab.prove()
    for process_id in wait_for(server, only_new, some=True):
        os.kill(process_id, signal.SIGKILL)
    expect(tab.certificate).to_contain_text("solver failed")
    expect(tab.certificate).to_contain_text("signal 9")
    assert milliseconds(tab.settled_text(tab.kpi("Iteration time"))) <= milliseconds(before)
    expect(tab.chart("gantt")).to_be_visible()
    expect(tab.button("Prove it")).to_be_enabled()
    tab.push("port_gbps")
    expect(tab.kicker).to_contain_text("400G ports")
    expect(tab.kpi("Iteration time")).not_to_have_text(before)
    tab.still().prove()
    wait_for(server, only_new, some=True)


@pytest.mark.long
def test_a_race_draws_every_engine_and_its_finding_agrees_with_the_headline(tab: Tab) -> None:
    tab.open("/Schedule?sample=race&race_s=5&clock=slots")
    listed = tab.kpi("Iteration time").inner_text()
    tab.go_to("Proof")
    tab.button("Start the race").click()
    expect(tab.page.locator(".st-key-race_live .main-svg").first).to_be_visible()
    expect(tab.page.locator(".st-key-race_chart .main-svg").first).to_be_visible()
    tab.still()
    expect(tab.seal).to_contain_text("Proved optimal")
    names = tab.chart("race_chart").evaluate("chart => chart.data.map(trace => trace.name)")
    assert list(dict.fromkeys(names)) == ["list", "HiGHS", "CP-SAT", "auto"]
    proved = tab.go_to("Schedule").kpi("Iteration time").inner_text()
    assert milliseconds(proved) < milliseconds(listed)
