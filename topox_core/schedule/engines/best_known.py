"""What an exact solve knows at any moment: the best schedule, the best bound and where they came from.

Every engine begins by raising the bound without search, and by narrowing the windows of what is left.
"""

import time
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from topox_core.runs.run import Stop, never
from topox_core.schedule.bounds.ancestor_bounds import (
    ancestor_bound,
    ancestor_heads_and_tails,
    near_of,
)
from topox_core.schedule.bounds.propagation import (
    SHAVED_TASKS,
    SMALL_TASKS,
    Propagator,
    raised_bound,
)
from topox_core.schedule.bounds.windows import Windows, clocks, critical_path, step_of, windows
from topox_core.schedule.circuits.held_ports import Solution, held_back, solution_violation
from topox_core.schedule.engines.engine import (
    Answer,
    Ended,
    Limits,
    News,
    OnProgress,
    Progress,
    Solve,
)
from topox_core.schedule.planning.list_scheduler import serial_schedule
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.settings import TIME
from topox_core.schedule.source import (
    ELSEWHERE,
    HEADS_AND_TAILS,
    LOADS,
    PROPAGATION,
    StoppedBy,
    TraceSource,
)

PROPAGATION_BY = "propagation: no shorter schedule fits its time windows"
# Ancestors counted at first, by how much more next, and how much longer that takes.
FIRST_NEAR, GROWTH, LONGER = 100, 4, 3


