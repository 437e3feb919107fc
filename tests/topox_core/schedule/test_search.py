"""List scheduling, local search and neighbourhoods: repeatable, never worse, sound, and nothing that fits is refused."""

from dataclasses import replace

import numpy as np
import pytest

from tests.topox_core.schedule.fake_solvers import solved_by_cpsat
from tests.topox_core.schedule.problem_builder import (
    Fabric,
    brute_force,
    build,
    makespan,
    planner_of,
    random_problem,
    searched,
)
from tests.topox_core.schedule.test_exact_engines import sample
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.check.checker import check
from topox_core.errors import InputError
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.bounds.windows import windows
from topox_core.schedule.circuits.disjunctions import (
    may_be_few,
    neighbourhoods_fit,
    pairs_in_turn,
)
from topox_core.schedule.circuits.held_ports import (
    Solution,
    changed_rows,
    ports_of,
    solution_violation,
    with_set_ups,
)
from topox_core.schedule.engines import highs
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.highs import solve_highs
from topox_core.schedule.kernels.parallel import parallel
from topox_core.schedule.kernels.slots import book, first_free, nothing_held
from topox_core.schedule.planning import local_search as halving
from topox_core.schedule.planning.list_scheduler import RULES, Generator, serial_schedule
from topox_core.schedule.planning.local_search import LocalSearch, SuccessiveHalving
from topox_core.schedule.planning.planner import Planner, SchedulePlan, prepare
from topox_core.schedule.rcpsp.feasibility import violation
from topox_core.schedule.results.report import to_result
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import TraceSource

FABRICS = (
    Fabric(servers=4, switches=2, ports_per_server=2),
    Fabric(servers=4, half_duplex=True, switches=2, ports_per_server=2),
    Fabric(servers=4, switches=2, circuits_per_switch=1, ports_per_server=2),
)
# Drawn per slot; on continuous time; on continuous time with 2 slots of dark.
SHARED = Fabric(servers=4, shares=True)
CIRCUITS = ((False, 0), (True, 0), (True, 2))
by_kind = pytest.mark.parametrize("kind", [LocalSearch, SuccessiveHalving])


def poor_plan(planner: Planner) -> SchedulePlan:
    """The first rule's plan without improvement: something is left to gain."""
    start, _ = planner.generator.serially(planner.generator.rule("MIS"))
    return planner.with_circuits(start, TraceSource("rules", "MIS"), improve=False)


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
        assert kind is LocalSearch or search.steps < 300 or search.contests >= 3
        return search.steps, search.cost, search.best_plan().start.tolist()

    assert end_of(3, 300) == end_of(3, *[1] * 300) == end_of(3, 7, 200, 93)
    assert end_of(3, 30) != end_of(4, 30)


@by_kind
@pytest.mark.parametrize("circuits", CIRCUITS)
def test_plans_never_become_worse_and_keep_every_rule(kind, circuits):
    continuous, _ = circuits
    # Shared circuits are drawn per slot.
    fabrics = FABRICS if continuous else (*FABRICS, SHARED)
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
            assert found.makespan == makespan(problem, found.start) == search.cost[0]
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
    problem = random_problem(3, FABRICS[1], tasks=60, longest=9, density=0.03)
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


# List scheduling.


def generator(problem) -> Generator:
    return Generator.of(problem, best_bound(problem, 0).ticks)


@pytest.mark.parametrize("fabric", (*FABRICS, SHARED), ids=str)
@pytest.mark.parametrize("ticks_per_slot", [1, 4])
def test_both_schemes_keep_every_rule_and_improvement_never_makes_a_schedule_longer(
    fabric, ticks_per_slot
):
    for seed in range(8):
        problem = random_problem(seed, fabric, 40, ticks_per_slot, density=0.08)
        made = generator(problem)
        for name in RULES:
            rank = made.rule(name)
            serial, side_by_side = made.serially(rank), parallel(rank, made.tasks)
            better = made.improved(*serial, 0)
            assert better[1] <= serial[1]
            for start, end in (serial, side_by_side, better):
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


@pytest.mark.parametrize("fabric", (*FABRICS, SHARED), ids=str)
@pytest.mark.parametrize("longest", [5, 90, 200])
def test_devices_booked_as_rows_of_slots_give_the_schedules_of_devices_booked_by_time(
    fabric, longest
):
    for seed in range(4):
        problem = random_problem(seed, fabric, tasks=40, longest=longest, density=0.08)
        made = generator(problem)
        # Of slots of two ticks each a device is no row.
        by_time = generator(replace(problem, duration=2 * problem.duration, ticks_per_slot=2))
        for backwards in (False, True):
            ours, ours_end = made.serially(made.rule("LST"), backwards)
            theirs, theirs_end = by_time.serially(made.rule("LST"), backwards)
            assert ((2 * ours).tolist(), 2 * ours_end) == (theirs.tolist(), theirs_end)


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


BUSY = random_problem(2, Fabric(servers=5, half_duplex=True), tasks=80, longest=6, density=0.04)


def test_a_model_too_large_for_highs_is_refused_with_its_size_after_the_bounds(monkeypatch):
    monkeypatch.setattr(highs, "MAX_COLUMNS", 4_000)
    found: list[int] = []
    limits = Limits(time_limit_s=60, solution=Solution(serial_schedule(BUSY)))
    with pytest.raises(InputError, match=r"columns \(limit 4,000\)"):
        solve_highs(BUSY, limits, on_progress=lambda progress: found.append(progress.bound))
    assert max(found) > 0


def test_every_schedule_keeps_the_turns_that_it_says():
    fabric = Fabric(servers=4, switches=2, ports_on_switch=1, ports_per_server=2)
    for seed in range(20):
        problem = with_set_ups(random_problem(seed, fabric, 25, density=0.1), seed % 4)
        plan = Planner.of(problem, 0, continuous=True, dark_slots=seed % 4).best_plan()
        known = Solution(plan.start, ports_of(problem, plan.booking))
        free = np.random.default_rng(seed).random(problem.n) < 0.3
        end = plan.start + problem.duration
        for pair in pairs_in_turn(problem, known, free, windows(problem, plan.makespan)):
            i, j = pair.first, pair.second
            apart_on_two = not pair.anywhere and known.ports[0, i] != known.ports[0, j]
            follows = pair.may_follow and plan.start[j] >= end[i] + pair.apart
            leads = pair.may_lead and plan.start[i] >= end[j] + pair.apart
            assert apart_on_two or follows or leads


def test_what_neighbourhoods_with_set_ups_find_keeps_every_rule():
    """Sample moe has too many pairs of transfers for one model."""
    problem, limits = sample("moe", 1.0)
    assert neighbourhoods_fit(problem)
    assert not may_be_few(problem)
    (answer,) = solved_by_cpsat([problem], replace(limits, time_limit_s=0.5))
    assert answer.message == ""
    assert solution_violation(problem, answer.solution) is None
    assert (
        answer.bound
        <= makespan(problem, answer.solution.start)
        <= makespan(problem, limits.solution.start)
    )
