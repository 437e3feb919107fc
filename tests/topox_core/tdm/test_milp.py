"""The exact model against brute force over every grouping and every ring, and its manners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from tests.topox_core.tdm.tdm_cases import (
    GOLDEN_HILL_CLIMBING_S,
    GOLDEN_OPTIMUM_S,
    golden,
    random_jobs,
    small,
)
from topox_core.errors import InputError
from topox_core.tdm.exact.exact_model import ExactModel, Traffic, columns_of
from topox_core.tdm.exact.link_rules import link_rules
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading
from topox_core.tdm.model.jobs_file import validated
from topox_core.tdm.model.round import Round, RoundTracePoint, TdmSettings
from topox_core.tdm.model.rounds import round_s_of
from topox_core.tdm.model.stage_table import StageTable
from topox_core.tdm.solve import solve


def proved(jobs: Jobs, reading: Reading | None = None) -> Round:
    found = solve(jobs, TdmSettings(algorithm="milp", reading=reading or Reading()))
    assert (found.status, found.stopped_by) == ("optimal", "proof")
    return found


def laps(job: Job) -> Iterator[tuple[int, ...]]:
    """Every ring through the pods of a job, from its first pod; one empty ring for what is no ring."""
    if job.collective != "ring_all_reduce" or len(job.pods) < 2:
        yield ()
        return
    for rest in permutations(job.pods[1:]):
        yield (job.pods[0], *rest)


def shortest_of_all(jobs: Jobs, reading: Reading) -> float:
    """The shortest round over all groupings and rings, each with the links of Algorithm 2, which are optimal."""
    table, best = StageTable(jobs, reading), float("inf")
    for group in product((0, 1), repeat=len(jobs)):
        for rings in product(*(list(laps(job)) for job in jobs.jobs)):
            best = min(best, round_s_of(table, group, rings=dict(enumerate(rings))))
    return best


def few(seed: int, pod_groups: int = 1) -> Jobs:
    """Four or fewer jobs on three or four pods, so that all rings can be tried, without reconfiguration time."""
    return random_jobs(
        seed, most_jobs=4, pod_groups=pod_groups, pods=3 + seed % 2, reconfiguration_ms=0.0
    )


@pytest.mark.parametrize("seed", range(8))
def test_no_grouping_and_no_ring_beats_the_exact_model(seed: int) -> None:
    jobs = few(seed)
    assert proved(jobs).round_s == pytest.approx(shortest_of_all(jobs, Reading()), rel=1e-6)


@pytest.mark.parametrize("seed", range(8, 12))
def test_pod_groups_that_share_a_barrier_are_solved_together(seed: int) -> None:
    jobs = few(seed, pod_groups=2)
    assert proved(jobs).round_s == pytest.approx(shortest_of_all(jobs, Reading()), rel=1e-6)


@pytest.mark.parametrize("reading", [Reading(eq3_literal=True), Reading(physical_ring=True)])
def test_the_model_is_that_of_the_reading(reading: Reading) -> None:
    jobs = few(21)
    assert proved(jobs, reading).round_s == pytest.approx(shortest_of_all(jobs, reading), rel=1e-6)


def test_the_golden_optimum_keeps_the_grouping_and_finds_other_rings() -> None:
    found = proved(golden())
    climbed = solve(golden(), TdmSettings(algorithm="hill-climbing"))
    assert climbed.round_s == pytest.approx(GOLDEN_HILL_CLIMBING_S, abs=1e-4)
    assert found.round_s == pytest.approx(GOLDEN_OPTIMUM_S, abs=1e-4)
    assert found.group == climbed.group
    assert found.rings != climbed.rings


@pytest.mark.parametrize("seed", [1006, 1009])
def test_the_drafts_set_up_on_four_pods_is_proved(seed: int) -> None:
    found = proved(small(seed))
    assert found.round_s <= solve(small(seed), TdmSettings(algorithm="best-grouping")).round_s * (
        1 + 1e-9
    )


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("seed", [1, 6])
def test_with_slow_switches_the_optimum_still_counts_every_change(seed: int, inside: bool) -> None:
    """Without a delay the round is shorter, and paying for it four times would be the same grouping's price at most."""
    jobs, reading = few(seed), Reading(delay_inside=inside)
    slow = replace(jobs, network=replace(jobs.network, reconfiguration_ms=800.0))
    free, charged = proved(jobs, reading).round_s, proved(slow, reading).round_s
    assert (
        free * (1 - 1e-6)
        <= charged
        <= min(free + 4 * 0.8, shortest_of_all(slow, reading)) * (1 + 1e-6)
    )


