"""Every exact engine finds what brute force finds, with and without set-ups, and limits keep what was found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.conftest import some
from tests.topox_core.schedule.fake_solvers import events_of_cpsat, solved_by_cpsat
from tests.topox_core.schedule.problem_builder import (
    Fabric,
    brute_force,
    build,
    makespan,
    random_problem,
)
from tests.topox_core.schedule.set_up_brute_force import (
    optimum as optimum_with_set_ups,
    random_case,
)
from tests.topox_core.small_graphs import sample_with
from topox_core.check.checker import check
from topox_core.errors import InputError
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.bounds.windows import critical_path, windows
from topox_core.schedule.circuits.held_ports import (
    Solution,
    ports_of,
    solution_violation,
    with_set_ups,
)
from topox_core.schedule.engines import mip, step_model
from topox_core.schedule.engines.engine import Answer, Limits, Progress
from topox_core.schedule.engines.highs import solve_highs
from topox_core.schedule.engines.printed import solve_printed
from topox_core.schedule.planning.list_scheduler import serial_schedule
from topox_core.schedule.planning.planner import prepare
from topox_core.schedule.problem import Problem
from topox_core.schedule.rcpsp.feasibility import violation
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings

FABRICS = {
    "full duplex": Fabric(servers=3, switches=2, ports_per_server=2),
    "full duplex, one switch": Fabric(servers=3),
    "full duplex, fewer ports than switches": Fabric(servers=3, switches=3, ports_per_server=2),
    "half duplex, d_S < N_OCS": Fabric(switches=2, ports_per_server=1, half_duplex=True),
    "half duplex, d_S = N_OCS": Fabric(switches=2, ports_per_server=2, half_duplex=True),
    "half duplex, d_S > N_OCS": Fabric(switches=2, ports_per_server=3, half_duplex=True),
    "eq. 6 shared": Fabric(servers=3, shares=True),
    "eq. 6 shared, half duplex": Fabric(
        switches=2, ports_per_server=2, half_duplex=True, shares=True
    ),
    "binding total": Fabric(servers=4, circuits_per_switch=2),
    "binding total, eq. 6 shared": Fabric(
        servers=4, switches=2, circuits_per_switch=1, ports_per_server=2, shares=True
    ),
    "two ports a switch": Fabric(servers=3, ports_per_server=2, ports_on_switch=2),
}


def solve_cpsat(problem: Problem, limits: Limits) -> Answer:
    return solved_by_cpsat([problem], limits)[0]


IN_PROCESS = (solve_highs, solve_printed)
ENGINES = (*IN_PROCESS, solve_cpsat)
by_engine = pytest.mark.parametrize("engine", ENGINES)
LIMITS = Limits(time_limit_s=60)
# Transfers of uneven length between single half-duplex ports: found at once, proved in no short time.
BUSY = random_problem(0, Fabric(servers=5, half_duplex=True), tasks=40, longest=9, density=0.05)
BUSY_START = serial_schedule(BUSY)


def proved(problem: Problem, engine: Any = solve_highs) -> int:
    """The optimum that an engine proves; its schedule must keep every rule."""
    answer = engine(problem, LIMITS)
    assert answer.stopped_by == "proof"
    assert violation(problem, answer.solution.start) is None
    assert answer.bound == makespan(problem, answer.solution.start)
    return answer.bound


def steps_of(problem: Problem) -> step_model.StepModel:
    """The step formulation by itself, within plain critical-path windows of a serial schedule."""
    horizon = makespan(problem, serial_schedule(problem))
    return step_model.StepModel(problem, windows(problem, horizon), critical_path(problem), horizon)


def solved(model: mip.Mip) -> mip.MipOutcome:
    return mip.solve(
        model,
        mip.Run(60.0, 0.0, 1.0),
        None,
        lambda: False,
        lambda values: None,
        lambda dual: False,
    )


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS.keys())
@pytest.mark.parametrize("ticks_per_slot", [1, 2, 3])
def test_every_model_and_engine_finds_what_trying_every_start_finds(fabric, ticks_per_slot):
    for seed in some(range(40, 48), quick=1):
        problem = random_problem(seed, fabric, 6, ticks_per_slot, 3, seed % 3 < 2, density=0.15)
        optimum, model = brute_force(problem), steps_of(problem)
        found = solved(model.build())
        assert found.ended == "optimal"
        assert makespan(problem, model.start(found.values)) == optimum
        # CP-SAT has no model of shared circuits.
        for engine in IN_PROCESS if fabric.shares else ENGINES:
            assert proved(problem, engine) == optimum


@pytest.mark.parametrize("half_duplex", [False, True])
def test_all_engines_prove_one_optimum_that_more_ports_never_raise(half_duplex):
    for seed in some(range(6), quick=1):
        optima = []
        for k in (1, 2, 3):
            fabric = Fabric(3, switches=k, ports_per_server=k, half_duplex=half_duplex)
            problem = random_problem(seed, fabric, tasks=11, density=0.1)
            (optimum,) = {proved(problem, engine) for engine in ENGINES}
            optima.append(optimum)
        assert optima == sorted(optima, reverse=True)


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_progress_tells_falling_makespans_with_schedules_and_rising_bounds(engine):
    problem = random_problem(11, Fabric(servers=3, half_duplex=True), tasks=12, density=0.08)
    heard: list[Progress] = []
    answer = engine(problem, LIMITS, on_progress=heard.append)
    starts, bounds = (
        [p.solution.start for p in heard if p.solution is not None],
        [p.bound for p in heard],
    )
    makespans = [makespan(problem, start) for start in starts]
    assert makespans == sorted(makespans, reverse=True)
    assert bounds == sorted(bounds)
    assert bounds[-1] == makespans[-1] == answer.bound
    assert not any(violation(problem, start) for start in starts)


@by_engine
def test_limits_keep_the_schedule_given_and_a_bound_that_meets_it_needs_no_search(engine):
    given = makespan(BUSY, BUSY_START)
    at_once = engine(BUSY, Limits(bound=given, solution=Solution(BUSY_START)))
    no_time = engine(BUSY, Limits(time_limit_s=0.0, solution=Solution(BUSY_START)))
    for answer in (at_once, no_time):
        assert np.array_equal(answer.solution.start, BUSY_START)
    assert (at_once.stopped_by, at_once.bound) == ("proof", given)
    assert no_time.stopped_by == "time_limit"
    assert critical_path(BUSY) <= no_time.bound <= given


@by_engine
def test_nothing_to_do_takes_no_time(engine):
    assert proved(build([]), engine) == proved(build([0, 0], edges=[(0, 1)]), engine) == 0


def test_what_can_never_fit_is_told_by_name_where_an_engine_would_begin_with_a_schedule():
    impossible = build([2, 1], {0: (0, 1)})
    impossible = replace(impossible, demand_amount=impossible.demand_amount * 2)
    with pytest.raises(InputError, match="task t0 needs 2 of out-ports of server 0, which has 1"):
        serial_schedule(impossible)


def test_stop_ends_the_search_and_keeps_the_best_schedule():
    heard: list[Progress] = []
    limits = replace(LIMITS, solution=Solution(BUSY_START))
    answer = solve_highs(BUSY, limits, stop=lambda: bool(heard), on_progress=heard.append)
    assert answer.stopped_by == "cancelled"
    assert violation(BUSY, answer.solution.start) is None
    known = [BUSY_START, *(p.solution.start for p in heard if p.solution is not None)]
    assert answer.bound < makespan(BUSY, answer.solution.start) == makespan(BUSY, known[-1])


def test_a_relative_gap_ends_the_search_early():
    answer = solve_highs(BUSY, Limits(time_limit_s=60, gap=0.9))
    assert answer.stopped_by == "gap"
    assert makespan(BUSY, answer.solution.start) - answer.bound <= 0.9 * makespan(
        BUSY, answer.solution.start
    )


def test_a_model_too_large_is_refused_with_its_size_before_it_is_built():
    wide = Fabric(servers=16, switches=8, ports_per_server=8)
    large = random_problem(1, wide, tasks=300, longest=40, density=0.01)
    with pytest.raises(InputError, match=r"the printed model would have [\d,]+ .* \(limit [\d,]+"):
        solve_printed(large, LIMITS)


def test_shared_circuits_and_too_many_tasks_are_refused_by_cp_sat_in_one_line():
    shared = random_problem(0, Fabric(shares=True), tasks=8)
    crowd = replace(build([1]), duration=np.zeros(120_001, np.int64))
    told = [event.message for event in events_of_cpsat([shared, crowd], Limits())]
    refusals = (
        "CP-SAT has no model of shared circuits (eq. 6 as printed): use highs",
        "CP-SAT takes at most 120,000 tasks and lowered transfers (got 120,001)",
    )
    for problem, words in zip(told, refusals, strict=True):
        assert problem.startswith(f"settings, field engine: {words}")
        assert "\n" not in problem


def test_a_wrong_schedule_to_start_from_is_not_believed():
    problem = build([2, 2], {0: (0, 1), 1: (0, 2)})
    with pytest.raises(ValueError, match="more than 1 of out-ports of server 0 in slot 0"):
        solve_highs(problem, Limits(solution=Solution(np.array([0, 0]))))


TWO_AND_TWO = build(
    [3, 2, 2, 2], {1: (0, 1), 2: (0, 2)}, [(0, 1)], devices={0: 0, 3: 0}, ticks_per_slot=2
)
ON_ONE_CIRCUIT = build(
    [2, 3, 2], {0: (0, 1), 1: (0, 1), 2: (0, 2)}, fabric=Fabric(servers=3, shares=True)
)


@pytest.mark.parametrize(
    ("problem", "start", "words"),
    [
        (TWO_AND_TWO, [0, 4, 6, 3], "None"),
        (TWO_AND_TWO, [-1, 4, 6, 3], "t0 starts before 0"),
        (TWO_AND_TWO, [0, 5, 8, 3], "t1 does not start on a slot boundary"),
        (TWO_AND_TWO, [0, 2, 6, 3], "t1 starts before t0 ends"),
        (TWO_AND_TWO, [0, 4, 6, 2], "t0 and t3 overlap on the device of server 0"),
        (TWO_AND_TWO, [0, 4, 4, 3], "more than 1 of out-ports of server 0 in slot 2"),
        (TWO_AND_TWO, [0.0, 4.0, 6.0, 3.0], "4 whole start ticks"),
        (TWO_AND_TWO, [0, 4, 6], "4 whole start ticks"),
        (ON_ONE_CIRCUIT, [0, 1, 4], "None"),
        (ON_ONE_CIRCUIT, [0, 1, 3], "out-ports of server 0 in slot 3"),
    ],
)
def test_every_kind_of_broken_schedule_is_told_by_name(problem, start, words):
    assert words in str(violation(problem, np.array(start)))


@pytest.mark.parametrize("fits", [True, False])
def test_a_model_whose_starts_are_all_fixed_is_decided_without_a_search(fits):
    nothing, none = np.zeros(0), np.zeros(0, np.int32)
    row, above = np.array([0.0 if fits else 1.0]), np.array([np.inf])
    fixed = mip.Mip(
        nothing, nothing, nothing, none > 0, row, above, np.zeros(2, np.int32), none, nothing, 7.0
    )
    assert solved(fixed).ended == ("optimal" if fits else "infeasible")


# From server 0 to 1, to 2 and to 1 again, a millisecond each, with a delay of two.
CHAIN_OF_THREE = with_set_ups(
    build([1, 1, 1], {0: (0, 1), 1: (0, 2), 2: (0, 1)}, [(0, 1), (1, 2)]), 2
)


def proved_ms(engine, problem: Problem, limits: Limits) -> float:
    """The optimum that an engine proves, after its schedule has been checked."""
    answer = engine(problem, limits)
    assert answer.stopped_by == "proof", answer.message
    assert solution_violation(problem, answer.solution) is None
    assert makespan(problem, answer.solution.start) == answer.bound
    return problem.ms(answer.bound)


def sample(name: str, delay_ms: float) -> tuple[Problem, Limits]:
    """A sample's problem with set-ups, and the best plan by rules to start from."""
    graph, cluster = sample_with(name, reconfiguration_ms=delay_ms)
    prepared = prepare(graph, cluster, Settings.of(engine="list", iteration="first"))
    plan, reduction = prepared.planner.best_plan(), prepared.reduction
    problem = with_set_ups(reduction.problem, reduction.dark_slots)
    ports = ports_of(problem, plan.booking)
    return problem, Limits(60.0, bound=reduction.bound.ticks, solution=Solution(plan.start, ports))


