"""CP-SAT's model is the reduced problem: brute force, HiGHS and the model as printed find the same optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import some
from tests.patience import wait_until
from tests.topox_core.schedule.fake_solvers import events_of_cpsat, modelled, solved_by_cpsat
from tests.topox_core.schedule.problem_builder import Fabric, brute_force, build, random_problem
from tests.topox_core.schedule.test_exact_engines import FABRICS, proved
from topox_core.errors import InputError
from topox_core.schedule.bounds.windows import critical_path, serial_schedule
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.printed import solve_printed
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.feasibility import violation
from topox_core.schedule.problem import Problem

OWN_CIRCUITS = {name: fabric for name, fabric in FABRICS.items() if not fabric.shares}


def makespan(problem: Problem, start: np.ndarray) -> int:
    return int((start + problem.duration).max(initial=0))


def tiny_problems() -> list[tuple[str, Problem]]:
    return [
        (
            f"{name}, {ticks} ticks a slot, seed {seed}",
            random_problem(seed, fabric, tasks=6, ticks_per_slot=ticks, density=0.15),
        )
        for name, fabric in OWN_CIRCUITS.items()
        for ticks in (1, 2, 3)
        for seed in some(range(60, 62), quick=1)
    ]


@pytest.mark.sampled
def test_the_model_s_optimum_is_what_trying_every_start_finds():
    named = tiny_problems()
    horizons = [makespan(problem, serial_schedule(problem)) for _, problem in named]
    found = modelled(
        ("shortest", problem, horizon)
        for (_, problem), horizon in zip(named, horizons, strict=True)
    )
    for (name, problem), outcome in zip(named, found, strict=True):
        assert outcome.ended == "optimal", name
        assert violation(problem, outcome.start) is None, name
        assert outcome.bound == makespan(problem, outcome.start) == brute_force(problem), name


@pytest.mark.sampled
def test_any_schedule_is_found_up_to_the_optimum_and_none_below_it():
    named = tiny_problems()[::2]
    optima = [brute_force(problem) for _, problem in named]
    asked = [
        ("any", problem, optimum - less)
        for (_, problem), optimum in zip(named, optima, strict=True)
        for less in (0, 1)
    ]
    found = modelled(asked)
    for (name, problem), optimum, at, below in zip(
        named, optima, found[::2], found[1::2], strict=True
    ):
        assert violation(problem, at.start) is None, name
        assert makespan(problem, at.start) == optimum, name
        assert (below.ended, below.start) == ("infeasible", None), name


@pytest.mark.sampled
def test_every_exact_engine_proves_the_same_optimum():
    problems = [
        random_problem(seed, fabric, tasks=9, ticks_per_slot=1 + seed % 2, density=0.12)
        for fabric in OWN_CIRCUITS.values()
        for seed in some(range(70, 72), quick=1)
    ]
    for problem, answer in zip(
        problems, solved_by_cpsat(problems, Limits(time_limit_s=60)), strict=True
    ):
        assert answer.stopped_by == "proof"
        assert violation(problem, answer.start) is None
        assert (
            answer.bound
            == answer.makespan(problem)
            == proved(problem)
            == proved(problem, solve_printed)
        )


def test_scaling_all_durations_scales_the_optimum():
    problem = random_problem(3, FABRICS["full duplex"], tasks=10)
    longer = replace(problem, duration=problem.duration * 7, ticks_per_slot=7)
    one, other = solved_by_cpsat([problem, longer], Limits(time_limit_s=60))
    assert other.bound == 7 * one.bound


def test_a_schedule_to_start_from_and_a_bound_that_meet_need_no_search():
    problem = random_problem(
        0, Fabric(servers=5, half_duplex=True), tasks=40, longest=9, density=0.05
    )
    start = serial_schedule(problem)
    (answer,) = solved_by_cpsat([problem], Limits(bound=makespan(problem, start), start=start))
    assert (answer.stopped_by, answer.bound) == ("proof", makespan(problem, start))
    assert np.array_equal(answer.start, start)


def test_the_time_limit_keeps_the_schedule_and_a_valid_bound():
    problem = random_problem(
        0, Fabric(servers=5, half_duplex=True), tasks=40, longest=9, density=0.05
    )
    start = serial_schedule(problem)
    (answer,) = solved_by_cpsat([problem], Limits(time_limit_s=0.0, start=start))
    assert answer.stopped_by == "time_limit"
    assert np.array_equal(answer.start, start)
    assert critical_path(problem) <= answer.bound <= answer.makespan(problem)


def test_nothing_to_do_takes_no_time_and_what_can_never_fit_is_told_by_name():
    impossible = build([2, 1], {0: (0, 1)})
    impossible = replace(impossible, demand_amount=impossible.demand_amount * 2)
    empty, instant, never = solved_by_cpsat(
        [build([]), build([0, 0], edges=[(0, 1)]), impossible], Limits(time_limit_s=60)
    )
    assert [(a.bound, a.stopped_by) for a in (empty, instant)] == [(0, "proof")] * 2
    assert (never.infeasible, never.start) == (True, None)
    assert never.message == "task t0 needs 2 of out-ports of server 0, which has 1"


def test_shared_circuits_and_too_many_tasks_are_refused_in_one_line():
    shared = random_problem(0, Fabric(shares=True), tasks=8)
    crowd = replace(build([1]), duration=np.zeros(120_001, np.int64))
    told = [event["input_error"] for event in events_of_cpsat([shared, crowd], Limits())]
    assert [(place["file"], place["field"]) for place in told] == [("settings", "engine")] * 2
    assert told[0]["problem"].startswith(
        "CP-SAT has no model of shared circuits (eq. 6 as printed): use highs"
    )
    assert told[1]["problem"].startswith(
        "CP-SAT takes at most 120,000 tasks and lowered transfers (got 120,001)"
    )
    assert not any("\n" in place["problem"] for place in told)


def test_the_refusal_reaches_whoever_asked_as_bad_input():
    problem = random_problem(0, Fabric(shares=True), tasks=8)
    with (
        SolverProcess("cpsat", problem, Limits()) as process,
        pytest.raises(InputError, match="engine: CP-SAT has no model of shared circuits"),
    ):
        wait_until(lambda: process.answer is not None)
