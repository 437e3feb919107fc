"""The race: whatever a child does, the plan stays valid and the bound below it; only speed is lost."""

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.patience import wait_until
from tests.topox_core.schedule.fake_solvers import READY, SLEEP, done, progress, saying
from tests.topox_core.schedule.problem_builder import (
    Fabric,
    build,
    makespan,
    planner_of,
    random_problem,
    searched,
)
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.engine import Limits, Progress
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.planning.list_scheduler import serial_schedule
from topox_core.schedule.planning.planner import Planner, SchedulePlan
from topox_core.schedule.problem import Problem
from topox_core.schedule.race.portfolio import Portfolio, Team
from topox_core.schedule.race.proof import root_phase
from topox_core.schedule.rcpsp.feasibility import violation
from topox_core.schedule.source import TraceSource


def first_plan(planner: Planner, idle: int = 0) -> SchedulePlan:
    """A plan to start from; ``idle`` slots pass before anything in it starts."""
    start = serial_schedule(planner.problem) + idle
    source = TraceSource("rules", "serial schedule")
    return planner.with_circuits(start, source, improve=False)


# Far too hard to prove while a test lasts.
PROBLEM = random_problem(0, Fabric(servers=5, half_duplex=True), tasks=120, longest=9, density=0.02)
PLANNER = planner_of(PROBLEM)
FIRST = first_plan(PLANNER)
GIVEN = FIRST.makespan


def racing(
    engine: str,
    command: tuple[str, ...],
    time_limit_s: float = 600.0,
    threads: int = 2,
    plan: SchedulePlan = FIRST,
) -> Portfolio:
    """A race in which every exact engine is played by this child."""
    limits = Limits(time_limit_s, bound=PLANNER.bound, threads=threads)
    played = partial(SolverProcess, command=command)
    return Portfolio(PLANNER, plan, engine, limits, start_process=played)


def raced(race: Portfolio, until: Callable[[], object] = lambda: False) -> Portfolio:
    """Poll until the race ends, or until something holds."""

    def over() -> object:
        race.poll()
        return not race.running or until()

    wait_until(over)
    return race


def sound(race: Portfolio) -> None:
    """What a race says holds up: a valid plan, a bound below it, a trace that only improves."""
    problem = race.planner.problem
    assert violation(problem, race.plan.start) is None
    assert race.plan.makespan == makespan(problem, race.plan.start)
    assert race.bound <= race.plan.makespan
    makespans, bounds = zip(*((p.incumbent_ms, p.bound_ms) for p in race.trace), strict=True)
    assert list(makespans) == sorted(makespans, reverse=True)
    assert list(bounds) == sorted(bounds)
    assert "\n" not in race.message


BREAKS_A_RULE = np.zeros(PROBLEM.n, np.int64)
FAULTS = {
    "dies before a word": (sys.executable, "-c", "raise SystemExit(7)"),
    "dies after a word": saying(READY, then="os._exit(9)"),
    "is killed": saying(READY, then="os.kill(os.getpid(), 9)"),
    "says nothing of the protocol": saying(READY, b"Segmentation fault\n", then=SLEEP),
    "says half a word": saying(READY, progress(0)[:-20]),
    "gives a point that breaks a rule": saying(READY, progress(0, BREAKS_A_RULE), then=SLEEP),
    "gives a point of the wrong length": saying(
        READY, progress(0, np.zeros(3, np.int64)), then=SLEEP
    ),
    "gives a bound above its schedule": saying(READY, progress(GIVEN + 1), then=SLEEP),
    "ends with a point that breaks a rule": saying(READY, done(GIVEN, BREAKS_A_RULE)),
    "says much that is nothing": saying(READY, b"[" * 100_000, then=SLEEP),
}


