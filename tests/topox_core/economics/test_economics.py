"""What networks cost and burn: the published figures, hand-counted switches, catalogues in files, what does not hold."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from tests.refusal import refusal
from topox_core.economics.clusters import (
    CLUSTER_NETWORKS,
    at_speed,
    cluster_bill,
    cost_equivalent_gbps,
    same_cost_nic_gbps,
    same_cost_ratio,
)
from topox_core.economics.comparison import (
    IterationCost,
    Question,
    Running,
    caveats_of,
    most_gpus,
    per_dollar,
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
)
from topox_core.economics.price_sets import (
    PARTS,
    PRICE_SETS,
    dump_parts,
    edits_between,
    load_parts,
    with_edits,
)
from topox_core.fabrics.registry import ENTRIES
from topox_core.model.cluster import Cluster

V1 = PRICE_SETS["opus-v1"]
SPEEDS = (10.0, 25.0, 40.0, 100.0, 200.0)
WHOLE = Counting(method="whole-switches")
FREE = V1.changed({name: {"price_usd": 0} for name in ("transceiver", "packet_switch", "nic")})
NAN = b'{"format": "topox-parts", "version": 1, "parts": [{"id": "nic", "price_usd": NaN}]}'
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


def test_a_price_set_has_every_part_once_in_the_order_of_the_tables() -> None:
    for one in PRICE_SETS.values():
        assert [part.id for part in one.parts] == list(PARTS)


@pytest.mark.parametrize("gpus", FIGURE_7)
def test_every_cell_of_the_published_comparison(gpus: int) -> None:
    rail_m, rail_kw, mine_m, mine_kw, dollars, watts, tree_m, tree_kw = FIGURE_7[gpus]
    found = bills(gpus, V1)
    rail, mine, tree = found["rail_optimized"], found["photonic_rails"], found["fat_tree"]
    assert [round(one.cost_usd / 1e6, 3) for one in (rail, mine, tree)] == [rail_m, mine_m, tree_m]
    assert [round(one.power_w / 1e3, 1) for one in (rail, tree)] == [rail_kw, tree_kw]
    assert round(mine.power_w / 1e3, 2) == mine_kw
    saved = saving(mine.cost_usd, rail.cost_usd), saving(mine.power_w, rail.power_w)
    assert [round(100 * one, 2) for one in saved] == [dollars, watts]


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
    saved = saving(mine.cost_usd, rail.cost_usd), saving(mine.power_w, rail.power_w)
    assert [round(100 * one, 1) for one in saved] == [dollars, watts]


@pytest.mark.parametrize(("gpus", "share"), [(128, 53.1), (256, 34.4), (512, 18.0), (1024, 63.5)])
def test_dearer_transceivers_change_the_whole_switch_row(gpus, share) -> None:
    question = Question(gpus, V1.changed({"transceiver": {"price_usd": 879}}), WHOLE)
    saved = 100 * question.saving("photonic_rails", "rail_optimized", "cost")
    assert round(saved, 1) == share


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


@pytest.mark.parametrize(("gpus", "other"), [(1024, "fat_tree"), (512, "rail_only")])
def test_joined_rails_cost_no_less_than_rails_that_nothing_joins(gpus, other) -> None:
    joined = bill("rail_optimized", gpus, V1, replace(WHOLE, joined_rails=True)).cost_usd
    apart = bill(other, gpus, V1, WHOLE).cost_usd
    assert joined == apart if gpus == 1024 else joined > apart  # 32 leaves, 16 spines either way


@pytest.mark.parametrize(
    ("network", "counting", "parts"),
    [
        ("topoopt_ocs", Counting(), {"ocs_port": 1, "transceiver": 1}),
        ("topoopt_patch_panel", Counting(), {"patch_panel_port": 2, "one_by_two_switch": 1}),
        ("topoopt_patch_panel", Counting(look_ahead=False), {"patch_panel_port": 1}),
        # A GPU of packet rails has five ports and six transceivers.
        ("rail_optimized", None, {"packet_port": 5, "transceiver": 6}),
    ],
)
def test_parts_of_an_interface_counted_by_hand(network, counting, parts) -> None:
    gpus = 64 if counting else 1
    found = bill(network, gpus, V1, counting) if counting else limit_per_gpu(network, V1)
    assert {name: found.count(name) / gpus for name in parts} == parts


# What does not hold.


@pytest.mark.parametrize(
    ("gpus", "counting", "radix", "name", "words"),
    [
        (4096, Counting(), 576, "radix", ("1,024 ports", "2,304 GPUs")),
        (4096, Counting(), 1008, "radix", ("1,024 ports",)),
        (2304, Counting(), 576, "radix", None),
        (2304, Counting(ocs_ports_per_gpu=4), 576, "radix", ("1,152 ports",)),
        (512, Counting(), 576, "dearer-than-whole-switches", ("23 % more expensive",)),
        (1024, Counting(), 576, "dearer-than-whole-switches", None),
        (4096, Counting(), 576, "rounding", ("70.22 %", "70.46 %")),  # the published maximum
        (2048, Counting(), 576, "rounding", None),
    ],
)
def test_what_does_not_hold_is_told(gpus, counting, radix, name, words) -> None:
    question = Question(gpus, V1, counting)
    told = {one.name: one.text for one in caveats_of(question, radix, "Polatis")}
    assert (name in told) == (words is not None)
    assert all(word in told[name] for word in words or ())


@pytest.mark.parametrize(
    ("radix", "each", "gpus"), [(576, 8, 2304), (1008, 72, 36288), (16, 72, 576), (320, 8, 1280)]
)
def test_gpus_of_a_switch_are_scale_up_times_half_its_ports(radix, each, gpus) -> None:
    assert most_gpus(Question(each, V1, Counting(each)), radix) == gpus


# Sensitivity, years, iterations for a dollar.


def test_the_tornado_matches_hand_counts_and_is_widest_on_top() -> None:
    question = Question(1024, V1, Counting())
    table = tornado(question)
    rows = {one.name: one for one in table}
    # Twice the optical ports: 2,080 $ and 219 $ a GPU against 4.281 M$ for 1,024.
    rail = bill("rail_optimized", 1024, V1).cost_usd
    assert rows["Optical ports per GPU"].high == (
        "4",
        pytest.approx(1 - 1024 * (2080 + 219) / rail),
    )
    cheaper = pytest.approx(1 - 1024 * (520 + 219) / rail)
    assert rows["Optical-switch port price"].low == ("$260", cheaper)
    assert rows["Switches counted"].high == ("whole", pytest.approx(0.5203, abs=1e-4))
    base = question.saving("photonic_rails", "rail_optimized", "cost")
    ends = [[base, *(end[1] for end in (row.low, row.high) if end)] for row in table]
    reach = [max(row) - min(row) for row in ends]
    assert reach == sorted(reach, reverse=True)


def test_a_year_by_hand() -> None:
    rails = bill("photonic_rails", 1024, V1)
    year = year_of(rails, Running(0.1, 1.5, 4))
    assert year.purchase_usd == pytest.approx(1_289_216 / 4)
    assert year.energy_kwh == pytest.approx(11.04 * 1.5 * 8760)
    assert year.total_usd == pytest.approx(1_289_216 / 4 + 11.04 * 1.5 * 876)
    # 100 ms an iteration are 36,000 an hour.
    assert per_dollar(100.0, year) == pytest.approx(36_000 / (year.total_usd / 8760))
    cost = IterationCost(100.0, rails, year, 9 * year.usd_per_hour)
    assert cost.per_usd == per_dollar(100.0, year)
    assert (cost.usd * cost.per_usd, cost.gpu_share) == pytest.approx((10, 0.9))
    assert IterationCost(100.0, rails, year, 0.0).gpu_share == 0


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


@pytest.mark.parametrize(
    ("network", "options", "usd"),
    [
        # A 100G port: transceiver 99 $, NIC 659 $, optical-switch port 520 $; TopoOpt's panel
        # 2 x 100 $ and a 25 $ switch; packet-switch port 187 $.
        ("topoopt_ocs", {}, 64 * (99 + 659 + 520)),
        ("topoopt_patch_panel", {}, 64 * (99 + 659 + 225)),
        ("fat_tree", {}, 64 * (659 + 5 * 187 + 6 * 99)),
        ("fat_tree", {"oversubscription": 4.0}, 64 * (659 + 2 * 187 + 3 * 99)),
        # Of four ports one is a packet port.
        (
            "regional_ocs",
            {"packet_ports": 1},
            16 * (659 + 5 * 187 + 6 * 99) + 48 * (99 + 659 + 520),
        ),
    ],
)
def test_the_network_of_a_cluster_at_100_gbps_by_hand(network, options, usd) -> None:
    found = cluster_bill(network, cluster(), PRICE_SETS["mixnet"], **options)
    assert found.cost_usd == pytest.approx(usd)


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


@pytest.mark.parametrize(("gbps", "ratio"), [(100.0, 2.23), (200.0, 3.06)])
def test_a_patch_panel_leaves_the_fat_tree_of_its_cost_about_a_third_of_the_bandwidth(
    gbps, ratio
) -> None:
    """TopoOpt's similar-cost fat-tree, at four ports of 200G; at 100G it is less than a half."""
    found = cost_equivalent_gbps(cluster(gbps), PRICE_SETS["mixnet"], "topoopt_patch_panel")
    assert 4 * gbps / found == pytest.approx(ratio, abs=0.01)


