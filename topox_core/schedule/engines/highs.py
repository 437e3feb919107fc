"""Exact solves: propagation narrows the start windows, HiGHS searches the step formulation inside them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from topox_core.errors import InputError
from topox_core.runs.run import Stop, never
from topox_core.schedule.bounds.windows import windows
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines import mip
from topox_core.schedule.engines.best_known import (
    PROPAGATION_BY,
    BestKnown,
    initially_known,
    narrow_windows,
    raise_bounds,
)
from topox_core.schedule.engines.engine import (
    Answer,
    Ended,
    Limits,
    News,
    OnProgress,
)
from topox_core.schedule.engines.step_model import StepModel
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.settings import TIME
from topox_core.schedule.source import ENGINES, PROPAGATION

SOURCE = ENGINES["highs"]
BOUND_BY = "branch and bound (HiGHS, step formulation)"
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
    known = initially_known(problem, limits, on_progress, stop, news)
    raise_bounds(known, known.over)
    horizon, limit_s = known.makespan, limits.time_limit_s
    whole = StepModel(problem, windows(problem, horizon), known.bound, horizon)
    if known.goes_on(limit_s) and (columns := int(whole.width.sum())) > MAX_COLUMNS:
        raise InputError(
            f"the step formulation would have {columns:,} columns (limit {MAX_COLUMNS:,}): use cpsat or list",
            file="settings",
            field="engine",
        )
    reaching_s = known.elapsed_s + TIME.reach_share * known.left_s
    while known.goes_on(reaching_s):
        before = known.bound
        last_length = known.bound >= known.makespan - known.step
        _within(known, known.bound, limit_s if last_length else reaching_s)
        if known.bound == before:
            break
    while known.goes_on(limit_s):
        shortest = known.makespan
        _within(known, known.makespan - 1, limit_s)
        if known.makespan == shortest:
            break
    return known.answer()


def _within(known: BestKnown, horizon: int, until_s: float) -> None:
    """Look for schedules that end by the horizon, better than the best known.

    Ends when there are none, which raises the bound, when the best of them is found, at the first
    one that is better (narrower windows are worth a new model), at ``until_s``, or when asked to.
    """
    shortest = known.makespan
    given = narrow_windows(known, horizon, known.over)
    if given is None:
        known.refute(horizon, PROPAGATION, PROPAGATION_BY)
        return
    steps = StepModel(known.problem, given, known.bound, horizon)
    model = MipOfStarts(steps.build(), steps.start, steps.step)

    def found() -> bool:
        return known.makespan < shortest

    known.search(model.solve, horizon, until_s, found, SOURCE, BOUND_BY)


@dataclass(frozen=True)
class MipOfStarts:
    """A mixed-integer model of schedules, and what its values and bounds say.

    Attributes
    ----------
    start_of
        Reads the start ticks from a solution.
    unit
        Ticks that one unit of the objective is worth.
    known
        Columns and values of the best known schedule; None if the model leaves it out.
    """

    model: mip.Mip
    start_of: Callable[[mip.Float], Int]
    unit: int = 1
    known: tuple[mip.Index, mip.Float] | None = None

    def solve(
        self,
        limits: Limits,
        stop: Stop,
        on_solution: Callable[[Solution], None],
        on_bound: Callable[[int], None],
    ) -> Ended:
        """Search the model with HiGHS until a limit or ``stop``, telling better schedules and bounds; return how that ended."""

        def on_values(values: mip.Float) -> None:
            on_solution(Solution(self.start_of(values)))

        def on_dual(dual: float) -> None:
            if math.isfinite(dual):
                on_bound(math.ceil(dual - TOLERANCE) * self.unit)

        run = mip.Run(limits.time_limit_s, limits.gap, 1.0, limits.seed)
        outcome = mip.solve(self.model, run, self.known, stop, on_values, on_dual)
        if outcome.values is not None:
            on_values(outcome.values)
        if outcome.ended != "infeasible":
            on_dual(outcome.dual)
        return outcome.ended
