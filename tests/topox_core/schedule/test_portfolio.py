"""The race: whatever a child does, the plan stays valid and the bound below it; only speed is lost."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.conftest import long_after, some
from tests.patience import PATIENCE_S
from tests.topox_core.schedule.fake_solvers import done, progress, saying
from tests.topox_core.schedule.problem_builder import Fabric, build, random_problem, searched
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.bounds.windows import serial_schedule
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.feasibility import violation
from topox_core.schedule.planner import Planner, SchedulePlan
from topox_core.schedule.portfolio import Portfolio, Team
from topox_core.schedule.problem import Problem
from topox_core.schedule.root_phase import root_phase
from topox_core.schedule.source import TraceSource

READY = '{"event":"ready"}'
SLEEP = "time.sleep(600)"
DEPART = (sys.executable, "-c", "raise SystemExit(7)")


def hard_problem() -> Problem:
    """Far too hard to prove while a test lasts."""
    return random_problem(
        0, Fabric(servers=5, half_duplex=True), tasks=120, longest=9, density=0.02
    )


def planner_of(problem: Problem, continuous: bool = False) -> Planner:
    return Planner.of(problem, best_bound(problem, 0).ticks, continuous, dark_slots=0)


def makespan(problem: Problem, start: np.ndarray) -> int:
    return int((start + problem.duration).max())


def first_plan(planner: Planner) -> SchedulePlan:
    start = serial_schedule(planner.problem)
    source = TraceSource("rules", "serial schedule")
    return planner.with_circuits(start, makespan(planner.problem, start), source, improve=False)


def playing(*command: str) -> Callable[[str, Problem, Limits], SolverProcess]:
    """Every exact engine is played by this child."""
    return partial(SolverProcess, command=command)


def raced(race: Portfolio, until: Callable[[], object] = lambda: False) -> Portfolio:
    """Poll until the race ends, or until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while race.running and not until():
        race.poll()
        time.sleep(0.01)
        if time.monotonic() > deadline:
            race.close()
            raise AssertionError("waited in vain")
    return race


def sound(race: Portfolio) -> None:
    """What a race says holds up: a valid plan, a bound below it, a trace that only improves."""
    problem = race.planner.problem
    assert violation(problem, race.plan.start) is None
    assert race.plan.makespan == makespan(problem, race.plan.start)
    assert race.bound <= race.plan.makespan
    makespans, bounds = [p.incumbent_ms for p in race.trace], [p.bound_ms for p in race.trace]
    assert makespans == sorted(makespans, reverse=True)
    assert bounds == sorted(bounds)
    assert "\n" not in race.message


@pytest.fixture(scope="module", autouse=True)
def compiled_code() -> None:
    """Races here last a second: what they run is compiled before."""
    for continuous in (False, True):
        planner = planner_of(PROBLEM, continuous)
        searched(planner, first_plan(planner), 0, 1)


def infeasible_point(problem: Problem) -> np.ndarray:
    return np.zeros(problem.n, np.int64)


PROBLEM = hard_problem()
GIVEN = makespan(PROBLEM, serial_schedule(PROBLEM))
FAULTS = {
    "dies before a word": DEPART,
    "dies after a word": saying(READY, then="os._exit(9)"),
    "is killed": saying(READY, then="os.kill(os.getpid(), 9)"),
    "says nothing of the protocol": saying(READY, "Segmentation fault", then=SLEEP),
    "says half a line": saying(READY, then="print('{\"event\": \"incumb', end='', flush=True)"),
    "gives a point that breaks a rule": saying(
        READY, progress(0, infeasible_point(PROBLEM)), then=SLEEP
    ),
    "gives a point of the wrong length": saying(
        READY, progress(0, np.zeros(3, np.int64)), then=SLEEP
    ),
    "gives a bound above its schedule": saying(READY, progress(GIVEN + 1), then=SLEEP),
    "ends with a point that breaks a rule": saying(READY, done(GIVEN, infeasible_point(PROBLEM))),
    "ends in the middle of a large line": saying(READY, "[" * 100_000, then=SLEEP),
}
HOLLOW = {
    "claims a proof without a bound": saying(READY, done(1, serial_schedule(PROBLEM))),
    "claims a proof without anything": saying(READY, done(0)),
    "claims that nothing is feasible": saying(READY, done(0, infeasible=True)),
}
by_fault = pytest.mark.parametrize("command", FAULTS.values(), ids=FAULTS.keys())
by_claim = pytest.mark.parametrize("command", HOLLOW.values(), ids=HOLLOW.keys())


