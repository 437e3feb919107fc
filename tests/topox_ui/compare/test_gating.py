"""The section on gating that changes: off until it is asked for, a link that restores it, numbers as the core has them."""

from __future__ import annotations

from tests.topox_ui.conftest import address, chart, control, metric, words
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.gated_iterations import (
    FAT_TREE,
    NETWORKS,
    OVERSUBSCRIBED,
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


def opened(visit, **query):
    given = {"sample": "moe", "fabrics": "static", "gated": "yes", "gating_iterations": "2"}
    return visit(COMPARE, **given | query)


def test_it_is_off_until_it_is_switched_on_and_the_address_says_so(visit):
    at = visit(COMPARE, sample="moe", fabrics="static")
    assert not at.exception and not any(m.label == "Work a dollar" for m in at.metric)
    control(at, "gated").set_value(True).run()
    assert not at.exception and metric(at, "Work a dollar").endswith("×")
    assert address(at)["gated"] == "yes"


def test_a_link_brings_every_choice_back_with_the_numbers_of_the_core(visit):
    at = opened(
        visit,
        gating="dirichlet",
        gating_skew="0.5",
        gating_seed="3",
        regional_circuits="foreseen",
        reevaluate_ms="20",
        pause="changed",
    )
    assert not at.exception and not at.error
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
    most = max(
        (run.work_a_dollar_over(runs[FAT_TREE]), NETWORKS[name].lower())
        for name, run in runs.items()
        if name != OVERSUBSCRIBED
    )
    assert f"Most work a dollar: {most[1]}, {short(most[0])}×." in words(at)
    lines = {one["name"]: one["y"] for one in chart(at, "gated")["data"]}
    assert lines["Regional circuits"] == list(runs[REGIONAL].iterations_ms)
    assert len({one["line"]["dash"] for one in chart(at, "gated")["data"]}) == len(lines) == 5
    for field, value in (("pause", "changed"), ("gating_seed", "3"), ("reevaluate_ms", "20")):
        assert address(at)[field] == value


def test_more_packet_ports_cost_more_and_the_optical_part_less(visit):
    few = opened(visit, ports_per_server="4", switches="4", packet_ports="1")
    many = opened(visit, ports_per_server="4", switches="4", packet_ports="3")
    assert not few.exception and not many.exception and not few.error and not many.error
    assert metric(few, "Packet part") != metric(many, "Packet part")
    assert metric(few, "Optical part") != metric(many, "Optical part")
    assert control(few, "packet_ports").value == 1


def test_a_job_without_experts_is_told_what_to_open(visit):
    at = opened(visit, sample="race")
    assert not at.exception
    assert "No transfer of this job is between experts" in words(at)


def test_without_packet_ports_one_line_says_what_is_missing(visit):
    at = opened(visit, packet_ports="0")
    assert not at.exception
    assert [one for one in at.error if "regional_packet_ports" in one.value]