def test_the_averages_of_figure_10_are_over_the_same_speeds() -> None:
    """Published as averages: OCS over patch panel 1.33, ideal switch over TopoOpt (patch panel) 3.2."""
    names = ("topoopt_ocs", "topoopt_patch_panel", "fat_tree")
    ocs, panel, tree = np.array(
        [
            [cluster_bill(name, cluster(gbps), PRICE_SETS["mixnet"]).cost_usd for gbps in SPEEDS]
            for name in names
        ]
    )
    dearer = ocs / panel
    assert (np.diff(dearer) < 0).all()
    assert (dearer[0], dearer[-1], dearer.mean()) == pytest.approx((1.69, 1.19, 1.46), abs=0.006)
    assert ((tree / panel).mean(), (tree / ocs).mean()) == pytest.approx((2.30, 1.63), abs=0.006)


def test_a_catalogue_at_its_own_speed_is_itself_and_at_another_follows_the_printed_table() -> None:
    mixnet, slower = (at_speed(PRICE_SETS["mixnet"], gbps) for gbps in (400.0, 200.0))
    assert mixnet is PRICE_SETS["mixnet"]
    prices = slower.part("transceiver").price_usd, slower.part("packet_switch").port_usd
    assert prices == pytest.approx((239, 374))
    assert slower.part("ocs_port") == mixnet.part("ocs_port")
    assert at_speed(V1, 200.0).part("transceiver").price_usd == pytest.approx(219 * 239 / 659)


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