@by_fault
def test_a_child_that_fails_costs_auto_nothing_but_its_help(command):
    planner = planner_of(PROBLEM)
    limits = Limits(600.0, bound=planner.bound, threads=2)
    race = Portfolio(planner, first_plan(planner), "auto", limits, start_process=playing(*command))
    raced(race, until=lambda: race.trouble and race.plan.makespan < GIVEN)  # the search went on
    race.cancel()
    raced(race)
    sound(race)
    assert race.plan.makespan < GIVEN
    assert race.bound == planner.bound
    assert race.stopped_by == "cancelled"
    assert race.trouble
    assert race.trouble in race.message


@by_fault
def test_an_engine_asked_for_by_name_that_fails_ends_the_solve_with_the_plan_there_is(command):
    planner = planner_of(PROBLEM)
    for threads in (1, 2):
        race = Portfolio(
            planner,
            first_plan(planner),
            "highs",
            Limits(600.0, bound=planner.bound, threads=threads),
            start_process=playing(*command),
        )
        raced(race)
        sound(race)
        assert race.plan.makespan <= GIVEN
        assert race.bound == planner.bound
        assert race.stopped_by == "failed"
        assert race.trouble in race.message


@by_claim
@pytest.mark.parametrize("engine", ["auto", "highs"])
def test_a_claim_that_no_bound_supports_is_not_believed(engine, command):
    planner = planner_of(PROBLEM)
    race = Portfolio(
        planner,
        first_plan(planner),
        engine,
        Limits(1.0, bound=planner.bound, threads=2),
        start_process=playing(*command),
    )
    raced(race)
    sound(race)
    assert race.bound == planner.bound
    assert race.stopped_by in ("time_limit", "failed")
    assert "would be the optimum" not in race.message


def test_a_bound_that_a_schedule_found_elsewhere_refutes_is_taken_back():
    planner = planner_of(PROBLEM)
    found = searched(planner, first_plan(planner), 0, 400).makespan
    assert found < GIVEN - 1
    told = saying(
        READY, progress(GIVEN - 1), then=SLEEP
    )  # below the schedule the child was given, above what there is
    limits = Limits(1.5, bound=planner.bound, threads=2)
    race = raced(
        Portfolio(planner, first_plan(planner), "auto", limits, start_process=playing(*told))
    )
    assert race.plan.makespan < GIVEN - 1
    assert race.bound <= race.plan.makespan
    assert race.stopped_by != "proof"


@pytest.mark.parametrize("engine", ["auto", "highs"])
def test_a_child_that_hangs_past_its_limit_is_ended(engine):
    planner = planner_of(PROBLEM)
    for command in (
        saying(READY, then=SLEEP),
        saying(then=SLEEP),
        (sys.executable, "-c", f"import time; {SLEEP}"),
    ):
        race = Portfolio(
            planner,
            first_plan(planner),
            engine,
            Limits(0.3, bound=planner.bound, threads=2),
            start_process=playing(*command),
        )
        raced(race)
        sound(race)
        assert race.stopped_by == "time_limit"


@pytest.mark.parametrize("engine", ["auto", "highs"])
def test_cancel_ends_a_race_whose_child_does_not_listen(engine):
    planner = planner_of(PROBLEM)
    race = Portfolio(
        planner,
        first_plan(planner),
        engine,
        Limits(600.0, bound=planner.bound, threads=2),
        start_process=playing(*saying(READY, then=SLEEP)),
    )
    raced(race, until=lambda: race.plan.makespan < GIVEN)
    race.cancel()
    raced(race)
    sound(race)
    assert race.stopped_by == "cancelled"
    assert race.plan.makespan < GIVEN