def test_links_kept_from_stage_to_stage_are_worth_more_than_the_fastest_ones_where_switching_is_slow() -> (
    None
):
    """A parameter server with a port more than it needs: four links up, or two each way for ever."""
    network = PodNetwork(1, 2, 4, 100.0, 1000.0, 5000.0)
    jobs = Jobs(
        "pair", network, (Job("ps", "parameter_server", 0, (0, 1), 100.0, 1.0, server_pod=0),)
    )
    found = proved(jobs)
    # Fastest: 4 links towards the server, a quarter of a second, and 2 changes of 5 s; kept: 2 and
    # 2 links, half a second.
    assert found.round_s == pytest.approx(0.5 + 0.5 + 1.0)
    assert np.array_equal(found.links[0, 0], found.links[0, 0].T)


def test_rings_of_many_pods_are_numbered_instead_of_cut() -> None:
    network = PodNetwork(1, 10, 4, 100.0, 1e6, 0.0)
    jobs = Jobs("wide", network, (Job("r", "ring_all_reduce", 0, (1,) * 10, 900.0, 1.0),))
    found = proved(jobs)
    assert sorted(found.rings[0]) == list(range(10))
    assert found.round_s == pytest.approx(2 * (900.0 / (2 * 100.0) + 1.0))


def test_a_ring_never_falls_apart() -> None:
    """Two jobs whose pairs of pods would be served best by two small rings in place of one."""
    pairs = (
        Job("a", "ring_all_reduce", 0, (1, 1, 0, 0), 100.0, 0.0),
        Job("b", "ring_all_reduce", 0, (0, 0, 1, 1), 100.0, 0.0),
    )
    jobs = Jobs(
        "apart",
        PodNetwork(1, 4, 6, 100.0, 1e6, 0.0),
        (*pairs, Job("c", "ring_all_reduce", 0, (1, 1, 1, 1), 100.0, 0.0)),
    )
    ring = proved(jobs).rings[2]
    assert sorted(ring) == [0, 1, 2, 3]


def test_asked_to_stop_it_gives_the_best_round_so_far() -> None:
    found = solve(small(1020), TdmSettings(algorithm="milp"), lambda: True)
    assert found.stopped_by == "cancelled"
    assert found.status == "feasible"
    assert found.bound_s <= found.round_s < float("inf")


def test_bounds_and_rounds_that_it_tells_of_only_get_better() -> None:
    trace: list[RoundTracePoint] = []
    found = solve(golden(), TdmSettings(algorithm="milp"), on_trace=trace.append)
    rounds = [point.round_s for point in trace if point.round_s is not None]
    assert rounds == sorted(rounds, reverse=True)
    assert rounds[-1] == pytest.approx(found.round_s)
    assert all(point.bound_s <= found.round_s * (1 + 1e-9) for point in trace)


def test_a_model_too_large_is_refused_with_its_size_named() -> None:
    with pytest.raises(InputError, match=r"would have [\d,]+ columns \(limit 20,000\)"):
        solve(deploy(SetUp(jobs=256)), TdmSettings(algorithm="milp"))
    many = replace(golden(), jobs=golden().jobs[:1] * 100_000)
    with pytest.raises(InputError, match="at most 500 jobs"):
        solve(many, TdmSettings(algorithm="milp"))


def test_the_size_named_is_the_size_built() -> None:
    for seed in range(5):
        jobs = random_jobs(seed, reconfiguration_ms=0.0)
        traffic = Traffic.of(jobs, Reading())
        unit_s = traffic.longest_stage_s(jobs) or 1.0
        rule = link_rules(0.0)[0]
        model = ExactModel(jobs, Reading(), rule, unit_s=unit_s, cutoff_s=float("inf"))
        assert model.mip.columns <= columns_of(jobs, traffic)


@pytest.mark.parametrize("volume_gbit", [1e-9, 1e-6])
def test_times_too_far_apart_for_the_solver_are_refused_or_left_to_other_methods(
    volume_gbit: float,
) -> None:
    network = PodNetwork(1, 4, 8, 150.0, 1200.0)
    jobs = [
        Job("a", "ring_all_reduce", 0, (1, 1, 1, 1), volume_gbit, 1e9),
        Job("b", "ring_all_reduce", 0, (1, 1, 1, 0), volume_gbit, 1e9),
    ]
    far = validated("far apart", network, jobs, "far")
    with pytest.raises(InputError, match="times as long as the longest stage"):
        solve(far, TdmSettings(algorithm="milp", time_limit_s=5.0))
    best = solve(far, TdmSettings(algorithm="best", time_limit_s=5.0))
    assert best.round_s >= 1e9
