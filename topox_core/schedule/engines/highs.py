"""Exact solves: propagation narrows the start windows, HiGHS searches the step formulation inside them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from topox_core.errors import InputError
from topox_core.runs.run import Stop, never
from topox_core.schedule.bounds.propagation import PROPAGATION_BY, narrow_windows, raise_bounds
from topox_core.schedule.bounds.windows import clocks, step_of, windows
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines import mip
from topox_core.schedule.engines.best_known import BestKnown, initially_known
from topox_core.schedule.engines.engine import (
    Answer,
    Limits,
    News,
    OnProgress,
)
from topox_core.schedule.engines.step_model import StepModel
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.source import ENGINES, PROPAGATION, TraceSource

SOURCE = ENGINES["highs"]
BOUND_BY = "branch and bound (HiGHS, step formulation)"
REACH_SHARE = 0.4  # of the time left, to look for a schedule as short as the bound
MAX_COLUMNS = 1_000_000  # such a model is built in seconds and takes a gigabyte
# A dual bound this little above a whole number is that number, rounding errors apart.
TOLERANCE = 1e-6


def solve_highs(
    problem: Problem,
    limits: Limits,
    stop: Stop = never,
    on_progress: OnProgress | None = None,
    news: News | None = None,
) -> Answer:
    """Solve the reduced problem with HiGHS; set-ups are not counted.

    Bounds first (:mod:`topox_core.schedule.bounds.propagation`). Then the model is built for schedules as
    short as the bound, whose windows are narrow; if that decides nothing soon, for any shorter than
    the best known, and anew with narrower windows whenever one is found. That none is left proves
    the last one optimal.

    Parameters
    ----------
    limits
        ``bound`` must be valid; ``solution`` gives the horizon of the time windows (without it a plain
        serial schedule does, at the price of a larger model).

    Raises
    ------
    InputError
        If the model would be too large, once the bounds are raised (the size is named).
    """
    known = initially_known(problem, limits, on_progress)
    raise_bounds(known, known.hearing(news, stop))
    horizon = known.makespan
    whole = StepModel(problem, windows(problem, horizon), known.bound, horizon)
    if _open(known, stop) and (columns := int(whole.width.sum())) > MAX_COLUMNS:
        raise InputError(
            f"the step formulation would have {columns:,} columns (limit {MAX_COLUMNS:,}): use cpsat or list",
            file="settings",
            field="engine",
        )
    step = step_of(problem, clocks(problem))
    reaching_s = known.elapsed_s + REACH_SHARE * known.left_s
    while _open(known, stop) and known.elapsed_s < reaching_s:
        before = known.bound
        last_length = known.bound >= known.makespan - step
        until = known.limits.time_limit_s if last_length else reaching_s
        _within(known, known.bound, until, stop, news)
        if known.bound == before:
            break
    while _open(known, stop):
        shortest = known.makespan
        _within(known, known.makespan - 1, known.limits.time_limit_s, stop, news)
        if known.makespan == shortest:
            break
    return known.answer(stop)


def _open(known: BestKnown, stop: Stop) -> bool:
    return not known.close_enough and known.left_s > 0 and not stop()


def _within(
    known: BestKnown,
    horizon: int,
    until_s: float,
    stop: Stop,
    news: News | None,
) -> None:
    """Look for schedules that end by the horizon, better than the best known.

    Ends when there are none, which raises the bound, when the best of them is found, at the first
    one that is better (narrower windows are worth a new model), at ``until_s``, or when asked to.
    """
    shortest = known.makespan
    given = narrow_windows(known, horizon, stop)
    if given is None:
        known.raise_bound(horizon + 1, PROPAGATION, PROPAGATION_BY)
        return
    model = StepModel(known.problem, given, known.bound, horizon)
    if model.empty:
        known.raise_bound(-(-(horizon + 1) // model.step) * model.step, PROPAGATION, PROPAGATION_BY)
        return

    def enough() -> bool:
        known.take_news(news)
        return known.makespan < shortest

    reading = ModelReading(model.start, model.step, SOURCE, BOUND_BY, horizon + 1)
    branch_and_bound(known, model.build(), None, reading, until_s, stop, enough)


@dataclass(frozen=True)
class ModelReading:
    """What the values and bounds of a model say about the problem.

    Attributes
    ----------
    start_of
        Reads the start ticks from a solution.
    unit
        Ticks that one unit of the objective is worth.
    source, words
        Where schedules and bounds come from, and why the bounds hold.
    beyond
        A bound that holds if the model has no solution; 0 if it must have one.
    """

    start_of: Callable[[mip.Float], Int]
    unit: int
    source: TraceSource
    words: str
    beyond: int = 0


def branch_and_bound(
    known: BestKnown,
    built: mip.Mip,
    start: tuple[mip.Index, mip.Float] | None,
    reading: ModelReading,
    until_s: float,
    stop: Stop,
    enough: Callable[[], bool],
) -> None:
    """Run HiGHS on a model of what is still to be found, and take in what it says.

    Parameters
    ----------
    start
        Columns and values of the best known schedule; None if the model leaves it out.
    until_s
        When to end, in seconds since the solve began.
    enough
        Whether to end this run although nothing is proved.
    """

    def on_values(values: mip.Float) -> None:
        known.offer(Solution(reading.start_of(values)), reading.source)

    def on_dual(dual: float) -> bool:
        if math.isfinite(dual):
            bound = math.ceil(dual - TOLERANCE) * reading.unit
            known.raise_bound(bound, reading.source, reading.words)
        return known.close_enough or enough()

    run = mip.Run(until_s - known.elapsed_s, known.limits.gap, 1.0, known.limits.seed)
    if run.time_limit_s <= 0:
        return
    outcome = mip.solve(built, run, start, stop, on_values, on_dual)
    if outcome.ended == "infeasible":
        if not reading.beyond:
            raise RuntimeError("HiGHS calls a model infeasible although a schedule for it is known")
        bound = -(-reading.beyond // reading.unit) * reading.unit
        known.raise_bound(bound, reading.source, reading.words)
        return
    if outcome.values is not None:
        on_values(outcome.values)
    on_dual(outcome.dual)