@pytest.mark.parametrize("engine", long_after(1, ["cpsat", "highs"]))
@pytest.mark.long
def test_a_better_schedule_reaches_the_engine_in_the_child(engine):
    problem = random_problem(
        0, Fabric(servers=5, half_duplex=True), tasks=50, longest=9, density=0.04
    )
    planner = planner_of(problem)
    better = searched(planner, first_plan(planner), 0, 2_000)
    assert better.makespan < makespan(problem, serial_schedule(problem))
    # Told that nothing can be shorter than the better schedule, the engine is done as soon as it
    # hears of it.
    limits = Limits(40.0, bound=better.makespan, start=serial_schedule(problem))
    with SolverProcess(engine, problem, limits) as process:
        process.offer(Solution(better.reduced_start))
        deadline = time.monotonic() + PATIENCE_S
        while process.running and time.monotonic() < deadline:
            time.sleep(0.01)
        answer = process.answer
    assert answer is not None, "it did not hear of it"
    assert (answer.stopped_by, answer.bound) == ("proof", better.makespan)
    assert answer.makespan(problem) == better.makespan


def test_what_the_search_finds_is_offered_to_the_child_once_and_checked_by_it():
    planner = planner_of(PROBLEM)
    # A child that answers every offer with the offered schedule as its own.
    echo = (
        "import json\nfor line in sys.stdin:\n    offered = json.loads(line)['start']\n"
        "    print(json.dumps({'event': 'incumbent', 'elapsed_s': 0.1, 'incumbent': None, 'bound': 0, 'source': {'family': 'exact', "
        "'name': 'echo'}, 'start': offered}), flush=True)"
    )
    processes: list[SolverProcess] = []
    heard: list[int] = []

    def start_process(engine: str, problem: Problem, limits: Limits) -> SolverProcess:
        processes.append(SolverProcess(engine, problem, limits, saying(READY, then=echo)))
        poll = processes[0].poll

        def listening():  # type: ignore[no-untyped-def]
            news = poll()
            heard.extend(makespan(problem, p.start) for p in news if p.start is not None)
            return news

        processes[0].poll = listening  # type: ignore[method-assign]
        return processes[0]

    limits = Limits(600.0, bound=planner.bound, threads=2)
    race = raced(
        Portfolio(planner, first_plan(planner), "auto", limits, start_process=start_process),
        lambda: heard,
    )
    race.close()
    assert heard == sorted(set(heard), reverse=True)
    assert heard[0] < GIVEN


def test_the_best_plan_and_bound_of_all_are_kept_and_a_closed_gap_ends_the_race():
    problem = hard_problem()
    planner = planner_of(problem)
    best = searched(planner, first_plan(planner), 0, 300)
    told = saying(
        READY,
        progress(planner.bound, best.start),
        progress(best.makespan - 1),
        progress(best.makespan),
        then=SLEEP,
    )
    limits = Limits(600.0, bound=planner.bound, threads=1)
    race = raced(
        Portfolio(planner, first_plan(planner), "highs", limits, start_process=playing(*told))
    )
    sound(race)
    assert (race.stopped_by, race.plan.makespan, race.bound) == (
        "proof",
        best.makespan,
        best.makespan,
    )
    assert race.trace[-1].source.name == "child"


