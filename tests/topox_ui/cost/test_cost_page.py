"""Cost: the finding in numbers, parts edited and taken back, files in and out, links, and dollars of a loaded scenario."""

import json
import re

import pytest

from tests.topox_ui.conftest import (
    address,
    bring,
    chart,
    choose,
    control,
    press,
    table,
    the_error,
    words,
)
from topox_core.economics.price_sets import PRICE_SETS, dump_parts
from topox_core.fabrics.comparison.compare import fabric_bill
from topox_core.fabrics.crossover.verdict import Bracket, Verdict
from topox_core.fabrics.options import FabricOptions
from topox_core.text.numbers import money
from topox_core.workloads.samples import load_sample

NETWORK, COST, COMPARE = "Network", "Cost", "Compare"


def totals(at) -> list[str]:
    marks = chart(at, "cost_cost")["layout"]["annotations"]
    return [re.sub("</?b>", "", mark["text"]).replace("\u00a0", " ") for mark in marks]


def test_the_finding_stands_in_the_headline_and_holds_for_what_counts(visit):
    at = visit(NETWORK)
    assert (
        "Photonic rails cost $1.74 M, 82 % less than rail\u2011optimised switches, and draw 11.0 kW, 96 % less"
        in words(at)
    )
    assert not at.info and not at.error
    assert not {"400G NIC", "Fibre"} & set(table(at, "From")["Part"])
    choose(at, cost_nics=True, cost_fibre=True, cost_pue=2.0)
    assert {"400G NIC", "Fibre"} < set(table(at, "From")["Part"])
    assert address(at)["cost.pue"] == "2"
    press(at, "cost_reset")
    assert address(at) == {} and "$1.74 M" in words(at)


@pytest.mark.parametrize(
    ("choices", "says", "note"),
    [
        ({"gpus": "4096"}, "Above 2,304 GPUs", "1,024 ports"),
        (
            {"gpus": "512", "prices": "opus-v1"},
            "Whole packet switches would be cheaper",
            "23 % more expensive",
        ),
        (
            {"gpus": "512", "counting": "whole-switches", "prices": "opus-v1"},
            "23 % more than rail\u2011optimised switches",
            "23 % more expensive",
        ),
        ({"gpus": "4032", "switch": "robotic"}, "4,032 GPUs", ""),  # with ports enough for a rail
        ({"gpus": "1000", "gpus_per_server": "72"}, "1,008 GPUs, 72 per server", ""),
    ],
)
def test_where_the_headline_fails_the_page_says_so(visit, choices, says, note):
    at = visit(NETWORK, **{f"cost.{key}": value for key, value in choices.items()})
    assert says in words(at)
    assert (
        any(note in box.value for box in at.info)
        if note
        else "ports on every rail" not in str([box.value for box in at.info])
    )


def test_an_edited_price_is_in_the_link_until_it_is_undone_or_another_list_is_chosen(visit):
    edited = {"cost.parts": "ocs_port:260:0.390625"}
    at = visit(NETWORK, **edited)
    assert totals(at)[-1] == "$1.21 M" and "edited" in words(at)
    press(at, "undo_parts")
    assert totals(at)[-1] == "$1.74 M" and address(at) == {}
    at = choose(visit(NETWORK, **edited), cost_prices="opus-v1")
    assert address(at) == {"cost.prices": "opus-v1"} and totals(at)[-1] == "$1.29 M"


def parts_file(**part: object) -> bytes:
    return json.dumps({"format": "topox-parts", "version": 1, "parts": [part]}).encode()


def test_a_parts_file_replaces_the_prices_and_a_bad_one_is_one_line_and_changes_nothing(visit):
    at = visit(NETWORK)
    for content, says in (
        (b"{}", "format"),
        (parts_file(id="laser"), "must be one of transceiver,"),
        (parts_file(id="nic", price_usd=-4), "price_usd"),
    ):
        bring(at, "cost_file_in", "mine.parts.json", content)
        assert says in the_error(at) and "mine.parts.json" in the_error(at)
        assert totals(at)[-1] == "$1.74 M"
    mine = PRICE_SETS["opus-v1"].changed({"ocs_port": {"price_usd": 260.0}})
    bring(at, "cost_file_in", "mine.parts.json", dump_parts(mine))
    assert not at.error and totals(at)[-1] == "$757 k"
    assert control(at, "cost_prices").value == "file" and "cost.prices" not in address(at)


