"""List scheduling: every rule's schedule is valid, improvement never hurts, and the answer is repeatable."""

from dataclasses import replace

import pytest

from tests.topox_core.schedule.problem_builder import Fabric, random_problem, searched
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.feasibility import violation
from topox_core.schedule.generation.list_scheduler import RULES, Generator
from topox_core.schedule.planner import Planner

FABRICS = (
    Fabric(servers=4, switches=2, ports_per_server=2),
    Fabric(servers=4, half_duplex=True, switches=2, ports_per_server=2),
    Fabric(servers=4, shares=True),
    Fabric(servers=4, switches=2, circuits_per_switch=1, ports_per_server=2),
)


def generator(problem) -> Generator:
    return Generator.of(problem, best_bound(problem, 0).ticks)


@pytest.mark.parametrize("fabric", FABRICS, ids=str)
@pytest.mark.parametrize("ticks_per_slot", [1, 4])
def test_both_schemes_keep_every_rule_of_the_problem(fabric, ticks_per_slot):
    for seed in range(15):
        problem = random_problem(
            seed, fabric, tasks=40, ticks_per_slot=ticks_per_slot, density=0.08
        )
        made = generator(problem)
        for name in RULES:
            rank = made.rule(name)
            for start, makespan in (made.serially(rank), made.in_parallel(rank)):
                assert violation(problem, start) is None, (seed, name)
                assert makespan == (start + problem.duration).max()


@pytest.mark.parametrize("ticks_per_slot", [1, 4])
def test_forward_backward_improvement_never_makes_a_schedule_longer(ticks_per_slot):
    for seed in range(40):
        problem = random_problem(
            seed, FABRICS[0], tasks=40, ticks_per_slot=ticks_per_slot, density=0.08
        )
        made = generator(problem)
        start, makespan = made.serially(made.rule("LST"))
        better, shorter = made.improved(start, makespan, 0)
        assert shorter <= makespan
        assert violation(problem, better) is None


def test_a_schedule_made_backwards_is_valid_when_read_from_the_end():
    for seed in range(20):
        problem = random_problem(seed, FABRICS[1], tasks=30, ticks_per_slot=3)
        made = generator(problem)
        behind, length = made.serially(made.rule("LST"), backwards=True)
        end = -(-length // 3) * 3  # the grid is symmetric about a slot boundary
        assert violation(problem, end - behind - problem.duration) is None


def test_the_horizon_grows_until_the_schedule_fits():
    problem = random_problem(1, FABRICS[0], tasks=40, longest=9)
    short = Generator.of(problem, 0)
    assert short.serially(short.rule("LST"))[1] == generator(problem).serially(short.rule("LST"))[1]


@pytest.mark.parametrize("fabric", FABRICS, ids=str)
@pytest.mark.parametrize("longest", [5, 90, 200])
def test_devices_booked_as_rows_of_slots_give_the_schedules_of_devices_booked_by_time(
    fabric, longest
):
    for seed in range(10):
        problem = random_problem(seed, fabric, tasks=40, longest=longest, density=0.08)
        made = generator(problem)
        by_time = replace(
            made,
            tasks=made.tasks._replace(in_slots=False),
            back=made.back._replace(in_slots=False),
        )
        assert made.tasks.in_slots == (not fabric.shares)
        for backwards in (False, True):
            ours, ours_end = made.serially(made.rule("LST"), backwards)
            theirs, theirs_end = by_time.serially(made.rule("LST"), backwards)
            assert (ours.tolist(), ours_end) == (theirs.tolist(), theirs_end)


def test_the_same_seed_and_number_of_shakes_give_the_same_plan():
    problem = random_problem(7, FABRICS[0], tasks=60, density=0.05)
    planner = Planner.of(problem, best_bound(problem, 0).ticks, continuous=True, dark_slots=1)
    plan = planner.best_plan()

    def shaken(seed):
        return searched(planner, plan, seed, 30)

    assert shaken(1).start.tolist() == shaken(1).start.tolist()
    assert shaken(1).cost <= plan.cost
    assert violation(problem, shaken(2).start) is None
