"""The schedule of a setting, and the exact engine beside the page: watched, cancelled, left alone, killed."""

from __future__ import annotations

import os
import re
import signal
import time as clock
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import NewTab, Server
from tests.e2e.tab import PATIENCE_MS, Tab
from topox_core.fabrics.scheduled import schedule
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import time
from topox_core.workloads.samples import SAMPLES, load_sample

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
    deadline = clock.monotonic() + PATIENCE_MS / 1000
    while clock.monotonic() < deadline:
        now = solvers(server) - before
        if bool(now) == some:
            return now
        clock.sleep(0.05)
    pytest.fail(
        "no solver process was started"
        if some
        else f"solver processes are left: {solvers(server) - before}"
    )


def iteration(sample: str, **what_ifs: float) -> str:
    """Return the iteration time that the core gives for a sample, in the page's words."""
    graph, cluster = load_sample(sample)
    makespan_ms = schedule(
        graph, cluster.changed(**what_ifs), Settings.of(engine="list", free=FREE)
    ).makespan_ms
    assert makespan_ms is not None
    return time(makespan_ms)


def query(tab: Tab) -> dict[str, list[str]]:
    return parse_qs(urlsplit(tab.page.url).query)


@pytest.mark.long
def test_a_link_opened_cold_restores_the_sample_and_every_slider(tab: Tab) -> None:
    tab.open(
        "/Schedule?sample=moe&port_gbps=400&reconfiguration_ms=2&slot_ms=0.5&from_ms=20&to_ms=60"
    )
    expect(tab.kicker).to_contain_text("moe · 8 servers, 2 switches, 400G ports")
    expect(tab.slider("port_gbps")).to_have_attribute("aria-valuetext", "400G")
    expect(tab.slider("reconfiguration_ms")).to_have_attribute("aria-valuetext", "2 ms")
    expect(tab.kpi("Iteration time")).to_have_text(
        iteration("moe", port_gbps=400, reconfiguration_ms=2, slot_ms=0.5)
    )
    shown = tab.chart("gantt").evaluate("chart => chart.layout.xaxis.range")
    assert shown == pytest.approx([20, 60], abs=1)


def test_a_moved_slider_gives_the_schedule_of_its_setting_and_writes_it_into_the_address(
    tab: Tab,
) -> None:
    tab.open("/Schedule?sample=moe")
    expect(tab.kpi("Iteration time")).to_have_text(iteration("moe"))
    tab.push("port_gbps")
    expect(tab.kpi("Iteration time")).to_have_text(iteration("moe", port_gbps=400))
    tab.push("reconfiguration_ms", "End")
    expect(tab.kpi("Iteration time")).to_have_text(
        iteration("moe", port_gbps=400, reconfiguration_ms=100)
    )
    tab.still()
    assert query(tab) == {"sample": ["moe"], "port_gbps": ["400"], "reconfiguration_ms": ["100"]}
    # The window is one of the schedule that is shown: 210 ms on circuits that stay fixed.
    assert 0 < max(tab.chart("gantt").evaluate("chart => chart.layout.xaxis.range")) <= 211
    tab.button("Reset what-ifs").click()
    expect(tab.kpi("Iteration time")).to_have_text(iteration("moe"))
    expect(tab.slider("port_gbps")).to_have_attribute("aria-valuetext", "360G")


@pytest.mark.parametrize(
    "corner", [pytest.param((12, 12), marks=pytest.mark.long), (-12, -12)], ids=["above", "below"]
)
def test_a_click_near_a_corner_of_a_sample_card_leads_to_its_schedule(
    tab: Tab, corner: tuple[int, int]
) -> None:
    sample = SAMPLES["blackboard"]
    tab.open()
    box = tab.page.locator(".st-key-card_blackboard").bounding_box()
    assert box is not None
    x, y = (at % size for at, size in zip(corner, (box["width"], box["height"]), strict=True))
    tab.page.mouse.click(box["x"] + x, box["y"] + y)
    expect(tab.seal).to_contain_text("Proved optimal")
    assert sample.optimum_ms == 10
    expect(tab.kpi("Iteration time")).to_have_text("10 ms")
    assert query(tab) == {"sample": ["blackboard"]}


