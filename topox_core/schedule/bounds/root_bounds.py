"""What every exact engine does first: raise the bound without search, and narrow the windows of what is left."""

from __future__ import annotations

import time

from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.ancestor_bounds import (
    ancestor_bound,
    ancestor_heads_and_tails,
    near_of,
    set_up_heads_and_tails,
)
from topox_core.schedule.bounds.propagation import (
    SHAVED_TASKS,
    SMALL_TASKS,
    Propagator,
    raised_bound,
)
from topox_core.schedule.bounds.windows import Windows, clocks, step_of, windows
from topox_core.schedule.engines.best_known import BestKnown
from topox_core.schedule.problem import Int
from topox_core.schedule.source import HEADS_AND_TAILS, PROPAGATION

PROPAGATION_BY = "propagation: no shorter schedule fits its time windows"
# Shares of the time left: to raise the bound by propagation, above 500 tasks in a minute or in less
# (most rises come first), and to narrow the windows of one model.
BOUND_SHARE, MANY_SHARE, FIRST_SHARE, MANY_S_A_TASK = 0.25, 0.45, 0.1, 0.005
WINDOWS_SHARE = 0.1
CONES_SHARE = 0.5
SET_UPS_S = 0.5  # for propagation where set-ups count, which it knows from heads and tails only
# Ancestors counted at first, by how much more next, and how much longer that takes.
FIRST_NEAR, GROWTH, LONGER = 100, 4, 3


def raise_bounds(known: BestKnown, stop: Stop) -> None:
    """Raise the bound by cones of ancestors, then by propagation within the heads and tails that they give."""
    if not known.close_enough:
        counted = _by_cones(known, stop)
        _by_propagation(known, counted, _share(known.problem.n, known.left_s) * known.left_s, stop)


def _share(tasks: int, left_s: float) -> float:
    """Return the share of the time for bounds by propagation: of many tasks more where all can be tried, less where not."""
    if not SMALL_TASKS < tasks <= SHAVED_TASKS:
        return BOUND_SHARE
    return MANY_SHARE if BOUND_SHARE * left_s >= MANY_S_A_TASK * tasks else FIRST_SHARE


def raise_bounds_with_set_ups(known: BestKnown, stop: Stop) -> tuple[Int, Int]:
    """Raise the bound by heads and tails that count set-ups, then by propagation within them; return both."""
    problem = known.problem
    dark_slots, dark_ticks = problem.switch_network.dark_slots or 0, problem.dark_ticks or 0
    counted = set_up_heads_and_tails(
        problem, clocks(problem), near_of(problem, FIRST_NEAR), dark_ticks
    )
    bound = ancestor_bound(problem, *counted, known.bound, dark_slots)
    if bound is not None:
        known.raise_bound(bound.ticks, HEADS_AND_TAILS, bound.text)
    _by_propagation(known, counted, min(SET_UPS_S, BOUND_SHARE * known.left_s), stop)
    return counted


def _by_propagation(
    known: BestKnown, counted: tuple[Int, Int] | None, seconds: float, stop: Stop
) -> None:
    """Raise the bound for so many seconds by propagation, within heads and tails that are known."""
    propagator = Propagator(known.problem)
    if known.close_enough or not propagator.worthwhile(known.makespan):
        return
    step = step_of(known.problem, clocks(known.problem))
    raised_bound(
        propagator,
        -(-known.bound // step) * step,
        lambda: known.makespan,
        step,
        seconds,
        stop,
        lambda bound: known.raise_bound(bound, PROPAGATION, PROPAGATION_BY),
        counted,
    )


def _by_cones(known: BestKnown, stop: Stop) -> tuple[Int, Int] | None:
    """Count more and more ancestors while that takes a fair share of the time; return the heads and tails, if there was any."""
    problem = known.problem
    clock = clocks(problem)
    near, found = FIRST_NEAR, None
    while not stop() and not known.close_enough:
        began = time.monotonic()
        found = ancestor_heads_and_tails(problem, clock, near, known=found)
        bound = ancestor_bound(problem, *found, known.bound)
        if bound is not None:
            known.raise_bound(bound.ticks, HEADS_AND_TAILS, bound.text)
        took = time.monotonic() - began
        if near >= problem.n or LONGER * took > CONES_SHARE * known.left_s:
            break
        near *= GROWTH
    return found


def narrow_windows(
    known: BestKnown, horizon: int, stop: Stop, thorough: bool = True
) -> Windows | None:
    """Return windows of schedules that end by the horizon (ticks), as narrow as is cheap; None if there are none.

    ``thorough`` tries single starts as well (shaving).
    """
    problem = known.problem
    given, propagator = windows(problem, horizon), Propagator(problem)
    if (given.earliest > given.latest).any():
        return None
    if not propagator.worthwhile(horizon):
        return given
    if not thorough or not propagator.shaves:
        return propagator.propagated(given, horizon)
    deadline = time.monotonic() + WINDOWS_SHARE * known.left_s
    return propagator.shaved(
        given,
        horizon,
        "thorough" if problem.n <= SMALL_TASKS else "quick",
        lambda: stop() or time.monotonic() >= deadline,
    )
