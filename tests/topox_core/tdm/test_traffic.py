"""What jobs send, the rings they form, the links they get: by hand, against plain Python, against bisection."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.topox_core.tdm import tdm_reference
from tests.topox_core.tdm.tdm_cases import GOLDEN_BEST_STAGE_S, GOLDEN_STAGE_S, golden, random_jobs
from topox_core.errors import InputError
from topox_core.tdm.kernels.stage import Fabric, ring_of
from topox_core.tdm.model.jobs import Job, PodNetwork, Reading, total_gbit
from topox_core.tdm.model.jobs_file import validated
from topox_core.tdm.model.links import allocated, ports_used
from topox_core.tdm.model.stage_table import StageTable
from topox_core.tdm.model.traffic import between_pods_gbit, from_lowest, inside_pods_gbit

SERVER = Job("p", "parameter_server", 0, (2, 0, 1), 10.0, 1.0, server_pod=2)
RING = Job("r", "ring_all_reduce", 0, (2, 1, 1), 10.0, 1.0)
EXPERTS = Job("a", "all_to_all", 0, (2, 0, 3), 10.0, 1.0)
READING = Reading()


def of(*jobs: Job, ports: int = 8, tor_gbps: float = 1e6) -> StageTable:
    network = PodNetwork(1, len(jobs[0].units_per_pod), ports, 10.0, tor_gbps)
    return StageTable(validated("test", network, jobs, "test"))


# -- traffic ----------------------------------------------------------------------------------------------


def test_units_push_to_the_pod_of_their_server() -> None:
    assert between_pods_gbit(SERVER, READING).tolist() == [[0, 0, 20], [0, 0, 0], [0, 0, 0]]
    assert inside_pods_gbit(SERVER).tolist() == [20, 0, 10]


def test_a_ring_sends_the_volume_once_on_each_arc_or_what_an_all_reduce_physically_sends() -> None:
    assert between_pods_gbit(RING, READING, (0, 2, 1)).tolist() == [
        [0, 0, 10],
        [10, 0, 0],
        [0, 10, 0],
    ]
    assert between_pods_gbit(RING, Reading(physical_ring=True), (0, 2, 1)).max() == pytest.approx(
        10 * 2 * 2 / 3
    )
    assert inside_pods_gbit(RING).tolist() == [40, 20, 20]


def test_experts_send_from_every_unit_to_every_other() -> None:
    assert between_pods_gbit(EXPERTS, READING).tolist() == [[0, 0, 60], [0, 0, 0], [60, 0, 0]]
    assert inside_pods_gbit(EXPERTS).tolist() == [2 * 2 * 10 * 4, 0, 2 * 3 * 10 * 4]
    assert total_gbit("all_to_all", EXPERTS.units, 10.0) == 5 * 4 * 10
    assert total_gbit("parameter_server", SERVER.units, 10.0) == 3 * 10


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


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_ring_that_is_linked_already_is_taken(order: tuple[int, ...]) -> None:
    linked = np.zeros((4, 4), bool)
    linked[list(order), [*order[1:], order[0]]] = True
    assert ring_through(range(4), linked) == from_lowest(order)


def test_small_rings_are_cut_and_joined_and_pods_on_their_own_are_put_between() -> None:
    linked = np.zeros((5, 5), bool)
    linked[[0, 3, 1, 4], [3, 0, 4, 1]] = True  # two rings of two, and pod 2
    assert ring_through(range(5), linked) == (0, 3, 1, 4, 2)


# -- Algorithm 2 ------------------------------------------------------------------------------------------


def least_by_bisection(demand: np.ndarray, tor_s: float, ports: int, gbps: float) -> float:
    """The least time whose needs fit the ports: ceil(demand / (speed x time)) links for each pair."""

    def fits(seconds: float) -> bool:
        links = np.ceil(demand / (gbps * seconds) * (1 - 1e-12))
        return bool((links.sum(0) + links.sum(1) <= ports).all())

    low, high = 1e-9, float(demand.max()) / gbps
    if not fits(high):
        return math.inf
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return max(tor_s, high)


@pytest.mark.parametrize("seed", range(150))
def test_links_given_greedily_are_as_good_as_any(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pods = int(rng.integers(2, 7))
    demand = rng.random((pods, pods)) ** 4 * 1000.0 * (rng.random((pods, pods)) < rng.random())
    np.fill_diagonal(demand, 0.0)
    demand[0, 1] += 1.0
    ports = int(rng.integers(2, 4 * pods))
    tor_s = float(rng.choice([0.0, 1.0]))
    seconds, links = allocated(demand, tor_s, Fabric(ports, 25.0, 1.0))
    assert seconds == pytest.approx(least_by_bisection(demand, tor_s, ports, 25.0), rel=1e-9)
    if seconds < math.inf:
        assert (ports_used(links) <= ports).all()
        assert (demand <= links * 25.0 * seconds * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", range(60))
def test_a_pull_is_a_push_with_everything_turned_round(seed: int) -> None:
    jobs = random_jobs(seed, pod_groups=1)
    stage = StageTable(jobs).stage(0, range(len(jobs)))
    tor_s = float(stage.local_gbit.max()) / jobs.network.tor_gbps
    seconds, links = allocated(stage.demand_gbit.T.copy(), tor_s, StageTable(jobs).fabric)
    assert seconds == pytest.approx(stage.communication_s, rel=1e-12)
    carried = stage.links.T * jobs.network.port_gbps * seconds
    assert (carried * (1 + 1e-12) >= stage.demand_gbit.T).all()
    assert (ports_used(links) <= jobs.network.ports_per_pod).all()


def test_links_in_both_directions_stay_symmetric_and_lose_nothing() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        demand = np.triu(rng.random((4, 4)), 1)
        demand += demand.T
        fabric = Fabric(int(rng.integers(6, 20)), 1.0, 1.0)
        both, links = allocated(demand, 0.0, fabric, both_ways=True)
        assert (links == links.T).all()
        assert both == pytest.approx(allocated(demand, 0.0, fabric)[0])


# -- stages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(120))
def test_stages_are_those_of_plain_python(seed: int) -> None:
    jobs, reading = random_jobs(seed), Reading(physical_ring=seed % 3 == 0)
    table = StageTable(jobs, reading)
    rng = random.Random(seed)
    for g, members in enumerate(table.members):
        for _ in range(4):
            chosen = tuple(n for n in members if rng.random() < 0.5)
            expected, _, rings = tdm_reference.algorithm_2(jobs, list(chosen), g, reading)
            assert table.communication_s(g, chosen) == pytest.approx(expected, rel=1e-12)
            if expected < math.inf:
                stage = table.stage(g, chosen)
                assert stage.communication_s == pytest.approx(expected, rel=1e-12)
                assert {n: ring for n, ring in stage.rings.items() if ring} == {
                    n: from_lowest(r) for n, r in rings.items()
                }


def test_the_four_pod_case_has_its_known_stage() -> None:
    stage = StageTable(golden()).stage(0, range(5))
    assert stage.communication_s == pytest.approx(GOLDEN_STAGE_S, abs=1e-9)
    assert stage.demand_gbit[1, 3] / (150.0 * stage.links[1, 3]) == pytest.approx(GOLDEN_STAGE_S)
    assert (stage.links[1, 3], ports_used(stage.links)[1]) == (2, 8), (
        "pod 1 has no port left for its slowest pair"
    )


def test_other_rings_bring_the_four_pod_case_to_its_optimum() -> None:
    table = StageTable(golden())
    laps = [(0, *rest) for rest in itertools.permutations((1, 2, 3))]
    times = [
        table.stage(0, range(5), {0: one, 1: two, 2: three}).communication_s
        for one in laps
        for two in laps
        for three in ((1, 2, 3), (1, 3, 2))
    ]
    assert min(times) == pytest.approx(GOLDEN_BEST_STAGE_S, abs=1e-4)
    assert max(times) > GOLDEN_STAGE_S


def test_given_rings_are_taken_and_the_others_follow_algorithm_3() -> None:
    jobs, rings = golden(), {0: (0, 2, 1, 3), 2: (1, 3, 2)}
    stage = StageTable(jobs).stage(0, range(5), rings)
    assert all(stage.rings[n] == ring for n, ring in rings.items())
    demand = sum(
        between_pods_gbit(job, Reading(), stage.rings[n]) for n, job in enumerate(jobs.jobs)
    )
    assert np.allclose(stage.demand_gbit, demand)


def test_adding_a_job_to_given_rings_never_shortens_a_stage() -> None:
    for seed in range(40):
        jobs = random_jobs(seed, pod_groups=1, most_jobs=5)
        table = StageTable(jobs)
        rings = {n: job.pods for n, job in enumerate(jobs.jobs) if len(job.pods) > 1}
        times = [
            table.stage(0, [n for n in range(len(jobs)) if mask >> n & 1], rings).communication_s
            for mask in range(1 << len(jobs))
        ]
        for mask, bit in itertools.product(range(1 << len(jobs)), range(len(jobs))):
            assert times[mask] <= times[mask | 1 << bit] * (1 + 1e-12)


def test_servers_can_be_what_holds_a_stage_up() -> None:
    stage = of(RING, tor_gbps=4.0).stage(0, [0])
    assert stage.communication_s == 40 / 4
    assert (stage.demand_gbit / 100.0).max() < stage.communication_s


def test_nobody_is_idle_for_no_time() -> None:
    stage = of(RING).stage(0, [])
    assert (stage.communication_s, int(stage.links.sum())) == (0.0, 0)


def test_inside_one_pod_nothing_needs_a_link() -> None:
    stage = of(Job("r", "ring_all_reduce", 0, (0, 3), 5.0, 1.0), ports=1).stage(0, [0])
    assert not stage.links.any()
    assert stage.rings == {0: ()}


def test_too_few_ports_name_the_pod_and_the_count() -> None:
    server = Job("p", "parameter_server", 0, (1, 0, 0, 1), 5.0, 1.0, server_pod=0)
    table = of(Job("a", "all_to_all", 0, (1, 1, 1, 1), 5.0, 1.0), server, ports=5)
    assert table.communication_s(0, (0,)) == math.inf
    assert table.communication_s(0, (1,)) < math.inf
    with pytest.raises(
        InputError,
        match=r"test, pod group 0, .*: infeasible: pod 0 has 5 ports and needs 6 for one link",
    ):
        table.stage(0, (0, 1))


def test_a_pod_group_may_have_more_jobs_than_a_word_has_bits() -> None:
    many = [Job(f"j{n}", "all_to_all", 0, (1, 1), 1.0, 1.0) for n in range(70)]
    table = StageTable(validated("many", PodNetwork(1, 2, 2, 1.0, 1.0), many, "test"))
    assert table.communication_s(0, range(70)) == pytest.approx(140.0)
    assert table.communication_s(0, [0, 69]) == pytest.approx(4.0)
