"""From page to page and from session to session: nothing that was chosen or brought is lost, whatever the way."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import NewTab
from tests.e2e.page_checks import what_stays
from tests.e2e.tab import PATIENCE_MS, Tab, saved
from tests.e2e.test_files import write
from tests.patience import wait_until

pytestmark = pytest.mark.browser

ID = "sessionStorage.getItem('topox-tab')"
LINK = "/Schedule?sample=blackboard&port_gbps=400&reconfiguration_ms=0.5&traffic=ring&cost.gpus=512&strategy.budget=300"
SHARING = ("Schedule", "Circuits", "Compare", "Fixed circuits")
PAGES = (*SHARING, *SHARING, "Network", "Plans", "Papers")
PUSHED = ("port_gbps", "reconfiguration_ms", "switches")
# What follows a choice: ports the switches, a degree the ports, bandwidths of the same cost and what is in view all of them.
FOLLOWING = {
    "ports_per_server",
    "degree",
    "cost_ratio",
    "step",
    "slot",
    "from_ms",
    "lanes_from_ms",
    "map_point",
    "switch_ms",  # of one collective: the cluster's delay
}
CONTROLS = """() => Object.fromEntries([...document.querySelectorAll('[class*="st-key-w_"]')].map(box => {
  const field = box.className.match(/st-key-w_[0-9a-f]*_(\\S+)-\\d+/)[1];
  const all = selector => [...box.querySelectorAll(selector)];
  const ranges = all('input[type=range]'), ticks = all('input[type=checkbox]'), texts = all('input');
  if (ranges.length) return [field, ranges.map(one => one.getAttribute('aria-valuetext') || one.value).join(' to ')];
  const pressed = all('button').filter(one => one.getAttribute('aria-checked') === 'true'
    || one.getAttribute('aria-pressed') === 'true' || /Active$/.test(one.getAttribute('kind') || one.dataset.testid || ''));
  if (box.querySelector('[data-testid=stButtonGroup]')) return [field, pressed.map(one => one.textContent.trim()).join(', ')];
  if (ticks.length) return [field, String(ticks[0].checked)];
  const select = box.querySelector('[data-baseweb=select]');
  return [field, select ? select.innerText.trim() || texts[0]?.value : texts[0]?.value];
}))"""


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


def shown(tab: Tab) -> dict[str, str]:
    """Return what every control of the page shows, by the field of its state."""
    return tab.still().page.evaluate(CONTROLS)


def two_speeds(tab: Tab) -> list[str]:
    """Return what slider and kicker say of the port speed, where they do not say the same."""
    # Between two drawings there may be no slider: then they do not say the same yet.
    slider, kicker = shown(tab).get("port_gbps", ""), tab.kicker.inner_text().replace("\xa0", " ")
    return [] if f" {slider} ports" in kicker else [slider, kicker]


def walk(tab: Tab, changes: int, seed: int) -> None:
    """Go from page to page by the menu, move a slider now and then, and read every control each time."""
    rng = random.Random(seed)
    known = shown(tab.open(LINK))
    assert (known["port_gbps"], known["reconfiguration_ms"]) == ("400G", "0.5 ms")
    here, read = "Schedule", 0
    for change in range(changes):
        here = rng.choice([page for page in PAGES if page != here])
        now = shown(tab.go_to(here))
        assert {f: (v, known[f]) for f, v in now.items() if known.get(f, v) != v} == {}, (
            f"{here} after {change} page changes"
        )
        known |= now
        read += len(now)
        expect(tab.page.get_by_test_id("stException")).to_have_count(0)
        movable = [field for field in PUSHED if field in now]
        if movable and change % 6 == 5:
            field = rng.choice(movable)
            at_end = tab.slider(field).evaluate("one => one.value === one.max")
            tab.push(field, "ArrowLeft" if at_end else "ArrowRight")
            tab.page.wait_for_timeout(300)
            then = shown(tab)
            moved = {f for f, v in then.items() if known.get(f, v) != v}
            assert field in moved and moved <= {field} | FOLLOWING
            known = {f: v for f, v in known.items() if f not in FOLLOWING} | then
    assert known["traffic"] == "all-reduce" and known["cost_gpus"] == "512"
    assert known["strategy_budget"] == "300"
    assert read > 5 * changes


def test_page_changes_by_the_menu_show_every_choice_as_it_was_made(tab: Tab) -> None:
    # Of the short walks this one comes past all seven pages and moves a slider.
    walk(tab, 10, seed=31)


@pytest.mark.long
def test_a_longer_walk_shows_every_choice_as_it_was_made(tab: Tab) -> None:
    walk(tab, 25, seed=3)  # past all seven pages


def test_back_and_forward_undo_and_redo_a_choice(tab: Tab) -> None:
    tab.open("/Schedule?sample=blackboard&port_gbps=400")
    tab.push("port_gbps")
    expect(tab.kicker).to_contain_text("800G ports")
    tab.still().go_to("Compare")
    assert shown(tab)["port_gbps"] == "800G"
    for move, speed in ((tab.page.go_back, "400G"), (tab.page.go_forward, "800G")):
        for _ in range(2):
            move()
            tab.page.wait_for_timeout(500)
            tab.still()
        expect(tab.slider("port_gbps")).to_have_attribute("aria-valuetext", speed)
    tab.go_to("Schedule")
    expect(tab.kicker).to_contain_text("800G ports")


def test_a_reload_in_the_middle_of_a_change_leaves_one_setting(tab: Tab) -> None:
    tab.open("/Schedule?sample=blackboard&port_gbps=100")
    for _ in range(3):
        before = shown(tab)["port_gbps"]
        tab.push("port_gbps")
        tab.page.reload()
        # The page that comes back is drawn by the address first, then by what its tab held.
        assert what_stays(tab, two_speeds) == []
        after = shown(tab)["port_gbps"]
        assert after in (before, {"100G": "150G", "150G": "200G", "200G": "400G"}.get(before))


def test_own_files_survive_a_reload_on_every_page_and_leave_no_trace_in_the_address(
    tab: Tab, tmp_path: Path
) -> None:
    bring_files(tab.open()).upload("up_cluster", write(tmp_path, "c.json", CLUSTER))
    expect(tab.message).to_contain_text("c.json is kept")
    tab.still().page.reload()
    expect(tab.message).to_contain_text("c.json is kept")
    tab.still().upload("up_graph", graph(tmp_path, "my own job", TASKS))
    expect(tab.job).to_contain_text("my own job")
    expect(tab.job).to_contain_text("2 servers · 1 switch")
    tab.still().go_to("Schedule")
    expect(tab.kpi("Iteration time")).to_have_text("11 ms")
    known = tab.page.evaluate(ID)
    tab.still().page.reload()
    expect(tab.job).to_contain_text("my own job")
    expect(tab.kpi("Iteration time")).to_have_text("11 ms")
    tab.still()
    assert tab.page.evaluate(ID) == known
    assert "?" not in tab.page.url and known not in tab.page.url
    tab.push("port_gbps", "ArrowLeft")
    expect(tab.kpi("Iteration time")).to_have_text("13 ms")


def test_back_never_takes_the_own_job_away_and_an_address_of_another_job_asks(
    tab: Tab, tmp_path: Path
) -> None:
    tab.open("/Schedule?sample=blackboard").go_to("Home")
    bring_files(tab).upload("up_graph", graph(tmp_path, "my own job", TASKS))
    expect(tab.job).to_contain_text("my own job")
    tab.still().go_to("Schedule")
    tab.page.reload()
    expect(tab.job).to_contain_text("my own job")
    tab.still().go_to("Compare")
    asked = tab.page.locator(".st-key-asked")
    for page in ("Schedule", "Home"):
        tab.page.go_back()
        tab.page.wait_for_timeout(500)
        expect(tab.still().job).to_contain_text("my own job")
        assert tab.page.title().startswith(page) and asked.count() == 0
    # What stands in the history before the upload is of the sample: no job goes without a word.
    while "sample=blackboard" not in tab.page.url:
        tab.page.go_back()
        tab.page.wait_for_timeout(500)
        expect(tab.still().job).to_contain_text("my own job")
    expect(asked).to_contain_text("This link opens Blackboard (sample). You have my own job open.")
    tab.button("Keep mine").click()
    expect(asked).to_have_count(0)
    expect(tab.still().job).to_contain_text("my own job")
    assert "?" not in tab.page.url
    # Typed into the tab it asks as well; whoever says yes has the sample.
    tab.open("/Compare?sample=blackboard&port_gbps=400")
    expect(asked).to_contain_text("You have my own job open.")
    tab.button("Open Blackboard").click()
    expect(tab.job).to_contain_text("Blackboard")
    expect(tab.still().slider("port_gbps")).to_have_attribute("aria-valuetext", "400G")
    expect(asked).to_have_count(0)


@pytest.mark.long
def test_a_tab_made_by_duplicating_another_has_a_session_of_its_own(
    tab: Tab, tmp_path: Path
) -> None:
    bring_files(tab.open()).upload("up_graph", graph(tmp_path, "my own job", TASKS))
    expect(tab.job).to_contain_text("my own job")
    tab.still()
    with tab.context.expect_page() as opening:
        tab.page.evaluate("window.open('/', '_blank')")  # takes the session storage along
    other = opening.value
    other.set_default_timeout(PATIENCE_MS)
    expect(other.locator(".st-key-job_box")).to_contain_text("No job loaded")
    other.wait_for_function(f"{ID} && {ID} !== '{tab.page.evaluate(ID)}'")
    tab.page.reload()
    expect(tab.job).to_contain_text("my own job")
    other.close()


@pytest.mark.long
def test_the_link_of_a_page_shows_the_same_page_to_somebody_else(
    new_tab: NewTab, tmp_path: Path
) -> None:
    mine, theirs = new_tab(), new_tab()
    mine.open("/Schedule?sample=race")
    mine.push("port_gbps", "Home")
    expect(mine.kicker).to_contain_text("10G ports")
    mine.still().button("Link").click()
    link = mine.page.get_by_test_id("stCode").inner_text().strip()
    assert link.startswith(mine.base + "/Schedule?")
    theirs.open(link.removeprefix(mine.base))

    def shown(tab: Tab) -> list[str]:
        what = (tab.kicker, tab.kpi("Iteration time"), tab.seal)
        return [tab.settled_text(where) for where in what]

    # Plans that pages find meanwhile for other settings are everybody's at the next look.
    wait_until(
        lambda: shown(theirs) == shown(mine), lambda: (mine.page.reload(), theirs.page.reload())
    )
    # With its result it travels as a file, to a session that has another job open.
    with_result = mine.button("Link with result")
    if not with_result.count():  # a page that was looked at anew has no menu open
        mine.still().button("Link").click()
    file = saved(mine.page, tmp_path, with_result.click)
    theirs.open("/Schedule?sample=blackboard").still().button("Link").click()
    theirs.upload("up_linked", file)
    expect(theirs.message).to_contain_text("race.link.json is open: a schedule of")
    wait_until(
        lambda: theirs.settled_text(theirs.kpi("Iteration time")) == shown(mine)[1],
        mine.page.reload,
    )
    assert "sample=race" in theirs.page.url


def test_views_stand_in_the_address_and_back_leads_through_them(tab: Tab) -> None:
    tab.open("/Schedule?sample=blackboard&port_gbps=400").go_to("Circuits")
    expect(tab.page).to_have_url(re.compile("/Schedule[?].*view=circuits"))
    assert shown(tab)["port_gbps"] == "400G"
    tab.push("port_gbps")
    expect(tab.page).to_have_url(re.compile("view=circuits.*port_gbps=800"))
    tab.still().go_to("Schedule")
    expect(tab.page).not_to_have_url(re.compile("view="))
    for move, title in ((tab.page.go_back, "Circuits"), (tab.page.go_forward, "Schedule")):
        move()
        expect(tab.page).to_have_title(re.compile(f"^{title} ·"))
        expect(tab.still().slider("port_gbps")).to_have_attribute("aria-valuetext", "800G")
    tab.go_to("Circuits").page.reload()
    expect(tab.still().page).to_have_title(re.compile("^Circuits ·"))
    assert shown(tab)["port_gbps"] == "800G"


def test_an_old_address_leads_on_with_all_it_says_and_back_does_not_come_to_it(tab: Tab) -> None:
    tab.open("/Learn").page.goto(f"{tab.base}/Circuits?sample=blackboard&port_gbps=400")
    expect(tab.page).to_have_title(re.compile("^Circuits ·"))
    expect(tab.page).to_have_url(
        f"{tab.base}/Schedule?view=circuits&sample=blackboard&port_gbps=400"
    )
    assert shown(tab)["port_gbps"] == "400G"
    tab.page.go_back()
    expect(tab.page).to_have_title(re.compile("^Learn ·"))
