"""Propagation removes no start that a schedule can have, and its bounds never exceed the optimum."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from tests.conftest import long_after
from tests.topox_core.schedule.problem_builder import Fabric, brute_force, build, random_problem
from topox_core.schedule.bounds.propagation import Propagator, raised_bound
from topox_core.schedule.bounds.root_bounds import raise_bounds
from topox_core.schedule.bounds.windows import critical_path, windows
from topox_core.schedule.engines.best_known import initially_known
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.printed import solve_printed
from topox_core.schedule.kernels.propagation import Constraints, energy
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.problem import Problem
from topox_core.schedule.psplib import read_psplib

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
by_fabric = pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS.keys())


def never() -> bool:
    return False


def bound_of(problem: Problem, horizon: int) -> int:
    return raised_bound(
        Propagator(problem), critical_path(problem), lambda: horizon, 1, 60.0, never
    )


@by_fabric
@pytest.mark.parametrize("ticks_per_slot", [1, 3])
def test_windows_keep_every_start_of_an_optimal_schedule_and_bounds_stay_below_it(
    fabric, ticks_per_slot
):
    for seed in range(200, 212):
        problem = random_problem(seed, fabric, tasks=9, ticks_per_slot=ticks_per_slot, density=0.12)
        found = solve_printed(problem, Limits(time_limit_s=60))
        optimum = found.makespan(problem)
        assert found.stopped_by == "proof"
        assert bound_of(problem, optimum + 5) <= optimum
        for horizon in (optimum, optimum + 2):
            given = windows(problem, horizon)
            plain = Propagator(problem).propagated(given, horizon)
            quick = Propagator(problem).shaved(given, horizon, "quick", never)
            thorough = Propagator(problem).shaved(given, horizon, "thorough", never)
            deep = Propagator(problem).shaved(given, horizon, "deep", never)
            # Barriers and the like may keep to slots without loss, so compare them on their own
            # clock.
            start = found.start // given.clock * given.clock
            for narrowed in (plain, quick, thorough, deep):
                assert narrowed is not None
                assert (narrowed.earliest <= start).all()
                assert (start <= narrowed.latest).all()


def test_windows_narrow_from_rule_to_rule():
    widths = []
    for seed in range(20):
        problem = random_problem(seed, Fabric(servers=3, half_duplex=True), tasks=12, density=0.08)
        horizon = solve_printed(problem, Limits(time_limit_s=60)).makespan(problem)
        given = windows(problem, horizon)
        rules = (
            given,
            Propagator(problem).propagated(given, horizon),
            Propagator(problem).shaved(given, horizon, "quick", never),
            Propagator(problem).shaved(given, horizon, "thorough", never),
            Propagator(problem).shaved(given, horizon, "deep", never),
        )
        widths.append([int((w.latest - w.earliest).sum()) for w in rules])
    totals = np.sum(widths, axis=0).tolist()
    assert all((np.diff(row) <= 0).all() for row in widths)
    assert totals[0] > totals[1] > totals[2] >= totals[3] >= totals[4]


def test_the_bound_counts_the_work_of_a_port_between_head_and_tail():
    # Compute of 2, then three transfers of 3 through one port, then compute of 4: 2 + 9 + 4, the
    # critical path is 9.
    transfers = {1: (0, 1), 2: (0, 1), 3: (0, 2)}
    edges = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]
    problem = build([2, 3, 3, 3, 4], transfers, edges)
    assert critical_path(problem) == 9
    assert bound_of(problem, 40) == 15 == brute_force(problem)


def test_the_bound_counts_circuits_that_nothing_can_use_yet():
    # Compute ends after 1, 5 and 7, each starts a transfer of 6 through two circuits of one server: from 5 on
    # two of the first transfer are left, 2 + 6 + 6 on two circuits, although all work fits into 1 + 9.
    transfers = {3: (0, 1), 4: (0, 1), 5: (0, 1)}
    edges = [(0, 3), (1, 4), (2, 5)]
    two = Fabric(switches=2, ports_per_server=2)
    problem = build([1, 4, 2, 6, 6, 6], transfers, [*edges, (0, 1), (1, 2)], two)
    start = windows(problem, 40)
    assert Propagator(problem).propagated(windows(problem, 11), 11) is None
    assert start.earliest.tolist() == [0, 1, 5, 1, 5, 7]
    assert bound_of(problem, 40) == 13 == brute_force(problem)


def tasks_in_windows(earliest: int, width: int, duration: int, tasks: int):
    """Draw columns of earliest and latest starts, durations and demands, each up to so much."""
    task = st.tuples(
        st.integers(0, earliest), st.integers(0, width), st.integers(1, duration), st.integers(1, 2)
    )
    return st.lists(task, min_size=1, max_size=tasks).map(columns)


def columns(tasks):
    earliest, width, duration, demand = np.array(tasks, np.int64).T.copy()
    return earliest, earliest + width, duration, demand


@drawn(tasks_in_windows(12, 9, 5, 7), st.integers(2, 3))
def test_energy_sees_every_overload_from_the_first_or_last_start_of_a_task(tasks, capacity):
    earliest, latest, duration, demand = tasks
    overloads = 0
    for a in np.append(earliest, latest).tolist():
        for b in range(a + 1, int((latest + duration).max()) + 1):
            least = np.minimum.reduce(
                [duration, np.full_like(duration, b - a), earliest + duration - a, b - latest]
            )
            overloads += int((demand * np.maximum(least, 0)).sum()) > capacity * (b - a)
    assert energy_holds(earliest, latest, duration, demand, capacity) <= (overloads == 0)


@drawn(tasks_in_windows(5, 4, 3, 4), st.integers(2, 3))
def test_energy_strikes_no_start_that_a_schedule_has(tasks, capacity):
    earliest, latest, duration, demand = tasks
    schedules = [
        start
        for start in itertools.product(
            *(
                range(e, last + 1)
                for e, last in zip(earliest.tolist(), latest.tolist(), strict=True)
            )
        )
        if all(
            sum(d for s, p, d in zip(start, duration, demand, strict=True) if s <= t < s + p)
            <= capacity
            for t in range(15)
        )
    ]
    held = energy_holds(earliest, latest, duration, demand, capacity)
    assert held or not schedules
    for start in schedules:
        assert (earliest <= start).all() and (start <= latest).all()


def energy_holds(earliest, latest, duration, demand, capacity) -> bool:
    """Apply energetic reasoning to one resource, in place."""
    n = len(duration)
    none, all_of_them = np.zeros(n + 1, np.int32), np.arange(n, dtype=np.int32)
    edges = Precedence(all_of_them, none, none[:0], duration, np.ones(n, np.int64))
    given = Constraints(
        edges,
        np.array([0, n], np.int32),
        all_of_them,
        demand,
        np.array([capacity], np.int64),
        np.ones(1, np.int64),
        np.arange(n + 1, dtype=np.int32),
        np.zeros(n, np.int32),
    )
    return energy(0, earliest, latest, given, np.zeros(1, np.bool_))


def test_transfers_that_may_share_a_circuit_are_not_counted_twice():
    problem = build([3, 3], {0: (0, 1), 1: (0, 1)}, fabric=Fabric(shares=True))
    assert bound_of(problem, 20) == 3
    assert bound_of(replace(problem, pair=np.full(2, -1, np.int32)), 20) == 6


def test_one_device_bounds_its_compute_and_nothing_without_it():
    assert bound_of(build([4, 5, 6], devices={0: 0, 1: 0, 2: 0}), 40) == 15
    assert bound_of(build([4, 5, 6]), 40) == 6


def test_asked_to_stop_it_keeps_what_is_proved():
    problem = build([4, 5, 6], devices={0: 0, 1: 0, 2: 0})
    assert raised_bound(Propagator(problem), 6, lambda: 40, 1, 60.0, lambda: True) == 6
    narrowed = Propagator(problem).shaved(windows(problem, 15), 15, "thorough", lambda: True)
    assert narrowed is not None


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


@pytest.mark.parametrize(
    "fabric",
    [
        Fabric(servers=3),
        Fabric(servers=4, half_duplex=True, switches=2, ports_per_server=2),
        Fabric(servers=4, switches=2, circuits_per_switch=1, ports_per_server=2),
    ],
    ids=str,
)
def test_heads_and_tails_and_propagation_together_are_never_above_the_optimum(fabric):
    tight = 0
    for seed in range(60):
        problem = random_problem(seed, fabric, tasks=6, longest=3, density=0.15)
        known, optimum = initially_known(problem, Limits(30.0)), brute_force(problem)
        raise_bounds(problem, 1, known, lambda: False)
        assert known.bound <= optimum
        tight += known.bound == optimum
    assert tight > 50
