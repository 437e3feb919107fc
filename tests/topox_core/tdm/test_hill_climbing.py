"""Algorithm 1 against plain Python and brute force, and the rounds it is measured by."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from tests.topox_core.tdm import tdm_reference
from tests.topox_core.tdm.tdm_cases import (
    GOLDEN_HILL_CLIMBING_S,
    GOLDEN_STAGE_S,
    golden,
    random_jobs,
    small,
)
from topox_core.errors import InputError
from topox_core.runs.stopping import never
from topox_core.tdm.algorithms.baselines import (
    greedy,
    non_tdm,
    random_grouping,
    split_by_traffic,
    static_topology,
)
from topox_core.tdm.algorithms.hill_climbing import climb, hill_climb
from topox_core.tdm.bounds.floor import floor_of
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.mixes.samples import load_job_sample
from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading
from topox_core.tdm.model.jobs_file import validated
from topox_core.tdm.model.round import (
    NOBODY,
    PULL,
    PUSH,
    Round,
    RoundForm,
    RoundTracePoint,
    TdmSettings,
)
from topox_core.tdm.model.rounds import iterations_per_s, round_of, round_s_of
from topox_core.tdm.model.stage_table import StageTable
from topox_core.tdm.search import Search
from topox_core.tdm.solve import solve


def climbed(jobs: Jobs, reading: Reading | None = None) -> Round:
    return hill_climb(Search(jobs, TdmSettings(reading=reading or Reading())))


def reading_of(seed: int) -> Reading:
    return Reading(
        eq3_literal=seed % 3 == 1, physical_ring=seed % 5 == 1, delay_inside=seed % 2 == 1
    )


def groupings(jobs: Jobs, groups: int = 2) -> itertools.product[tuple[int, ...]]:
    return itertools.product(range(groups), repeat=len(jobs))


# -- Algorithm 1 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(100))
def test_hill_climbing_is_the_algorithm_line_by_line(seed: int) -> None:
    jobs, reading = random_jobs(seed, most_jobs=9), reading_of(seed)
    group, seconds = tdm_reference.algorithm_1(jobs, reading)
    found = climbed(jobs, reading)
    assert found.round_s == pytest.approx(seconds, rel=1e-9)
    assert list(found.group) == group
    assert found.trace[-1].round_s == pytest.approx(seconds, rel=1e-9)
    assert round_s_of(StageTable(jobs, reading), found.group) == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize("seed", range(1006, 1036))
def test_it_is_the_algorithm_on_the_drafts_set_up_with_four_pods(seed: int) -> None:
    jobs = small(seed, reconfiguration_ms=0.5)
    assert climbed(jobs).round_s == pytest.approx(
        tdm_reference.algorithm_1(jobs, Reading())[1], rel=1e-9
    )


def test_the_four_pod_case_has_its_known_round() -> None:
    found = climbed(golden())
    assert found.round_s == pytest.approx(GOLDEN_HILL_CLIMBING_S, abs=1e-4)
    assert found.group == (0,) * 5
    assert found.communication_s.tolist() == [[pytest.approx(GOLDEN_STAGE_S), 0.0]]


@pytest.mark.parametrize("seed", range(40))
def test_it_is_never_longer_than_without_time_division_nor_shorter_than_any_grouping_or_the_floor(
    seed: int,
) -> None:
    jobs, reading = random_jobs(seed, most_jobs=6), reading_of(seed)
    table = StageTable(jobs, reading)
    found, plain = (
        climbed(jobs, reading),
        non_tdm(Search(jobs, TdmSettings(reading=reading))),
    )
    every = {group: round_s_of(table, group) for group in groupings(jobs)}
    assert found.round_s <= plain.round_s
    assert found.round_s >= min(every.values()) * (1 - 1e-12)
    assert found.bound_s <= min(every.values()) * (1 + 1e-12)
    flips = [tuple(k ^ (n == m) for m, k in enumerate(found.group)) for n in range(len(jobs))]
    assert min(every[flip] for flip in flips) >= found.round_s * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_a_climb_from_anywhere_ends_where_no_flip_helps(seed: int) -> None:
    jobs, reading = random_jobs(seed), reading_of(seed)
    table = StageTable(jobs, reading)
    start = tuple(int(k) for k in np.random.default_rng(seed).integers(0, 2, len(jobs)))
    rounds: list[float] = []
    found = climb(table, start, never, rounds.append)
    assert found.finished
    assert found.round_s == pytest.approx(round_s_of(table, found.group), rel=1e-12)
    assert rounds[0] == pytest.approx(round_s_of(table, start), rel=1e-12)
    assert len(rounds) == found.steps + 1
    assert all(after < before for before, after in itertools.pairwise(rounds))
    for n in range(len(jobs)):
        flip = tuple(k ^ (n == m) for m, k in enumerate(found.group))
        assert round_s_of(table, flip) >= found.round_s * (1 - 1e-9)


def test_stopping_keeps_what_was_found() -> None:
    jobs = deploy(SetUp(jobs=40, pod_groups=4, seed=6))
    whole = climbed(jobs)
    steps: list[RoundTracePoint] = []
    cut = solve(jobs, TdmSettings(), lambda: len(steps) == 2, steps.append)
    assert (cut.stopped_by, cut.status) == ("cancelled", "feasible")
    assert whole.round_s < cut.round_s == pytest.approx(whole.trace[2].round_s, rel=1e-9)
    at_once = hill_climb(Search(jobs, TdmSettings(time_limit_s=0.0)))
    assert (at_once.stopped_by, at_once.group) == ("time_limit", (0,) * 40)


def test_a_round_that_meets_the_floor_is_optimal() -> None:
    found = climbed(load_job_sample("overlap"))
    assert (found.status, found.stopped_by, found.round_s, found.bound_s) == (
        "optimal",
        "proof",
        40.0,
        40.0,
    )
    longer = climbed(load_job_sample("four-pods"))
    assert (longer.status, longer.bound.by) == (
        "feasible",
        "job 90B: push, compute, pull and compute",
    )


def test_one_job_pushes_computes_pulls_and_computes() -> None:
    jobs = Jobs("one", replace(golden().network), (golden().jobs[4],))
    found = climbed(jobs)
    alone = StageTable(jobs).communication_s(0, (0,))
    assert (found.round_s, found.status) == (pytest.approx(2 * alone + 33.3982), "optimal")
    assert found.bound.by == "job ps: push, compute, pull and compute"


def test_one_pod_shares_only_its_switch() -> None:
    pair = [Job(f"j{n}", "ring_all_reduce", 0, (2,), 10.0, 8.0) for n in (0, 1)]
    jobs = validated("one pod", PodNetwork(1, 1, 1, 10.0, 5.0, 0.0), pair, "x")
    assert non_tdm(Search(jobs, TdmSettings())).round_s == pytest.approx(2 * (80 / 5 + 8))
    assert climbed(jobs).round_s == pytest.approx(4 * 8)


def test_too_few_ports_are_said_once_and_for_all() -> None:
    jobs = validated(
        "few",
        PodNetwork(1, 4, 4, 1.0, 1.0),
        [Job("a", "all_to_all", 0, (1, 1, 1, 1), 1.0, 1.0)],
        "x",
    )
    for algorithm in (hill_climb, non_tdm, greedy, random_grouping, static_topology):
        with pytest.raises(InputError, match="infeasible: pod 0 has 4 ports and needs 6"):
            algorithm(Search(jobs, TdmSettings()))


# -- rounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_pod_group", [False, True])
@pytest.mark.parametrize(("groups", "all_train"), [(2, False), (2, True), (3, True), (1, True)])
@pytest.mark.parametrize("seed", range(12))
def test_phases_follow_each_other_and_leave_everybody_time_to_compute(
    seed: int, groups: int, all_train: bool, per_pod_group: bool
) -> None:
    jobs, reading = random_jobs(seed), reading_of(seed)
    group = np.random.default_rng(seed).integers(0, groups, len(jobs)).tolist()
    table = StageTable(jobs, reading)
    form = RoundForm(groups, all_train, per_pod_group)
    answer = round_of(table, group, form)
    assert round_s_of(table, group, form) == pytest.approx(answer.round_s)
    for cycle in answer.cycles:
        assert cycle.phases[0].start_s == 0.0
        assert all(one.end_s == two.start_s for one, two in itertools.pairwise(cycle.phases))
        expected = [
            (k, way)
            for way in (PUSH, PULL)
            for k in (*range(groups), *([NOBODY] if all_train else []))
        ]
        assert [(phase.group, phase.way) for phase in cycle.phases] == expected
        for n, job in enumerate(jobs.jobs):
            if job.pod_group not in cycle.pod_groups:
                continue
            push, pull = (
                next(p for p in cycle.phases if (p.group, p.way) == (group[n], way))
                for way in (PUSH, PULL)
            )
            need = answer.communication_s[job.pod_group, group[n]]
            assert min(push.communication_s, pull.communication_s) >= need
            assert min(push.end_s - push.start_s, pull.end_s - pull.start_s) >= (
                push.dark_s + need
            ) * (1 - 1e-12)
            after_pull = push.start_s + cycle.round_s - pull.end_s
            after_push = pull.start_s - push.end_s
            between = (
                job.aggregate_s
                if job.collective == "parameter_server" and not reading.eq3_literal
                else job.train_s
            )
            assert after_pull >= job.train_s * (1 - 1e-9) - 1e-9
            assert after_push >= between * (1 - 1e-9) - 1e-9


@pytest.mark.parametrize("seed", range(40))
def test_what_a_round_may_do_besides_never_makes_it_longer(seed: int) -> None:
    jobs, reading = random_jobs(seed), reading_of(seed)
    table = StageTable(jobs, reading)
    group = np.random.default_rng(seed).integers(0, 2, len(jobs)).tolist()
    paper = round_s_of(table, group)
    assert round_s_of(table, group, RoundForm(all_train=True)) <= paper * (1 + 1e-12)
    assert round_s_of(table, group, RoundForm(per_pod_group=True)) <= paper * (1 + 1e-12)
    assert round_s_of(table, [0] * len(jobs), RoundForm(1)) == pytest.approx(
        round_s_of(table, [0] * len(jobs))
    )


def test_half_rounds_of_two_and_three_groups_by_hand() -> None:
    # Each alone pushes 10 s; they train 40, 40 and 5 s on the same two pods.
    network = PodNetwork(1, 2, 2, 100.0, 1e6, 0.0)
    rings = [
        Job(f"j{n}", "ring_all_reduce", 0, (1, 1), 1000.0, t)
        for n, t in enumerate((40.0, 40.0, 5.0))
    ]
    jobs = validated("three", network, rings, "x")
    table = StageTable(jobs)
    assert round_s_of(table, (0, 1, 1)) == pytest.approx(40 + 40 + 40 + 40)
    assert round_s_of(table, (0, 1, 1), RoundForm(all_train=True)) == pytest.approx(2 * (20 + 40))
    assert round_s_of(table, (0, 0, 1), RoundForm(all_train=True)) == pytest.approx(2 * (20 + 40))
    assert round_s_of(table, (0, 1, 2), RoundForm(3)) == pytest.approx(2 * max(30, 10 + 40))
    assert round_s_of(table, (0, 0, 0)) == pytest.approx(2 * (30 + 40))


def test_a_parameter_server_trains_only_between_pull_and_push_unless_eq_3_is_taken_as_printed() -> (
    None
):
    network = PodNetwork(1, 2, 2, 100.0, 1e6, 0.0)
    job = Job("p", "parameter_server", 0, (0, 1), 1000.0, 30.0, server_pod=0, aggregate_s=4.0)
    jobs = validated("one", network, [job], "x")
    # 1,000 Gbit over both ports of each pod take 5 s.
    assert round_s_of(StageTable(jobs), (0,)) == pytest.approx(5 + 4 + 5 + 30)
    assert round_s_of(StageTable(jobs, Reading(eq3_literal=True)), (0,)) == pytest.approx(
        5 + 30 + 5 + 30
    )
    assert iterations_per_s(round_of(StageTable(jobs), (0,))).tolist() == [pytest.approx(1 / 44)]


def test_rings_and_experts_train_twice_a_round_and_parameter_servers_once() -> None:
    answer = climbed(golden())
    assert (iterations_per_s(answer) * answer.round_s).tolist() == pytest.approx([2, 2, 2, 2, 1])


def test_reconfiguration_counts_once_for_each_stage_that_begins_with_other_circuits() -> None:
    for reading in (Reading(), Reading(delay_inside=True)):
        table = StageTable(golden(1000.0), reading)
        plain = StageTable(golden(0.0), reading)
        # Alone, the push is not its own transpose: it turns before push and pull.
        assert round_s_of(table, (0,) * 5) == pytest.approx(round_s_of(plain, (0,) * 5) + 2.0)
    apart = Job("a", "ring_all_reduce", 0, (1, 1), 1000.0, 1.0)
    same = validated(
        "same", PodNetwork(1, 2, 2, 100.0, 1e6, 1000.0), [apart, replace(apart, id="b")], "x"
    )
    # Both groups want the same two circuits, which are their own transpose: nothing ever turns.
    assert round_s_of(StageTable(same), (0, 1)) == pytest.approx(4 * 10.0)
    assert all(phase.dark_s == 0 for phase in round_of(StageTable(same), (0, 1)).cycles[0].phases)


# -- what it is measured against --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_one_topology_serves_all_stages_within_the_ports(seed: int) -> None:
    jobs = random_jobs(seed, reconfiguration_ms=0.0)
    table = StageTable(jobs)
    group = np.random.default_rng(seed).integers(0, 2, len(jobs)).tolist()
    answer = round_of(table, group, RoundForm(static=True))
    assert (answer.links == answer.links[:, :1]).all()
    assert (answer.links == answer.links.transpose(0, 1, 3, 2)).all()
    assert (answer.links.sum(2) + answer.links.sum(3) <= jobs.network.ports_per_pod).all()
    plain = static_topology(Search(jobs, TdmSettings()))
    assert plain.round_s >= non_tdm(Search(jobs, TdmSettings())).round_s * (1 - 1e-12)
    assert plain.static
    assert round_s_of(table, group, RoundForm(static=True)) == pytest.approx(answer.round_s)


def test_the_greedy_split_puts_the_largest_first_each_to_the_lighter_group() -> None:
    network = PodNetwork(1, 2, 8, 10.0, 10.0)
    volumes = (3.0, 9.0, 4.0, 2.0)
    jobs = validated(
        "four",
        network,
        [Job(f"j{n}", "ring_all_reduce", 0, (1, 1), v, 1.0) for n, v in enumerate(volumes)],
        "x",
    )
    assert split_by_traffic(jobs) == (1, 0, 1, 1)
    assert greedy(Search(jobs, TdmSettings())).group == (1, 0, 1, 1)


def test_a_random_grouping_is_drawn_from_its_seed() -> None:
    jobs = deploy(SetUp(jobs=40, pod_groups=4))
    drawn = [random_grouping(Search(jobs, TdmSettings(seed=seed))).group for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(drawn[0]) == {0, 1}


@pytest.mark.parametrize("seed", range(10))
def test_no_round_of_any_form_is_below_the_floor(seed: int) -> None:
    jobs, reading = random_jobs(seed, most_jobs=5), reading_of(seed)
    table = StageTable(jobs, reading)
    floor = floor_of(table).round_s
    for groups, all_train in ((2, False), (2, True), (3, True)):
        for group in groupings(jobs, groups):
            assert round_s_of(
                table, group, RoundForm(groups, all_train, per_pod_group=True)
            ) >= floor * (1 - 1e-12)
    assert 0 < floor < math.inf


def test_a_job_with_nothing_to_do_iterates_as_often_as_one_likes() -> None:
    jobs = validated(
        "idle",
        PodNetwork(1, 1, 1, 1.0, 1.0, 0.0),
        [Job("a", "all_to_all", 0, (1,), 1.0, 0.0)],
        "test",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert iterations_per_s(climbed(jobs)).tolist() == [math.inf]
