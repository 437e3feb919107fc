"""How exact solves of problems that count set-ups begin: the schedule at hand, on coarse ticks, and raised bounds."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.root_bounds import raise_bounds_with_set_ups
from topox_core.schedule.bounds.windows import Windows, coarsened, windows, within
from topox_core.schedule.engines.best_known import BestKnown, initially_known
from topox_core.schedule.engines.engine import Limits, OnProgress
from topox_core.schedule.problem import Int, Problem


@dataclass(frozen=True)
class SetUpRoot:
    """What is known before a model is built.

    Attributes
    ----------
    known
        The best schedule and bound, in ticks of the problem.
    coarse, tick
        The problem on the coarsest clock that rounds nothing, and how many ticks one of its is.
    head, tail
        Of each task on that clock, set-ups counted.
    """

    known: BestKnown
    coarse: Problem
    tick: int
    head: Int
    tail: Int

    @staticmethod
    def of(
        problem: Problem, limits: Limits, stop: Stop, on_progress: OnProgress | None
    ) -> SetUpRoot:
        """Begin with the schedule of the limits and raise the bound."""
        known = initially_known(problem, limits, on_progress)
        coarse, tick = coarsened(problem)
        return SetUpRoot(known, coarse, tick, *raise_bounds_with_set_ups(coarse, tick, known, stop))

    @property
    def bound(self) -> int:
        """The bound on the coarse clock."""
        return -(-self.known.bound // self.tick)

    @property
    def horizon(self) -> int:
        """End of the best schedule on the coarse clock."""
        return self.known.makespan // self.tick

    def windows(self) -> Windows:
        """Return the windows of schedules as long as the best known."""
        horizon = self.horizon
        return within(windows(self.coarse, horizon), self.coarse, self.head, self.tail, horizon)
