"""The rows of a study's table: what came of each point, and the plans of harder points that serve easier ones.

A plan for a longer delay, slower or fewer ports can be carried out with a shorter delay, faster or
more ports in the same time at most (:mod:`topox_core.fabrics.passed_plans`), so that planned times
never grow where the network becomes better.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from topox_core.library.record import FAILED
from topox_core.schedule.result import gap
from topox_core.studies.axes import Point
from topox_core.studies.study import Study
from topox_core.studies.subject import DEFAULT_FABRIC

PLANNED = "scheduled"
# The axes of a better network, and whether more of each is easier.
EASIER = {"cluster.reconfiguration_ms": False, "cluster.port_gbps": True, "cluster.degree": True}
DELAY = "cluster.reconfiguration_ms"
# Where one of these is set, plans may keep to slots or pay no delay.
OWN_RULES = ("settings.model", "settings.circuits", "settings.clock")
SERVED = "A plan made for a longer delay, or for slower or fewer ports, is shorter than this point's own."
OF_THE_PLAN = ("iteration_ms", "changes", "dark_share", "bandwidth_tax", "windows", "window_ms")


@dataclass(frozen=True)
class PointRow:
    """One point of a study and what came of it.

    Attributes
    ----------
    number
        Of the point in the design, from 0.
    point
        The axes' values; None where an axis is at its base.
    run
        Its number in the library; None where there is no library, or nothing came yet.
    measures
        None while the point is still to come.
    status, message
        Of the run; ``failed`` with its reason where it could not be computed.
    version
        Which code computed it.
    wall_s
        How long it took; equal points are computed once.
    """

    number: int
    point: Point
    run: int | None = None
    measures: Mapping[str, float | None] | None = None
    status: str = ""
    message: str = ""
    version: str = ""
    wall_s: float = 0.0

    @property
    def done(self) -> bool:
        """Whether it was computed, or was found not to be possible."""
        return self.measures is not None

    @property
    def failed(self) -> bool:
        """Whether it could not be computed."""
        return self.status == FAILED


# An axis, and its points as (how easy, number).
Chain = tuple[str, tuple[tuple[float, int], ...]]


def chains(study: Study) -> tuple[Chain, ...]:
    """Return the planned points that differ in one axis of :data:`EASIER` alone, axis by axis, the hardest first."""
    groups: defaultdict[tuple[str, object], list[tuple[float, int]]] = defaultdict(list)
    for axis, more in EASIER.items():
        for number, point in enumerate(study.points):
            values = study.values(point)
            planned = values.get("fabric", DEFAULT_FABRIC) == PLANNED
            if axis in values and planned and values.keys().isdisjoint(OWN_RULES):
                rest = frozenset(one for one in values.items() if one[0] != axis)
                ease = float(values[axis]) if more else -float(values[axis])
                groups[axis, rest].append((ease, number))
    return tuple(
        (axis, tuple(sorted(points))) for (axis, _), points in groups.items() if len(points) > 1
    )


def with_harder_plans(rows: Sequence[PointRow], known: Sequence[Chain]) -> tuple[PointRow, ...]:
    """Return the rows of a study, those with the plan of a harder point that takes less time than their own; ``known``: its chains."""
    found = list(rows)
    for axis, chain in known:
        best: PointRow | None = None
        best_ease = 0.0
        for ease, number in chain:
            row = found[number]
            if not _ms(row):
                continue
            # Fixed circuits share their links, which may become worse where they are faster.
            serves = best is not None and (axis == DELAY or _of(best, "changes") > 0)
            if best is not None and serves and _ms(best) < _ms(row) * (1 - 1e-9):
                dark = ease / best_ease if axis == DELAY else 1.0
                found[number] = row = _served(row, best, dark)
            best, best_ease = row, ease
    return tuple(found)


def _of(row: PointRow, name: str) -> float:
    return 0.0 if row.measures is None else row.measures.get(name) or 0.0


def _ms(row: PointRow) -> float:
    return _of(row, "iteration_ms")


def _served(row: PointRow, plan: PointRow, dark: float) -> PointRow:
    """Return a point with the plan of a harder one, whose ports are dark for a share ``dark`` of what they were there."""
    assert row.measures is not None
    assert plan.measures is not None
    longer = _ms(row) / _ms(plan)
    measures = {**row.measures, **{name: plan.measures.get(name) for name in OF_THE_PLAN}}
    bound_ms = min(_of(row, "bound_ms"), _ms(plan))
    left = gap(_ms(plan), bound_ms)
    measures |= {"bound_ms": bound_ms, "gap": left}
    measures["dark_share"] = _of(plan, "dark_share") * dark
    for name, factor in (("iterations_per_dollar", longer), ("joules_per_iteration", 1 / longer)):
        own = row.measures.get(name)
        measures[name] = None if own is None else own * factor
    status = "feasible" if left else "optimal"
    # Whoever opens the point sees the run whose time stands there.
    return replace(row, run=plan.run, measures=measures, status=status, message=SERVED)
