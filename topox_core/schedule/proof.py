"""A solve that runs beside the page: the race of :mod:`topox_core.schedule.portfolio`, told in milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from topox_core.runs.run import RunProgress
from topox_core.runs.stopping import Stop, never
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.planner import Prepared, SchedulePlan
from topox_core.schedule.portfolio import Opening, Portfolio, opening
from topox_core.schedule.report import to_result
from topox_core.schedule.result import Result, TracePoint
from topox_core.text.numbers import percent, seconds

POLL_S = 0.02


@dataclass
class Proof:
    """One solve in the background; poll it until it no longer runs, then take the result. Nothing here blocks."""

    prepared: Prepared
    plan: SchedulePlan
    spent_before_s: float = 0.0
    story: list[TracePoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings, reduction = self.prepared.settings, self.prepared.reduction
        began = time.monotonic()
        limits = Limits(
            time_limit_s=max(0.0, settings.time_limit_s - self.spent_before_s),
            gap=settings.gap,
            seed=settings.seed,
            threads=settings.threads,
            bound=reduction.bound.ticks,
        )
        known = Opening(self.plan, reduction.bound.ticks, reduction.bound.text, None)
        changing = self.prepared.planner.ports is not None and self.plan.changes > 0
        if settings.engine != "printed" and (self.plan.makespan > known.bound or changing):
            known = opening(self.prepared.planner, self.plan, known.bound_by, limits)
            self.spent_before_s += time.monotonic() - began
        limits = replace(
            limits,
            time_limit_s=max(0.0, settings.time_limit_s - self.spent_before_s),
            bound=known.bound,
        )
        self.race = Portfolio(
            self.prepared.planner,
            known.plan,
            settings.engine,
            limits,
            known.bound_by,
            known.steered,
        )
        self._record(self.race.trace)

    @property
    def running(self) -> bool:
        """Whether the solve goes on (call :meth:`poll` to take it forward)."""
        return self.race.running

    @property
    def process_id(self) -> int | None:
        """Process number of the first exact engine's child, if there is one."""
        return next(iter(self.race.process_ids), None)

    @property
    def trouble(self) -> str:
        """What went wrong with an exact engine while the rest goes on; empty if nothing."""
        return self.race.trouble

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, standing still once the solve has ended."""
        return self.race.elapsed_s + self.spent_before_s

    @property
    def incumbent_ms(self) -> float:
        """Makespan of the best plan so far."""
        return self.prepared.reduction.problem.ms(self.race.plan.makespan)

    @property
    def bound_ms(self) -> float:
        """Best lower bound so far."""
        return self.prepared.reduction.problem.ms(self.race.bound)

    @property
    def progress(self) -> RunProgress:
        """Share of the time limit that is spent, and the gap."""
        limit_s, incumbent_ms = self.prepared.settings.time_limit_s, self.incumbent_ms
        gap = max(0.0, 1 - self.bound_ms / incumbent_ms) if incumbent_ms else 0.0
        return RunProgress(
            self.elapsed_s,
            min(1.0, self.elapsed_s / limit_s) if limit_s else 1.0,
            words=f"gap {percent(gap)}, at most {seconds(limit_s)}",
        )

    def poll(self) -> list[TracePoint]:
        """Take in what the engines found; return the new lines of the story."""
        return self._record(self.race.poll())

    def finish(
        self, stop: Stop = never, on_line: Callable[[TracePoint], None] | None = None
    ) -> Result:
        """Wait for the end and return the result; ``stop`` cancels, every new line of the story is told."""
        try:
            while self.running:
                for line in self.poll():
                    if on_line is not None:
                        on_line(line)
                if stop():
                    self.cancel()
                time.sleep(POLL_S)
            return self.result()
        finally:
            self.close()

    def cancel(self) -> None:
        """Ask the engines to stop; the best plan so far is kept."""
        self.race.cancel()

    def close(self) -> None:
        """End everything at once (the tab was closed)."""
        self.race.close()

    def result(self) -> Result:
        """Return the result as it stands."""
        race = self.race
        self.plan = race.plan
        return to_result(
            self.prepared,
            race.plan,
            race.bound,
            race.bound_by,
            race.stopped_by,
            tuple(self.story),
            self.elapsed_s,
            race.message,
        )

    def _record(self, points: list[TracePoint]) -> list[TracePoint]:
        """Add what a race found to the trace, on the solve's own clock."""
        added = [replace(p, elapsed_s=p.elapsed_s + self.spent_before_s) for p in points]
        self.story += added
        return added
