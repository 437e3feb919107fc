"""One result for every engine: a schedule with its bound and how it came about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from topox_core.model.execution import Execution
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import LOADS, Status, StoppedBy, TraceSource

MET = 1e-9  # of the makespan: a bound so close to it is met


def gap(makespan_ms: float, bound_ms: float) -> float:
    """Return the distance between a makespan and its bound as a share of the makespan: 0 where the bound is met."""
    met = makespan_ms <= bound_ms * (1 + MET)
    return 0.0 if met else (makespan_ms - bound_ms) / makespan_ms


@dataclass(frozen=True)
class TracePoint:
    """Incumbent and bound at a time of the solve, in ms: ``source`` moved one of them, ``bound_source`` the bound last."""

    elapsed_s: float
    incumbent_ms: float | None
    bound_ms: float
    source: TraceSource
    bound_source: TraceSource


@dataclass(frozen=True)
class FixedCircuits:
    """An iteration on circuits that stay fixed, which competes with the plans of a solve.

    Attributes
    ----------
    makespan_ms, bound_ms
        Its time, and what no iteration on fixed circuits goes below.
    bound_by
        What binds, in words.
    wall_s
        How long it took to find; the solve began then.
    source
        Who laid the circuits.
    alone
        Whether circuits must not change, so that plans that change them do not count.
    """

    makespan_ms: float
    bound_ms: float
    bound_by: str
    wall_s: float
    source: TraceSource
    alone: bool = False

    def joined(self, trace: Sequence[TracePoint]) -> tuple[TracePoint, ...]:
        """Return the trace of a solve as that of both: the shorter schedule at every moment, and the bound of both classes."""
        first = TracePoint(self.wall_s, self.makespan_ms, self.bound_ms, self.source, LOADS)
        return first, *(() if self.alone else map(self.join, trace))

    def join(self, point: TracePoint) -> TracePoint:
        """Return a point of a solve's trace as one of both."""
        found_ms = self.makespan_ms if point.incumbent_ms is None else point.incumbent_ms
        shorter_ms, weaker = min(found_ms, self.makespan_ms), self.bound_ms < point.bound_ms
        return TracePoint(
            point.elapsed_s + self.wall_s,
            shorter_ms,
            min(shorter_ms, self.bound_ms, point.bound_ms),
            point.source if found_ms <= self.makespan_ms else self.source,
            LOADS if weaker else point.bound_source,
        )

    def heard_by(self, on_point: Callable[[TracePoint], None]) -> Callable[[TracePoint], None]:
        """Return what a solve calls with its points, so that ``on_point`` hears those of both."""
        on_point(self.joined(())[0])
        return lambda point: None if self.alone else on_point(self.join(point))


@dataclass(frozen=True)
class ClassBound:
    """What is known of one class of schedules: its best, where one was found, and what none of them goes below (ms)."""

    changes_circuits: bool
    best_ms: float | None
    bound_ms: float

    @property
    def proved(self) -> bool:
        """Whether none of the class is shorter than its best."""
        return self.best_ms is not None and self.best_ms <= self.bound_ms * (1 + MET)

    def with_known(self, others: Iterable[ClassBound]) -> ClassBound:
        """Return the best and the highest bound of this and what others know of the same class."""
        known = [self, *(one for one in others if one.changes_circuits == self.changes_circuits)]
        best = [one.best_ms for one in known if one.best_ms is not None]
        bound_ms = max(one.bound_ms for one in known)
        return ClassBound(self.changes_circuits, min(best, default=None), bound_ms)


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
    classes
        What is known of each class of schedules that was allowed; ``bound_ms`` is the least of their
        bounds. Empty without a schedule.
    alternative
        Where fixed circuits are faster, the best schedule that switches, with its own bound.
    bound_by
        What binds, in words a user understands.
    unrounded_bound_ms
        The same bounds on durations that were not rounded to ticks and slots.
    rounding
        By how much the tick raises the cheap bound, as a fraction.
    message
        What a user must know besides, e.g. that a solver process died.
    lowered_bound_ms
        Where rings or algorithms were left open, what no schedule that switches goes below if it
        lowers collectives as the best of them does: all other bounds hold over every lowering. Else
        None.
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
    classes: tuple[ClassBound, ...] = ()
    alternative: Result | None = None
    working_s: float | None = None
    lowered_bound_ms: float | None = None

    @property
    def own_class(self) -> ClassBound:
        """What is known of the class that the schedule itself belongs to."""
        changes = self.switching != "fixed"
        known = (one for one in self.classes if one.changes_circuits == changes)
        return next(known, ClassBound(changes, self.makespan_ms, self.bound_ms))

    @property
    def other_class(self) -> ClassBound | None:
        """What is known of the other class; None where it was not allowed."""
        own = self.own_class
        return next((one for one in self.classes if one != own), None)

    def excludes_change(self, below_ms: float) -> bool:
        """Whether the bounds exclude that a plan that changes circuits is shorter than this."""
        known = (self.own_class, *self.classes)
        return any(one.changes_circuits and one.bound_ms >= below_ms for one in known)

    @property
    def settled(self) -> bool:
        """Whether an exact engine, which looks for plans that change circuits, has nothing left to find."""
        if self.makespan_ms is None:
            return False
        least_ms, known_ms = self.makespan_ms * (1 - MET), self.lowered_bound_ms or 0.0
        changing = [one.bound_ms for one in self.classes if one.changes_circuits]
        return all(max(ms, known_ms) >= least_ms for ms in changing)

    @property
    def gap(self) -> float | None:
        """Relative distance between makespan and bound; None without a schedule."""
        return None if self.makespan_ms is None else gap(self.makespan_ms, self.bound_ms)
