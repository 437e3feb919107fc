"""The cards on time division: what adds up, what holds, and where it turns over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.topox_core.papers.answers import answer_of, value, verdict
from topox_core.papers.catalogue import card_named
from topox_core.papers.tdm_literal import Draft, DraftRound, tree_demand, undirected_ring
from topox_core.papers.tdm_packets import flows_of, packet_s
from topox_core.papers.tdm_readings import climbed
from topox_core.runs.stopping import never
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading
from topox_core.tdm.model.round import PUSH, TdmSettings
from topox_core.tdm.model.traffic import between_pods_gbit
from topox_core.tdm.solve import solve


def run(name: str, **switches: object):
    return card_named(name).run(switches, never, [].append)


def test_the_sizes_of_table_iii_are_those_of_llama_3_2():
    rows = answer_of("tdm-training-times").of("size")
    assert [row.theirs for row in rows] == [2.46, 6.42, 21.2, 177.6]
    assert [row.verdict for row in rows] == ["match"] * 4
    as_named = {row.item: row for row in run("tdm-training-times", third="8B").of("size")}
    assert as_named["8B"].verdict == "trend"  # 16.06 GB: the row is not the 8B model


def test_the_training_times_are_equation_8():
    """8 x 8192 x 1.23e9 / (26e12 x 0.4) s on one GPU."""
    name = "tdm-training-times"
    assert value(name, "train", "1B") == pytest.approx(8 * 8192 * 1.23e9 / (26e12 * 0.4))
    literal = {row.item: row.ours for row in run(name, unit="gpu").of("train")}
    assert literal["90B"] == pytest.approx(559.6, abs=0.05)
    assert literal["90B"] == pytest.approx(64 * value(name, "train", "90B"))
    longer = run(name, context=131_072).of("train")[0].ours
    assert longer == pytest.approx(16 * value(name, "train", "1B"))


def test_the_ports_add_up():
    rows = [*answer_of("tdm-training-times").of("ports")]
    assert all(row.ours == row.theirs for row in rows)
    assert value("tdm-training-times", "fit", "draws that fit") == 100


def test_the_order_of_traffic_turns_over_with_the_context():
    name = "tdm-traffic"
    for series in ("ps_over_ring", "ring_over_all"):
        assert {row.verdict for row in answer_of(name).of(series)} == {"trend"}
    longer = run(name, context=32_768)
    assert {row.verdict for row in longer.of("ring_over_all")} == {"differs"}
    for row in answer_of(name).of("turn"):
        assert 10_000 < row.ours < 32_768


def test_eight_units_on_eight_pods_by_hand():
    """7 pods push and pull M; a ring has 8 arcs; 56 ordered pairs."""
    name = "tdm-traffic"
    assert value(name, "ps_over_ring", "8B") == pytest.approx(2 * 7 / 8)
    exchange = 8_192 * 4_096 * 8 * 40 * 4 / 8 * 8 / 1e9
    assert value(name, "ring_over_all", "8B") == pytest.approx(8 * 678.4 / (56 * exchange))
    assert [row.ours for row in answer_of(name).of("links")] == [56, 8, 7]


def test_with_what_a_ring_really_sends_the_first_step_of_the_order_is_level():
    rows = run("tdm-traffic", ring=1).of("ps_over_ring")
    assert {(round(row.ours, 9), row.verdict) for row in rows} == {(1.0, "differs")}


@pytest.mark.long
def test_time_division_gains_in_the_middle_and_nothing_at_the_ends():
    name = "tdm-study"
    assert verdict(name, "jobs", "32 jobs") == "differs"
    assert verdict(name, "jobs", "256 jobs") == "trend"
    assert verdict(name, "context", "128k tokens") == "differs"
    assert value(name, "jobs", "256 jobs") == value(name, "context", "8k tokens")
    assert verdict(name, "dark", "256 jobs") == "differs"


def test_as_equation_8_is_printed_no_grouping_matters():
    literal = run("tdm-study", eq8="gpu", seeds=3)
    assert all(row.ours < 5 for row in literal.of("jobs"))


# --- readings


def mix(jobs: int, seed: int) -> Jobs:
    return deploy(SetUp(jobs=jobs, seed=seed))


@pytest.mark.parametrize(("jobs", "seed"), [(64, 0), (128, 1), (256, 2)])
def test_the_drafts_read_as_built_are_the_products_rounds(jobs, seed):
    drawn = mix(jobs, seed)
    ours = climbed(drawn, Draft())
    product = solve(drawn, TdmSettings())
    assert ours.round_s == pytest.approx(product.round_s, rel=1e-12)
    assert ours.group == product.group


def test_a_round_with_everything_dark_counts_each_change_once():
    """Reconfiguration of a second is seen in the round, and no neighbour without it may end higher than measured."""
    drawn = deploy(replace(SetUp(jobs=64, seed=0), reconfiguration_ms=1_000.0))
    product = solve(drawn, TdmSettings())
    assert climbed(drawn, Draft()).round_s == pytest.approx(product.round_s, rel=1e-12)
    bare = climbed(drawn, Draft(bare_neighbours=True))
    assert bare.round_s >= product.round_s - 4.0


def test_the_older_equation_2_never_decides_with_ports_as_fast_as_servers():
    drawn = mix(128, 0)
    assert climbed(drawn, Draft(eq2=True)).round_s <= climbed(drawn, Draft()).round_s


def test_equation_5_as_printed_sends_nothing_inside_with_one_gpu_a_unit():
    drawn = mix(64, 0)
    one = DraftRound(drawn, [1] * 64, Draft(eq5=True))
    built = DraftRound(drawn, [1] * 64, Draft())
    for n, job in enumerate(drawn.jobs):
        if job.collective == "all_to_all":
            assert one._local[n].sum() == 0 < built._local[n].sum()
        else:
            assert one._local[n].tolist() == built._local[n].tolist()


@pytest.mark.parametrize("cut_from", [2, 3])
def test_an_undirected_ring_goes_once_through_all_its_pods(cut_from):
    draws = np.random.default_rng(3)
    for _ in range(200):
        pods = np.sort(draws.permutation(8)[: draws.integers(2, 9)])
        demand = np.where(draws.random((8, 8)) < draws.random(), 1.0, 0.0)
        np.fill_diagonal(demand, 0.0)
        assert sorted(undirected_ring(demand, pods, cut_from).tolist()) == pods.tolist()


def test_an_undirected_ring_keeps_a_path_that_is_there():
    demand = np.zeros((6, 6))
    for a, b in ((4, 1), (1, 5), (5, 0)):
        demand[a, b] = 1.0
    assert undirected_ring(demand, np.arange(6), 3).tolist() == [0, 5, 1, 4, 2, 3]


def test_two_trees_carry_the_volume_twice_over_every_pod_but_their_roots():
    demand = tree_demand(range(8), 10.0, 8)
    assert demand.tolist() == demand.T.tolist()
    assert demand.sum() == 2 * 7 * 10.0  # seven edges of each tree, half up and half down
    inner = [
        {(child - 1) // 2 for child in range(1, 8)},
        {7 - (child - 1) // 2 for child in range(1, 8)},
    ]
    assert not inner[0] & inner[1]


def test_demands_beyond_the_drafts_are_what_they_say():
    """One ring job of 4 units on 4 pods: M on an arc, 2 x 3/4 M, and half of M on each edge of two trees."""
    job = Job("j-1B", "ring_all_reduce", 0, (1, 1, 1, 1), 100.0, 1.0)
    jobs = Jobs("one", PodNetwork(1, 4, 8, 10.0, 1e9), (job,))
    seconds = {
        words: DraftRound(jobs, [1], Draft(all_reduce=words)).stage(0, (0,), PUSH)[0]
        for words in ("ring", "hierarchical", "flat ring")
    }
    assert seconds["hierarchical"] == seconds["flat ring"] == pytest.approx(1.5 * seconds["ring"])
    split = DraftRound(jobs, [1], Draft(split_share=0.5))
    assert split._fixed[0].sum() == 4 * 2 * 50.0


def test_the_card_of_readings_says_which_have_no_effect():
    answer = answer_of("tdm-readings")
    ratios = {row.item: row.ours for row in answer.of("reading")}
    assert ratios["older draft: D_ij over B_tor"] <= 1
    assert ratios["equation 5 with U − 1"] > 1.1
    assert "neighbours without ε" in answer.remarks[0]


# --- packets


def test_a_flow_keeps_one_path_and_an_even_spread_is_the_least():
    flows = [(0, 1, 30.0), (0, 1, 30.0), (2, 1, 30.0)]
    apart = packet_s(flows, np.array([0, 1, 2]), 3, 4, 10.0)
    assert apart == 3.0
    assert packet_s(flows, np.array([0, 0, 0]), 3, 4, 10.0) == 9.0
    assert packet_s(flows, np.array([0, 0, 1]), 3, 4, 10.0) == 6.0


def test_flows_carry_the_whole_demand():
    for job in mix(64, 0).jobs:
        flows = flows_of(job, job.pods, 4)
        assert sum(gbit for _, _, gbit in flows) == pytest.approx(
            between_pods_gbit(job, Reading(), job.pods).sum()
        )


def test_hashing_costs_time_and_several_flows_mend_it():
    one = value("tdm-packets", "hashed", "256 jobs")
    many = {row.item: row.ours for row in run("tdm-packets", flows=16).of("hashed")}
    assert 1 < many["256 jobs"] < one < value("tdm-packets", "polarised", "256 jobs")
    # Without hashing packets win, for their ports carry both ways at once.
    assert (
        value("tdm-packets", "bare", "256 jobs") < 1 < value("tdm-packets", "circuits", "256 jobs")
    )
