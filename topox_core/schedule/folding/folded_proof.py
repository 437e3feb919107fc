"""A solve of a large problem with equal replicas: a race on the folded problem, then the usual one from what it found."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

from topox_core.schedule.engines.engine import Limits, StoppedBy
from topox_core.schedule.planner import FoldedProblem, Prepared, SchedulePlan
from topox_core.schedule.portfolio import Portfolio
from topox_core.schedule.proof import Proof
from topox_core.schedule.report import to_result
from topox_core.schedule.result import Result, TracePoint

# Of the time limit, for the folded problem where the whole can be searched as well: at most, and
# without a better plan.
SHARE, PATIENCE = 0.5, 0.15


def started(
    prepared: Prepared, plan: SchedulePlan, spent_before_s: float, story: list[TracePoint]
) -> Proof:
    """Return a solve in the background from a plan on: on the folded problem first where there is one and it can help."""
    engines = prepared.settings.engine in ("auto", "highs", "cpsat")
    if engines and plan.makespan > prepared.reduction.bound.ticks:
        folded = prepared.planner.folded
        if folded is not None and folded.faithful:
            return FoldedProof(prepared, plan, spent_before_s, story)
    return Proof(prepared, plan, spent_before_s, story)


class FoldedRace(Portfolio):
    """A race on a quotient. Its bounds hold for symmetric schedules only: they may end the race, but are never told."""

    symmetric_bound = 0
    patience_s = math.inf

    def _raise(self, bound: int, source: str, words: str) -> None:  # noqa: ARG002
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


@dataclass
class FoldedProof(Proof):
    """One solve in the background, told as any other; :func:`started` says when there is one.

    ``plan`` is the best plan of the whole; while the race is on the quotient, that race has plans
    of the quotient.
    """

    def __post_init__(self) -> None:
        began = time.monotonic()
        settings, bound = self.prepared.settings, self.prepared.reduction.bound
        self._stopped = False
        self._folded: FoldedProblem | None = self.prepared.planner.folded
        if self._folded is None:
            raise ValueError("the problem does not fold")
        plan = self._folded.planner.best_plan(
            lambda: self.spent_before_s + time.monotonic() - began > settings.time_limit_s
        )
        self.spent_before_s += time.monotonic() - began
        left_s, alone = (
            max(0.0, settings.time_limit_s - self.spent_before_s),
            self.prepared.planner.too_large,
        )
        limits = Limits(
            time_limit_s=left_s * (1.0 if alone else SHARE),
            gap=settings.gap,
            seed=settings.seed,
            threads=settings.threads,
            bound=bound.ticks,
        )
        race = FoldedRace(self._folded.planner, plan, settings.engine, limits, bound.text)
        race.patience_s = math.inf if alone else left_s * PATIENCE
        self.race = race
        self._record(self.race.trace)

    @property
    def running(self) -> bool:
        """Whether the solve goes on (call :meth:`poll` to take it forward)."""
        return self.race.running or not self._last

    @property
    def incumbent_ms(self) -> float:
        """Makespan of the best plan so far."""
        return self.prepared.reduction.problem.ms(min(self.plan.makespan, self.race.plan.makespan))

    def poll(self) -> list[TracePoint]:
        """Take in what the engines found; return the new lines of the story."""
        lines = super().poll()
        if not self._last and not self.race.running:
            lines += self._go_on()
        return lines

    def cancel(self) -> None:
        """Ask the engines to stop; the best plan so far is kept."""
        self._stopped = True
        super().cancel()

    def close(self) -> None:
        """End everything at once (the tab was closed)."""
        self._stopped = True
        super().close()

    def result(self) -> Result:
        """Return the result as it stands."""
        if self._folded is None:
            return super().result()
        self._unfold()
        race, bound = self.race, self.prepared.reduction.bound
        stopped_by: StoppedBy = "proof" if self.plan.makespan <= bound.ticks else race.stopped_by
        return to_result(
            self.prepared,
            self.plan,
            bound.ticks,
            bound.text,
            stopped_by,
            tuple(self.story),
            self.elapsed_s,
            race.message,
        )

    @property
    def _last(self) -> bool:
        """Whether no other race comes after this one."""
        return self._stopped or self._folded is None or self.prepared.planner.too_large

    def _go_on(self) -> list[TracePoint]:
        """Begin the race on the whole problem from the best plan; return its first lines."""
        told = len(self.story)
        self._unfold()
        self._folded = None
        self.spent_before_s += self.race.elapsed_s
        super().__post_init__()
        return self.story[told:]

    def _unfold(self) -> None:
        """Keep the better of the best plan and what the race on the quotient found."""
        found = self.race.plan
        if found.makespan < self.plan.makespan:
            found = self.prepared.planner.unfolded(found)
            if self.plan.reduced_makespan < found.reduced_makespan:
                found = replace(
                    found,
                    reduced_start=self.plan.reduced_start,
                    reduced_makespan=self.plan.reduced_makespan,
                )
            self.plan = found

    def _record(self, points: list[TracePoint]) -> list[TracePoint]:
        if self._folded is not None:
            best_ms = self.prepared.reduction.problem.ms(self.plan.makespan)
            points = [
                replace(
                    point,
                    incumbent_ms=min(point.incumbent_ms or best_ms, best_ms),
                    source=f"folded, {point.source}",
                )
                for point in points
            ]
        return super()._record(points)
