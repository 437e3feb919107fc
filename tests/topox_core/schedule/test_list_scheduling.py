"""List scheduling: every rule's schedule is valid, improvement never hurts, and rows of slots are booked right."""

from dataclasses import replace

import numpy as np
import pytest

from tests.topox_core.schedule.problem_builder import Fabric, makespan, random_problem
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.feasibility import violation
from topox_core.schedule.generation.list_scheduler import RULES, Generator
from topox_core.schedule.kernels.slots import book, first_free, nothing_held

FABRICS = (
    Fabric(servers=4, switches=2, ports_per_server=2),
    Fabric(servers=4, half_duplex=True, switches=2, ports_per_server=2),
    Fabric(servers=4, shares=True),
    Fabric(servers=4, switches=2, circuits_per_switch=1, ports_per_server=2),
)
by_fabric = pytest.mark.parametrize("fabric", FABRICS, ids=str)


def generator(problem) -> Generator:
    return Generator.of(problem, best_bound(problem, 0).ticks)


@by_fabric
@pytest.mark.parametrize("ticks_per_slot", [1, 4])
def test_both_schemes_keep_every_rule_and_improvement_never_makes_a_schedule_longer(
    fabric, ticks_per_slot
):
    for seed in range(8):
        problem = random_problem(seed, fabric, 40, ticks_per_slot, density=0.08)
        made = generator(problem)
        for name in RULES:
            rank = made.rule(name)
            serial, parallel = made.serially(rank), made.in_parallel(rank)
            better = made.improved(*serial, 0)
            assert better[1] <= serial[1]
            for start, end in (serial, parallel, better):
                assert violation(problem, start) is None, (seed, name)
                assert end == makespan(problem, start)
        behind, length = made.serially(made.rule("LST"), backwards=True)
        # The grid is symmetric about a slot boundary.
        end = -(-length // ticks_per_slot) * ticks_per_slot
        assert violation(problem, end - behind - problem.duration) is None


def test_the_horizon_grows_until_the_schedule_fits():
    problem = random_problem(1, FABRICS[0], tasks=40, longest=9)
    short = Generator.of(problem, 0)
    assert short.serially(short.rule("LST"))[1] == generator(problem).serially(short.rule("LST"))[1]


@by_fabric
@pytest.mark.parametrize("longest", [5, 90, 200])
def test_devices_booked_as_rows_of_slots_give_the_schedules_of_devices_booked_by_time(
    fabric, longest
):
    for seed in range(4):
        problem = random_problem(seed, fabric, tasks=40, longest=longest, density=0.08)
        made = generator(problem)
        assert made.tasks.in_slots == (not fabric.shares)
        by_time = replace(
            made,
            tasks=made.tasks._replace(in_slots=False),
            back=made.back._replace(in_slots=False),
        )
        for backwards in (False, True):
            ours, ours_end = made.serially(made.rule("LST"), backwards)
            theirs, theirs_end = by_time.serially(made.rule("LST"), backwards)
            assert (ours.tolist(), ours_end) == (theirs.tolist(), theirs_end)


HORIZON = 300


@pytest.mark.parametrize("capacity", [(1, 1, 1), (1, 2, 3), (4, 5, 8), (7, 1, 2)])
@pytest.mark.parametrize("longest", [4, 64, 130])
def test_booking_where_the_first_free_stretch_is_keeps_the_counts_of_every_slot(capacity, longest):
    random, every_row = np.random.default_rng(sum(capacity) + longest), np.arange(3, dtype=np.int32)
    held = nothing_held(np.array(capacity, np.int32), HORIZON)
    count = np.zeros((3, HORIZON), int)
    for _ in range(200):
        slots, first = int(random.integers(1, longest + 1)), int(random.integers(0, HORIZON))
        lo, hi = sorted(random.choice(4, 2, replace=False).tolist())
        free = (capacity[lo:hi] > count[lo:hi].T).all(axis=1)
        tried = (s for s in range(first, HORIZON - slots + 1) if free[s : s + slots].all())
        s = first_free(held.bits, every_row, lo, hi, first, slots, HORIZON)
        assert s == next(tried, -1)
        for row in range(lo, hi) if s >= 0 else ():
            book(held.bits, row, held.digits[row], s, slots)
            count[row, s : s + slots] += 1