@pytest.mark.parametrize("command", FAULTS.values(), ids=FAULTS.keys())
def test_a_child_that_fails_costs_auto_its_help_and_an_engine_asked_for_by_name_its_proof(command):
    race = racing("auto", command)
    raced(race, until=lambda: race.trouble and race.plan.makespan < GIVEN)  # the search went on
    race.cancel()
    named = [raced(racing("highs", command, threads=threads)) for threads in (1, 2)]
    for one in (raced(race), *named):
        sound(one)
        assert one.bound == PLANNER.bound
        assert one.trouble
        assert one.trouble in one.message
    assert race.plan.makespan < GIVEN
    assert [one.stopped_by for one in (race, *named)] == ["cancelled", "failed", "failed"]


HOLLOW = {
    "claims a proof without a bound": saying(READY, done(1, serial_schedule(PROBLEM))),
    "claims a proof without anything": saying(READY, done(0)),
}
HANGING = {
    "hangs once it is ready": saying(READY, then=SLEEP),
    "hangs once it is asked": saying(then=SLEEP),
    "hangs from the beginning": (sys.executable, "-c", f"import time; {SLEEP}"),
}


@pytest.mark.parametrize("engine", ["auto", "highs"])
@pytest.mark.parametrize("does", [*HOLLOW, *HANGING])
def test_a_claim_that_no_bound_supports_is_not_believed_and_a_child_that_hangs_is_ended(
    does, engine
):
    race = raced(racing(engine, (HOLLOW | HANGING)[does], time_limit_s=0.1))
    sound(race)
    assert race.bound == PLANNER.bound
    assert race.stopped_by == "time_limit" or (race.stopped_by == "failed" and does in HOLLOW)
    assert "would be the optimum" not in race.message


def test_a_bound_that_a_schedule_found_elsewhere_refutes_is_taken_back():
    # Below the schedule the child was given, above what there is.
    idle = first_plan(PLANNER, 100)
    told = saying(READY, progress(idle.makespan - 1), then=SLEEP)
    race = racing("auto", told, plan=idle)
    raced(race, until=lambda: race.plan.makespan < idle.makespan - 1)
    race.cancel()
    raced(race)
    assert race.plan.makespan < idle.makespan - 1
    assert race.bound <= race.plan.makespan
    assert race.stopped_by != "proof"


@pytest.mark.parametrize("engine", ["cpsat", "highs"])
@pytest.mark.long
def test_a_better_schedule_reaches_the_engine_in_the_child(engine):
    problem = random_problem(
        0, Fabric(servers=5, half_duplex=True), tasks=50, longest=9, density=0.04
    )
    planner = planner_of(problem)
    better = searched(planner, first_plan(planner), 0, 2_000)
    # Told that nothing can be shorter than the better schedule, the engine is done as soon as it
    # hears of it.
    limits = Limits(40.0, bound=better.makespan, solution=Solution(serial_schedule(problem)))
    with closing(SolverProcess(engine, problem, limits)) as process:
        process.offer(Solution(better.start))
        wait_until(lambda: not process.running)
    assert (process.answer.stopped_by, process.answer.bound) == ("proof", better.makespan)
    assert (
        makespan(problem, process.answer.solution.start)
        == better.makespan
        < makespan(problem, limits.solution.start)
    )


# A child that answers every offer with the offered schedule as its own.
ECHO = """
from dataclasses import replace
told = pickle.loads({told!r})
while True:
    told = replace(told, solution=pickle.load(sys.stdin.buffer))
    os.write(1, pickle.dumps(told))
"""


def test_what_the_search_finds_is_offered_to_the_child_once_and_checked_by_it():
    echo = saying(READY, then=ECHO.format(told=progress(0, serial_schedule(PROBLEM))))
    heard: list[int] = []

    class Listening(SolverProcess):
        def poll(self) -> list[Progress]:
            news = super().poll()
            heard.extend(
                makespan(PROBLEM, p.solution.start) for p in news if p.solution is not None
            )
            return news

    limits, played = Limits(600.0, bound=PLANNER.bound, threads=2), partial(Listening, command=echo)
    race = Portfolio(PLANNER, FIRST, "auto", limits, start_process=played)
    raced(race, lambda: heard)
    race.close()
    assert heard == sorted(set(heard), reverse=True)
    assert heard[0] < GIVEN


