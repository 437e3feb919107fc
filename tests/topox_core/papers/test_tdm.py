"""The cards on time division: what adds up, what holds, and where it turns over."""

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import long_after
from tests.topox_core.papers.answers import answer_of, run, value
from tests.topox_core.papers.tdm_literal import (
    Climbed,
    Draft,
    DraftRound,
    tree_demand,
    undirected_ring,
)
from topox_core.papers.cards.tdm import flows_of, packet_s
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.mixes.deployment import MODELS, SetUp, deploy
from topox_core.tdm.model.jobs import PUSH, Job, Jobs, PodNetwork, Reading, TdmSettings
from topox_core.tdm.model.traffic import between_pods_gbit


def test_the_training_times_are_equation_8():
    """8 x 8192 x 1.23e9 / (26e12 x 0.4) s on one GPU."""
    name = "tdm-training-times"
    assert value(name, "train", "1B") == pytest.approx(8 * 8192 * 1.23e9 / (26e12 * 0.4))
    literal = {row.item: row.ours for row in run(name, unit="gpu").of("train")}
    assert literal["90B"] == pytest.approx(64 * value(name, "train", "90B"))
    as_named = {row.item: row for row in run(name, third="8B").of("size")}
    assert as_named["8B"].verdict == "trend"  # 16.06 GB: the row is not the 8B model


def test_eight_units_on_eight_pods_by_hand():
    """7 pods push and pull M; a ring has 8 arcs; 56 ordered pairs."""
    name = "tdm-traffic"
    assert value(name, "ps_over_ring", "8B") == pytest.approx(2 * 7 / 8)
    exchange = 8_192 * 4_096 * 8 * 40 * 4 / 8 * 8 / 1e9
    assert value(name, "ring_over_all", "8B") == pytest.approx(8 * 678.4 / (56 * exchange))
    assert [row.ours for row in answer_of(name).of("links")] == [56, 8, 7]
    # With what a ring really sends the first step of the order is level.
    level = run(name, ring=1).of("ps_over_ring")
    assert {(round(row.ours, 9), row.verdict) for row in level} == {(1.0, "differs")}


# --- readings


def climbed(jobs: Jobs, draft: Draft) -> Climbed:
    """Return where Algorithm 1 ends under a reading, by the model that the name of each job ends with."""
    gpus = [MODELS[job.id.rpartition("-")[2]].gpus_per_unit for job in jobs.jobs]
    return DraftRound(jobs, gpus, draft).climb()


def mix(jobs: int, seed: int) -> Jobs:
    return deploy(SetUp(jobs=jobs, seed=seed))


@pytest.mark.parametrize(("jobs", "seed"), long_after(2, [(64, 0), (128, 1), (256, 2)]))
def test_the_drafts_read_as_built_are_the_products_rounds(jobs, seed):
    drawn = mix(jobs, seed)
    ours, product = climbed(drawn, Draft()), solve(drawn, TdmSettings())
    assert ours.round_s == pytest.approx(product.round_s, rel=1e-12)
    assert ours.group == product.group
    # The older equation 2 never decides with ports as fast as servers.
    assert climbed(drawn, Draft(eq2=True)).round_s <= ours.round_s


def test_a_round_with_everything_dark_counts_each_change_once():
    """Reconfiguration of a second is seen in the round, and no neighbour without it may end higher than measured."""
    drawn = deploy(replace(SetUp(jobs=64, seed=0), reconfiguration_ms=1_000.0))
    product = solve(drawn, TdmSettings())
    assert climbed(drawn, Draft()).round_s == pytest.approx(product.round_s, rel=1e-12)
    bare = climbed(drawn, Draft(bare_neighbours=True))
    assert bare.round_s >= product.round_s - 4.0


def test_equation_5_as_printed_sends_nothing_inside_with_one_gpu_a_unit():
    drawn = mix(64, 0)
    one, built = (DraftRound(drawn, [1] * 64, Draft(eq5=eq5)) for eq5 in (True, False))
    for n, job in enumerate(drawn.jobs):
        if job.collective == "all_to_all":
            assert one._local[n].sum() == 0 < built._local[n].sum()
        else:
            assert one._local[n].tolist() == built._local[n].tolist()


def test_an_undirected_ring_goes_once_through_all_its_pods_and_keeps_a_path_that_is_there():
    draws = np.random.default_rng(3)
    for case in range(200):
        pods = np.sort(draws.permutation(8)[: draws.integers(2, 9)])
        demand = np.where(draws.random((8, 8)) < draws.random(), 1.0, 0.0)
        np.fill_diagonal(demand, 0.0)
        assert sorted(undirected_ring(demand, pods, 2 + case % 2).tolist()) == pods.tolist()
    path = np.zeros((6, 6))
    path[4, 1] = path[1, 5] = path[5, 0] = 1.0
    assert undirected_ring(path, np.arange(6), 3).tolist() == [0, 5, 1, 4, 2, 3]


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


# --- packets


@pytest.mark.parametrize(
    ("paths", "seconds"), [([0, 1, 2], 3.0), ([0, 0, 0], 9.0), ([0, 0, 1], 6.0)]
)
def test_a_flow_keeps_one_path_and_an_even_spread_is_the_least(paths, seconds):
    flows = [(0, 1, 30.0), (0, 1, 30.0), (2, 1, 30.0)]
    assert packet_s(flows, np.array(paths), 3, 4, 10.0) == seconds


def test_flows_carry_the_whole_demand():
    for job in mix(64, 0).jobs:
        carried = sum(gbit for _, _, gbit in flows_of(job, job.pods, 4))
        assert carried == pytest.approx(between_pods_gbit(job, Reading(), job.pods).sum())


@pytest.mark.long
def test_hashing_costs_time_and_several_flows_mend_it():
    one = value("tdm-packets", "hashed", "256 jobs")
    many = {row.item: row.ours for row in run("tdm-packets", flows=16).of("hashed")}
    assert 1 < many["256 jobs"] < one < value("tdm-packets", "polarised", "256 jobs")
    # Without hashing packets win, for their ports carry both ways at once.
    bare = value("tdm-packets", "bare", "256 jobs")
    assert bare < 1 < value("tdm-packets", "circuits", "256 jobs")
