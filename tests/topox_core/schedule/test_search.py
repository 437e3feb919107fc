"""Local search: repeatable, never worse, its schedules keep every rule, and circuit changes are counted right."""

from __future__ import annotations

import numpy as np
import pytest

from tests.topox_core.schedule.problem_builder import (
    Fabric,
    brute_force,
    build,
    makespan,
    random_problem,
    searched,
)
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.check.checker import check
from topox_core.schedule.bounds.best_bound import best_bound
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
# Drawn per slot; on continuous time; on continuous time with 2 slots of dark.
CIRCUITS = ((False, 0), (True, 0), (True, 2))
by_kind = pytest.mark.parametrize("kind", [LocalSearch, SuccessiveHalving])


def planner_of(problem: Problem, continuous: bool = False, dark_slots: int = 0) -> Planner:
    return Planner.of(problem, best_bound(problem, 0).ticks, continuous, dark_slots)


def poor_plan(planner: Planner) -> SchedulePlan:
    """The first rule's plan without improvement: something is left to gain."""
    start, makespan = planner.generator.serially(planner.generator.rule("MIS"))
    return planner.with_circuits(start, makespan, TraceSource("rules", "MIS"), improve=False)


@by_kind
@pytest.mark.parametrize("circuits", CIRCUITS)
def test_the_same_seed_and_number_of_candidates_give_the_same_plan_in_however_many_calls(
    monkeypatch, kind, circuits
):
    # Rounds of two candidates, and patience for three: many contests in few calls.
    for name, value in (("FIRST_ROUND", 1), ("FEWEST", 2), ("PATIENCE", 3), ("PATIENCE_A_TASK", 0)):
        monkeypatch.setattr(halving, name, value)
    # A bound of nothing: the search never thinks that it is done.
    problem = random_problem(5, FABRICS[1], tasks=40, ticks_per_slot=2, density=0.06)
    planner = Planner.of(problem, 0, *circuits)

    def end_of(seed: int, *calls: int) -> tuple[int, tuple[int, int], list[int]]:
        search = kind(planner, poor_plan(planner), seed)
        for candidates in calls:
            search.go_on(candidates)
        assert kind is LocalSearch or search.contests >= 3
        return search.steps, search.cost, search.best_plan().start.tolist()

    assert end_of(3, 300) == end_of(3, *[1] * 300) == end_of(3, 7, 200, 93)
    assert end_of(3, 300) != end_of(4, 300)


@by_kind
@pytest.mark.parametrize("circuits", CIRCUITS)
def test_plans_never_become_worse_and_keep_every_rule(kind, circuits):
    continuous, _ = circuits
    # Shared circuits are drawn per slot.
    fabrics = FABRICS if continuous else (*FABRICS, Fabric(servers=4, shares=True))
    for seed in range(12):
        fabric = fabrics[seed % len(fabrics)]
        problem = random_problem(seed, fabric, tasks=30, ticks_per_slot=1 + seed % 3, density=0.08)
        planner = planner_of(problem, *circuits)
        search = kind(planner, poor_plan(planner), seed)
        for _ in range(4):
            cost = search.cost
            assert search.go_on(25) == (search.cost < cost)
            assert search.cost <= cost
            found = search.best_plan()
            assert violation(problem, found.start) is None
            assert found.makespan == makespan(problem, found.start) == search.makespan
            if continuous:
                assert found.cost == search.cost
                assert found.changes == int(changed_rows(found.booking, problem.network).sum())


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("reconfiguration_ms", [0.0, 2.0])
def test_plans_on_ports_pass_the_independent_checker(duplex, reconfiguration_ms):
    for seed in range(3):
        graph = random_graph(seed, tasks=20, servers=3, collectives=False)
        of = cluster(3, duplex=duplex, reconfiguration_ms=reconfiguration_ms)
        prepared = prepare(graph, of, Settings.of())
        plan = searched(prepared.planner, poor_plan(prepared.planner), seed, 150)
        result = to_result(prepared, plan, 0, "nothing", "heuristic", (), 0.0)
        report = check(graph, prepared.cluster, to_record(result))
        assert report.ok, report.lines()


@by_kind
@pytest.mark.parametrize("circuits", CIRCUITS)
def test_a_better_plan_found_elsewhere_is_taken_up_and_a_worse_one_is_not(kind, circuits):
    problem = random_problem(2, FABRICS[1], tasks=60, longest=9, density=0.03)
    planner = planner_of(problem, *circuits)
    poor = poor_plan(planner)
    good = searched(planner, poor, 1, 300)
    assert good.makespan < poor.makespan
    search = kind(planner, poor, 2)
    search.go_on(5)
    search.take_up(good)
    assert search.best_plan().makespan <= good.makespan
    search.take_up(poor)
    assert search.cost <= good.cost


def test_the_search_finds_the_optimum_of_tiny_problems():
    for fabric in FABRICS:
        for seed in range(12):
            problem = random_problem(seed, fabric, tasks=6, longest=2, density=0.15)
            planner = planner_of(problem)
            found = searched(planner, poor_plan(planner), seed, 300)
            assert found.makespan == brute_force(problem), (fabric, seed)


def test_at_the_bound_the_search_goes_on_while_circuits_still_change():
    # Transfers to 1 and 2 in turn on one port: the makespan is the bound in any order, changes are not.
    problem = build([1] * 6, {j: (0, 1 + j % 2) for j in range(6)})
    planner = Planner.of(problem, 6, continuous=True, dark_slots=0)
    in_turn = planner.ports.serially(np.arange(6, dtype=np.int32), "in turn")
    assert (in_turn.makespan, in_turn.changes) == (6, 5)
    assert searched(planner, in_turn, 0, 300).cost == (6, 1)
