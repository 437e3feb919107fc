"""Exact solves with CP-SAT (OR-Tools): the whole problem where it is small, large neighbourhoods where it is not.

Of problems that count set-ups the schedules are on real ports.
"""

import math

from topox_core.errors import InputError
from topox_core.runs.stopping import Stop, never
from topox_core.schedule.bounds.propagation import (
    PROPAGATION_BY,
    Propagator,
    narrow_windows,
    raise_bounds,
    raise_bounds_with_set_ups,
)
from topox_core.schedule.bounds.windows import Windows, clocks, step_of, windows
from topox_core.schedule.circuits.held_ports import Solution, held_back, solution_violation
from topox_core.schedule.engines.best_known import BestKnown, initially_known
from topox_core.schedule.engines.cpsat_model import Model, Run, models, refuse
from topox_core.schedule.engines.cpsat_set_ups import SetUpModel
from topox_core.schedule.engines.disjunctions import (
    LEARNING_TASKS,
    MAX_DISJUNCTIONS,
    WHOLE_TASKS,
    Disjunctions,
    neighbourhoods_fit,
)
from topox_core.schedule.engines.engine import (
    Answer,
    Limits,
    News,
    OnProgress,
)
from topox_core.schedule.engines.set_up_neighbourhoods import search_with_set_ups
from topox_core.schedule.problem import Int, Int32, Problem
from topox_core.schedule.search.large_neighbourhood import (
    LargeNeighbourhoods,
    SubSolve,
    Undecided,
)
from topox_core.schedule.source import ENGINES, PROPAGATION, TraceSource

SOURCE = ENGINES["cpsat"]
NEIGHBOURHOODS = TraceSource("neighbourhoods", "CP-SAT neighbourhoods")
BOUND_BY = "constraint search (CP-SAT)"
BOUND_WITH_SET_UPS_BY = "constraint search with set-ups (CP-SAT)"
CLOSE = 0.01  # relative gap below which a larger one is tried as a whole, once
WHOLE_SHARE = 0.3
FREE_TASKS = 300  # of the first neighbourhood
# The whole model with set-ups has so long; while the relative gap is wider than this, neighbourhoods
# come next, until so many of them in a row have brought nothing.
WHOLE_FIRST_S, NARROW, FRUITLESS = 1.0, 0.05, 30
RELAXED_SHARE = 0.5  # of the time, where eq. 7 can bind, for the model whose bounds hold


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
        return _solve_on_ports(problem, limits, stop, on_progress, news)
    known = initially_known(problem, limits, on_progress)
    if problem.n <= WHOLE_TASKS:  # most are decided at once, sooner than shaving would be through
        _whole(known, limits.time_limit_s, stop, news, thorough=False)
        return known.answer(stop)
    raise_bounds(known, known.hearing(news, stop))
    if known.makespan - known.bound <= CLOSE * known.makespan:
        _whole(known, known.elapsed_s + WHOLE_SHARE * known.left_s, stop, news)
    if not known.close_enough and not stop() and known.left_s > 0:
        search = LargeNeighbourhoods(known, _sub_solve(limits), NEIGHBOURHOODS, FREE_TASKS)
        search.run(stop, news)
    return known.answer(stop)


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


