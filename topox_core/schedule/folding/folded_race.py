"""The race on a folded problem, whose bounds hold for symmetric schedules only."""

from __future__ import annotations

import math

from topox_core.schedule.engines.engine import StoppedBy
from topox_core.schedule.portfolio import Portfolio
from topox_core.schedule.source import TraceSource


class FoldedRace(Portfolio):
    """A race on a quotient: its bounds may end the race, but are no bounds of the whole problem."""

    symmetric_bound = 0
    patience_s = math.inf

    def _raise(
        self,
        bound: int,
        source: TraceSource,  # noqa: ARG002
        words: str,  # noqa: ARG002
        counts_dark: bool = False,  # noqa: ARG002
    ) -> None:
        self.symmetric_bound = max(self.symmetric_bound, bound)

    def _over(self) -> bool:
        waited_s = self.elapsed_s - self.trace[-1].elapsed_s
        return self._proved or waited_s > self.patience_s or super()._over()

    @property
    def _proved(self) -> bool:
        return self.plan.makespan <= self.symmetric_bound

    @property
    def stopped_by(self) -> StoppedBy:
        """Why the race ended; that no symmetric schedule is shorter is no proof for the whole."""
        ended = super().stopped_by
        return "heuristic" if self._proved and ended not in ("proof", "gap", "cancelled") else ended

    @property
    def message(self) -> str:
        """What a user must know besides."""
        if not self._proved or self.stopped_by != "heuristic":
            return ""
        symmetric = self.planner.problem.ms(self.plan.makespan)
        return f"No schedule that treats equal replicas alike is shorter than {symmetric:g} ms; one that does not could be."
