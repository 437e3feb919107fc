"""One result for every engine: a schedule with its bound and how it came about."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.model.execution import Execution
from topox_core.schedule.engines.engine import Status, StoppedBy
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import Family as Family  # figures read results from here
from topox_core.schedule.source import TraceSource


@dataclass(frozen=True)
class TracePoint:
    """Incumbent and bound at a time of the solve, in ms: ``source`` moved one of them, ``bound_source`` the bound last."""

    elapsed_s: float
    incumbent_ms: float | None
    bound_ms: float
    source: TraceSource
    bound_source: TraceSource


@dataclass(frozen=True)
class Result:
    """What a solve returns.

    Attributes
    ----------
    status
        ``optimal`` (gap proved 0), ``feasible``, ``infeasible`` or ``unknown`` (stopped before
        either).
    makespan_ms, bound_ms, gap
        Of the rounded model; gap is (makespan - bound) / makespan.
    bound_by
        What binds, in words a user understands.
    bound_tasks
        Ids of the tasks on the binding critical path (empty if a resource binds).
    unrounded_bound_ms
        The same bounds on durations that were not rounded to ticks and slots.
    rounding
        By how much the tick raises the cheap bound, as a fraction.
    message
        What a user must know besides, e.g. that a solver process died.
    """

    status: Status
    engine: str
    stopped_by: StoppedBy
    makespan_ms: float | None
    bound_ms: float
    bound_by: str
    bound_tasks: tuple[str, ...]
    unrounded_bound_ms: float
    wall_s: float
    slot_ms: float
    tick_ms: float
    rounding: float
    settings: Settings
    execution: Execution | None
    trace: tuple[TracePoint, ...] = ()
    message: str = ""

    @property
    def gap(self) -> float | None:
        """Relative distance between makespan and bound; None without a schedule."""
        if self.makespan_ms is None:
            return None
        if self.makespan_ms <= 0:
            return 0.0
        return max(0.0, (self.makespan_ms - self.bound_ms) / self.makespan_ms)