@dataclass
class BestKnown:
    """The best schedule and bound of one solve (makespan and bound in ticks), and whom to tell.

    ``bound_by`` says in words what raised the bound last; empty if nothing did. ``counted`` are heads
    and tails in ticks that count what ancestors need, once they have been found.
    """

    problem: Problem
    limits: Limits
    on_progress: OnProgress | None = None
    stop: Stop = never
    news: News | None = None
    began: float = field(default_factory=time.monotonic)
    solution: Solution = field(default_factory=lambda: Solution(np.zeros(0, np.int64)))
    makespan: int = -1
    bound: int = 0
    bound_by: str = ""
    bound_source: TraceSource = LOADS
    counted: tuple[Int, Int] | None = None

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

    def offer(self, solution: Solution, source: TraceSource, tell: bool = True) -> None:
        """Take a schedule if it is better, after checking every rule of the problem on it.

        Raises
        ------
        RuntimeError
            If it breaks a rule: then the model or the solver is wrong, and nothing it says is
            believed.
        """
        solution = held_back(self.problem, solution)
        wrong = solution_violation(self.problem, solution)
        if wrong is not None:
            raise RuntimeError(f"{source} gave a schedule that is none: {wrong}")
        makespan = int((solution.start + self.problem.duration).max(initial=0))
        if self.makespan < 0 or makespan < self.makespan:
            self.solution, self.makespan = solution, makespan
            if tell and self.on_progress is not None:
                self.on_progress(Progress(self.bound, source, solution))

    def over(self) -> bool:
        """Take a schedule found elsewhere, if there is one; return whether nothing is left to find, or who asked wants no more."""
        solution = None if self.news is None else self.news()
        if solution is not None:
            self.offer(solution, ELSEWHERE, tell=False)
        return self.close_enough or self.stop()

    def goes_on(self, until_s: float) -> bool:
        """Whether there is something to find, and time for it, in seconds since the solve began."""
        return self.elapsed_s < until_s and not self.over()

    def raise_bound(self, bound: int, source: TraceSource, words: str) -> None:
        """Take a lower bound in ticks if it is better."""
        bound = min(bound, self.makespan)
        if bound > self.bound:
            self.bound, self.bound_by, self.bound_source = bound, words, source
            if self.on_progress is not None:
                self.on_progress(Progress(bound, source, words=words))

    @cached_property
    def step(self) -> int:
        """Ticks between two makespans that can occur."""
        return step_of(self.problem, clocks(self.problem))

    def refute(self, horizon: int, source: TraceSource, words: str) -> None:
        """Take in that no schedule ends by the horizon (ticks)."""
        self.raise_bound((horizon // self.step + 1) * self.step, source, words)

    def search(
        self,
        solve: Solve,
        horizon: int,
        until_s: float,
        over: Stop,
        source: TraceSource,
        words: str,
    ) -> Ended:
        """Search a model of schedules that end by the horizon, take in what it says, and return how that ended.

        Parameters
        ----------
        until_s
            When to end, in seconds since the solve began.
        over
            Whether to end sooner although nothing is proved.
        words
            Say who raised a bound; empty where the model rules out schedules, so that its bounds do
            not hold.

        Raises
        ------
        RuntimeError
            If the model holds no schedule although one for it is known.
        """
        limits = replace(self.limits, time_limit_s=until_s - self.elapsed_s)
        if limits.time_limit_s <= 0:
            return "stopped"
        possible = self.makespan <= horizon

        def raise_bound(bound: int) -> None:
            if words:
                self.raise_bound(bound, source, words)

        offer = partial(self.offer, source=source)
        ended = solve(limits, lambda: self.over() or over(), offer, raise_bound)
        if ended == "infeasible" and words:
            if possible:
                raise RuntimeError(
                    f"{source} calls a model infeasible although a schedule for it is known"
                )
            self.refute(horizon, source, words)
        return ended

    def answer(self) -> Answer:
        """Return what is known as the answer; a closed gap tells why it stopped better than who asked to stop."""
        stopped_by: StoppedBy = "cancelled" if self.stop() else "time_limit"
        if self.close_enough:
            stopped_by = "proof" if self.bound >= self.makespan else "gap"
        return Answer(self.bound, self.bound_source, self.solution, self.bound_by, stopped_by)


def initially_known(
    problem: Problem,
    limits: Limits,
    on_progress: OnProgress | None = None,
    stop: Stop = never,
    news: News | None = None,
) -> BestKnown:
    """Return what is known before a solve: the schedule given or a plain serial one, and the better bound.

    Where the problem counts set-ups a schedule must be given, for it needs ports.

    Raises
    ------
    ValueError
        If the schedule in ``limits`` breaks a rule of the problem.
    """
    known = BestKnown(problem, limits, on_progress, stop, news)
    chain = critical_path(problem)
    known.bound = limits.bound
    if chain > limits.bound:
        known.bound, known.bound_by = chain, "critical path"
    if limits.solution is None:
        known.offer(Solution(serial_schedule(problem)), TraceSource("rules", "serial schedule"))
        return known
    wrong = solution_violation(problem, limits.solution)
    if wrong is not None:
        raise ValueError(f"the schedule to start from is none: {wrong}")
    known.offer(limits.solution, TraceSource("rules", "given"), tell=False)
    return known


def raise_bounds(known: BestKnown, stop: Stop) -> None:
    """Raise the bound by cones of ancestors, then by propagation within the heads and tails that they give."""
    if not known.close_enough:
        _by_cones(known, stop)
        _by_propagation(known, _share(known.problem.n, known.left_s) * known.left_s, stop)


def _share(tasks: int, left_s: float) -> float:
    """Return the share of the time for bounds by propagation: of many tasks more where all can be tried, less where not."""
    if not SMALL_TASKS < tasks <= SHAVED_TASKS:
        return TIME.propagation_share
    return (
        TIME.propagation_many_share
        if TIME.propagation_share * left_s >= TIME.many_s_per_task * tasks
        else TIME.propagation_short_share
    )


def raise_bounds_with_set_ups(known: BestKnown, stop: Stop) -> None:
    """Raise the bound by heads and tails that count set-ups, then by propagation within them."""
    _count_ancestors(known, near_of(known.problem, FIRST_NEAR))
    _by_propagation(known, min(TIME.set_up_bounds_s, TIME.propagation_share * known.left_s), stop)


def _by_propagation(known: BestKnown, seconds: float, stop: Stop) -> None:
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
        known.counted,
    )


def _by_cones(known: BestKnown, stop: Stop) -> None:
    """Count more and more ancestors while that takes a fair share of the time."""
    near = FIRST_NEAR
    while not stop() and not known.close_enough:
        began = time.monotonic()
        _count_ancestors(known, near)
        took = time.monotonic() - began
        if near >= known.problem.n or LONGER * took > TIME.ancestors_share * known.left_s:
            break
        near *= GROWTH


def _count_ancestors(known: BestKnown, near: int) -> None:
    """Raise heads and tails by so many ancestors of each task, set-ups included, and the bound by them."""
    problem, dark = known.problem, known.problem.dark_ticks or 0
    known.counted = ancestor_heads_and_tails(problem, clocks(problem), near, dark, known.counted)
    bound = ancestor_bound(problem, *known.counted, known.bound, dark // problem.ticks_per_slot)
    if bound is not None:
        known.raise_bound(bound.ticks, HEADS_AND_TAILS, bound.text)


def narrow_windows(
    known: BestKnown, horizon: int, stop: Stop, thorough: bool = True
) -> Windows | None:
    """Return windows of schedules that end by the horizon (ticks), as narrow as is cheap; None if there are none.

    ``thorough`` tries single starts as well (shaving).
    """
    problem = known.problem
    given, propagator = windows(problem, horizon, known.counted), Propagator(problem)
    if (given.earliest > given.latest).any():
        return None
    if not propagator.worthwhile(horizon):
        return given
    if not thorough or not propagator.shaves:
        return propagator.propagated(given, horizon)
    deadline = time.monotonic() + TIME.windows_share * known.left_s
    return propagator.propagated(
        given,
        horizon,
        True,
        lambda: stop() or time.monotonic() >= deadline,
    )