def _solve_on_ports(
    problem: Problem,
    limits: Limits,
    stop: Stop,
    on_progress: OnProgress | None,
    news: News | None,
) -> Answer:
    """Solve a problem that counts set-ups, from a schedule with ports.

    The model holds every schedule as long as the best known, which is its hint, ports and orders
    included. Where eq. 7 can bind two models take turns: one whose bounds hold, and one whose
    schedules do. Elsewhere, with several ports, it has a second and, while the gap is wide, gives
    way to large neighbourhoods; where the model would be too large, there are those alone.

    Raises
    ------
    InputError
        If too many pairs of transfers have to be put in order, and neighbourhoods do not fit.
    """
    known = initially_known(problem, limits, on_progress)
    raise_bounds_with_set_ups(known, stop)
    if known.close_enough:
        return known.answer(stop)
    net = problem.switch_network
    may_fill, nearby = net.switches_may_fill, neighbourhoods_fit(problem)
    # Where neighbourhoods can take over, pairs are counted only if they may be few.
    counted = not nearby or Disjunctions.may_be_few(problem)
    pairs = Disjunctions(problem, _windows(known)).count if counted else math.inf
    if pairs > MAX_DISJUNCTIONS:
        if not nearby:
            raise InputError(
                f"with set-up times {pairs:,} pairs of transfers would have to be put in order (limit "
                f"{MAX_DISJUNCTIONS:,}): use the list engine",
                file="settings",
                field="engine",
            )
        search_with_set_ups(known, stop, news, math.inf)
        return known.answer(stop)
    until_s = known.left_s * RELAXED_SHARE if may_fill else known.left_s
    search = _Search(known, stop, news)
    if nearby and net.ports_each_way > 1:  # orders alone are decided sooner as a whole
        search.run(known.elapsed_s + until_s, strict=False, gives_way=True)
        if not search.ended:
            search_with_set_ups(known, stop, news, FRUITLESS)
    search.run(known.elapsed_s + until_s, strict=False)
    if may_fill:
        search.run(limits.time_limit_s, strict=True)
    return known.answer(stop)


def _windows(known: BestKnown) -> Windows:
    """Return windows of schedules as long as the best known, narrowed by propagation."""
    horizon, propagator = known.makespan, Propagator(known.problem)
    given = windows(known.problem, horizon, known.counted)
    narrowed = propagator.propagated(given, horizon) if propagator.worthwhile(horizon) else None
    return given if narrowed is None else narrowed


class _Search:
    """Models of all schedules as long as the best known, anew when a shorter one is found elsewhere."""

    def __init__(self, known: BestKnown, stop: Stop, news: News | None) -> None:
        self._known, self._stop, self._news = known, stop, news
        self._ages = models()
        self.ended = False  # whether the last model has nothing more to say

    def run(self, until_s: float, strict: bool, gives_way: bool = False) -> None:
        """Search until nothing shorter is left, ``until_s`` seconds after the solve began at the latest.

        ``gives_way``: after a second only as long as the gap is narrow.
        """
        while self._round(until_s, strict, gives_way):
            pass

    def _far(self) -> bool:
        """Whether a proof is too far away for a search of the whole model that has had its second."""
        known = self._known
        return (
            known.elapsed_s > WHOLE_FIRST_S
            and known.makespan - known.bound > NARROW * known.makespan
        )

    def _round(self, until_s: float, strict: bool, gives_way: bool) -> bool:
        """Search one model; return whether another one is worth while."""
        known = self._known
        if known.close_enough or self._stop() or known.elapsed_s >= until_s:
            return False
        shortest, current = known.makespan, Solution(known.start, known.ports)
        given = _windows(known)
        model = SetUpModel(known.problem, given, known.bound, shortest, current, strict)
        heard, old = False, next(self._ages)

        def better_elsewhere() -> bool:
            nonlocal heard
            before = known.makespan
            known.take_news(self._news)
            heard = heard or known.makespan < before
            late = gives_way and self._far()
            return self._stop() or late or known.close_enough or (heard and old())

        limits, linear = known.limits, known.problem.n >= LEARNING_TASKS
        run = Run(until_s - known.elapsed_s, limits.threads, limits.seed, linear)
        outcome = model.solve(run, better_elsewhere, self._offer, None if strict else self._raise)
        if outcome.start is not None:
            self._offer(outcome.start, outcome.ports)
            if not strict:
                self._raise(outcome.bound)
        self.ended = outcome.ended != "stopped"
        if gives_way and self._far():
            return False
        return outcome.ended == "stopped" and heard and known.makespan < shortest

    def _offer(self, start: Int, ports: Int32 | None) -> None:
        """Take a schedule; one of the relaxed model may set up circuits that a full switch has no room for."""
        problem = self._known.problem
        solution = held_back(problem, Solution(start, ports))
        may_fill = problem.switch_network.switches_may_fill
        if may_fill and solution_violation(problem, solution) is not None:
            return
        self._known.offer(solution.start, SOURCE, ports=ports)

    def _raise(self, bound: int) -> None:
        self._known.raise_bound(bound, SOURCE, BOUND_WITH_SET_UPS_BY)