@pytest.mark.parametrize(
    ("engine", "name", "delay_ms", "shortest_ms"),
    [
        (solve_cpsat, "patience", 3, 17),
        pytest.param(solve_cpsat, "race", 1, 68.75, marks=pytest.mark.long),
        pytest.param(solve_cpsat, "race", 3, 71.5, marks=pytest.mark.long),
        pytest.param(solve_cpsat, "race", 10, 96, marks=pytest.mark.long),
    ],
)
def test_samples_are_proved_on_slots(engine, name, delay_ms, shortest_ms):
    assert proved_ms(engine, *sample(name, delay_ms)) == shortest_ms


def test_cp_sat_finds_the_best_of_all_orders_and_ports():
    assert (
        proved_ms(solve_cpsat, CHAIN_OF_THREE, Limits(60.0))
        == optimum_with_set_ups(CHAIN_OF_THREE)
        == 7
    )
    for seed in some(range(220), quick=10):
        problem = random_case(seed)
        assert proved_ms(solve_cpsat, problem, Limits(60.0)) == problem.ms(
            optimum_with_set_ups(problem)
        ), seed


def test_cp_sat_finds_the_shortest_period_of_all_orders_and_ports():
    for seed in some(range(220), quick=12):
        problem = repeating(random_case(seed))
        optimum = optimum_with_set_ups(problem)
        assert proved_ms(solve_cpsat, problem, Limits(60.0)) == problem.ms(optimum), seed
        assert best_bound(problem, problem.network.dark_slots).ticks <= optimum


