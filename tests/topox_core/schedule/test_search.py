"""Local search: repeatable, never worse, its schedules keep every rule, and circuit changes are counted right."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest

from tests.conftest import some
from tests.topox_core.schedule.problem_builder import Fabric, brute_force, random_problem, searched
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.check.checker import check
from topox_core.schedule.bounds.ancestor_bounds import ancestor_bound, ancestor_heads_and_tails
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.bounds.windows import clocks
from topox_core.schedule.circuits.assignment import changed_rows
from topox_core.schedule.feasibility import violation
from topox_core.schedule.planner import Planner, SchedulePlan, prepare
from topox_core.schedule.problem import Problem
from topox_core.schedule.report import to_result
from topox_core.schedule.result_file import to_record
from topox_core.schedule.search import successive_halving as halving
from topox_core.schedule.search.local_search import LocalSearch
from topox_core.schedule.search.successive_halving import SuccessiveHalving
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import TraceSource

FABRICS = (
    Fabric(servers=4, switches=2, ports_per_server=2),
    Fabric(servers=4, half_duplex=True, switches=2, ports_per_server=2),
    Fabric(servers=4, switches=2, circuits_per_switch=1, ports_per_server=2),
)
SHARED = Fabric(servers=4, shares=True)
# The switches' total never binds (99 circuits) or does.
CIRCUITS = [(False, 0), (True, 0), (True, 2)]
by_fabric = pytest.mark.parametrize("fabric", FABRICS, ids=str)
by_circuits = pytest.mark.parametrize(
    ("continuous", "dark_slots"), CIRCUITS, ids=["per slot", "continuous", "dark for 2 slots"]
)


by_kind = pytest.mark.parametrize("kind", [LocalSearch, SuccessiveHalving])


def planner_of(problem: Problem, continuous: bool, dark_slots: int) -> Planner:
    return Planner.of(problem, best_bound(problem, 0).ticks, continuous, dark_slots)


def poor_plan(planner: Planner) -> SchedulePlan:
    """The first rule's plan without improvement: something is left to gain."""
    start, makespan = planner.generator.serially(planner.generator.rule("MIS"))
    return planner.with_circuits(start, makespan, TraceSource("rules", "MIS"), improve=False)


@by_kind
@by_fabric
@by_circuits
def test_the_same_seed_and_number_of_candidates_give_the_same_plan_in_however_many_calls(
    kind, fabric, continuous, dark_slots
):
    problem = random_problem(5, fabric, tasks=40, ticks_per_slot=2, density=0.06)
    planner = planner_of(problem, continuous, dark_slots)
    plan = poor_plan(planner)
    ends = []
    for calls in ([120], [1] * 120, [50, 7, 63]):
        search = kind(planner, plan, seed=3)
        for candidates in calls:
            search.go_on(candidates)
        ends.append((search.steps, search.cost, search.best_plan().start.tolist()))
    assert ends[0] == ends[1] == ends[2]


def test_contests_follow_one_another_the_same_way_in_however_many_calls(monkeypatch):
    # Rounds of two candidates, and patience for three: many contests in few calls.
    for name, value in (("FIRST_ROUND", 1), ("FEWEST", 2), ("PATIENCE", 3), ("PATIENCE_A_TASK", 0)):
        monkeypatch.setattr(halving, name, value)
    # A bound of nothing: the search never thinks that it is done.
    planner = Planner.of(random_problem(5, FABRICS[1], tasks=40, density=0.06), 0, False, 0)
    ends = []
    for calls in ([400], [1] * 400, [7, 200, 193]):
        search = SuccessiveHalving(planner, poor_plan(planner), seed=1)
        for candidates in calls:
            search.go_on(candidates)
        ends.append((search.steps, search.cost, search.best_plan().start.tolist(), search.contests))
    assert ends[0] == ends[1] == ends[2]
    assert ends[0][3] >= 3


