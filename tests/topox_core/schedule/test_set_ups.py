"""Exact engines that count set-ups: their optimum is the best over all orders and all choices of ports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import some
from tests.topox_core.schedule.circuit_rules import broken_rules
from tests.topox_core.schedule.fake_solvers import solved_by_cpsat
from tests.topox_core.schedule.problem_builder import Fabric, build
from tests.topox_core.schedule.set_up_brute_force import optimum, random_case
from topox_core.schedule.circuits.held_ports import (
    Solution,
    one_after_another,
    ports_of,
    solution_violation,
    with_set_ups,
)
from topox_core.schedule.engines.engine import Answer, Limits
from topox_core.schedule.engines.highs import solve_highs
from topox_core.schedule.planner import Planner, prepare
from topox_core.schedule.problem import Problem
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve
from topox_core.workloads.samples import load_sample


def proved(problem: Problem, answer: Answer) -> int:
    """The optimum that an answer proves, after its schedule has been checked."""
    assert answer.stopped_by == "proof", answer.message
    assert answer.start is not None
    assert solution_violation(problem, Solution(answer.start, answer.ports)) is None
    assert answer.makespan(problem) == answer.bound
    return answer.bound


def chain_of_three() -> Problem:
    """From server 0 to 1, to 2 and to 1 again, a millisecond each, with a delay of two."""
    return with_set_ups(build([1, 1, 1], {0: (0, 1), 1: (0, 2), 2: (0, 1)}, [(0, 1), (1, 2)]), 2)


def sample(name: str, delay_ms: float) -> tuple[Problem, Limits]:
    """A sample's problem with set-ups, and the best plan by rules to start from."""
    graph, cluster = load_sample(name)
    prepared = prepare(
        graph, cluster.changed(reconfiguration_ms=delay_ms), Settings.of(engine="list")
    )
    plan = prepared.planner.best_plan()
    assert plan.booking is not None
    problem = with_set_ups(prepared.reduction.problem, prepared.reduction.dark_slots)
    ports = ports_of(problem, plan.booking)
    return problem, Limits(
        60.0, bound=prepared.reduction.bound.ticks, start=plan.start, ports=ports
    )


@pytest.mark.sampled
def test_cpsat_proves_the_chain_of_three_and_samples_on_slots():
    known = some(
        [
            (7, (chain_of_three(), Limits(60.0))),
            (17, sample("patience", 3)),
            (68.75, sample("race", 1)),
            (71.5, sample("race", 3)),
            (96, sample("race", 10)),
        ],
        quick=2,
    )
    asked = [case for _, case in known]
    answers = solved_by_cpsat([problem for problem, _ in asked], [limits for _, limits in asked])
    shortest_ms = [
        problem.ms(proved(problem, answer))
        for (problem, _), answer in zip(asked, answers, strict=True)
    ]
    assert shortest_ms == [ms for ms, _ in known]
    assert optimum(chain_of_three()) == 7


def test_highs_proves_the_chain_of_three_and_patience():
    assert proved(chain_of_three(), solve_highs(chain_of_three(), Limits(60.0))) == 7
    problem, limits = sample("patience", 3)
    assert problem.ms(proved(problem, solve_highs(problem, limits))) == 17


def agrees(problems: list[Problem], answers: list[Answer]) -> None:
    for seed, (problem, answer) in enumerate(zip(problems, answers, strict=True)):
        assert proved(problem, answer) == optimum(problem), f"case {seed}"


@pytest.mark.sampled
def test_cpsat_finds_the_best_of_all_orders_and_ports():
    problems = [random_case(seed) for seed in some(range(20), quick=6)]
    agrees(problems, solved_by_cpsat(problems, Limits(60.0)))


def test_highs_solves_without_presolve_a_case_that_presolve_gets_wrong():
    # Three transfers of 4, 1 and 3 slots from 1 to 0, two ports on one switch, a delay of 2: with
    # presolve HiGHS 1.15.1 calls 6 optimal.
    fabric = Fabric(servers=2, ports_on_switch=2, ports_per_server=2)
    problem = build([4, 1, 3], dict.fromkeys(range(3), (1, 0)), fabric=fabric)
    problem = with_set_ups(problem, 2)
    assert proved(problem, solve_highs(problem, Limits(60.0))) == optimum(problem) == 4


@pytest.mark.sampled
def test_highs_finds_the_best_of_all_orders_and_ports():
    problems = [random_case(seed) for seed in some(range(20), quick=6)]
    agrees(problems, [solve_highs(problem, Limits(60.0)) for problem in problems])


@pytest.mark.long
def test_highs_finds_the_best_of_all_orders_and_ports_in_many_cases():
    problems = [random_case(seed) for seed in range(20, 220)]
    agrees(problems, [solve_highs(problem, Limits(60.0)) for problem in problems])


@pytest.mark.long
def test_cpsat_finds_the_best_of_all_orders_and_ports_in_many_cases():
    problems = [random_case(seed) for seed in range(20, 220)]
    agrees(problems, solved_by_cpsat(problems, Limits(60.0)))


def test_a_solution_is_checked_port_by_port():
    problem = chain_of_three()
    plain = one_after_another(problem)
    assert solution_violation(problem, plain) is None
    early = Solution(np.array([0, 2, 6]), plain.ports)
    assert "before its port is free of t0 and set up" in str(solution_violation(problem, early))
    assert "needs a switch" in str(solution_violation(problem, Solution(plain.start)))
    elsewhere = plain.ports.copy()
    elsewhere[0, 1] = 1
    assert "no such port" in str(solution_violation(problem, Solution(plain.start, elsewhere)))


def test_a_full_switch_has_no_room_for_a_set_up():
    # Two circuits at most (eq. 7). While 0-1 and 2-3 carry, nothing else is set up.
    fabric = Fabric(servers=6, circuits_per_switch=2)
    problem = build([4, 4, 1, 1], {0: (0, 1), 1: (2, 3), 2: (4, 5), 3: (4, 1)}, fabric=fabric)
    counted = with_set_ups(problem, 2)
    ports = np.zeros((3, 4), np.int32)
    assert solution_violation(counted, Solution(np.array([0, 0, 4, 7]), ports)) is None
    at_once = Solution(np.array([0, 0, 4, 6]), ports)
    assert "before its port is free" in str(solution_violation(counted, at_once))
    three = Solution(np.array([0, 0, 3, 7]), ports)
    assert solution_violation(counted, three) is not None


def test_plans_on_ports_are_schedules_with_set_ups():
    for seed in range(20):
        problem = random_case(seed)
        assert problem.network is not None
        dark = problem.network.dark_slots or 0
        reduced = replace(problem, network=replace(problem.network, dark_slots=None))
        plan = Planner.of(reduced, 0, continuous=True, dark_slots=dark).best_plan()
        assert plan.booking is not None
        solution = Solution(plan.start, ports_of(problem, plan.booking))
        assert solution_violation(problem, solution) is None
        assert plan.makespan >= optimum(problem)


@pytest.mark.long
def test_a_race_ends_with_the_plan_that_cpsat_proved_and_calls_nobody_a_liar():
    graph, cluster = load_sample("race")
    settings = Settings.of(clock="slots", engine="cpsat", threads=1, time_limit_s=60.0)
    result = solve(graph, cluster.changed(reconfiguration_ms=3.0), settings)
    assert (result.makespan_ms, result.bound_ms) == (71.5, 71.5)
    assert (result.status, result.stopped_by, result.message) == ("optimal", "proof", "")
    assert result.execution is not None
    assert broken_rules(result.execution) == []
