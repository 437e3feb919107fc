"""Cost: the finding in numbers, parts edited and taken back, files in and out, links, and dollars of a loaded scenario."""

from __future__ import annotations

import json

import pytest

from tests.topox_ui.conftest import address, chart, control, ways_on, words
from topox_core.economics.parts_file import dump_parts
from topox_core.economics.price_sets import PRICE_SETS

COST = "pages/8_Cost.py"
V1 = PRICE_SETS["opus-v1"]


@pytest.fixture
def page(visit):
    def opened(**query: str):
        at = visit(COST, **query)
        assert not at.exception
        return at

    return opened


def totals(at, key: str = "cost_cost") -> list[str]:
    marks = chart(at, key)["layout"]["annotations"]
    return [
        mark["text"].replace("<b>", "").replace("</b>", "").replace("\u00a0", " ") for mark in marks
    ]


def test_the_finding_stands_in_the_headline(page):
    at = page()
    assert (
        "Photonic rails cost $1.29 M, 70 % less than rail\u2011optimised switches, and draw 11.0 kW, 96 % less"
        in words(at)
    )
    assert (
        "TopoOpt's fixed circuits are cheaper still, $455 k, but cannot change during a job"
        in words(at)
    )
    assert totals(at)[1] == "$4.28 M" and totals(at, "cost_power")[-1] == "11.0 kW"
    assert not at.info and not at.error


def test_where_the_headline_fails_the_page_says_so(page):
    at = page(**{"cost.gpus": "4096"})
    assert "Above 2,304 GPUs" in words(at) and "1,024 ports" in at.info[0].value
    assert totals(at)[-1].endswith("✗")
    at = page(**{"cost.gpus": "512"})
    assert (
        "Against whole packet switches they are dearer" in words(at)
        and "23 % dearer" in at.info[0].value
    )
    at = page(**{"cost.gpus": "512", "cost.counting": "whole-switches"})
    assert "23 % more than rail\u2011optimised switches" in words(at)
    assert "23 % dearer" in at.info[0].value


def test_a_switch_with_more_ports_takes_the_warning_away(page):
    at = page(**{"cost.gpus": "4032", "cost.switch": "robotic"})
    assert not any("ports on every rail" in box.value for box in at.info)


def test_choices_move_into_the_address_and_reset_takes_them_out(page):
    at = page()
    control(at, "cost_counting").set_value("whole-switches").run()
    control(at, "cost_gpus").set_value(512).run()
    assert address(at) == {"cost.counting": "whole-switches", "cost.gpus": "512"}
    at.button(key="cost_reset").click().run()
    assert not at.exception and address(at) == {}
    assert "$1.29 M" in words(at)


def test_an_edited_price_in_a_link_is_taken_and_undone(page):
    at = page(**{"cost.parts": "ocs_port:260:0.390625"})
    assert totals(at)[-1] == "$757 k"
    assert "edited" in words(at)
    at.button(key="undo_parts").click().run()
    assert totals(at)[-1] == "$1.29 M" and address(at) == {}


def test_another_price_set_drops_the_edits(page):
    at = page(**{"cost.parts": "ocs_port:260:0.390625"})
    control(at, "cost_prices").set_value("mixnet").run()
    assert address(at) == {"cost.prices": "mixnet"}
    assert totals(at)[-1] == "$1.74 M"


def test_a_link_that_cannot_be_is_one_line_and_the_rest_holds(page):
    at = page(**{"cost.parts": "laser:1:1", "cost.gpus": "many", "cost.counting": "whole-switches"})
    assert (
        len(at.warning) == 1
        and "cost.parts=laser:1:1" in at.warning[0].value.replace("\u2060", "")
        and "cost.gpus=many" in at.warning[0].value
    )
    assert address(at) == {"cost.counting": "whole-switches"}


def test_the_parts_that_count_are_listed(page):
    def parts(at) -> set[str]:
        return set(
            next(frame.value for frame in at.dataframe if "From" in frame.value.columns)["Part"]
        )

    assert not {"400G NIC", "Fibre"} & parts(page())
    assert {"400G NIC", "Fibre"} < parts(page(**{"cost.nics": "yes", "cost.fibre": "yes"}))


def test_gpus_fill_whole_servers(page):
    at = page(**{"cost.gpus": "1000", "cost.gpus_per_server": "72"})
    assert "1,008 GPUs, 72 a server" in words(at)


def test_a_parts_file_replaces_the_prices(page):
    at = page()
    mine = V1.changed({"ocs_port": {"price_usd": 260.0}})
    at.file_uploader(key="cost_file_in").upload("mine.parts.json", dump_parts(mine)).run()
    assert not at.exception and not at.error
    assert totals(at)[-1] == "$757 k"
    assert control(at, "cost_prices").value == "file"
    assert "cost.prices" not in address(at)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{}", "format"),
        (
            json.dumps(
                {"format": "topox-parts", "version": 1, "parts": [{"id": "laser"}]}
            ).encode(),
            "unknown part",
        ),
        (
            json.dumps(
                {"format": "topox-parts", "version": 1, "parts": [{"id": "nic", "price_usd": -4}]}
            ).encode(),
            "price_usd",
        ),
    ],
)
def test_a_bad_parts_file_is_one_line_and_changes_nothing(page, content, says):
    at = page()
    at.file_uploader(key="cost_file_in").upload("mine.parts.json", content).run()
    assert not at.exception
    assert (
        len(at.error) == 1 and says in at.error[0].value and "mine.parts.json" in at.error[0].value
    )
    assert totals(at)[-1] == "$1.29 M"


def test_without_a_graph_it_says_what_to_do_and_with_one_what_a_dollar_buys(page):
    at = page()
    assert "stand without a job" in words(at)
    assert "Show it for the sample Mixture of experts" in ways_on(at)
    at = page(sample="race")
    drawn = chart(at, "worth")
    assert drawn["layout"]["yaxis"]["ticktext"] == [
        "Fat-tree, same cost",
        "Fixed circuits",
        "Circuits on demand",
        "Provisioned circuits",
        "Planned circuits",
    ]
    assert any(
        "not for sale" in list(frame.value["Built as"])
        for frame in at.dataframe
        if "Built as" in frame.value.columns
    )


def test_what_counts_can_be_changed(page):
    at = page()
    control(at, "cost_nics").set_value(True).run()
    assert "NIC price" in chart(at, "tornado")["layout"]["yaxis"]["ticktext"]
    control(at, "cost_pue").set_value(2.0).run()
    assert not at.exception and address(at)["cost.pue"] == "2"


def test_prices_chosen_here_decide_what_the_same_money_buys_on_compare(visit):
    at = visit("pages/3_Compare.py", sample="race")
    assert "MixNet Table 4" in words(at) and "Same cost" in words(at)
    dear = visit(
        "pages/3_Compare.py",
        **{"sample": "race", "cost.prices": "opus-v1", "cost.parts": "packet_switch:400000:2524"},
    )
    assert not dear.exception
    assert words(at) != words(dear) and "price list of the shop FS" in words(dear)