def test_rounds_keep_the_best_standing_and_the_most_promising(monkeypatch):
    monkeypatch.setattr(halving, "FEWEST", 5)
    monkeypatch.setattr(halving, "FIRST_ROUND", 1)
    planner = Planner.of(
        random_problem(11, FABRICS[1], tasks=60, longest=9, density=0.03), 0, False, 0
    )
    search = SuccessiveHalving(planner, poor_plan(planner), seed=1)
    sizes = []
    while len(sizes) < 400:
        search.go_on(1)
        sizes.append(len(search.runners))
        assert search.makespan <= min(runner.search.makespan for runner in search.runners)
    assert max(sizes) > 6
    assert sizes[-1] == 1
    shrunk = [(before, after) for before, after in pairwise(sizes) if after < before]
    assert all(after == -(-before // halving.STAY) for before, after in shrunk), shrunk


def test_different_seeds_go_different_ways():
    problem = random_problem(5, FABRICS[1], tasks=40, density=0.06)
    planner = planner_of(problem, False, 0)
    states = []
    for seed in range(4):
        search = LocalSearch(planner, poor_plan(planner), seed)
        search.go_on(40)
        states.append(tuple(search.best_plan().start.tolist()))
    assert len(set(states)) > 1


@by_kind
@pytest.mark.parametrize(
    ("fabric", "continuous", "dark_slots"),
    [  # shared circuits are drawn per slot
        (fabric, *circuits)
        for fabric in (*FABRICS, SHARED)
        for circuits in CIRCUITS
        if not (fabric.shares and circuits[0])
    ],
    ids=str,
)
def test_plans_never_become_worse_and_keep_every_rule(kind, fabric, continuous, dark_slots):
    for seed in range(6):
        problem = random_problem(seed, fabric, tasks=30, ticks_per_slot=1 + seed % 3, density=0.08)
        planner = planner_of(problem, continuous, dark_slots)
        plan = poor_plan(planner)
        search = kind(planner, plan, seed)
        cost = search.cost
        for _ in range(4):
            better = search.go_on(25)
            assert (search.cost < cost) == better
            assert search.cost <= cost
            cost = search.cost
            found = search.best_plan()
            assert violation(problem, found.start) is None
            assert found.makespan == int((found.start + problem.duration).max()) == search.makespan
            if continuous:
                assert found.cost == search.cost


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("reconfiguration_ms", [0.0, 2.0])
def test_plans_on_ports_pass_the_independent_checker(duplex, reconfiguration_ms):
    for seed in range(3):
        graph = random_graph(seed, tasks=20, servers=3, collectives=False)
        prepared = prepare(
            graph, cluster(3, duplex=duplex, reconfiguration_ms=reconfiguration_ms), Settings.of()
        )
        plan = searched(prepared.planner, poor_plan(prepared.planner), seed, 150)
        result = to_result(prepared, plan, 0, "nothing", "heuristic", (), 0.0)
        report = check(graph, prepared.cluster, to_record(result))
        assert report.ok, [str(one) for one in report.violations]


@by_fabric
@pytest.mark.parametrize("dark_slots", [0, 1, 3])
def test_changes_are_those_of_the_circuits_that_are_booked(fabric, dark_slots):
    for seed in range(8):
        problem = random_problem(seed, fabric, tasks=30, density=0.08)
        planner = planner_of(problem, True, dark_slots)
        for plan in (poor_plan(planner), searched(planner, poor_plan(planner), seed, 60)):
            assert plan.changes == int(changed_rows(plan.booking, problem.network).sum())


@by_kind
def test_a_better_plan_found_elsewhere_is_taken_up_and_a_worse_one_is_not(kind):
    problem = random_problem(2, FABRICS[1], tasks=60, longest=9, density=0.03)
    for continuous in (False, True):
        planner = planner_of(problem, continuous, 1 if continuous else 0)
        poor = poor_plan(planner)
        good = searched(planner, poor, 1, 300)
        assert good.makespan < poor.makespan
        search = kind(planner, poor, 2)
        search.go_on(5)
        search.take_up(good)
        assert kind is SuccessiveHalving or search.idle == 0 or search.makespan < good.makespan
        assert search.best_plan().makespan <= good.makespan
        search.take_up(poor)
        assert search.cost <= good.cost


def test_the_search_finds_the_optimum_of_tiny_problems():
    for fabric in FABRICS:
        for seed in range(12):
            problem = random_problem(seed, fabric, tasks=6, longest=2, density=0.15)
            planner = planner_of(problem, False, 0)
            assert searched(planner, poor_plan(planner), seed, 300).makespan == brute_force(
                problem
            ), (fabric, seed)


def cone_ticks(problem: Problem, dark_slots: int = 0) -> int:
    head, tail = ancestor_heads_and_tails(
        problem,
        clocks(problem),
        dark_ticks=dark_slots * problem.ticks_per_slot,
    )
    bound = ancestor_bound(problem, head, tail, 0, dark_slots)
    return 0 if bound is None else bound.ticks


BOUNDED = {
    "full duplex": Fabric(),
    "half duplex": Fabric(servers=4, half_duplex=True, switches=2, ports_per_server=2),
    "half duplex, d_S > N_OCS": Fabric(half_duplex=True, switches=2, ports_per_server=3),
    "binding total": Fabric(servers=4, circuits_per_switch=2),
    "half duplex, binding total": Fabric(
        servers=4, half_duplex=True, switches=2, circuits_per_switch=1, ports_per_server=2
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("fabric", BOUNDED.values(), ids=BOUNDED.keys())
def test_bounds_from_ancestors_are_never_above_what_trying_every_start_finds(fabric):
    tight = 0
    seeds = some(range(420), quick=60)
    for seed in seeds:
        ticks_per_slot = 1 if seed % 7 else 2
        problem = random_problem(
            seed, fabric, tasks=7, ticks_per_slot=ticks_per_slot, longest=2, density=0.3
        )
        bound, optimum = cone_ticks(problem), brute_force(problem)
        assert bound <= optimum, seed
        tight += bound == optimum
    assert tight > 0.7 * len(seeds)  # a bound of nothing would pass as well


@by_fabric
def test_fewer_ancestors_only_weaken_the_bound(fabric):
    for seed in range(20):
        problem = random_problem(seed, fabric, tasks=60, density=0.05)
        clock = clocks(problem)
        heads, tails = zip(
            *(ancestor_heads_and_tails(problem, clock, near) for near in (2, 10_000)), strict=True
        )
        assert (heads[0] <= heads[1]).all()
        assert (tails[0] <= tails[1]).all()


@pytest.mark.parametrize(
    "fabric",
    [
        Fabric(servers=4),
        Fabric(servers=4, half_duplex=True),
        Fabric(servers=4, circuits_per_switch=2),
    ],
    ids=str,
)
@pytest.mark.parametrize("dark_slots", [1, 3])
def test_bounds_with_dark_time_are_never_above_the_best_order_on_real_ports(fabric, dark_slots):
    raised = 0
    for seed in range(25):
        problem = random_problem(seed, fabric, tasks=5, longest=2, density=0.2)
        planner = planner_of(problem, True, dark_slots)
        best = min(
            planner.ports.serially(np.array(rank, np.int32), "").makespan
            for rank in permutations(range(problem.n))
        )
        assert cone_ticks(problem, dark_slots) <= best, seed
        raised += cone_ticks(problem, dark_slots) > cone_ticks(problem)
    assert raised
