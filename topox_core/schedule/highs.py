"""Exact solves: propagation narrows the start windows, HiGHS searches the step formulation inside them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

from topox_core.schedule import mip
from topox_core.schedule.answer import Answer, Limits, OnProgress, Stop, StoppedBy, never, silent
from topox_core.schedule.best_known import BestKnown, opened
from topox_core.schedule.feasibility import impossible
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.propagation import Propagator, raised_bound
from topox_core.schedule.step_model import StepModel
from topox_core.schedule.windows import Windows, coarsened, windows

SOURCE = "HiGHS"
BOUND_BY = "branch and bound (HiGHS, step formulation)"
PROPAGATION = "propagation"
PROPAGATION_BY = "propagation: no shorter schedule fits its time windows"
# Shares of the time limit that propagation may take: to raise the bound, and to narrow the windows of one model.
BOUND_SHARE = 0.25
WINDOWS_SHARE = 0.1
MODE = os.environ.get("MODE", "B")
RESTART = float(os.environ.get("RESTART", "0.3"))


def solve_highs(problem: Problem, limits: Limits, stop: Stop = never, on_progress: OnProgress = silent) -> Answer:
    """Solve the reduced problem with HiGHS.

    The model looks for schedules shorter than the best one known; when one is found, the windows narrow and the
    model is built anew. That none is left proves the last one optimal.

    Parameters
    ----------
    limits
        ``bound`` must be valid; ``start`` gives the horizon of the time windows (without it a plain serial
        schedule does, at the price of a larger model).

    Raises
    ------
    InputError
        If the model would be too large; the size is named.
    """
    reason = impossible(problem)
    if reason is not None:
        return Answer(None, limits.bound, "", "proof", infeasible=True, message=reason)
    known = opened(problem, limits, on_progress)
    coarse, tick = coarsened(problem)
    if not known.close_enough:
        _model(coarse, tick, known, windows(coarse, known.makespan // tick)).refuse_if_too_large()
        _propagate(coarse, tick, known, stop)
    ended: StoppedBy = "time_limit"
    improved = True
    while improved and not known.close_enough and known.left_s > 0 and not stop():
        before = known.makespan
        given = _windows(coarse, tick, known, stop)
        if given is None:
            known.raise_bound(known.makespan, PROPAGATION, PROPAGATION_BY)
            break
        ended = _branch(_model(coarse, tick, known, given), tick, known, stop)
        improved = known.makespan < before
    return known.answer("cancelled" if stop() else ended)


def _model(coarse: Problem, tick: int, known: BestKnown, given: Windows) -> StepModel:
    """Return the model within windows; ``tick`` is the coarse problem's in the problem's own."""
    last = np.flatnonzero(np.diff(coarse.succ_ptr) == 0)
    horizon = int((given.latest + coarse.duration)[last].max(initial=0))
    return StepModel(coarse, given, -(-known.bound // tick), horizon)


def _propagate(coarse: Problem, tick: int, known: BestKnown, stop: Stop) -> None:
    """Raise the bound by propagation if the problem is small enough for it."""
    propagator, horizon = Propagator(coarse), known.makespan // tick
    if not propagator.worthwhile(horizon):
        return
    step = _model(coarse, tick, known, windows(coarse, horizon)).step
    raised_bound(propagator, -(-known.bound // tick // step) * step, horizon, step, BOUND_SHARE * known.left_s, stop,
                 lambda bound: known.raise_bound(bound * tick, PROPAGATION, PROPAGATION_BY))


def _windows(coarse: Problem, tick: int, known: BestKnown, stop: Stop) -> Windows | None:
    """Return windows of schedules shorter than the best known, as narrow as is cheap; None if there are none."""
    horizon = known.makespan // tick - (1 if MODE=="B" else 0)
    given, propagator = windows(coarse, horizon), Propagator(coarse)
    if (given.earliest > given.latest).any():
        return None
    if not propagator.worthwhile(horizon):
        return given
    deadline = time.monotonic() + WINDOWS_SHARE * known.left_s
    return propagator.shaved(given, horizon, True, lambda: stop() or time.monotonic() >= deadline)


def _branch(model: StepModel, tick: int, known: BestKnown, stop: Stop) -> StoppedBy:
    """Run HiGHS until it is done, stopped, or has found a better schedule (and some time has passed)."""
    before, began = known.makespan, time.monotonic()

    def enough() -> bool:
        return known.makespan < before and time.monotonic()-began > RESTART

    z = model.values(known.start//tick) if MODE=="A" else None
    start = None if z is None else (np.arange(len(z), dtype=np.int32), z)
    return branch_and_bound(known, model.build(), start, lambda values: model.start(values) * tick, model.step * tick,
                            stop, enough, SOURCE, BOUND_BY)


def branch_and_bound(known: BestKnown, built: mip.Mip, start: tuple[mip.Index, mip.Float] | None,
                     start_of: Callable[[mip.Float], Int], unit: int, stop: Stop, enough: Callable[[], bool], source: str,
                     words: str) -> StoppedBy:
    """Run HiGHS on a model of what is still to be found, and take in what it says.

    Parameters
    ----------
    start
        Columns and values of the best known schedule; None if the model leaves room for better ones only.
    start_of
        Reads the start ticks from a solution.
    unit
        Ticks that one unit of the objective is worth.
    enough
        Whether to end this run although nothing is proved.
    """

    def on_values(values: mip.Float) -> None:
        known.offer(start_of(values), source)

    def on_dual(dual: float) -> bool:
        known.raise_dual(dual, unit, source, words)
        return known.close_enough or enough()

    if known.left_s <= 0:
        return "time_limit"
    run = mip.Run(known.left_s, known.limits.gap, 1.0, known.limits.threads, known.limits.seed)
    outcome = mip.solve(built, run, start, stop, on_values, on_dual)
    if outcome.ended == "infeasible":
        if start is not None:
            raise RuntimeError("HiGHS calls a model infeasible although a schedule for it is known")
        known.raise_bound(known.makespan, source, words)
        return "proof"
    if outcome.values is not None:
        on_values(outcome.values)
    on_dual(outcome.dual)
    return "time_limit" if outcome.ended == "time_limit" else "gap"
