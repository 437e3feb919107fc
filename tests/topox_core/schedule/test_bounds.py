"""Lower bounds: never above what trying everything finds, often tight, and named by what binds."""

import functools
from collections import defaultdict
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given as drawn, strategies as st

import topox_core
from tests.conftest import long_after, some
from tests.topox_core.schedule.problem_builder import (
    Fabric,
    brute_force,
    build,
    makespan,
    random_problem,
)
from tests.topox_core.schedule.set_up_brute_force import optimum, random_case
from tests.topox_core.small_graphs import (
    cluster,
    compute,
    graph,
    list_schedule,
    random_graph,
    transfer,
)
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.transfer_graph import TRANSFER, durations_ms
from topox_core.schedule.bounds.ancestor_bounds import (
    ancestor_bound,
    ancestor_heads_and_tails,
)
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.bounds.propagation import Propagator, raised_bound
from topox_core.schedule.bounds.unrounded import circuit_bound
from topox_core.schedule.bounds.windows import clocks, critical_path, windows
from topox_core.schedule.circuits.held_ports import with_set_ups
from topox_core.schedule.engines.best_known import initially_known, raise_bounds
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.printed import solve_printed
from topox_core.schedule.kernels.propagation import Constraints, energy
from topox_core.schedule.kernels.tasks import Precedence
from topox_core.schedule.planning.planner import Planner
from topox_core.schedule.problem import Problem
from topox_core.schedule.rcpsp.psplib import read_psplib
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve

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


def test_bounds_with_set_ups_grow_with_the_delay_and_stay_below_the_best_of_all_orders_and_ports():
    raised = 0
    for seed in some(range(100), quick=25):
        counted = random_case(seed)
        without = replace(counted, network=replace(counted.network, dark_slots=None))
        bounds = [
            by_work_of_ancestors(without, delay) for delay in range(counted.network.dark_slots + 1)
        ]
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


TWO_PORTS = Fabric(servers=6, switches=2, ports_per_server=2)


@pytest.mark.parametrize(("peers", "slots"), [(2, 1), (3, 1 + 5 + 1), (4, 7), (5, 3 + 2 * 5)])
def test_one_of_two_ports_serves_half_of_the_peers_with_a_change_between_any_two(peers, slots):
    # On average the ports of three peers would be busy for (3 + 5) / 2 slots only.
    ends = {j: (0, j + 1) for j in range(peers)}
    at_once = build([1] * peers, ends, [], TWO_PORTS)
    assert by_work_of_ancestors(at_once, 5) == optimum(with_set_ups(at_once, 5)) == slots
    behind = build([1] * peers + [2], ends, [(j, peers) for j in range(peers)], TWO_PORTS)
    assert by_work_of_ancestors(behind, 5) == slots + 2


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
        optimum = makespan(problem, found.solution.start)
        for horizon in (optimum, optimum + 2):
            given, propagator = windows(problem, horizon), Propagator(problem)
            rules = [
                given,
                propagator.propagated(given, horizon),
                propagator.propagated(given, horizon, trials=True),
            ]
            # Barriers and the like may keep to slots without loss, so compare them on their own
            # clock.
            start = found.solution.start // given.clock * given.clock
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
    assert propagator.propagated(windows(problem, 15), 15, True, lambda: True)


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


FIRST = Settings.of(engine="list", iteration="first")


