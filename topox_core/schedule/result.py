"""One result for every engine: a schedule with its bound and how it came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
        On the clock of the settings; gap is (makespan - bound) / makespan.
    slotted_ms, bound_slotted_ms
        The best plan on the cluster's slots and its bound, where the clock is continuous; None on
        slots, where they are ``makespan_ms`` and ``bound_ms``.
    planned_slot_ms
        On continuous time the slot that the plan was made on; None where there was no plan, but
        the provisioned controller or fixed circuits. On slots it is ``slot_ms``.
    switching
        How the schedule uses circuits: ``planned``, ``provisioned`` or ``fixed``.
    bound_switching_ms, bound_fixed_ms
        Where both were allowed: no schedule that switches, and none on fixed circuits, is shorter;
        ``bound_ms`` is the smaller one. None where only one was.
    alternative
        Where fixed circuits are faster, the best schedule that switches, with its own bound.
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
    wall_s, working_s
        How long the answer took on a clock on the wall, and how much of it counted towards the time
        limit: compiling and loading kernels does not. None where nothing else was counted.
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
    slotted_ms: float | None = None
    bound_slotted_ms: float | None = None
    planned_slot_ms: float | None = None
    switching: Literal["planned", "provisioned", "fixed"] = "planned"
    bound_switching_ms: float | None = None
    bound_fixed_ms: float | None = None
    alternative: Result | None = None
    working_s: float | None = None

    @property
    def gap(self) -> float | None:
        """Relative distance between makespan and bound; None without a schedule."""
        if self.makespan_ms is None:
            return None
        if self.makespan_ms <= 0:
            return 0.0
        return max(0.0, (self.makespan_ms - self.bound_ms) / self.makespan_ms)