def test_a_bound_that_counts_dark_time_is_not_put_to_engines_that_know_of_none():
    # From one server's single port to five others, over and over: four changes at least, however
    # they are ordered.
    transfers = {j: (0, 1 + j % 5) for j in range(10)}
    planner = Planner.of(
        build([2] * 10, transfers, fabric=Fabric(servers=6)), 20, continuous=True, dark_slots=4
    )
    plan = planner.best_plan()
    bound = root_phase(planner, plan, "", Limits(1.0, bound=planner.bound)).bound
    assert bound == 20 + 4 * 4 > plan.reduced_makespan == 20
    given: list[Limits] = []

    def start_process(engine: str, problem: Problem, limits: Limits) -> SolverProcess:
        given.append(limits)
        return SolverProcess(engine, problem, limits, saying(READY, then=SLEEP))

    worse = replace(plan, makespan=plan.makespan + 1)
    for engine in ("auto", "highs"):
        race = raced(
            Portfolio(
                planner,
                worse,
                engine,
                Limits(0.2, bound=bound, threads=2),
                start_process=start_process,
            )
        )
        assert race.message == ""
        assert race.bound == bound
    for limits in given:
        assert limits.bound <= makespan(planner.problem, limits.start)


def test_the_bound_that_steers_the_search_is_told():
    planner = Planner.of(PROBLEM, 1, continuous=False, dark_slots=0)
    with_tails, found = planner.with_ancestor_tails()
    limits = Limits(600.0, bound=planner.bound, threads=2)
    race = Portfolio(
        planner,
        first_plan(planner),
        "auto",
        limits,
        start_process=playing(*saying(READY, then=SLEEP)),
    )
    raced(race, until=lambda: race.bound > planner.bound)
    race.close()
    assert race.bound == found.ticks == with_tails.bound
    assert race.bound_by == found.text
    assert "heads and tails" in {point.source.name for point in race.trace}
    sound(race)


def test_a_gap_that_is_wide_enough_starts_nobody():
    planner = planner_of(PROBLEM)

    def nobody(engine: str, problem: Problem, limits: Limits) -> SolverProcess:
        raise AssertionError("no child was needed")

    race = Portfolio(
        planner,
        first_plan(planner),
        "auto",
        Limits(600.0, gap=1.0, bound=planner.bound),
        start_process=nobody,
    )
    race.poll()
    assert not race.running
    assert race.stopped_by == "gap"


@pytest.mark.sampled
@pytest.mark.long
def test_a_refusal_by_the_only_engine_leaves_the_plan_and_says_why():
    shared = random_problem(0, Fabric(servers=4, shares=True), tasks=60, longest=9, density=0.02)
    planner = planner_of(shared)
    for threads in some((2, 1), quick=1):
        race = Portfolio(
            planner,
            first_plan(planner),
            "cpsat",
            Limits(30.0, bound=planner.bound, threads=threads),
        )
        raced(race)
        sound(race)
        assert race.message.startswith("No exact solve: CP-SAT has no model of shared circuits")
        assert race.stopped_by == "heuristic"


@pytest.mark.parametrize(
    ("engine", "threads", "shares", "team"),
    [
        ("auto", 1, False, Team(("cpsat",), True)),
        ("auto", 2, False, Team(("cpsat",), True)),
        ("auto", 4, False, Team(("cpsat", "highs"), True)),
        ("auto", 4, True, Team(("highs",), True)),
        ("highs", 2, False, Team(("highs",), True)),
        ("highs", 1, False, Team(("highs",), False)),
        ("cpsat", 2, False, Team(("cpsat",), True)),
        ("printed", 4, False, Team(("printed",), False)),
    ],
)
def test_who_takes_part(engine, threads, shares, team):
    assert Team.of(engine, random_problem(0, Fabric(shares=shares), tasks=12), threads) == team


@pytest.mark.parametrize("continuous", [False, True])
def test_the_opening_is_sound_and_never_worse(continuous):
    for seed in range(8):
        problem = random_problem(
            seed, Fabric(servers=4, half_duplex=seed % 2 == 0), tasks=25, density=0.08
        )
        planner = planner_of(problem, continuous)
        plan = first_plan(planner)
        known = root_phase(planner, plan, "the cheap bound", Limits(5.0, bound=planner.bound))
        assert known.plan.cost <= plan.cost
        assert violation(problem, known.plan.start) is None
        assert planner.bound <= known.bound <= known.plan.reduced_makespan
        assert known.bound_by
