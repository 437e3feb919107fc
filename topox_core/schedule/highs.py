"""Exact solves: propagation narrows the start windows, HiGHS searches the step formulation inside them."""

from __future__ import annotations

import time
from collections.abc import Callable

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
# Shares of the time left: to raise the bound by propagation, to look for a schedule as short as the bound, and to
# narrow the windows of one model.
BOUND_SHARE = 0.25
REACH_SHARE = 0.4
WINDOWS_SHARE = 0.1


def solve_highs(problem: Problem, limits: Limits, stop: Stop = never, on_progress: OnProgress = silent) -> Answer:
    """Solve the reduced problem with HiGHS.

    Propagation raises the bound first. Then the model is built for schedules as short as the bound, whose
    windows are narrow; if that decides nothing soon, for any shorter than the best known, and anew with narrower
    windows whenever one is found. That none is left proves the last one optimal.

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
        _model(coarse, tick, known, known.makespan // tick, windows(coarse, known.makespan // tick)).refuse_if_too_large()
        _propagate(coarse, tick, known, stop)
    ended: StoppedBy = "time_limit"
    until = known.elapsed_s + REACH_SHARE * known.left_s
    while _open(known, stop) and known.elapsed_s < until:
        before = known.bound
        ended = _within(coarse, tick, -(-known.bound // tick), known, until, stop)
        if known.bound == before:
            break
    while _open(known, stop):
        shortest = known.makespan
        ended = _within(coarse, tick, known.makespan // tick - 1, known, known.limits.time_limit_s, stop)
        if known.makespan == shortest:
            break
    return known.answer("cancelled" if stop() else ended)


def _open(known: BestKnown, stop: Stop) -> bool:
    return not known.close_enough and known.left_s > 0 and not stop()


def _model(coarse: Problem, tick: int, known: BestKnown, horizon: int, given: Windows) -> StepModel:
    """Return the model of schedules that end by the horizon; ``tick`` is the coarse problem's in the problem's own."""
    return StepModel(coarse, given, -(-known.bound // tick), horizon)


def _propagate(coarse: Problem, tick: int, known: BestKnown, stop: Stop) -> None:
    """Raise the bound by propagation if the problem is small enough for it."""
    propagator, horizon = Propagator(coarse), known.makespan // tick
    if not propagator.worthwhile(horizon):
        return
    step = _model(coarse, tick, known, horizon, windows(coarse, horizon)).step
    raised_bound(propagator, -(-known.bound // tick // step) * step, horizon, step, BOUND_SHARE * known.left_s, stop,
                 lambda bound: known.raise_bound(bound * tick, PROPAGATION, PROPAGATION_BY))


def _within(coarse: Problem, tick: int, horizon: int, known: BestKnown, until_s: float, stop: Stop) -> StoppedBy:
    """Look for schedules that end by the horizon (coarse ticks), better than the best known.

    Ends when there are none, which raises the bound, when the best of them is found, at the first one that is
    better (narrower windows are worth a new model), at ``until_s``, or when asked to.
    """
    shortest = known.makespan
    given = _windows(coarse, horizon, known, stop)
    if given is None:
        known.raise_bound((horizon + 1) * tick, PROPAGATION, PROPAGATION_BY)
        return "proof"
    model = _model(coarse, tick, known, horizon, given)
    if model.empty:
        known.raise_bound(-(-(horizon + 1) // model.step) * model.step * tick, PROPAGATION, PROPAGATION_BY)
        return "proof"
    return branch_and_bound(known, model.build(), None, lambda values: model.start(values) * tick, model.step * tick, until_s,
                            stop, lambda: known.makespan < shortest, SOURCE, BOUND_BY, (horizon + 1) * tick)


def _windows(coarse: Problem, horizon: int, known: BestKnown, stop: Stop) -> Windows | None:
    """Return windows of schedules that end by the horizon, as narrow as is cheap; None if there are none."""
    given, propagator = windows(coarse, horizon), Propagator(coarse)
    if (given.earliest > given.latest).any():
        return None
    if not propagator.worthwhile(horizon):
        return given
    deadline = time.monotonic() + WINDOWS_SHARE * known.left_s
    return propagator.shaved(given, horizon, True, lambda: stop() or time.monotonic() >= deadline)


def branch_and_bound(known: BestKnown, built: mip.Mip, start: tuple[mip.Index, mip.Float] | None,
                     start_of: Callable[[mip.Float], Int], unit: int, until_s: float, stop: Stop, enough: Callable[[], bool],
                     source: str, words: str, beyond: int = 0) -> StoppedBy:
    """Run HiGHS on a model of what is still to be found, and take in what it says.

    Parameters
    ----------
    start
        Columns and values of the best known schedule; None if the model leaves it out.
    start_of
        Reads the start ticks from a solution.
    unit
        Ticks that one unit of the objective is worth.
    until_s
        When to end, in seconds since the solve began.
    enough
        Whether to end this run although nothing is proved.
    beyond
        A bound that holds if the model has no solution; 0 if it must have one.
    """

    def on_values(values: mip.Float) -> None:
        known.offer(start_of(values), source)

    def on_dual(dual: float) -> bool:
        known.raise_dual(dual, unit, source, words)
        return known.close_enough or enough()

    run = mip.Run(until_s - known.elapsed_s, known.limits.gap, 1.0, known.limits.threads, known.limits.seed)
    if run.time_limit_s <= 0:
        return "time_limit"
    outcome = mip.solve(built, run, start, stop, on_values, on_dual)
    if outcome.ended == "infeasible":
        if not beyond:
            raise RuntimeError("HiGHS calls a model infeasible although a schedule for it is known")
        known.raise_bound(-(-beyond // unit) * unit, source, words)
        return "proof"
    if outcome.values is not None:
        on_values(outcome.values)
    on_dual(outcome.dual)
    return "time_limit"
