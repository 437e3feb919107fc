"""The section on gating that changes: off until it is asked for, a link that restores it, numbers as the core has them."""

from __future__ import annotations

import pytest

from tests.topox_ui.conftest import address, chart, choose, metric, the_error, words
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.gated_iterations import (
    FAT_TREE,
    NETWORKS,
    REGIONAL,
    gated_networks,
)
from topox_core.fabrics.run import FabricOptions, FabricRequest
from topox_core.model.lowering import lower
from topox_core.runs.stopping import never
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import short, time
from topox_core.workloads.samples import load_sample

COMPARE = "pages/3_Compare.py"
pytestmark = pytest.mark.usefixtures("answers_kept")


def opened(visit, **query):
    given = {"sample": "moe", "fabrics": "static", "gated": "yes", "gating_iterations": "2"}
    return visit(COMPARE, **given | query)


def test_it_is_off_until_it_is_switched_on_and_the_address_says_so(visit):
    at = visit(COMPARE, sample="moe", fabrics="static")
    assert not any(m.label == "Work a dollar" for m in at.metric)
    assert metric(choose(at, gated=True), "Work a dollar").endswith("×")
    assert address(at)["gated"] == "yes"


def test_a_link_brings_every_choice_back_with_the_numbers_of_the_core(visit):
    link = {
        "gating": "dirichlet",
        "gating_skew": "0.5",
        "gating_seed": "3",
        "regional_circuits": "foreseen",
        "reevaluate_ms": "20",
        "pause": "changed",
    }
    at = opened(visit, **link)
    assert not at.error
    graph, cluster = load_sample("moe")
    settings = Settings.of(engine="list", free=FREE, seed=3)
    options = FabricOptions(
        regional_packet_ports=1,
        regional_circuits="foreseen",
        gating="dirichlet",
        gating_skew=0.5,
        gating_iterations=2,
        reevaluate_ms=20.0,
        pause="changed",
    )
    order = FabricRequest(lower(graph, settings.lowering), cluster, settings, options)
    runs = gated_networks(order, PRICE_SETS[SET_BY_SPEED], NETWORKS, never)
    assert metric(at, "Regional circuits") == time(runs[REGIONAL].mean_ms).replace("\u00a0", " ")
    over = runs[REGIONAL].work_a_dollar_over(runs[FAT_TREE])
    assert metric(at, "Work a dollar") == f"{short(over)}×"
    assert f"They do {short(over)}× its work a dollar." in words(at)
    lines = {one["name"]: one["y"] for one in chart(at, "gated")["data"]}
    assert lines["Regional circuits"] == list(runs[REGIONAL].iterations_ms)
    assert address(at).items() >= link.items()


def test_what_is_missing_for_it_is_said(visit):
    at = opened(visit, sample="race")
    assert "No transfer of this job is between experts" in words(at)
    assert "regional_packet_ports" in the_error(opened(visit, packet_ports="0"))