def test_the_best_plan_and_bound_of_all_are_kept_and_a_closed_gap_ends_the_race():
    best = searched(PLANNER, FIRST, 0, 300)
    shortest = best.makespan
    told = (progress(PLANNER.bound, best.start), progress(shortest - 1), progress(shortest))
    race = raced(racing("highs", saying(READY, *told, then=SLEEP), threads=1))
    sound(race)
    assert (race.stopped_by, race.plan.makespan, race.bound) == ("proof", shortest, shortest)
    assert race.trace[-1].source.name == "child"


def test_a_bound_that_counts_dark_time_is_not_put_to_engines_that_know_of_none():
    # From one server's single port to five others, over and over: four changes at least, however
    # they are ordered.
    problem = build([2] * 10, {j: (0, 1 + j % 5) for j in range(10)}, fabric=Fabric(servers=6))
    planner = Planner.of(problem, 20, continuous=True, dark_slots=4)
    plan = planner.best_plan()
    bound = root_phase(planner, plan, "", Limits(1.0, bound=planner.bound))[1].ticks
    assert bound == 20 + 4 * 4 > planner.reduced(plan)[1] == 20

    def start_process(engine: str, reduced: Problem, limits: Limits) -> SolverProcess:
        assert limits.bound <= makespan(reduced, limits.solution.start)
        return SolverProcess(engine, reduced, limits, saying(READY, then=SLEEP))

    worse, limits = replace(plan, makespan=plan.makespan + 1), Limits(1.0, bound=bound, threads=2)
    for engine, said in (
        ("auto", ""),
        ("highs", "No exact engine that takes part knows set-ups here."),
    ):
        race = raced(Portfolio(planner, worse, engine, limits, start_process=start_process))
        # Where saving changes comes to the bound, nothing is left that an engine could have said.
        assert race.bound == bound and race.message == (said if race.plan.makespan > bound else "")


def test_a_gap_that_is_wide_enough_starts_nobody():
    limits = Limits(600.0, gap=1.0, bound=PLANNER.bound)
    race = Portfolio(PLANNER, FIRST, "auto", limits, start_process=None)
    race.poll()
    assert (race.running, race.stopped_by) == (False, "gap")


@pytest.mark.parametrize(
    ("engine", "threads", "shares", "team"),
    [
        ("auto", 1, False, Team("cpsat", True)),
        ("auto", 2, False, Team("cpsat", True)),
        ("auto", 4, False, Team("cpsat", True)),
        ("auto", 4, True, Team("highs", True)),
        ("highs", 2, False, Team("highs", True)),
        ("highs", 1, False, Team("highs", False)),
        ("cpsat", 2, False, Team("cpsat", True)),
        ("printed", 4, False, Team("printed", False)),
    ],
)
def test_who_takes_part(engine, threads, shares, team):
    assert Team.of(engine, random_problem(0, Fabric(shares=shares), tasks=12), threads) == team


@pytest.mark.parametrize("continuous", [False, True])
def test_the_opening_is_sound_and_never_worse(continuous):
    for seed in range(4):
        fabric = Fabric(servers=4, half_duplex=seed % 2 == 0)
        problem = random_problem(seed, fabric, tasks=25, density=0.08)
        planner = planner_of(problem, continuous)
        plan = first_plan(planner)
        limits = Limits(5.0, bound=planner.bound)
        better, raised, _ = root_phase(planner, plan, "the cheap bound", limits)
        assert better.cost <= plan.cost
        assert violation(problem, better.start) is None
        assert planner.bound <= raised.ticks <= better.makespan
        assert raised.words