def heads_by_rule(nodes, before, length, ends, ports, delay):
    """Return heads in ms: of the transfers just before a task at one side, those from any head on, with their changes."""
    head = {}
    for i in nodes:
        head[i] = max((head[p] + length[p] for p in before[i]), default=0.0)
        sides = defaultdict(list)
        for p in before[i]:
            for side, peer in ends.get(p, ()):
                sides[side].append((head[p], length[p], peer))
        for entries in sides.values():
            for h, _, _ in entries:
                late = [(ms, peer) for first, ms, peer in entries if first >= h]
                longest = {peer: max(ms for ms, other in late if other == peer) for _, peer in late}
                changes = max(0, len(longest) - ports)
                head[i] = max(head[i], h + (sum(ms for ms, _ in late) + changes * delay) / ports)
                # Of one more peers than k rounds of the ports serve, k + 1 follow each other at a port.
                by_length = sorted(longest.values(), reverse=True)
                if (k := (len(by_length) - 1) // ports) > 0:
                    follow = by_length[k * ports - k : k * ports + 1]
                    head[i] = max(head[i], h + sum(follow) + k * delay)
    return head


def rule_ms(graph, servers):
    """Return the longest way through the graph with heads and tails by the rule."""
    length, n = durations_ms(graph, servers), len(graph)
    before = [list(graph.pred_idx[graph.pred_ptr[i] : graph.pred_ptr[i + 1]]) for i in range(n)]
    after = [[] for _ in range(n)]
    for i, preds in enumerate(before):
        for p in preds:
            after[p].append(i)
    ends = {}
    for i in np.flatnonzero((graph.kind == TRANSFER) & (length > 0)):
        s, d = int(graph.source[i]), int(graph.destination[i])
        if servers.duplex == "half":
            ends[i] = ((s, (s, d)), (d, (s, d)))
        else:
            ends[i] = ((("out", s), d), (("in", d), s))
    order, left = [], [len(preds) for preds in before]
    ready = [i for i in range(n) if not left[i]]
    while ready:
        i = ready.pop()
        order.append(i)
        for k in after[i]:
            left[k] -= 1
            if not left[k]:
                ready.append(k)
    given = ends, servers.ports_per_server, servers.reconfiguration_ms
    head = heads_by_rule(order, before, length, *given)
    tail = heads_by_rule(order[::-1], after, length, *given)
    return max(head[i] + length[i] + tail[i] for i in range(n))


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("seed", some(range(40), quick=6))
def test_the_bound_is_no_lower_than_the_rule_and_no_plan_is_shorter(seed, duplex):
    servers = cluster(
        4,
        ports_per_server=2 + seed % 3,
        switches=1,
        duplex=duplex,
        reconfiguration_ms=seed % 4 * 2.5,
    )
    job = random_graph(seed, tasks=40)
    lowered = lower(job, Lowering())
    bound_ms = circuit_bound(lowered, servers, FIRST).ms
    assert bound_ms >= rule_ms(lowered, servers) * (1 - 1e-12)
    found = solve(job, servers, FIRST)
    assert bound_ms <= found.makespan_ms * (1 + 1e-9)


def test_three_circuits_on_two_ports_follow_each_other_once_however_little_two_would_share():
    # Two of three share a port, a change between them; the least of what must follow comes last.
    servers = cluster(4, ports_per_server=2, switches=2, reconfiguration_ms=10.0)
    tasks = [compute("first", 0, 1.0)]
    for peer, after_ms in ((1, 5.0), (2, 6.0), (3, 7.0)):
        tasks.append(transfer(f"t{peer}", 0, peer, 1.0, "first"))
        tasks.append(compute(f"c{peer}", peer, after_ms, f"t{peer}"))
    job = graph(*tasks)
    bound_ms = circuit_bound(lower(job, Lowering()), servers, FIRST).ms
    assert bound_ms == pytest.approx(1 + 1 + 10 + 1 + 5)
    assert solve(job, servers, FIRST).makespan_ms == pytest.approx(bound_ms)


def test_circuits_no_more_than_ports_have_ports_of_their_own_or_change():
    # Four transfers to one server and one to another: two ports would share them within 2.5 ms, which
    # takes a change.
    servers = cluster(3, ports_per_server=2, switches=2, reconfiguration_ms=10.0)
    tasks = [compute("first", 0, 1.0), transfer("other", 0, 2, 1.0, "first")]
    tasks += [transfer(f"t{k}", 0, 1, 1.0, "first") for k in range(4)]
    job = graph(*tasks)
    for delay_ms, least_ms in ((0.5, 1 + 1 + 0.5 + 1), (10.0, 1 + 4)):
        slow = servers.changed(reconfiguration_ms=delay_ms)
        assert circuit_bound(lower(job, Lowering()), slow, FIRST).ms == pytest.approx(
            least_ms, abs=0.5
        )
        found = solve(job, slow, FIRST)
        assert circuit_bound(lower(job, Lowering()), slow, FIRST).ms <= found.makespan_ms


@pytest.mark.parametrize(("delay_ms", "least_ms"), [(1.0, 80.5), (8.0, 201.7), (100.0, 2041.7)])
def test_a_mixture_of_experts_cannot_pay_where_every_layer_changes_every_circuit(
    delay_ms, least_ms
):
    job, servers = topox_core.load_sample("moe")
    slow = servers.changed(reconfiguration_ms=delay_ms)
    direct = Lowering(algorithm=(("all_to_all", "direct"),))
    assert circuit_bound(lower(job, direct), slow, FIRST).ms >= least_ms
