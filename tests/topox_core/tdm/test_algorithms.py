"""Algorithms 1 to 3 line by line: what jobs send, the rings they form, the links they get, how groups are climbed to."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples, long_after, some
from tests.topox_core.tdm import tdm_reference
from tests.topox_core.tdm.tdm_cases import (
    GOLDEN_STAGE_S,
    golden,
    random_jobs,
    round_s_of,
    small,
)
from topox_core.errors import InputError
from topox_core.runs.run import never
from topox_core.tdm.algorithms.catalogue import ALGORITHMS, solve, split_by_traffic
from topox_core.tdm.algorithms.hill_climbing import climb, hill_climb
from topox_core.tdm.kernels.stage import Fabric, ring_of
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import (
    Job,
    Jobs,
    PodNetwork,
    Reading,
    Round,
    RoundForm,
    RoundTracePoint,
    TdmSettings,
)
from topox_core.tdm.model.jobs_file import validated
from topox_core.tdm.model.rounds import iterations_per_s
from topox_core.tdm.model.traffic import (
    StageTable,
    allocated,
    between_pods_gbit,
    from_lowest,
    inside_pods_gbit,
    ports_used,
)
from topox_core.tdm.search import Search, floor_of

# -- traffic ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "demand", "local"),
    [
        (
            Job("units to their server", "parameter_server", 0, (2, 0, 1), 10.0, 1.0, server_pod=2),
            [[0, 0, 20], [0, 0, 0], [0, 0, 0]],
            [20, 0, 10],
        ),
        (
            Job("once on each arc", "ring_all_reduce", 0, (2, 1, 1), 10.0, 1.0),
            [[0, 0, 10], [10, 0, 0], [0, 10, 0]],
            [40, 20, 20],
        ),
        (
            Job("every unit to every other", "all_to_all", 0, (2, 0, 3), 10.0, 1.0),
            [[0, 0, 60], [0, 0, 0], [60, 0, 0]],
            [2 * 2 * 10 * 4, 0, 2 * 3 * 10 * 4],
        ),
    ],
    ids=lambda value: getattr(value, "id", ""),
)
def test_what_a_collective_sends_between_and_inside_pods(
    job: Job, demand: list[list[int]], local: list[int]
) -> None:
    ring = (0, 2, 1) if job.collective == "ring_all_reduce" else ()
    assert between_pods_gbit(job, Reading(), ring).tolist() == demand
    assert inside_pods_gbit(job).tolist() == local


# -- Algorithm 3 ------------------------------------------------------------------------------------------


def ring_through(pods: Iterable[int], linked: np.ndarray) -> tuple[int, ...]:
    """The ring through the pods where ``linked[i, j]`` says that i -> j has a link anyway."""
    return from_lowest(ring_of(linked.astype(float), np.array(list(pods), np.int64)))


@st.composite
def linked_pods(draw: st.DrawFn) -> tuple[tuple[int, ...], np.ndarray]:
    size = draw(st.integers(2, 7))
    linked = np.array(
        draw(
            st.lists(
                st.lists(st.booleans(), min_size=size, max_size=size), min_size=size, max_size=size
            )
        )
    )
    np.fill_diagonal(linked, False)
    pods = draw(st.sets(st.integers(0, size - 1), min_size=2))
    return tuple(sorted(pods)), linked


@examples(300)
@given(linked_pods())
def test_a_ring_is_that_of_the_algorithm_line_by_line_and_one_lap(
    case: tuple[tuple[int, ...], np.ndarray],
) -> None:
    pods, linked = case
    ring = ring_through(pods, linked)
    assert ring == from_lowest(tdm_reference.algorithm_3(pods, linked.tolist()))
    assert sorted(ring) == list(pods)


# -- Algorithm 2 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", long_after(25, range(150)))
def test_links_given_greedily_are_as_good_as_any(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pods = int(rng.integers(2, 7))
    demand = rng.random((pods, pods)) ** 4 * 1000.0 * (rng.random((pods, pods)) < rng.random())
    np.fill_diagonal(demand, 0.0)
    ports, tor_s = int(rng.integers(2, 4 * pods)), float(rng.choice([0.0, 1.0]))
    seconds, links = allocated(demand, tor_s, Fabric(ports, 25.0, 1.0))
    network = PodNetwork(1, pods, ports, 25.0, 1.0)
    assert seconds == pytest.approx(tdm_reference.least_s(demand, tor_s, network), rel=1e-9)
    if seconds < math.inf:
        assert (ports_used(links) <= ports).all()
        assert (demand <= links * 25.0 * seconds * (1 + 1e-12)).all()


# -- stages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", long_after(25, range(120)))
def test_stages_are_those_of_the_algorithm_line_by_line(seed: int) -> None:
    jobs, reading = random_jobs(seed), Reading(physical_ring=seed % 3 == 0)
    table, rng = StageTable(jobs, reading), random.Random(seed)
    for g, members in enumerate(table.members):
        chosen = [n for n in members if rng.random() < 0.6]
        expected, _, rings = tdm_reference.algorithm_2(jobs, chosen, g, reading)
        assert table.communication_s(g, chosen) == pytest.approx(expected, rel=1e-12)
        if expected < math.inf:
            stage = table.stage(g, chosen)
            assert stage.communication_s == pytest.approx(expected, rel=1e-12)
            found = {n: ring for n, ring in stage.rings.items() if ring}
            assert found == {n: from_lowest(ring) for n, ring in rings.items()}


def test_the_four_pod_case_has_its_known_stage() -> None:
    stage = StageTable(golden()).stage(0, range(5))
    assert stage.communication_s == pytest.approx(GOLDEN_STAGE_S, abs=1e-9)
    assert stage.demand_gbit[1, 3] / (150.0 * stage.links[1, 3]) == pytest.approx(GOLDEN_STAGE_S)
    assert (stage.links[1, 3], ports_used(stage.links)[1]) == (2, 8), (
        "pod 1 has no port left for its slowest pair"
    )


def test_adding_a_job_to_given_rings_never_shortens_a_stage() -> None:
    for seed in some(range(40), quick=8):
        jobs = random_jobs(seed, pod_groups=1, most_jobs=5)
        table = StageTable(jobs)
        rings = {n: job.pods for n, job in enumerate(jobs.jobs) if len(job.pods) > 1}
        times = [
            table.stage(0, [n for n in range(len(jobs)) if mask >> n & 1], rings).communication_s
            for mask in range(1 << len(jobs))
        ]
        for mask, bit in itertools.product(range(1 << len(jobs)), range(len(jobs))):
            assert times[mask] <= times[mask | 1 << bit] * (1 + 1e-12)


def test_too_few_ports_name_the_pod_and_the_count() -> None:
    server = Job("p", "parameter_server", 0, (1, 0, 0, 1), 5.0, 1.0, server_pod=0)
    jobs = (Job("a", "all_to_all", 0, (1, 1, 1, 1), 5.0, 1.0), server)
    table = StageTable(validated("test", PodNetwork(1, 4, 5, 10.0, 1e6), jobs, "test"))
    assert table.communication_s(0, (1,)) < table.communication_s(0, (0,)) == math.inf
    line = "test, pod group 0, .*: infeasible: pod 0 has 5 ports and needs 6 for one link"
    with pytest.raises(InputError, match=line):
        table.stage(0, (0, 1))


def test_a_pod_group_may_have_more_jobs_than_a_word_has_bits() -> None:
    many = [Job(f"j{n}", "all_to_all", 0, (1, 1), 1.0, 1.0) for n in range(70)]
    table = StageTable(validated("many", PodNetwork(1, 2, 2, 1.0, 1.0), many, "test"))
    assert table.communication_s(0, range(70)) == pytest.approx(140.0)
    assert table.communication_s(0, [0, 69]) == pytest.approx(4.0)


def climbed(jobs: Jobs, reading: Reading | None = None) -> Round:
    return hill_climb(Search(jobs, TdmSettings(reading=reading or Reading())))


def reading_of(seed: int) -> Reading:
    return Reading(
        eq3_literal=seed % 3 == 1, physical_ring=seed % 5 == 1, delay_inside=seed % 2 == 1
    )


def groupings(jobs: Jobs, groups: int = 2) -> itertools.product[tuple[int, ...]]:
    return itertools.product(range(groups), repeat=len(jobs))


# -- Algorithm 1 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", long_after(25, range(130)))
def test_hill_climbing_is_the_algorithm_line_by_line(seed: int) -> None:
    """On jobs of any kind, and every fifth time on the drafts' set-up made small."""
    jobs = random_jobs(seed, most_jobs=9) if seed % 5 else small(1006 + seed // 5, 0.5)
    reading = reading_of(seed)
    group, seconds = tdm_reference.algorithm_1(jobs, reading)
    found = climbed(jobs, reading)
    assert found.round_s == pytest.approx(seconds, rel=1e-9)
    assert list(found.group) == group
    assert found.trace[-1].round_s == pytest.approx(seconds, rel=1e-9)
    assert round_s_of(StageTable(jobs, reading), found.group) == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize("seed", long_after(10, range(40)))
def test_a_climb_from_anywhere_ends_where_no_flip_helps(seed: int) -> None:
    jobs, reading = random_jobs(seed), reading_of(seed)
    table = StageTable(jobs, reading)
    start = tuple(np.random.default_rng(seed).integers(0, 2, len(jobs)).tolist())
    rounds: list[float] = []
    group, finished = climb(table, start, never, rounds.append)
    found_s = round_s_of(table, group)
    assert rounds[0] == pytest.approx(round_s_of(table, start), rel=1e-12)
    assert all(after < before for before, after in itertools.pairwise(rounds))
    assert finished
    assert rounds[-1] == pytest.approx(found_s, rel=1e-12)
    for n in range(len(jobs)):
        flip = tuple(k ^ (n == m) for m, k in enumerate(group))
        assert round_s_of(table, flip) >= found_s * (1 - 1e-9)


def test_stopping_keeps_what_was_found() -> None:
    jobs, steps = deploy(SetUp(jobs=40, pod_groups=4, seed=6)), list[RoundTracePoint]()
    whole = climbed(jobs)
    cut = solve(jobs, TdmSettings(), lambda: len(steps) == 2, steps.append)
    assert (cut.stopped_by, cut.status) == ("cancelled", "feasible")
    assert whole.round_s < cut.round_s == pytest.approx(whole.trace[2].round_s, rel=1e-9)


# -- rounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", long_after(10, range(40)))
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


def test_rings_and_experts_train_twice_a_round_and_parameter_servers_once() -> None:
    answer = climbed(golden())
    assert (iterations_per_s(answer) * answer.round_s).tolist() == pytest.approx([2, 2, 2, 2, 1])


# -- what it is measured against --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", long_after(8, range(30)))
def test_one_topology_for_all_stages_is_never_faster_than_one_for_each(seed: int) -> None:
    search = Search(random_jobs(seed, reconfiguration_ms=0.0), TdmSettings())
    plain = ALGORITHMS["static"].run(search)
    assert (plain.links == plain.links.transpose(0, 1, 3, 2)).all()
    assert plain.round_s >= ALGORITHMS["non-tdm"].run(search).round_s * (1 - 1e-12)


def test_the_greedy_split_puts_the_largest_first_each_to_the_lighter_group() -> None:
    rings = [Job(f"j{v}", "ring_all_reduce", 0, (1, 1), v, 1.0) for v in (3.0, 9.0, 4.0, 2.0)]
    jobs = validated("four", PodNetwork(1, 2, 8, 10.0, 10.0), rings, "x")
    assert split_by_traffic(jobs) == (1, 0, 1, 1)
    assert ALGORITHMS["greedy"].run(Search(jobs, TdmSettings())).group == (1, 0, 1, 1)


@pytest.mark.parametrize("seed", long_after(3, range(10)))
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
