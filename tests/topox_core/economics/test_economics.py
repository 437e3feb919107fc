"""What networks cost and burn: the published figures, hand-counted switches, catalogues in files, what does not hold."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from topox_core.cli import rails_cost
from topox_core.economics.caveats import caveats_of, most_gpus
from topox_core.economics.clusters import (
    CLUSTER_NETWORKS,
    at_speed,
    cluster_bill,
    cost_equivalent_gbps,
    same_cost_nic_gbps,
    same_cost_ratio,
)
from topox_core.economics.comparison import (
    Question,
    Running,
    curves,
    per_dollar,
    sizes_up_to,
    tornado,
    year_of,
)
from topox_core.economics.networks import (
    NETWORKS,
    Counting,
    bill,
    bills,
    clos,
    limit_per_gpu,
    saving,
    savings,
)
from topox_core.economics.parts import PARTS
from topox_core.economics.parts_file import dump_parts, edits_between, load_parts, with_edits
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.errors import InputError
from topox_core.fabrics.registry import ENTRIES
from topox_core.model.cluster import Cluster

V1 = PRICE_SETS["opus-v1"]
WHOLE = Counting(method="whole-switches")
# GPUs: rail-optimised $M and kW, photonic $M and kW, saved of dollars and watts in %, fat-tree $M
# and kW.
FIGURE_7 = {
    128: (0.541, 32.9, 0.161, 1.38, 70.22, 95.81, 0.541, 32.9),
    256: (1.106, 67.3, 0.322, 2.76, 70.85, 95.90, 1.058, 64.4),
    512: (2.165, 131.7, 0.645, 5.52, 70.22, 95.81, 2.311, 140.7),
    1024: (4.281, 260.4, 1.289, 11.04, 69.89, 95.76, 4.329, 263.4),
    2048: (8.659, 526.7, 2.578, 22.08, 70.22, 95.81, 8.466, 514.9),
    4096: (17.458, 1062.1, 5.157, 44.16, 70.46, 95.84, 16.552, 1006.2),
    8192: (34.636, 2106.9, 10.314, 88.32, 70.22, 95.81, 34.636, 2106.9),
}


@pytest.mark.parametrize("gpus", FIGURE_7)
def test_every_cell_of_the_published_comparison(gpus: int) -> None:
    rail_m, rail_kw, mine_m, mine_kw, dollars, watts, tree_m, tree_kw = FIGURE_7[gpus]
    found = bills(gpus, V1)
    rail, mine, tree = found["rail_optimized"], found["photonic_rails"], found["fat_tree"]
    assert [round(one.cost_usd / 1e6, 3) for one in (rail, mine, tree)] == [rail_m, mine_m, tree_m]
    assert [round(one.power_w / 1e3, 1) for one in (rail, tree)] == [rail_kw, tree_kw]
    assert round(mine.power_w / 1e3, 2) == mine_kw
    assert round(100 * saving(mine.cost_usd, rail.cost_usd), 2) == dollars
    assert round(100 * saving(mine.power_w, rail.power_w), 2) == watts


@pytest.mark.parametrize(
    ("gpus", "millions", "dollars", "watts"),
    [
        (128, 0.354, 54.5, 93.9),
        (256, 0.411, 21.5, 89.1),
        (512, 0.523, -23.3, 81.9),
        (1024, 2.687, 52.0, 93.2),
        (2048, 5.375, 52.0, 93.2),
        (4096, 10.750, 52.0, 93.2),
    ],
)
def test_with_whole_switches_the_saving_shrinks_and_at_512_gpus_it_is_a_loss(
    gpus, millions, dollars, watts
) -> None:
    rail, mine = bill("rail_optimized", gpus, V1, WHOLE), bill("photonic_rails", gpus, V1, WHOLE)
    assert round(rail.cost_usd / 1e6, 3) == millions
    assert round(100 * saving(mine.cost_usd, rail.cost_usd), 1) == dollars
    assert round(100 * saving(mine.power_w, rail.power_w), 1) == watts


def test_dearer_transceivers_change_the_whole_switch_row() -> None:
    dear = V1.changed({"transceiver": {"price_usd": 879}})
    shares = [
        round(
            100 * Question(gpus, dear, WHOLE).saving("photonic_rails", "rail_optimized", "cost"), 1
        )
        for gpus in (128, 256, 512, 1024)
    ]
    assert shares == [53.1, 34.4, 18.0, 63.5]


@pytest.mark.parametrize(
    ("prices", "other", "cost", "power"),
    [
        ("opus-v1", "rail_optimized", 70.22, 95.81),
        ("opus-v1", "rail_only", 52.0, 93.2),
        ("mixnet", "rail_optimized", 81.9, 95.8),
        ("mixnet", "rail_only", 71.2, 93.2),
    ],
)
def test_what_a_gpu_saves_in_ever_larger_clusters(prices, other, cost, power) -> None:
    mine, theirs = (limit_per_gpu(name, PRICE_SETS[prices]) for name in ("photonic_rails", other))
    digits = 2 if cost == 70.22 else 1
    assert round(100 * saving(mine.cost_usd, theirs.cost_usd), digits) == cost
    assert round(100 * saving(mine.power_w, theirs.power_w), digits) == power


@pytest.mark.parametrize(
    ("prices", "cost", "power"), [("opus-v3-h200", 4.27, 23.86), ("opus-v3-gb200", 3.17, 15.44)]
)
def test_the_ratios_of_the_later_version(prices, cost, power) -> None:
    rail, mine = (
        limit_per_gpu(name, PRICE_SETS[prices]) for name in ("rail_optimized", "photonic_rails")
    )
    assert round(rail.cost_usd / mine.cost_usd, 2) == cost
    assert round(rail.power_w / mine.power_w, 2) == power


def test_a_gpu_of_packet_rails_has_five_ports_and_six_transceivers() -> None:
    one = limit_per_gpu("rail_optimized", V1)
    assert (one.count("packet_port"), one.count("transceiver")) == (5, 6)
    assert one.cost_usd == pytest.approx(5 * 37_299 / 64 + 6 * 219)


@pytest.mark.parametrize(
    ("endpoints", "switches", "used"),
    [
        (1, 1, 1),
        (64, 1, 64),
        (65, 3 + 2, 3 * 65),
        (128, 6, 384),
        (2048, 96, 3 * 2048),
        (2049, 2 * 65 + 33, 5 * 2049),
    ],
)
def test_switches_of_a_clos_counted_by_hand(endpoints, switches, used) -> None:
    assert clos(endpoints, 64) == (switches, used)


@given(st.integers(1, 5_000), st.sampled_from((4, 8, 64)))
def test_a_clos_has_no_fewer_ports_than_it_uses(endpoints: int, radix: int) -> None:
    switches, used = clos(endpoints, radix)
    assert switches * radix >= used >= endpoints


@given(
    st.integers(1, 400),
    st.sampled_from((1, 4, 8, 72)),
    st.sampled_from(("paper", "whole-switches")),
)
def test_a_bill_is_the_sum_of_its_lines_and_what_is_added_costs(
    servers: int, each: int, method: str
) -> None:
    bare = bills(servers * each, V1, Counting(each, method))
    more = bills(servers * each, V1, Counting(each, method, nics=True, fibre=True))
    for name in NETWORKS:
        assert bare[name].cost_usd == pytest.approx(
            sum(line.count * line.unit_usd for line in bare[name].lines)
        )
        nics, fibre = more[name].count("nic") * 1499, more[name].count("fibre_m") * 0.3
        assert more[name].count("nic") == servers * each
        assert more[name].cost_usd == pytest.approx(bare[name].cost_usd + nics + fibre)


def test_joined_rails_cost_no_less_than_rails_that_nothing_joins() -> None:
    joined = bill("rail_optimized", 1024, V1, replace(WHOLE, joined_rails=True))
    assert (
        joined.cost_usd == bill("fat_tree", 1024, V1, WHOLE).cost_usd
    )  # 32 leaves, 16 spines either way
    joined = bill("rail_optimized", 512, V1, replace(WHOLE, joined_rails=True))
    assert joined.cost_usd > bill("rail_only", 512, V1, WHOLE).cost_usd


def test_topoopt_counts_one_optical_port_or_two_panel_ports_an_interface() -> None:
    ocs, panel = (bill(name, 64, V1) for name in ("topoopt_ocs", "topoopt_patch_panel"))
    assert (ocs.count("ocs_port"), ocs.count("transceiver")) == (64, 64)
    assert (panel.count("patch_panel_port"), panel.count("one_by_two_switch")) == (128, 64)
    assert (
        bill("topoopt_patch_panel", 64, V1, Counting(look_ahead=False)).count("patch_panel_port")
        == 64
    )


def test_savings_are_each_against_each() -> None:
    table = savings(bills(1024, V1))
    assert set(table) == set(NETWORKS) and all(
        set(row) == set(NETWORKS) - {name} for name, row in table.items()
    )
    assert table["photonic_rails"]["rail_optimized"]["cost"] == pytest.approx(0.6989, abs=1e-4)


@pytest.mark.parametrize("gpus", [0, -8, 12, 10**9, 8.0])
def test_sizes_that_fill_no_servers_are_refused(gpus) -> None:
    with pytest.raises(InputError) as caught:
        bill("fat_tree", gpus, V1)
    assert caught.value.field == "gpus"


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpus_per_server": 0},
        {"method": "guess"},
        {"ocs_ports_per_gpu": 0},
        {"fibre_m_per_link": -1},
    ],
)
def test_countings_that_cannot_be_are_refused(wrong) -> None:
    with pytest.raises(InputError):
        Counting(**wrong)


# What does not hold.


def names(question: Question, radix: int | None = 576) -> set[str]:
    return {one.name for one in caveats_of(question, radix)}


def test_4096_gpus_need_a_switch_that_nobody_makes() -> None:
    question = Question(4096, V1, Counting())
    text = next(one.text for one in caveats_of(question, 576, "Polatis") if one.name == "radix")
    assert "1,024 ports" in text and "2,304 GPUs" in text
    assert "radix" in names(question, 1008) and "radix" not in names(Question(2304, V1, Counting()))


@pytest.mark.parametrize(
    ("radix", "each", "gpus"), [(576, 8, 2304), (1008, 72, 36288), (16, 72, 576), (320, 8, 1280)]
)
def test_gpus_of_a_switch_are_scale_up_times_half_its_ports(radix, each, gpus) -> None:
    assert most_gpus(Question(each, V1, Counting(each)), radix) == gpus


def test_at_512_gpus_the_page_says_that_photonic_is_dearer() -> None:
    told = {one.name: one.text for one in caveats_of(Question(512, V1, Counting()))}
    assert "23 % dearer" in told["dearer-than-whole-switches"]
    assert "dearer-than-whole-switches" not in names(Question(1024, V1, Counting()))


def test_the_published_maximum_is_rounding() -> None:
    told = {one.name: one.text for one in caveats_of(Question(4096, V1, Counting()))}
    assert "70.22 %" in told["rounding"] and "70.46 %" in told["rounding"]
    assert "rounding" not in names(Question(2048, V1, Counting()))


# Sensitivity, years, iterations for a dollar.


def test_the_tornado_matches_hand_counts() -> None:
    rows = {one.name: one for one in tornado(Question(1024, V1, Counting()))}
    # Twice the optical ports: 2,080 $ and 219 $ a GPU against 4.281 M$ for 1,024.
    rail = bill("rail_optimized", 1024, V1).cost_usd
    assert rows["Optical ports a GPU"].high == ("4", pytest.approx(1 - 1024 * (2080 + 219) / rail))
    assert rows["Optical-switch port price"].low == (
        "$260",
        pytest.approx(1 - 1024 * (520 + 219) / rail),
    )
    assert rows["Switches counted"].high == ("whole", pytest.approx(0.5203, abs=1e-4))
    assert "Patch-panel port price" not in rows


def test_the_tornado_is_widest_on_top() -> None:
    question = Question(1024, V1, Counting())
    for measure in ("cost", "power"):
        base = question.saving("photonic_rails", "rail_optimized", measure)
        reach = [
            max([base, *(end[1] for end in (row.low, row.high) if end)])
            - min([base, *(end[1] for end in (row.low, row.high) if end)])
            for row in tornado(question, measure=measure)
        ]
        assert reach == sorted(reach, reverse=True) and reach


def test_a_year_by_hand() -> None:
    year = year_of(bill("photonic_rails", 1024, V1), Running(0.1, 1.5, 4))
    assert year.purchase_usd == pytest.approx(1_289_216 / 4)
    assert year.energy_kwh == pytest.approx(11.04 * 1.5 * 8760)
    assert year.total_usd == pytest.approx(1_289_216 / 4 + 11.04 * 1.5 * 876)
    # 100 ms an iteration are 36,000 an hour.
    assert per_dollar(100.0, year) == pytest.approx(36_000 / (year.total_usd / 8760))


@pytest.mark.parametrize(
    "wrong", [{"pue": 0.5}, {"years": 0}, {"usd_per_kwh": -1}, {"pue": float("nan")}]
)
def test_years_that_cannot_be_are_refused(wrong) -> None:
    with pytest.raises(InputError):
        Running(**wrong)


def test_curves_pass_through_the_bills() -> None:
    question = Question(1024, V1, Counting())
    sizes = sizes_up_to(4096, 8, (1000,))
    assert sizes[0] == 16 and sizes[-1] == 4096 and 1000 in sizes
    assert curves(question, sizes)["rail_only"][sizes.index(1024)] == question.bill("rail_only")


# A cluster's own network.


def cluster(gbps: float = 100.0, ports: int = 4) -> Cluster:
    return Cluster(
        servers=16, ports_per_server=ports, switches=ports, ports_per_switch=16, port_gbps=gbps
    )


def test_every_fabric_of_the_comparison_has_a_network_or_none() -> None:
    # Of half packets and half circuits only servers with several ports are made.
    assert set(CLUSTER_NETWORKS) - {"regional_ocs"} <= set(NETWORKS)
    built_as = {entry.built_as for entry in ENTRIES.values() if entry.built_as}
    assert built_as == set(CLUSTER_NETWORKS)


def test_circuits_at_100_gbps_by_hand() -> None:
    # A 100G port: transceiver 99 $, NIC 659 $, optical-switch port 520 $; TopoOpt's panel 2 x 100 $
    # and a 25 $ switch.
    mixnet = PRICE_SETS["mixnet"]
    assert cluster_bill("topoopt_ocs", cluster(), mixnet).cost_usd == pytest.approx(
        64 * (99 + 659 + 520)
    )
    assert cluster_bill("topoopt_patch_panel", cluster(), mixnet).cost_usd == pytest.approx(
        64 * (99 + 659 + 225)
    )
    assert cluster_bill("fat_tree", cluster(), mixnet).cost_usd == pytest.approx(
        64 * (659 + 5 * 187 + 6 * 99)
    )
    with pytest.raises(InputError, match="must be one of fat_tree"):
        cluster_bill("rail_only", cluster(), mixnet)
    halved = cluster_bill("fat_tree", cluster(), mixnet, oversubscription=4.0)
    assert halved.cost_usd == pytest.approx(64 * (659 + 2 * 187 + 3 * 99))


@examples(40)
@given(
    st.floats(40, 800),
    st.integers(1, 8),
    st.sampled_from(tuple(PRICE_SETS)),
    st.sampled_from(("topoopt_ocs", "topoopt_patch_panel")),
)
def test_the_cost_equivalent_fat_tree_costs_what_the_circuits_cost(
    gbps: float, ports: int, prices: str, network: str
) -> None:
    here, catalogue = cluster(gbps, ports), PRICE_SETS[prices]
    found = cost_equivalent_gbps(here, catalogue, network)
    tree = cluster_bill("fat_tree", here, catalogue, equivalent_gbps=found)
    assert tree.cost_usd == pytest.approx(cluster_bill(network, here, catalogue).cost_usd, rel=1e-4)


def test_a_patch_panel_leaves_the_fat_tree_of_its_cost_about_a_third_of_the_bandwidth() -> None:
    """TopoOpt's similar-cost fat-tree, at four ports of 200G; at 100G it is less than a half."""
    mixnet = PRICE_SETS["mixnet"]
    for gbps, ratio in ((100.0, 2.23), (200.0, 3.06)):
        assert 4 * gbps / cost_equivalent_gbps(
            cluster(gbps), mixnet, "topoopt_patch_panel"
        ) == pytest.approx(ratio, abs=0.01)
    with pytest.raises(InputError, match="must be a network of circuits"):
        cost_equivalent_gbps(cluster(), mixnet, "fat_tree")


