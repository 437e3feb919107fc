"""Lower bounds: never above what trying everything finds, often tight, and named by what binds."""

import functools
from collections import defaultdict
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given as drawn, strategies as st

from tests.conftest import long_after, some
from tests.topox_core.schedule.problem_builder import (
    Fabric,
    brute_force,
    build,
    makespan,
    random_problem,
)
from tests.topox_core.schedule.set_up_brute_force import optimum, random_case
from tests.topox_core.small_graphs import cluster, graph, list_schedule, transfer
from topox_core.model.lowering import lower
from topox_core.schedule.bounds.ancestor_bounds import (
    ancestor_bound,
    ancestor_heads_and_tails,
    set_up_heads_and_tails,
)
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.bounds.propagation import Propagator, raise_bounds, raised_bound
from topox_core.schedule.bounds.unrounded import circuit_bound
from topox_core.schedule.bounds.windows import clocks, critical_path, windows
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.engines.best_known import initially_known
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.printed import solve_printed
from topox_core.schedule.kernels.propagation import Constraints, energy
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.planner import Planner
from topox_core.schedule.problem import Problem
from topox_core.schedule.psplib import read_psplib
from topox_core.schedule.settings import Settings

FABRICS = {
    "one port": Fabric(),
    "two switches": Fabric(switches=2, ports_per_server=2),
    "half duplex": Fabric(half_duplex=True),
    "half duplex, d_S > N_OCS": Fabric(half_duplex=True, switches=2, ports_per_server=3),
    "eq. 6 shared": Fabric(shares=True),
    "binding total": Fabric(servers=4, circuits_per_switch=2),
    "half duplex, binding total": Fabric(
        servers=4, half_duplex=True, switches=2, circuits_per_switch=1, ports_per_server=2
    ),
}


@functools.cache
def case(fabric: Fabric, ticks_per_slot: int, seed: int) -> tuple[Problem, int]:
    """A tiny problem and its optimum."""
    problem = random_problem(seed, fabric, 6, ticks_per_slot, longest=2, density=0.2)
    return problem, brute_force(problem)


def by_work_of_ancestors(problem: Problem, dark_slots: int = 0) -> int:
    dark_ticks = dark_slots * problem.ticks_per_slot
    head, tail = ancestor_heads_and_tails(problem, clocks(problem), problem.n, dark_ticks)
    bound = ancestor_bound(problem, head, tail, 0, dark_slots)
    return 0 if bound is None else bound.ticks


def by_set_ups(problem: Problem, delay: int) -> int:
    head, tail = set_up_heads_and_tails(
        problem, clocks(problem), 1_000, delay * problem.ticks_per_slot
    )
    return ancestor_bound(problem, head, tail, 0, delay).ticks


def by_propagation(problem: Problem, makespan: int) -> int:
    known = critical_path(problem)
    return raised_bound(Propagator(problem), known, lambda: makespan + 5, 1, 60.0, lambda: False)


def by_all_together(problem: Problem, makespan: int) -> int:
    known = initially_known(problem, Limits(30.0))
    raise_bounds(known, lambda: False)
    return known.bound


BOUNDS = {  # and how often each must be the optimum: a bound of nothing is never too high
    "paths and loads": (lambda problem, makespan: best_bound(problem, 0).ticks, 0.4),
    "work of ancestors": (lambda problem, makespan: by_work_of_ancestors(problem), 0.4),
    "propagation": (by_propagation, 0.7),
    "all together": (by_all_together, 0.8),
}


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS.keys())
@pytest.mark.parametrize("ticks_per_slot", [1, 2])
@pytest.mark.parametrize(("bound_of", "often"), BOUNDS.values(), ids=BOUNDS.keys())
def test_no_bound_is_above_what_trying_every_start_finds(bound_of, often, ticks_per_slot, fabric):
    cases = [case(fabric, ticks_per_slot, seed) for seed in some(range(60), quick=12)]
    bounds = [bound_of(problem, shortest) for problem, shortest in cases]
    shortest = np.array([shortest for _, shortest in cases])
    assert (bounds <= shortest).all()
    assert (bounds == shortest).mean() >= often


@pytest.mark.parametrize("bound_of", [by_work_of_ancestors, by_set_ups])
def test_bounds_with_set_ups_grow_with_the_delay_and_stay_below_the_best_of_all_orders_and_ports(
    bound_of,
):
    raised = 0
    for seed in some(range(100), quick=25):
        counted = random_case(seed)
        without = replace(counted, network=replace(counted.network, dark_slots=None))
        bounds = [bound_of(without, delay) for delay in range(counted.network.dark_slots + 1)]
        assert bounds == sorted(bounds)
        assert bounds[-1] <= optimum(counted), seed
        raised += bounds[-1] > bounds[0]
    assert raised


def test_bounds_with_set_ups_stay_below_every_plan():
    fabrics = [
        Fabric(servers=4, switches=2, ports_per_server=2),
        Fabric(servers=4, half_duplex=True),
        Fabric(servers=4, circuits_per_switch=2),
    ]
    for seed in some(range(30), quick=12):
        problem = random_problem(seed, fabrics[seed % 3], 14, 1 + seed % 4, density=0.2)
        for delay in (1, 3):
            plan = Planner.of(problem, 0, continuous=True, dark_slots=delay).best_plan()
            assert by_work_of_ancestors(problem, delay) <= plan.makespan
            assert by_set_ups(problem, delay) <= plan.makespan


def chain(*ends: tuple[int, int], fabric: Fabric | None = None) -> Problem:
    """Transfers of one tick, each after the one before."""
    edges = [(j, j + 1) for j in range(len(ends) - 1)]
    return build([1] * len(ends), dict(enumerate(ends)), edges, fabric)


