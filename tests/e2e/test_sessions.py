"""A session is a browser tab: a reload keeps it, another tab has its own, and none is found by an address."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import PATIENCE_MS, Tab
from tests.e2e.test_files import CLUSTER, TASKS, bring_files, graph, write

pytestmark = pytest.mark.browser
ID = "sessionStorage.getItem('topox-tab')"


@pytest.mark.long
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
def test_a_page_follows_a_theme_that_is_switched_while_it_is_open(tab: Tab) -> None:
    tab.in_window(1366, "light").open("/Schedule?sample=patience")
    ink = "document.querySelector('.st-key-gantt .js-plotly-plot')?.layout?.font?.color"
    light = tab.page.evaluate(ink)
    assert light
    tab.page.emulate_media(color_scheme="dark")
    # While the chart is replaced there is none.
    tab.page.wait_for_function(f"({ink} ?? {light!r}) !== {light!r}", timeout=PATIENCE_MS)