@pytest.mark.parametrize(
    ("figures", "told_from"),
    [
        ({"price_usd": 260.0}, ("assumed", "vendor list")),
        ({"power_w": 1.0}, ("published", "assumed")),
        ({"price_usd": 520.0}, ("published", "vendor list")),
    ],
)
def test_a_figure_set_by_hand_is_assumed_and_remembers_what_it_was(figures, told_from) -> None:
    before = V1.part("ocs_port")
    part = V1.changed({"ocs_port": figures}).part("ocs_port")
    assert (part.price_from, part.power_from) == told_from
    assert (part == before) == (figures == {"price_usd": 520.0})
    assert "assumed" not in told_from or str(getattr(before, *figures)).rstrip(".0") in part.source


def test_a_file_may_name_a_few_parts_only() -> None:
    price = {"id": "ocs_port", "price_usd": 300.0}
    file = {"format": "topox-parts", "version": 1, "based_on": "mixnet", "parts": [price]}
    found = load_parts(json.dumps(file).encode(), "mine.parts.json")
    assert found.part("ocs_port").price_usd == 300 and found.part("transceiver").price_usd == 659


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"parts": [{"id": "laser", "price_usd": 1.0}]},
            "part laser, field id: must be one of transceiver,",
        ),
        (
            {"parts": [{"id": "nic", "price_usd": -1.0}]},
            "part nic, field price_usd: must be at least 0",
        ),
        (
            {"parts": [{"id": "nic", "power_w": -0.1}]},
            "part nic, field power_w: must be at least 0",
        ),
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
        ({"parts": [], "port_gbps": 0.0}, "field port_gbps: must be from 1e-06 to 1e+12"),
        ({"parts": [], "version": 2}, "field version"),
        ({"parts": [], "colour": 1}, "field colour: unknown key"),
        ({"parts": [], "format": "topox-cluster"}, "field format"),
    ],
)
def test_a_wrong_parts_file_is_one_line(change, says) -> None:
    file = {"format": "topox-parts", "version": 1, **change}
    line = refusal(load_parts, json.dumps(file).encode(), "mine.parts.json")
    assert "mine.parts.json" in line and says in line


# The command.


def test_the_command_prints_what_the_networks_cost(ask, tmp_path) -> None:
    path = tmp_path / "mine.parts.json"
    path.write_bytes(dump_parts(V1.changed({"ocs_port": {"price_usd": 260}})))
    known = {
        ("--gpus", "4096", "--radix", "576", "--prices", "opus-v1"): ("photonic_rails", 5_156_864),
        ("--gpus", "512", "--nics"): ("topoopt_ocs", 512 * (659 + 520 + 1499)),
        ("--gpus", "1024", "--parts", str(path)): ("photonic_rails", 1024 * (520 + 219)),
    }
    for asked, (network, usd) in known.items():
        found = ask("rails", "cost", *asked)["fabrics"]
        assert set(found) == set(NETWORKS)
        assert found[network]["cost_usd"] == pytest.approx(usd)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        *((lambda n=n: bill("fat_tree", n, V1), "field gpus") for n in (0, -8, 12, 10**9, 8.0)),
        (lambda: Counting(gpus_per_server=0), "gpus_per_server"),
        (lambda: Counting(method="guess"), "field method"),
        (lambda: Counting(ocs_ports_per_gpu=0), "ocs_ports_per_gpu"),
        (lambda: Counting(fibre_m_per_link=-1), "fibre_m_per_link"),
        (lambda: Running(pue=0.5), "pue"),
        (lambda: Running(years=0), "years"),
        (lambda: Running(usd_per_kwh=-1), "usd_per_kwh"),
        (lambda: Running(pue=float("nan")), "pue"),
        (lambda: cost_equivalent_gbps(cluster(), FREE), "any speed"),
        (lambda: load_parts(NAN, "x.parts.json"), "finite"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(asked, words) -> None:
    assert words in refusal(asked)