TWO_PORTS = Fabric(servers=6, switches=2, ports_per_server=2)


@pytest.mark.parametrize(
    ("ends", "fabric", "delay", "ticks"),
    [
        # Three transfers of 1 and two changes of 2 at the out-port of server 0.
        (((0, 1), (0, 2), (0, 1)), None, 2, 3 + 2 * 2),
        # The way of a circuit counts in half duplex only.
        (((0, 1), (1, 0), (0, 1)), None, 2, 3),
        (((0, 1), (1, 0), (0, 1)), Fabric(half_duplex=True), 2, 3 + 2 * 2),
        # Two ports pay once in three peers.
        (((0, 1), (0, 2), (0, 1)), TWO_PORTS, 5, 3),
        (((0, 1), (0, 2), (0, 3)), TWO_PORTS, 5, 3 + 4),
        # Each of the last three may share a port with one before, two steps back at the latest.
        (((0, 1), (0, 2), (0, 3), (0, 4), (0, 5)), TWO_PORTS, 5, 5 + 2 * 4),
    ],
)
def test_a_chain_pays_every_change_that_its_ports_cannot_hide(ends, fabric, delay, ticks):
    assert by_set_ups(chain(*ends, fabric=fabric), delay) == ticks


@pytest.mark.parametrize(("peers", "slots"), [(2, 1), (3, 1 + 5 + 1), (4, 7), (5, 3 + 2 * 5)])
def test_one_of_two_ports_serves_half_of_the_peers_with_a_change_between_any_two(peers, slots):
    # On average the ports of three peers would be busy for (3 + 5) / 2 slots only.
    ends = {j: (0, j + 1) for j in range(peers)}
    at_once = build([1] * peers, ends, [], TWO_PORTS)
    assert by_set_ups(at_once, 5) == optimum(with_set_ups(at_once, 5)) == slots
    behind = build([1] * peers + [2], ends, [(j, peers) for j in range(peers)], TWO_PORTS)
    assert by_set_ups(behind, 5) == slots + 2


# Compute of each server before, between and after exchanges: another one is slow every time.
IN_TURN = [[2, 1, 1], [1, 1, 2], [1, 2, 1], [2, 1, 1]]


def exchanges(computes: list[list[int]], slot: int = 1) -> Problem:
    """Compute, exchange, compute, ...: every server sends every other a slot each time; all in slots."""
    durations, transfers, devices, edges = [], {}, {}, []
    servers, before = range(len(computes[0])), []
    for lengths in computes:
        arrivals = defaultdict(list)
        for x, y in permutations(servers, 2) if before else ():
            transfers[len(durations)] = x, y
            edges.append((before[x], len(durations)))
            arrivals[y].append(len(durations))
            durations.append(slot)
        before = [len(durations) + x for x in servers]
        devices.update(zip(before, servers, strict=True))
        edges += [(i, before[y]) for y in servers for i in arrivals[y]]
        durations += [slot * length for length in lengths]
    return build(durations, transfers, edges, Fabric(servers=len(servers)), devices, slot)


@pytest.mark.parametrize(
    ("peers", "iteration", "changes"),
    [((1, 2, 3), "first", 2), ((1, 2, 3), "repeated", 3), ((1, 1, 1), "repeated", 0)],
)
def test_every_pair_beyond_a_ports_first_adds_its_dark_time_to_the_load(peers, iteration, changes):
    g = graph(*(transfer(f"x{i}", 0, peer, 2.0) for i, peer in enumerate(peers)))
    of = cluster(4, reconfiguration_ms=5.0)
    how = Settings.of(iteration=iteration)
    found = list_schedule(g, of, how)
    assert circuit_bound(lower(g), of, how).ms == found.bound_ms == 3 * 2 + changes * 5
    assert found.status == "optimal"


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS.keys())
@pytest.mark.parametrize("ticks_per_slot", [1, 3])
def test_windows_keep_every_start_of_an_optimal_schedule_and_narrow_from_rule_to_rule(
    fabric, ticks_per_slot
):
    widths = []
    for seed in range(4):
        problem = random_problem(seed, fabric, 12, ticks_per_slot, density=0.08)
        found = solve_printed(problem, Limits(time_limit_s=60))
        optimum = makespan(problem, found.start)
        for horizon in (optimum, optimum + 2):
            given, propagator = windows(problem, horizon), Propagator(problem)
            rules = [
                given,
                propagator.propagated(given, horizon),
                *(
                    propagator.shaved(given, horizon, depth, lambda: False)
                    for depth in ("quick", "thorough")
                ),
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
    assert by_propagation(problem, 40) == ticks == brute_force(problem)


def test_propagation_asked_to_stop_keeps_what_is_proved():
    problem = build([4, 5, 6], devices={0: 0, 1: 0, 2: 0})
    known, propagator = critical_path(problem), Propagator(problem)
    assert raised_bound(propagator, known, lambda: 40, 1, 60.0, lambda: True) == 6
    assert propagator.shaved(windows(problem, 15), 15, "thorough", lambda: True)


# Earliest start, how much later the latest is, duration and demand.
TASK = st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(1, 3), st.integers(1, 2))


@drawn(st.lists(TASK, min_size=1, max_size=4), st.integers(2, 3))
def test_energy_strikes_no_start_that_a_schedule_has(tasks, capacity):
    earliest, width, duration, demand = np.array(tasks, np.int64).T.copy()
    latest = earliest + width
    windows_of_all = (range(e, last + 1) for e, last in zip(earliest, latest, strict=True))
    schedules = [
        start
        for start in np.array(list(product(*windows_of_all)))
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
    assert at_least <= by_propagation(problem, optimum) <= optimum
