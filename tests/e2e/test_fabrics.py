"""The pages that set fabrics side by side: a delay moved, a map cancelled, a card of the gallery run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import Tab

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_a_longer_delay_changes_what_the_compare_page_finds(tab: Tab) -> None:
    tab.open("/Compare?sample=race&reconfiguration_ms=0.001")
    expect(tab.kicker).to_contain_text("Compare · race")
    before = tab.settled_text(tab.headline)
    tab.push("reconfiguration_ms", "End")
    expect(tab.kicker).to_contain_text("100 ms delay")
    assert tab.settled_text(tab.headline) != before


@pytest.mark.long
def test_a_map_computes_itself_and_keeps_its_points_when_it_is_cancelled(tab: Tab) -> None:
    tab.open("/Compare?sample=dlrm-16&reconfiguration_ms=1")
    expect(tab.page.get_by_text(re.compile(r"Computing the map, [1-9]\d* of"))).to_be_visible()
    tab.button("Cancel").click()
    expect(tab.page.get_by_text(re.compile("points that were computed are kept"))).to_be_visible()
    expect(tab.button("Go on with the map")).to_be_visible()


@pytest.mark.long
def test_a_card_of_the_gallery_runs_here_and_tells_theirs_from_ours(tab: Tab) -> None:
    tab.open("/Gallery")
    tab.control("gallery_card").get_by_role("combobox").click()
    tab.page.get_by_role("option", name=re.compile("andwidth tax")).click()
    tab.still()
    tab.button("Run it here").click()
    expect(tab.page.get_by_text(re.compile("1[.]11")).first).to_be_visible()
    # Thirteen numbers on 128 servers, by workers that give way to everything else on the machine.
    expect(tab.page.get_by_test_id("stPlotlyChart").first).to_be_visible(timeout=600_000)
    tab.still()
