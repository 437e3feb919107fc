"""From page to page by the menu: every control shows what its page counts with, whatever the way there was."""

from __future__ import annotations

import random

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import NewTab
from tests.e2e.tab import Tab

pytestmark = pytest.mark.browser

LINK = "/Schedule?sample=blackboard&port_gbps=400&reconfiguration_ms=0.5&traffic=ring&cost.gpus=512&strategy.budget=300"
SHARING = ("Schedule", "Circuits", "Compare", "Topology")
PAGES = (*SHARING, *SHARING, "Cost", "Strategy", "Published results")
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


def shown(tab: Tab) -> dict[str, str]:
    """Return what every control of the page shows, by the field of its state."""
    return tab.still().page.evaluate(CONTROLS)


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


@pytest.mark.long
def test_page_changes_by_the_menu_show_every_choice_as_it_was_made(tab: Tab) -> None:
    # Of the short walks this one comes past all seven pages and moves a slider.
    walk(tab, 10, seed=31)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_walks_of_fifty_page_changes_show_every_choice_as_it_was_made(
    tab: Tab, seed: int
) -> None:
    walk(tab, 50, seed)


@pytest.mark.long
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


@pytest.mark.long
def test_two_tabs_at_once_keep_their_own_choices(new_tab: NewTab) -> None:
    tabs = {"400G": new_tab(), "25G": new_tab()}
    for speed, one in tabs.items():
        one.open(f"/Schedule?sample=blackboard&port_gbps={speed[:-1]}")
    for page in ("Circuits", "Compare", "Schedule") * 2:
        for one in tabs.values():
            one.menu_link(page).click()
        for speed, one in tabs.items():
            one.page.wait_for_function("name => document.title.startsWith(name)", arg=page)
            assert shown(one)["port_gbps"] == speed


@pytest.mark.long
def test_a_reload_in_the_middle_of_a_change_leaves_one_setting(tab: Tab) -> None:
    tab.open("/Schedule?sample=blackboard&port_gbps=100")
    for _ in range(3):
        before = shown(tab)["port_gbps"]
        tab.push("port_gbps")
        tab.page.reload()
        after = shown(tab)["port_gbps"]
        assert after in (before, {"100G": "200G", "200G": "400G", "400G": "800G"}.get(before))
        expect(tab.kicker).to_contain_text(f"{after} ports")


@pytest.mark.long
def test_the_source_of_jobs_changes_to_the_set_up_of_the_paper_and_back(tab: Tab) -> None:
    tab.open("/Jobs?jobs.jobs=16&jobs.algorithm=static")
    for source in ("the paper’s set-up", "a sample", "the paper’s set-up"):
        tab.control("jobs_source").get_by_role("combobox").click()
        tab.page.get_by_role("option", name=source).click()
        tab.page.wait_for_timeout(300)
        now = shown(tab)
        assert now["jobs_source"] == source
        assert now.get("jobs_jobs", "16") == "16" and now["jobs_port_gbps"].endswith("G")
        expect(tab.page.get_by_test_id("stException")).to_have_count(0)
    tab.go_to("Cost").go_to("Jobs")
    assert shown(tab)["jobs_source"] == "the paper’s set-up"