def test_the_averages_of_figure_10_are_over_the_same_speeds() -> None:
    """Published as averages: OCS over patch panel 1.33, ideal switch over TopoOpt (patch panel) 3.2."""

    def ratio(dear: str, cheap: str) -> list[float]:
        return [
            cluster_bill(dear, cluster(gbps), PRICE_SETS["mixnet"]).cost_usd
            / cluster_bill(cheap, cluster(gbps), PRICE_SETS["mixnet"]).cost_usd
            for gbps in (10.0, 25.0, 40.0, 100.0, 200.0)
        ]

    dearer = ratio("topoopt_ocs", "topoopt_patch_panel")
    assert dearer == sorted(dearer, reverse=True)
    assert (dearer[0], dearer[-1], fmean(dearer)) == pytest.approx((1.69, 1.19, 1.46), abs=0.006)
    assert fmean(ratio("fat_tree", "topoopt_patch_panel")) == pytest.approx(2.30, abs=0.006)
    assert fmean(ratio("fat_tree", "topoopt_ocs")) == pytest.approx(1.63, abs=0.006)


def test_dearer_optics_buy_a_faster_fat_tree() -> None:
    mixnet = PRICE_SETS["mixnet"]
    dear = mixnet.changed({"ocs_port": {"price_usd": 1040}})
    assert cost_equivalent_gbps(cluster(), mixnet) < cost_equivalent_gbps(cluster(), dear)


