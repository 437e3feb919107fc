"""The exact engine beside the page: watched, cancelled, left alone, killed."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import NewTab, Server
from tests.e2e.tab import PATIENCE_MS, Tab

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
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < deadline:
        now = solvers(server) - before
        if bool(now) == some:
            return now
        time.sleep(0.05)
    pytest.fail(
        "no solver process was started"
        if some
        else f"solver processes are left: {solvers(server) - before}"
    )


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


@pytest.mark.long
def test_a_running_solve_is_drawn_and_cancel_ends_it_and_keeps_the_schedule(
    tab: Tab, server: Server, only_new: set[int]
) -> None:
    tab.open(LONG)
    tab.prove()
    wait_for(server, only_new, some=True)
    expect(tab.page.locator(".st-key-search_live .main-svg").first).to_be_visible()
    # How long the answer took goes to the log; how busy the machine is decides it as well, so that
    # nothing hangs on it.
    tab.page.evaluate("""() => {
      document.addEventListener('click', () => { window.clicked = performance.now(); }, true);
      new MutationObserver(() => {
        const card = document.querySelector('.st-key-certificate');
        if (window.clicked && !window.answered && card && card.textContent.includes('cancelled'))
          window.answered = performance.now();
      }).observe(document.body, {childList: true, subtree: true, characterData: true});
    }""")
    tab.button("Cancel").click()
    expect(tab.certificate).to_contain_text("cancelled")
    logging.getLogger(__name__).info(
        "cancelled is on screen %.0f ms after the click",
        tab.page.evaluate("() => window.answered - window.clicked"),
    )
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


@pytest.mark.long
def test_a_closed_tab_takes_its_solver_with_it(
    tab: Tab, server: Server, only_new: set[int]
) -> None:
    tab.open(LONG)
    tab.prove()
    wait_for(server, only_new, some=True)
    tab.leave()
    wait_for(server, only_new, some=False)


@pytest.mark.long
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