def test_with_a_graph_it_says_what_a_dollar_buys_and_compare_takes_the_prices(visit):
    at = visit(COST, sample="race")
    said = words(at).split("an iteration costs ")[1]
    assert re.match(
        r"\$[\d.]+ on planned circuits, against \$[\d.]+ on circuits fixed by [^$]+ and \$[\d.]+ on a full fat-tree \(at most "
        r"\$[\d.]+ where its hosts send in an order\)\. GPU hours are \d\d to \d\d % of the cost\. The port price counted, \$520, "
        r"is that of a switch that takes 25 ms per change\.",
        said,
    ), "of each kind the best"
    assert "a switch that takes" not in words(visit(COST, sample="race", reconfiguration_ms="25"))
    assert "$2 per GPU and hour" in words(at)
    dear = visit(COST, **{"sample": "race", "buy.usd_per_gpu_hour": "20"})
    assert "$20 per GPU and hour" in words(dear)
    box = control(at, "cost_prices")
    assert box.options[box.index] == "MixNet Table 4"
    assert "Prices: MixNet Table 4" in words(at)
    assert "MixNet Table 4" in words(visit(NETWORK)), "one list, whatever is priced"
    rows = {one["Fabric"]: one for one in table(at, "Priced as").to_dict("records")}
    assert rows["Ideal switch"]["Priced as"] == "not for sale"
    ordered, full = rows["Fat-tree, full, in order"], rows["Fat-tree, full"]
    assert ordered["Network"] == full["Network"] and ordered["Cost"].startswith("≤ $")
    for key in ("iteration_cost", "worth"):
        assert len(chart(at, key)["data"][0]["x"]) == len(rows) - 1
    own = full["Network"].replace("\u00a0", " ")
    assert f"{own} for a full fat-tree of the job's own" in words(at)
    assert f"on Network {totals(visit(NETWORK, sample='race'))[0]} for" in words(at)
    at = visit(COMPARE, sample="race")
    assert "MixNet Table 4" in words(at) and "Same cost" in words(at)
    prices = {"cost.prices": "opus-v1", "cost.parts": "packet_switch:400000:2524"}
    dear = visit(COMPARE, sample="race", **prices)
    assert words(at) != words(dear) and "price list of the shop FS" in words(dear)


def test_the_network_is_as_large_as_the_job_that_the_reader_chose(visit):
    at = visit(NETWORK, sample="moe")
    assert "64 GPUs, 8 per server" in words(at) and "As many GPUs as your job has" in words(at)
    assert address(at) == {"sample": "moe"}
    _, cluster = load_sample("moe")
    full = fabric_bill("fat_tree_full", cluster, PRICE_SETS["mixnet"], FabricOptions())
    own = money(full.cost_usd).replace("\u00a0", " ")
    assert f"a full one for the job's own 16 ports {own}: Per iteration says why" in words(at)
    assert f"A fat-tree costs {totals(at)[0]} here" in words(at)
    at = choose(at, cost_gpus=512)
    assert "512 GPUs" in words(at) and "whichever job it runs" in words(at)
    assert "1,024 GPUs" in words(visit(NETWORK, sample="race")), "a task graph says no GPUs"


def test_the_price_up_to_which_a_port_is_worth_it_stands_below_the_verdict(visit, monkeypatch):
    ends = {"fixed": 612.4, "fat_tree_same_cost": None, "fat_tree_full": -3.0}
    brackets = tuple(Bracket(name, 10.0, "", 1.0, 2.0, usd) for name, usd in ends.items())
    monkeypatch.setattr(
        "topox_ui.answers.verdicts.known_verdict", lambda _job: Verdict("list", brackets)
    )
    at = visit(COST, sample="blackboard")
    assert (
        "Without a delay, by the purchase price of the network alone, an iteration whose circuits change costs less than "
        "on the best fixed circuits found up to $612 per port, "
        "but more than on a full fat-tree whose hosts share links, even with free ports. "
        "A port of an optical switch is counted at $520 "
        "(published for Polatis). Which switch counts GPU hours and power too"
    ) in words(at)
    mine = PRICE_SETS["mixnet"].changed(
        {"ocs_port": {"price_usd": 600.0}, "nic": {"price_usd": 90.0}}
    )
    monkeypatch.setattr("topox_ui.cost.headline.catalogue", lambda: mine)
    at = visit(COST, sample="blackboard")
    assert "counted at $600 (assumed); assumed besides: 400G NIC $90." in words(at)
    monkeypatch.setattr("topox_ui.answers.verdicts.known_verdict", lambda _job: None)
    assert "by the purchase price" not in words(visit(COST, sample="blackboard"))