def test_a_catalogue_at_its_own_speed_is_itself_and_at_another_follows_the_printed_table() -> None:
    mixnet = PRICE_SETS["mixnet"]
    assert at_speed(mixnet, 400.0) is mixnet
    slower = at_speed(mixnet, 200.0)
    assert slower.part("transceiver").price_usd == pytest.approx(239)
    assert slower.part("packet_switch").port_usd == pytest.approx(374)
    assert slower.part("ocs_port") == mixnet.part("ocs_port")
    assert at_speed(V1, 200.0).part("transceiver").price_usd == pytest.approx(219 * 239 / 659)


def test_free_packet_parts_buy_any_speed_and_are_refused() -> None:
    free = V1.changed({name: {"price_usd": 0} for name in ("transceiver", "packet_switch", "nic")})
    with pytest.raises(InputError, match="any speed"):
        cost_equivalent_gbps(cluster(), free)


def test_the_compared_fat_tree_costs_the_same_unless_a_ratio_is_set_and_is_never_the_faster() -> (
    None
):
    here, mixnet = cluster(200.0), PRICE_SETS["mixnet"]
    equivalent = cost_equivalent_gbps(here, mixnet)
    assert same_cost_nic_gbps(here) == pytest.approx(equivalent, rel=1e-5)
    assert same_cost_ratio(here) == pytest.approx(4 * 200 / equivalent, rel=1e-5)
    assert same_cost_nic_gbps(here, ratio=2.0) == 400.0
    dear = mixnet.changed({"ocs_port": {"price_usd": 1e5}})
    assert same_cost_nic_gbps(here, dear) == 800.0


