"""Exact solves by HiGHS on the step formulation, inside time windows, from the incumbent, with bounds as it goes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from topox_core.schedule import mip
from topox_core.schedule.answer import Answer, Limits, OnProgress, Progress, Stop, StoppedBy, never, silent
from topox_core.schedule.feasibility import impossible, violation
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.step_model import StepModel
from topox_core.schedule.windows import coarsened, critical_path, serial_schedule, windows

SOURCE = "HiGHS"
BOUND_BY = "branch and bound (HiGHS, step formulation)"
# A dual bound this little above a whole number is that number, rounding errors apart.
_TOLERANCE = 1e-6


@dataclass
class Search:
    """What is known during one solve: the best schedule, the bound, and whom to tell."""

    problem: Problem
    limits: Limits
    on_progress: OnProgress
    source: str
    began: float = field(default_factory=time.monotonic)
    start: Int | None = None
    makespan: int = 0
    bound: int = 0
    raised: bool = False

    @property
    def elapsed_s(self) -> float:
        """Seconds since the solve began."""
        return time.monotonic() - self.began

    @property
    def left_s(self) -> float:
        """Seconds until the time limit."""
        return self.limits.time_limit_s - self.elapsed_s

    @property
    def close_enough(self) -> bool:
        """Whether the relative gap is within the limit."""
        return self.makespan - self.bound <= self.limits.gap * self.makespan

    def offer(self, start: Int, *, tell: bool = True) -> None:
        """Take a schedule if it is better, after checking every rule of the problem on it.

        Raises
        ------
        RuntimeError
            If it breaks a rule: then the model or the solver is wrong, and nothing it says is believed.
        """
        wrong = violation(self.problem, start)
        if wrong is not None:
            raise RuntimeError(f"{self.source} gave a schedule that is none: {wrong}")
        makespan = int((start + self.problem.duration).max(initial=0))
        if self.start is None or makespan < self.makespan:
            self.start, self.makespan = start, makespan
            if tell:
                self.on_progress(Progress(self.elapsed_s, makespan, self.bound, self.source, start))

    def raise_bound(self, bound: int) -> None:
        """Take a lower bound in ticks if it is better."""
        bound = min(bound, self.makespan)
        if bound > self.bound:
            self.bound, self.raised = bound, True
            self.on_progress(Progress(self.elapsed_s, self.makespan, bound, self.source))

    def raise_dual(self, dual: float, unit: int) -> None:
        """Take HiGHS's dual bound, rounded up to the steps of ``unit`` ticks in which makespans come."""
        if math.isfinite(dual):
            self.raise_bound(math.ceil(dual - _TOLERANCE) * unit)

    def answer(self, stopped_by: StoppedBy, bound_by: str) -> Answer:
        """Return what is known as the answer; a closed gap is a proof however the run ended."""
        if self.start is not None and self.bound >= self.makespan:
            stopped_by = "proof"
        return Answer(self.start, self.bound, bound_by if self.raised else "", stopped_by)


def opened(problem: Problem, limits: Limits, on_progress: OnProgress, source: str) -> Search:
    """Return a search that knows the given schedule, or a plain serial one, and the better of the bounds.

    Raises
    ------
    ValueError
        If the schedule in ``limits`` breaks a rule of the problem.
    """
    search = Search(problem, limits, on_progress, source)
    chain = critical_path(problem)
    search.bound, search.raised = max(limits.bound, chain), chain > limits.bound
    if limits.start is not None:
        start = np.asarray(limits.start, np.int64)
        wrong = violation(problem, start)
        if wrong is not None:
            raise ValueError(f"the schedule to start from is none: {wrong}")
        search.offer(start, tell=False)
    else:
        search.offer(serial_schedule(problem))
    return search


def solve_highs(problem: Problem, limits: Limits, stop: Stop = never, on_progress: OnProgress = silent) -> Answer:
    """Solve the reduced problem with HiGHS.

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
    search = opened(problem, limits, on_progress, SOURCE)
    if search.close_enough:
        return search.answer("gap", "critical path")
    if stop():
        return search.answer("cancelled", "critical path")
    coarse, tick = coarsened(problem)
    model = step_model(coarse, search.makespan // tick, -(-search.bound // tick))
    model.refuse_if_too_large()
    assert search.start is not None
    z = model.values(search.start // tick)
    known = (np.arange(len(z), dtype=np.int32), z)
    return branch_and_bound(search, model.build(), known, lambda values: model.start(values) * tick, model.step * tick,
                            stop, BOUND_BY)


def step_model(problem: Problem, horizon: int, bound: int) -> StepModel:
    """Return the step model of schedules that end by ``horizon`` and not before ``bound``, in ticks."""
    return StepModel(problem, windows(problem, horizon), bound, horizon)


def branch_and_bound(search: Search, built: mip.Mip, known: tuple[mip.Index, mip.Float],
                     start_of: Callable[[mip.Float], Int], unit: int, stop: Stop, bound_by: str) -> Answer:
    """Run HiGHS on a model of the search's problem and translate what it says.

    Parameters
    ----------
    known
        Columns and values of the search's schedule.
    start_of
        Reads the start ticks from a solution.
    unit
        Ticks that one unit of the objective is worth.
    """

    def on_values(values: mip.Float) -> None:
        search.offer(start_of(values))

    def on_dual(dual: float) -> bool:
        search.raise_dual(dual, unit)
        return search.close_enough

    if search.left_s <= 0:
        return search.answer("time_limit", "critical path")
    run = mip.Run(search.left_s, search.limits.gap, 1.0, search.limits.threads, search.limits.seed)
    outcome = mip.solve(built, run, known, stop, on_values, on_dual)
    if outcome.ended == "infeasible":
        raise RuntimeError("HiGHS calls a model infeasible although a schedule for it is known")
    if outcome.values is not None:
        on_values(outcome.values)
    on_dual(outcome.dual)
    stopped_by: StoppedBy = "gap" if search.close_enough else "cancelled" if stop() else "time_limit"
    return search.answer(stopped_by, bound_by)
