"""What every exact engine does first: raise the bound without search, and narrow the windows of what is left."""

from __future__ import annotations

import time

import numpy as np

from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.ancestor_bounds import ancestor_bound, ancestor_heads_and_tails
from topox_core.schedule.bounds.propagation import (
    SHAVED_TASKS,
    SMALL_TASKS,
    Propagator,
    raised_bound,
)
from topox_core.schedule.bounds.set_up_bounds import (
    near_of,
    set_up_bound,
    set_up_heads_and_tails,
)
from topox_core.schedule.bounds.windows import Windows, clocks, windows
from topox_core.schedule.engines.best_known import BestKnown
from topox_core.schedule.problem import Int, Problem
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


def step_of(coarse: Problem, given: Windows) -> int:
    """Return the ticks between two makespans that can occur: slots if every last task keeps to them."""
    last = given.clock[np.diff(coarse.succ_ptr) == 0]
    return int(last.min()) if len(last) else 1


def raise_bounds(coarse: Problem, tick: int, known: BestKnown, stop: Stop) -> int:
    """Raise the bound by cones of ancestors and by propagation; return the ticks between two makespans that can occur.

    ``tick`` is the coarse problem's in the problem's own, in which ``known`` counts.
    """
    given = windows(coarse, known.makespan // tick)
    step = step_of(coarse, given)
    if known.close_enough:
        return step
    counted = _by_cones(coarse, tick, known, stop)
    propagator, horizon = Propagator(coarse), known.makespan // tick
    if not known.close_enough and propagator.worthwhile(horizon):
        raised_bound(
            propagator,
            -(-known.bound // tick // step) * step,
            lambda: known.makespan // tick,
            step,
            _share(coarse.n, known.left_s) * known.left_s,
            stop,
            lambda bound: known.raise_bound(bound * tick, PROPAGATION, PROPAGATION_BY),
            counted,
        )
    return step


def _share(tasks: int, left_s: float) -> float:
    """Return the share of the time for bounds by propagation: of many tasks more where all can be tried, less where not."""
    if not SMALL_TASKS < tasks <= SHAVED_TASKS:
        return BOUND_SHARE
    return MANY_SHARE if BOUND_SHARE * left_s >= MANY_S_A_TASK * tasks else FIRST_SHARE


def raise_bounds_with_set_ups(
    coarse: Problem, tick: int, known: BestKnown, stop: Stop
) -> tuple[Int, Int]:
    """Raise the bound by heads and tails that count set-ups, then by propagation within them; return both."""
    dark_slots, dark_ticks = coarse.switch_network.dark_slots or 0, coarse.dark_ticks or 0
    counted = set_up_heads_and_tails(
        coarse, clocks(coarse), near_of(coarse, FIRST_NEAR), dark_ticks
    )
    bound = set_up_bound(coarse, *counted, -(-known.bound // tick), dark_slots)
    if bound is not None:
        known.raise_bound(bound.ticks * tick, HEADS_AND_TAILS, bound.text)
    propagator, horizon = Propagator(coarse), known.makespan // tick
    if not known.close_enough and propagator.worthwhile(horizon):
        step = step_of(coarse, windows(coarse, horizon))
        raised_bound(
            propagator,
            -(-known.bound // tick // step) * step,
            lambda: known.makespan // tick,
            step,
            min(SET_UPS_S, BOUND_SHARE * known.left_s),
            stop,
            lambda bound: known.raise_bound(bound * tick, PROPAGATION, PROPAGATION_BY),
            counted,
        )
    return counted


def _by_cones(coarse: Problem, tick: int, known: BestKnown, stop: Stop) -> tuple[Int, Int] | None:
    """Count more and more ancestors while that takes a fair share of the time; return the heads and tails, if there was any."""
    clock = clocks(coarse)
    near, found = FIRST_NEAR, None
    while not stop() and not known.close_enough:
        began = time.monotonic()
        found = ancestor_heads_and_tails(coarse, clock, near, known=found)
        bound = ancestor_bound(coarse, *found, -(-known.bound // tick))
        if bound is not None:
            known.raise_bound(bound.ticks * tick, HEADS_AND_TAILS, bound.text)
        took = time.monotonic() - began
        if near >= coarse.n or LONGER * took > CONES_SHARE * known.left_s:
            break
        near *= GROWTH
    return found


def narrow_windows(
    coarse: Problem, horizon: int, known: BestKnown, stop: Stop, thorough: bool = True
) -> Windows | None:
    """Return windows of schedules that end by the horizon (coarse ticks), as narrow as is cheap; None if there are none.

    ``thorough`` tries single starts as well (shaving).
    """
    given, propagator = windows(coarse, horizon), Propagator(coarse)
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
        "thorough" if coarse.n <= SMALL_TASKS else "quick",
        lambda: stop() or time.monotonic() >= deadline,
    )