# Catalogues.


@pytest.mark.parametrize("name", PRICE_SETS)
def test_a_catalogue_comes_back_from_its_file(name: str) -> None:
    assert load_parts(dump_parts(PRICE_SETS[name]), "x.parts.json") == PRICE_SETS[name]


@given(
    st.dictionaries(st.sampled_from(tuple(PARTS)), st.tuples(st.floats(0, 1e6), st.floats(0, 1e4)))
)
def test_edits_come_back_from_a_link(figures) -> None:
    edited = V1.changed(
        {name: {"price_usd": price, "power_w": watts} for name, (price, watts) in figures.items()}
    )
    back = with_edits(V1, edits_between(V1, edited))
    for part in edited.parts:
        assert back.part(part.id).price_usd == pytest.approx(part.price_usd, rel=1e-8)
        assert back.part(part.id).power_w == pytest.approx(part.power_w, rel=1e-8)


def test_a_figure_set_by_hand_is_assumed_and_remembers_what_it_was() -> None:
    part = V1.changed({"ocs_port": {"price_usd": 260.0}}).part("ocs_port")
    assert (part.price_from, part.power_from) == ("assumed", "vendor list")
    assert "520" in part.source
    assert V1.changed({"ocs_port": {"price_usd": 520.0}}) == V1


