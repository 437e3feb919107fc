"""Neighbourhoods of schedules with set-ups: what the other tasks keep, and that what is found keeps every rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.topox_core.schedule.fake_solvers import solved_by_cpsat
from tests.topox_core.schedule.problem_builder import Fabric, build, random_problem
from tests.topox_core.schedule.test_set_ups import sample
from topox_core.schedule.bounds.windows import windows
from topox_core.schedule.circuits.held_ports import (
    Solution,
    one_after_another,
    solution_violation,
    with_set_ups,
)
from topox_core.schedule.engines.disjunctions import Disjunctions
from topox_core.schedule.engines.port_turns import Follows, kept_apart, sides_in_turn
from topox_core.schedule.engines.set_ups_size import neighbourhoods_fit
from topox_core.schedule.planner import Planner
from topox_core.schedule.problem import Problem


def pairs(problem: Problem, free: list[int], horizon: int) -> set[Follows]:
    known = one_after_another(problem)
    may_move = np.isin(np.arange(problem.n), free)
    sides = sides_in_turn(problem, known)
    return set(kept_apart(problem, sides, known, may_move, windows(problem, horizon)))


def test_tasks_that_are_not_free_follow_one_another_a_set_up_apart():
    """Server 0 sends to 1, to 2 and to 1 again, a slot each, with a delay of two: neighbours on its port keep two apart."""
    problem = with_set_ups(build([1, 1, 1], {0: (0, 1), 1: (0, 2), 2: (0, 1)}, []), 2)
    at_server_0 = {Follows(0, 1, 2, False, False), Follows(1, 2, 2, False, False)}
    at_server_1 = {Follows(0, 2, 0, False, False)}
    assert pairs(problem, [], 20) == at_server_0 | at_server_1


def test_a_free_task_may_lead_or_follow_every_other_one_on_its_switch():
    problem = with_set_ups(build([1, 1, 1], {0: (0, 1), 1: (0, 2), 2: (0, 1)}, []), 2)
    assert pairs(problem, [1], 20) == {
        Follows(0, 2, 0, False, False),
        Follows(0, 1, 2, True, True),
        Follows(2, 1, 2, True, True),
    }


def test_every_schedule_keeps_the_turns_that_it_says():
    fabric = Fabric(servers=4, switches=2, ports_on_switch=1, ports_per_server=2)
    for seed in range(20):
        problem = with_set_ups(random_problem(seed, fabric, 25, density=0.1), seed % 4)
        plan = Planner.of(problem, 0, continuous=True, dark_slots=seed % 4).best_plan()
        assert plan.booking is not None
        ports = np.full((3, problem.n), -1, np.int32)
        booking = plan.booking
        ports[:, booking.node] = booking.switch, booking.source_port, booking.destination_port
        known = Solution(plan.start, ports)
        free = np.random.default_rng(seed).random(problem.n) < 0.3
        sides = sides_in_turn(problem, known)
        end = plan.start + problem.duration
        for pair in kept_apart(problem, sides, known, free, windows(problem, plan.makespan)):
            i, j = pair.first, pair.second
            apart_on_two = pair.on_one_switch and ports[0, i] != ports[0, j]
            follows = plan.start[j] >= end[i] + pair.apart
            leads = plan.start[i] >= end[j] + pair.apart
            assert apart_on_two or follows or (pair.either and leads)


def test_what_neighbourhoods_find_keeps_every_rule():
    """Sample moe has too many pairs of transfers for one model."""
    problem, limits = sample("moe", 1.0)
    assert neighbourhoods_fit(problem)
    assert not Disjunctions.may_be_few(problem)
    (answer,) = solved_by_cpsat([problem], replace(limits, time_limit_s=4.0))
    assert answer.message == ""
    assert answer.start is not None
    assert limits.start is not None
    assert solution_violation(problem, Solution(answer.start, answer.ports)) is None
    known = int((limits.start + problem.duration).max())
    assert answer.bound <= answer.makespan(problem) <= known


def test_neighbourhoods_need_one_port_a_switch_and_switches_that_do_not_fill():
    def fits(**fabric: int) -> bool:
        of = Fabric(servers=4, **fabric)
        return neighbourhoods_fit(with_set_ups(random_problem(0, of), 1))

    assert fits(switches=2, ports_on_switch=1, ports_per_server=2)
    assert not fits(switches=1, ports_on_switch=2, ports_per_server=2)
