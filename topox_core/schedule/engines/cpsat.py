"""Exact solves with CP-SAT (OR-Tools): the whole problem where it is small, large neighbourhoods where it is not."""

from __future__ import annotations

from topox_core.runs.stopping import Stop, never
from topox_core.schedule.bounds.root_bounds import PROPAGATION_BY, narrow_windows, raise_bounds
from topox_core.schedule.bounds.windows import Windows, clocks, step_of
from topox_core.schedule.engines.best_known import BestKnown, initially_known
from topox_core.schedule.engines.cpsat_model import Model, Run, models, refuse
from topox_core.schedule.engines.cpsat_on_ports import solve_on_ports
from topox_core.schedule.engines.disjunctions import LEARNING_TASKS, WHOLE_TASKS
from topox_core.schedule.engines.engine import (
    Answer,
    Limits,
    News,
    OnProgress,
    on_coarse_clock,
)
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.search.large_neighbourhood import (
    LargeNeighbourhoods,
    SubSolve,
    Undecided,
)
from topox_core.schedule.source import ENGINES, PROPAGATION, TraceSource

SOURCE = ENGINES["cpsat"]
NEIGHBOURHOODS = TraceSource("neighbourhoods", "CP-SAT neighbourhoods")
BOUND_BY = "constraint search (CP-SAT)"
CLOSE = 0.01  # relative gap below which a larger one is tried as a whole, once
WHOLE_SHARE = 0.3
FREE_TASKS = 300  # of the first neighbourhood


@on_coarse_clock
def solve_cpsat(
    problem: Problem,
    limits: Limits,
    stop: Stop = never,
    on_progress: OnProgress | None = None,
    news: News | None = None,
) -> Answer:
    """Solve the reduced problem with CP-SAT, or one that counts set-ups.

    Up to 600 tasks are one model of all schedules shorter than the best known, in the windows of
    plain propagation; a schedule found elsewhere begins it anew only where little is lost by that. For
    more, bounds and then large neighbourhoods.

    Raises
    ------
    InputError
        If there are too many tasks, or transfers that share circuits.
    """
    refuse(problem)
    if problem.dark_ticks is not None:
        return solve_on_ports(problem, limits, stop, on_progress, news)
    known = initially_known(problem, limits, on_progress)
    if problem.n <= WHOLE_TASKS:  # most are decided at once, sooner than shaving would be through
        _whole(known, limits.time_limit_s, stop, news, thorough=False)
        return known.answer("cancelled" if stop() else "time_limit")
    raise_bounds(known, known.hearing(news, stop))
    if known.makespan - known.bound <= CLOSE * known.makespan:
        _whole(known, known.elapsed_s + WHOLE_SHARE * known.left_s, stop, news)
    if not known.close_enough and not stop() and known.left_s > 0:
        search = LargeNeighbourhoods(known, _sub_solve(limits), NEIGHBOURHOODS, FREE_TASKS)
        search.run(stop, news)
    return known.answer("cancelled" if stop() else "time_limit")


def _whole(
    known: BestKnown,
    until_s: float,
    stop: Stop,
    news: News | None,
    thorough: bool = True,
) -> None:
    """Search the whole problem until nothing shorter is left; ``until_s`` seconds after the solve began at the latest.

    ``thorough`` narrows the windows by shaving first.
    """
    problem, ages = known.problem, models()
    step = step_of(problem, clocks(problem))
    while not known.close_enough and known.elapsed_s < until_s and not stop():
        horizon = known.makespan - step
        given = narrow_windows(known, horizon, stop, thorough)
        if given is None:
            known.raise_bound(horizon + step, PROPAGATION, PROPAGATION_BY)
            return
        model = Model(problem, given, known.bound, horizon, minimise=True)
        shortest, old = known.makespan, next(ages)

        def better_elsewhere() -> bool:
            known.take_news(news)
            anew = known.makespan < shortest and old()  # noqa: B023 - called within this round only
            return stop() or known.close_enough or anew

        limits, linear = known.limits, problem.n >= LEARNING_TASKS
        run = Run(until_s - known.elapsed_s, limits.threads, limits.seed, linear)
        outcome = model.solve(
            run,
            better_elsewhere,
            lambda start, _: known.offer(start, SOURCE),
            lambda bound: known.raise_bound(bound, SOURCE, BOUND_BY),
        )
        if outcome.ended == "infeasible":
            known.raise_bound(horizon + step, SOURCE, BOUND_BY)
        elif outcome.start is not None:
            known.offer(outcome.start, SOURCE)
            known.raise_bound(outcome.bound, SOURCE, BOUND_BY)


def _sub_solve(limits: Limits) -> SubSolve:
    """Return what finds any schedule of a problem in windows."""

    def solve(
        problem: Problem, given: Windows, horizon: int, seconds: float, stop: Stop
    ) -> Int | Undecided:
        outcome = Model(problem, given, 0, horizon, minimise=False).solve(
            Run(seconds, limits.threads, limits.seed), stop
        )
        if outcome.start is not None:
            return outcome.start
        return "none" if outcome.ended == "infeasible" else "undecided"

    return solve