def test_a_file_may_name_a_few_parts_only() -> None:
    file = {
        "format": "topox-parts",
        "version": 1,
        "based_on": "mixnet",
        "parts": [{"id": "ocs_port", "price_usd": 300.0}],
    }
    found = load_parts(json.dumps(file).encode(), "mine.parts.json")
    assert found.part("ocs_port").price_usd == 300 and found.part("transceiver").price_usd == 659


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"parts": [{"id": "laser", "price_usd": 1.0}]}, "part 1, field id: unknown part"),
        (
            {"parts": [{"id": "nic", "price_usd": -1.0}]},
            "part nic, field price_usd: must be from 0",
        ),
        ({"parts": [{"id": "nic", "power_w": -0.1}]}, "part nic, field power_w: must be from 0"),
        (
            {"parts": [{"id": "nic", "price_usd": "many"}]},
            "part nic, field price_usd: must be a number",
        ),
        ({"parts": [{"id": "nic", "price": 3}]}, "part nic, field price: unknown key"),
        ({"parts": [{"id": "nic"}, {"id": "nic"}]}, "part nic: is in the file twice"),
        ({"parts": [{"id": "packet_switch", "ports": 3}]}, "part packet_switch, field ports"),
        (
            {"parts": [{"id": "nic", "price_from": "a friend"}]},
            "part nic, field price_from: must be one of published",
        ),
        ({"parts": {}}, "field parts: must be a list"),
        ({"parts": [], "based_on": "list"}, "field based_on: must be one of"),
        ({"parts": [], "port_gbps": 0.0}, "field port_gbps: must be a number above 0"),
        ({"parts": [], "version": 2}, "field version"),
        ({"parts": [], "colour": 1}, "field colour: unknown key"),
        ({"parts": [], "format": "topox-cluster"}, "field format"),
    ],
)
def test_a_wrong_parts_file_is_one_line(change, says) -> None:
    file = {"format": "topox-parts", "version": 1, **change}
    with pytest.raises(InputError) as caught:
        load_parts(json.dumps(file).encode(), "mine.parts.json")
    assert (
        str(caught.value).startswith("mine.parts.json")
        and says in str(caught.value)
        and "\n" not in str(caught.value)
    )