@pytest.mark.long
def test_the_slot_slider_shows_the_circuit_of_that_slot(tab: Tab) -> None:
    """On the blackboard server 0 sends x to server 1 from 2 to 5 ms and y to server 2 from 5 to 7 ms, in slots of 1 ms."""
    tab.open("/Circuits?sample=blackboard&slot=4")
    assert [facts[:3] for facts in tab.marks("matrix")] == [["S0 → S1", "switch 0", "x"]]
    tab.push("slot")
    expect(tab.page.get_by_text(re.compile("Who talks to whom at 5[.]5"))).to_be_visible()
    tab.still()
    assert [facts[:3] for facts in tab.marks("matrix")] == [["S0 → S2", "switch 0", "y"]]
    assert query(tab) == {"sample": ["blackboard"], "slot": ["5"]}


@pytest.mark.long
def test_arrow_keys_move_a_slot_and_play_goes_on_by_itself(tab: Tab) -> None:
    tab.open("/Circuits?sample=moe&slot=24")
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


@pytest.mark.long
def test_prove_it_ends_in_a_proof_and_a_shorter_schedule(new_tab: NewTab) -> None:
    # Without fixed circuits, whose bound is weaker than that of plans that switch.
    tab = new_tab().open("/Schedule?sample=race&switching=planned")
    expect(tab.seal).to_contain_text("Feasible: at most")
    listed = tab.kpi("Iteration time").inner_text()
    tab.prove()
    expect(tab.seal).to_contain_text("Proved optimal")
    expect(tab.kpi("Gap to bound")).to_have_text("0 %")
    tab.still()
    proved = tab.kpi("Iteration time").inner_text()
    assert milliseconds(proved) < milliseconds(listed)
    assert "proof" in tab.certificate.inner_text()
    button = tab.page.get_by_role(
        "button", name="Proved", exact=True
    )  # the seal has a term of two words
    expect(button).to_be_disabled()
    # What one visitor has proved is not what another sees before asking.
    other = new_tab().open("/Schedule?sample=race&switching=planned")
    expect(other.seal).to_contain_text("Feasible: at most")


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


def test_a_closed_tab_takes_its_solver_with_it(
    tab: Tab, server: Server, only_new: set[int]
) -> None:
    tab.open(LONG)
    tab.prove()
    wait_for(server, only_new, some=True)
    tab.leave()
    wait_for(server, only_new, some=False)


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
    tab.unfold("race_box")
    tab.button("Start the race").click()
    expect(tab.page.locator(".st-key-race_live .main-svg").first).to_be_visible()
    expect(tab.page.locator(".st-key-race_chart .main-svg").first).to_be_visible()
    tab.still()
    expect(tab.seal).to_contain_text("Proved optimal")
    proved = tab.kpi("Iteration time").inner_text()
    assert milliseconds(proved) < milliseconds(listed)
    expect(tab.page.locator(".card").filter(has_text="above").first).to_contain_text("prove")
    names = tab.chart("race_chart").evaluate("chart => chart.data.map(trace => trace.name)")
    assert list(dict.fromkeys(names)) == ["list", "HiGHS", "CP-SAT", "auto"]


@pytest.mark.long
def test_a_cancelled_race_keeps_the_engines_that_had_ended(
    tab: Tab, server: Server, only_new: set[int]
) -> None:
    tab.open("/Schedule?sample=moe&race_s=60")
    tab.unfold("race_box")
    tab.button("Start the race").click()
    wait_for(server, only_new, some=True)
    tab.button("Cancel").click()
    expect(tab.message).to_contain_text("The engines that had ended are kept")
    wait_for(server, only_new, some=False)
    expect(tab.still().button("Run the other 3")).to_be_enabled()
    expect(tab.button("Prove it")).to_be_enabled()
