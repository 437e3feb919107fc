"""Propagation removes no start that a schedule can have, and each rule narrows what the one before left."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from tests.conftest import long_after
from tests.topox_core.schedule.problem_builder import Fabric, brute_force, build, random_problem
from topox_core.schedule.bounds.propagation import Propagator, raised_bound
from topox_core.schedule.bounds.windows import critical_path, windows
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.printed import solve_printed
from topox_core.schedule.kernels.propagation import Constraints, energy
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.problem import Problem
from topox_core.schedule.psplib import read_psplib

DEPTHS = ("quick", "thorough", "deep")
FABRICS = {
    "full duplex": Fabric(servers=3),
    "several ports": Fabric(servers=3, switches=2, ports_per_server=2),
    "half duplex": Fabric(servers=3, half_duplex=True),
    "half duplex, several ports": Fabric(
        servers=3, switches=3, ports_per_server=3, half_duplex=True
    ),
    "binding total": Fabric(servers=4, circuits_per_switch=2),
    "eq. 6 shared": Fabric(servers=3, shares=True),
}


def bound_of(problem: Problem, horizon: int, stops: bool = False) -> int:
    known = critical_path(problem)
    return raised_bound(Propagator(problem), known, lambda: horizon, 1, 60.0, lambda: stops)


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS.keys())
@pytest.mark.parametrize("ticks_per_slot", [1, 3])
def test_windows_keep_every_start_of_an_optimal_schedule_and_narrow_from_rule_to_rule(
    fabric, ticks_per_slot
):
    widths = []
    for seed in range(4):
        problem = random_problem(seed, fabric, 12, ticks_per_slot, density=0.08)
        found = solve_printed(problem, Limits(time_limit_s=60))
        optimum = found.makespan(problem)
        for horizon in (optimum, optimum + 2):
            given, propagator = windows(problem, horizon), Propagator(problem)
            rules = [
                given,
                propagator.propagated(given, horizon),
                *(propagator.shaved(given, horizon, depth, lambda: False) for depth in DEPTHS),
            ]
            # Barriers and the like may keep to slots without loss, so compare them on their own
            # clock.
            start = found.start // given.clock * given.clock
            for narrowed in rules:
                assert (narrowed.earliest <= start).all()
                assert (start <= narrowed.latest).all()
            widths.append([int((one.latest - one.earliest).sum()) for one in rules])
    assert (np.diff(widths) <= 0).all()
    before, propagated, shaved = np.sum(widths, axis=0)[:3]
    assert before > shaved
    if fabric == FABRICS["binding total"]:
        assert before > propagated > shaved


TWO_CIRCUITS = Fabric(switches=2, ports_per_server=2)
SHARED = build([3, 3], {0: (0, 1), 1: (0, 1)}, fabric=Fabric(shares=True))
HAND_MADE = {
    # Compute of 2, then three transfers of 3 through one port, then compute of 4; the critical path is 9.
    "the work of a port between head and tail": (
        build(
            [2, 3, 3, 3, 4],
            {1: (0, 1), 2: (0, 1), 3: (0, 2)},
            [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)],
        ),
        2 + 9 + 4,
    ),
    # Compute ends after 1, 5 and 7, each starts a transfer of 6 through two circuits of one server: from 5 on
    # two of the first transfer are left, 2 + 6 + 6 on two circuits, although all work fits into 1 + 9.
    "circuits that nothing can use yet": (
        build(
            [1, 4, 2, 6, 6, 6],
            {3: (0, 1), 4: (0, 1), 5: (0, 1)},
            [(0, 3), (1, 4), (2, 5), (0, 1), (1, 2)],
            TWO_CIRCUITS,
        ),
        13,
    ),
    "transfers that may share a circuit are not counted twice": (SHARED, 3),
    "one device runs one task at a time": (build([4, 5, 6], devices={0: 0, 1: 0, 2: 0}), 15),
    "without a device nothing waits": (build([4, 5, 6]), 6),
}


@pytest.mark.parametrize(("problem", "ticks"), HAND_MADE.values(), ids=HAND_MADE.keys())
def test_the_bound_counts(problem, ticks):
    assert bound_of(problem, 40) == ticks == brute_force(problem)


def test_asked_to_stop_it_keeps_what_is_proved():
    problem = build([4, 5, 6], devices={0: 0, 1: 0, 2: 0})
    assert bound_of(problem, 40, stops=True) == 6
    assert Propagator(problem).shaved(windows(problem, 15), 15, "thorough", lambda: True)


# Earliest start, how much later the latest is, duration and demand.
TASK = st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(1, 3), st.integers(1, 2))


@drawn(st.lists(TASK, min_size=1, max_size=4), st.integers(2, 3))
def test_energy_strikes_no_start_that_a_schedule_has(tasks, capacity):
    earliest, width, duration, demand = np.array(tasks, np.int64).T.copy()
    latest = earliest + width
    windows_of_all = (range(e, last + 1) for e, last in zip(earliest, latest, strict=True))
    schedules = [
        start
        for start in np.array(list(itertools.product(*windows_of_all)))
        if all(demand[(start <= t) & (t < start + duration)].sum() <= capacity for t in range(15))
    ]
    n = len(tasks)
    none, all_of_them = np.zeros(n + 1, np.int32), np.arange(n, dtype=np.int32)
    resource = Constraints(
        Precedence(all_of_them, none, none[:0], duration, np.ones(n, np.int64)),
        np.array([0, n], np.int32),
        all_of_them,
        demand,
        np.array([capacity], np.int64),
        np.ones(1, np.int64),
        np.arange(n + 1, dtype=np.int32),
        np.zeros(n, np.int32),
    )
    held = energy(0, earliest, latest, resource, np.zeros(1, np.bool_))
    assert held or not schedules
    for start in schedules:
        assert (earliest <= start).all() and (start <= latest).all()


@pytest.mark.parametrize(
    ("name", "optimum", "at_least"),
    long_after(
        3,
        [
            ("j301_1", 43, 43),
            ("j302_1", 38, 38),
            ("j305_1", 53, 53),
            ("j3037_1", 79, 74),
            ("j3013_1", 58, 50),
        ],
    ),
)
def test_bounds_of_published_instances(real_inputs, name, optimum, at_least):
    problem = read_psplib((real_inputs / "psplib" / f"{name}.sm").read_bytes(), f"{name}.sm")
    assert at_least <= bound_of(problem, optimum + 10) <= optimum