def test_nan_is_no_price() -> None:
    with pytest.raises(InputError, match="finite"):
        load_parts(
            b'{"format": "topox-parts", "version": 1, "parts": [{"id": "nic", "price_usd": NaN}]}',
            "x.parts.json",
        )


# The command.


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    top = argparse.ArgumentParser()
    rails_cost.add(top.add_subparsers())
    options = top.parse_args(["cost", *arguments])
    assert options.run(options) == 0
    return capsys.readouterr().out


def test_the_command_prints_what_the_networks_cost(capsys) -> None:
    record = json.loads(run(capsys, "--gpus", "4096", "--json", "--radix", "576"))
    assert set(record["fabrics"]) == set(NETWORKS)
    assert record["fabrics"]["photonic_rails"]["cost_usd"] == pytest.approx(5_156_864)
    assert round(100 * record["savings"]["photonic_rails"]["rail_optimized"]["cost"], 2) == 70.46
    assert any("1,024" in text for text in record["findings"])


def test_the_command_counts_whole_switches_nics_and_a_file(capsys, tmp_path) -> None:
    whole = json.loads(run(capsys, "--gpus", "512", "--counting", "whole-switches", "--json"))
    assert round(100 * whole["savings"]["photonic_rails"]["rail_optimized"]["cost"]) == -23
    nics = json.loads(run(capsys, "--gpus", "512", "--nics", "--json"))
    assert nics["fabrics"]["topoopt_ocs"]["cost_usd"] == pytest.approx(512 * (219 + 520 + 1499))
    path = tmp_path / "mine.parts.json"
    path.write_bytes(dump_parts(V1.changed({"ocs_port": {"price_usd": 260}})))
    mine = json.loads(run(capsys, "--gpus", "1024", "--parts", str(path), "--json"))
    assert mine["fabrics"]["photonic_rails"]["cost_usd"] == pytest.approx(1024 * (520 + 219))
    assert "Photonic rails" in run(
        capsys, "--gpus", "72", "--gpus-per-server", "72", "--prices", "opus-v3-gb200"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gpus", "12"),
        ("--gpus", "8", "--counting", "fair"),
        ("--gpus", "8", "--prices", "cheap"),
        ("--gpus", "8", "--pue", "0.5"),
        ("--gpus", "8", "--parts", "/nowhere.parts.json"),
    ],
)
def test_bad_requests_are_one_line(capsys, arguments) -> None:
    with pytest.raises(InputError) as caught:
        run(capsys, *arguments)
    assert "\n" not in str(caught.value)