def repeating(problem: Problem) -> Problem:
    return replace(problem, network=replace(problem.network, repeats=True))


def test_cp_sat_proves_a_case_that_another_solver_once_got_wrong():
    # Three transfers of 4, 1 and 3 slots from 1 to 0, two ports on one switch, a delay of 2: with
    # presolve HiGHS 1.15.1 called 6 optimal.
    fabric = Fabric(servers=2, ports_on_switch=2, ports_per_server=2)
    problem = with_set_ups(build([4, 1, 3], dict.fromkeys(range(3), (1, 0)), fabric=fabric), 2)
    assert proved_ms(solve_cpsat, problem, Limits(60.0)) == optimum_with_set_ups(problem) == 4


# Two circuits at most (eq. 7). While 0-1 and 2-3 carry, nothing else is set up.
FULL_SWITCH = with_set_ups(
    build(
        [4, 4, 1, 1],
        {0: (0, 1), 1: (2, 3), 2: (4, 5), 3: (4, 1)},
        fabric=Fabric(servers=6, circuits_per_switch=2),
    ),
    2,
)


@pytest.mark.parametrize(
    ("problem", "start", "ports", "words"),
    [
        (CHAIN_OF_THREE, [0, 3, 6], np.zeros((3, 3), np.int32), "None"),
        (CHAIN_OF_THREE, [0, 2, 6], np.zeros((3, 3), np.int32), "before its port is free of t0"),
        (CHAIN_OF_THREE, [0, 3, 6], None, "needs a switch"),
        (CHAIN_OF_THREE, [0, 3, 6], np.eye(3, dtype=np.int32), "no such port"),
        (FULL_SWITCH, [0, 0, 4, 7], np.zeros((3, 4), np.int32), "None"),
        (FULL_SWITCH, [0, 0, 4, 6], np.zeros((3, 4), np.int32), "before its port is free"),
        (FULL_SWITCH, [0, 0, 3, 7], np.zeros((3, 4), np.int32), "more than 2"),
    ],
)
def test_a_solution_is_checked_port_by_port_and_switch_by_switch(problem, start, ports, words):
    assert words in str(solution_violation(problem, Solution(np.array(start), ports)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "clock", "shortest_ms"), [("race", "slots", 71.5), ("patience", "auto", 18.0)]
)
def test_a_race_ends_with_the_plan_that_cpsat_proved_and_calls_nobody_a_liar(
    name, clock, shortest_ms
):
    graph, cluster = sample_with(name, reconfiguration_ms=3.0)
    settings = Settings.of(
        switching="planned", clock=clock, engine="cpsat", threads=1, time_limit_s=60.0
    )
    result = schedule(graph, cluster, settings)
    assert (result.status, result.stopped_by, result.message) == ("optimal", "proof", "")
    assert (result.makespan_ms, result.bound_ms) == pytest.approx((shortest_ms,) * 2, rel=1e-9)
    assert check(graph, cluster, to_record(result)).ok
