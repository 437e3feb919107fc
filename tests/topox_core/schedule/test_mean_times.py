"""Mean times bound exchanges of everybody with everybody better than single ports, and never above the optimum."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from tests.topox_core.schedule.problem_builder import Fabric, brute_force, build, random_problem
from topox_core.model.passes import heads, tails
from topox_core.schedule.bounds.ancestor_bounds import ancestor_bound, ancestor_heads_and_tails
from topox_core.schedule.bounds.linear_bound import rising_bounds
from topox_core.schedule.bounds.mean_times import mean_time_bounds, shares_its_waits
from topox_core.schedule.bounds.root_bounds import raise_bounds
from topox_core.schedule.bounds.windows import clocks
from topox_core.schedule.engines.best_known import initially_known
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.kernels.primal_dual import LinearProgram, proved
from topox_core.schedule.problem import Problem
from topox_core.schedule.source import MEAN_TIMES

FABRICS = [
    Fabric(servers=3),
    Fabric(servers=3, switches=2, ports_per_server=2),
    Fabric(servers=3, half_duplex=True),
    Fabric(servers=4, switches=2, circuits_per_switch=1, ports_per_server=2),
    Fabric(servers=3, shares=True),
]
# Compute of each server before, between and after exchanges: another one is slow every time.
IN_TURN = [[2, 1, 1], [1, 1, 2], [1, 2, 1], [2, 1, 1]]


def exchanges(computes: list[list[int]], parts: int, fabric: Fabric, slot: int = 1) -> Problem:
    """Compute, exchange, compute, ...: every server sends every other so many transfers of a slot each time."""
    durations: list[int] = []
    transfers: dict[int, tuple[int, int]] = {}
    devices: dict[int, int] = {}
    edges: list[tuple[int, int]] = []
    servers, before = range(fabric.servers), [-1] * fabric.servers
    for phase, lengths in enumerate(computes):
        arrivals: list[list[int]] = [[] for _ in servers]
        for x in servers if phase else ():
            for y in servers:
                for _ in range(parts if x != y else 0):
                    transfers[len(durations)] = (x, y)
                    edges.append((before[x], len(durations)))
                    arrivals[y].append(len(durations))
                    durations.append(slot)
        for x in servers:
            devices[len(durations)] = x
            edges += [(i, len(durations)) for i in arrivals[x]]
            before[x] = len(durations)
            durations.append(lengths[x])
    return build(durations, transfers, edges, fabric, devices, slot)


def bounds_of(problem: Problem, makespan: int, looks: int = 60) -> int:
    clock = clocks(problem)
    head = heads(problem.order, problem.pred_ptr, problem.pred_idx, problem.duration, clock)
    tail = tails(problem.order, problem.succ_ptr, problem.succ_idx, problem.duration)
    bounds = list(islice(mean_time_bounds(problem, head, tail, 0, makespan, 1), looks))
    assert bounds == sorted(bounds)
    return bounds[-1]


def test_every_exchange_takes_the_mean_load_after_the_mean_compute_whoever_is_slow():
    # Two slots of load on every port in each of three exchanges, and 4/3 of compute on average in
    # each of four steps: 6 + 16/3. Single ports know only that whoever sends first computed for 1.
    problem = exchanges(IN_TURN, 1, Fabric(servers=3))
    alone = ancestor_bound(problem, *ancestor_heads_and_tails(problem, clocks(problem)), 0)
    assert alone is not None
    assert alone.ticks == 11
    assert bounds_of(problem, 20) == 12


def test_ports_that_are_left_over_for_part_of_the_last_slot_count():
    # Four transfers on three ports: one slot for three and another for one, 1.25 slots on average
    # instead of 4/3, and after that a compute task of 2 that follows all four.
    fabric = Fabric(servers=5, switches=3, ports_per_server=3)
    ends = {j: (j + 1, 0) for j in range(4)}
    problem = build([1] * 4 + [2], ends, [(j, 4) for j in range(4)], fabric, {4: 0})
    assert bounds_of(problem, 10) == brute_force(problem) == 4


def test_a_slot_is_the_unit_of_ports_on_a_clock_of_ticks():
    in_ticks = [[3 * length for length in lengths] for lengths in IN_TURN]
    assert bounds_of(exchanges(in_ticks, 1, Fabric(servers=3), slot=3), 60) == 34  # 3 * 34 / 3


@pytest.mark.parametrize("fabric", FABRICS, ids=str)
@pytest.mark.parametrize("slot", [1, 2])
def test_mean_times_are_never_above_the_optimum(fabric, slot):
    for seed in range(30):
        problem = random_problem(seed, fabric, tasks=7, ticks_per_slot=slot, density=0.2)
        optimum = brute_force(problem)
        assert bounds_of(problem, optimum + 2 * slot, looks=20) <= optimum
        assert bounds_of(problem, optimum, looks=20) <= optimum


def test_no_schedule_below_the_critical_path():
    problem = exchanges([[2, 3, 1], [1, 1, 1]], 1, Fabric(servers=3))
    assert bounds_of(problem, 3) == 3


def test_exchanges_share_what_they_wait_for_and_pipelines_do_not():
    assert shares_its_waits(exchanges([[1, 1, 1], [1, 1, 1]], 2, Fabric(servers=3)))
    chain = build([1, 1, 1], {1: (0, 1)}, [(0, 1), (1, 2)], Fabric(servers=2), {0: 0, 2: 1})
    assert not shares_its_waits(chain)


def test_a_solve_takes_the_bound_and_says_where_it_is_from():
    problem = exchanges(IN_TURN, 1, Fabric(servers=3))
    told = []
    known = initially_known(problem, Limits(30.0), told.append)
    raise_bounds(problem, 1, known, lambda: False)
    assert MEAN_TIMES in {progress.source for progress in told}
    assert 12 <= known.bound <= known.makespan


def test_any_multipliers_prove_a_bound_and_the_method_finds_the_best():
    # Minimise x + 2 y subject to x + y >= 1 within [0, 1/2] each: x = y = 1/2 costs 3/2.
    given = LinearProgram(
        np.array([1.0, 2.0]),
        np.zeros(2),
        np.full(2, 0.5),
        np.ones(1),
        np.array([0, 2], np.int32),
        np.array([0, 1], np.int32),
        np.ones(2),
    )
    for multiplier in (0.0, 0.5, 1.0, 2.0, 3.0):
        assert proved(given, np.array([multiplier]))[0] <= 1.5
    assert proved(given, np.array([2.0]))[0] == 1.5
    assert list(islice(rising_bounds(given), 20))[-1] == pytest.approx(1.5, abs=1e-6)
