"""Links, samples and sliders: what a reader does first, and what two readers at once must not notice."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import NewTab
from tests.e2e.tab import Tab
from topox_core.fabrics.scheduled import schedule
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import time
from topox_core.workloads.samples import SAMPLES, load_sample

pytestmark = pytest.mark.browser


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
def test_what_ifs_go_along_from_the_schedule_to_the_circuits_and_back(tab: Tab) -> None:
    tab.open("/Schedule?sample=moe&port_gbps=400")
    tab.go_to("Circuits")
    expect(tab.kicker).to_contain_text("400G ports")
    tab.push("port_gbps")
    expect(tab.kicker).to_contain_text("800G ports")
    tab.still().go_to("Schedule")
    expect(tab.kpi("Iteration time")).to_have_text(iteration("moe", port_gbps=800))


@pytest.mark.long
def test_two_visitors_do_not_see_each_others_choices(new_tab: NewTab) -> None:
    first, second = new_tab().open("/Schedule?sample=moe"), new_tab().open("/Schedule")
    expect(second.page.get_by_text("This is a sample")).to_be_visible()
    second.open("/Schedule?sample=moe")
    first.push("port_gbps")
    expect(first.kpi("Iteration time")).to_have_text(iteration("moe", port_gbps=400))
    second.push("switches")
    expect(second.kicker).to_contain_text("3 switches, 360G ports")
    expect(first.still().kicker).to_contain_text("2 switches, 400G ports")
    first.push("port_gbps")
    expect(first.kicker).to_contain_text("2 switches, 800G ports")


@pytest.mark.long
def test_a_dark_theme_reaches_every_page_and_every_chart(new_tab: NewTab) -> None:
    tab = new_tab(color_scheme="dark")
    for address in ("/?sample=moe", "/Schedule?sample=moe", "/Circuits?sample=moe"):
        tab.open(address)
        page = brightness(
            tab.page.get_by_test_id("stApp").evaluate(
                "app => getComputedStyle(app).backgroundColor"
            )
        )
        words = brightness(tab.headline.evaluate("line => getComputedStyle(line).color"))
        label = tab.page.locator(".js-plotly-plot .ytick text").first
        assert page < 60
        assert words > 180
        assert brightness(label.evaluate("label => getComputedStyle(label).fill")) > 100
    assert tab.complaints == []


def brightness(colour: str) -> float:
    red, green, blue = (float(part) for part in re.findall(r"[\d.]+", colour)[:3])
    return (red + green + blue) / 3


def test_nothing_is_asked_from_any_other_machine(tab: Tab) -> None:
    """Every tab of every test is watched; here the watch itself is."""
    for address in ("/", "/Schedule?sample=blackboard"):
        tab.open(address)
    assert len(tab.requests) > 10, "the watch over requests sees none"
    assert tab.outside == []
