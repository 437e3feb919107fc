"""Exact solves with CP-SAT of problems that count set-ups: schedules on real ports, whole models only."""

from __future__ import annotations

import math

from topox_core.errors import InputError
from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.propagation import Propagator
from topox_core.schedule.bounds.root_bounds import raise_bounds_with_set_ups
from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.held_ports import Solution, held_back, solution_violation
from topox_core.schedule.engines.best_known import initially_known
from topox_core.schedule.engines.cpsat_model import Run, models
from topox_core.schedule.engines.cpsat_set_ups import SetUpModel
from topox_core.schedule.engines.disjunctions import (
    LEARNING_TASKS,
    MAX_DISJUNCTIONS,
    Disjunctions,
    neighbourhoods_fit,
)
from topox_core.schedule.engines.engine import Answer, Limits, News, OnProgress
from topox_core.schedule.engines.set_up_neighbourhoods import SetUpRoot, search_with_set_ups
from topox_core.schedule.problem import Int, Int32, Problem
from topox_core.schedule.source import ENGINES

SOURCE = ENGINES["cpsat"]
BOUND_BY = "constraint search with set-ups (CP-SAT)"
# The whole model has so long; while the relative gap is wider than this, neighbourhoods come next,
# until so many of them in a row have brought nothing.
WHOLE_FIRST_S, NARROW, FRUITLESS = 1.0, 0.05, 30
RELAXED_SHARE = 0.5  # of the time, where eq. 7 can bind, for the model whose bounds hold


def solve_on_ports(
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
    root = SetUpRoot(known, *raise_bounds_with_set_ups(known, stop))
    if known.close_enough:
        return known.answer("proof")
    net = problem.switch_network
    may_fill, nearby = net.switches_may_fill, neighbourhoods_fit(problem)
    # Where neighbourhoods can take over, pairs are counted only if they may be few.
    counted = not nearby or Disjunctions.may_be_few(problem)
    pairs = Disjunctions(problem, _windows(root)).count if counted else math.inf
    if pairs > MAX_DISJUNCTIONS:
        if not nearby:
            raise InputError(
                f"with set-up times {pairs:,} pairs of transfers would have to be put in order (limit "
                f"{MAX_DISJUNCTIONS:,}): use the list engine",
                file="settings",
                field="engine",
            )
        search_with_set_ups(root, stop, news, math.inf)
        return known.answer("cancelled" if stop() else "time_limit")
    until_s = known.left_s * RELAXED_SHARE if may_fill else known.left_s
    search = _Search(root, stop, news)
    if nearby and net.ports_each_way > 1:  # orders alone are decided sooner as a whole
        search.run(known.elapsed_s + until_s, strict=False, gives_way=True)
        if not search.ended:
            search_with_set_ups(root, stop, news, FRUITLESS)
    search.run(known.elapsed_s + until_s, strict=False)
    if may_fill:
        search.run(limits.time_limit_s, strict=True)
    return known.answer("cancelled" if stop() else "time_limit")


def _windows(root: SetUpRoot) -> Windows:
    """Return windows of schedules as long as the best known, narrowed by propagation."""
    horizon, propagator = root.known.makespan, Propagator(root.known.problem)
    given = root.windows(horizon)
    narrowed = propagator.propagated(given, horizon) if propagator.worthwhile(horizon) else None
    return given if narrowed is None else narrowed


class _Search:
    """Models of all schedules as long as the best known, anew when a shorter one is found elsewhere."""

    def __init__(self, root: SetUpRoot, stop: Stop, news: News | None) -> None:
        self._root, self._known = root, root.known
        self._stop, self._news = stop, news
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
        given = _windows(self._root)
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
        self._known.raise_bound(bound, SOURCE, BOUND_BY)
