"""A study: what it is about, what varies and is fixed, which points, what is reported, and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from topox_core.errors import InputError, shown
from topox_core.io.json import digest_of
from topox_core.schema.fields import setting
from topox_core.studies.axes import Axis
from topox_core.studies.design import MAX_POINTS, Design, Point
from topox_core.studies.keys import Key, Value
from topox_core.studies.measures import USUAL
from topox_core.studies.subject import Subject

FORMAT, VERSION = "topox-study", 1
MAX_AXES = 32


@dataclass(frozen=True)
class Budget:
    """When a study stops by itself.

    Attributes
    ----------
    points
        Most points; a larger design is refused.
    seconds
        Of the whole run; what is done then is kept.
    seconds_per_point
        Of one point, which fails where it takes longer.
    """

    points: Annotated[int, setting(ge=1, le=MAX_POINTS)] = MAX_POINTS
    seconds: Annotated[float, setting(gt=0, le=1e9)] | None = None
    seconds_per_point: Annotated[float, setting(gt=0, le=1e9)] | None = None

    def as_record(self) -> dict[str, Any]:
        """Return it as the file has it, without what is not limited."""
        given = {"points": self.points if self.points != MAX_POINTS else None}
        given |= {"seconds": self.seconds, "seconds_per_point": self.seconds_per_point}  # type: ignore[dict-item]
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Study:
    """A study as its file says it; nothing is read or computed yet.

    Attributes
    ----------
    fixed
        Keys that have another value than the subject's own, at every point.
    measures
        What its tables and pictures show; every measure of a run is kept in any case.

    Raises
    ------
    InputError
        If an axis is also fixed or there twice, or there are too many points.
    """

    name: str
    subject: Subject
    axes: tuple[Axis, ...] = ()
    fixed: Mapping[str, Value] = field(default_factory=dict)
    design: Design = field(default_factory=Design)
    measures: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        if not self.measures:
            object.__setattr__(self, "measures", USUAL[self.subject.runs])
        names = [axis.key.name for axis in self.axes]
        for name in names:
            if name in self.fixed:
                raise InputError(f"{name} is also in fixed", field="axes")
            if names.count(name) > 1:
                raise InputError(f"holds {shown(name)} twice", field="axes")
        if len(names) > MAX_AXES:
            raise InputError(f"has {len(names)} axes (limit {MAX_AXES})", field="axes")
        size = self.design.size(self.axes)
        if size > self.budget.points:
            words = self.design.size_words(self.axes)
            problem = f"has {size:,} points (limit {self.budget.points:,}): {words}"
            raise InputError(problem, field="design")

    @property
    def keys(self) -> Mapping[str, Key]:
        """What may vary."""
        return self.subject.keys

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The points, in the order of every table."""
        return self.design.points(self.axes)

    def values(self, point: Sequence[Value | None]) -> dict[str, Value]:
        """Return what is set at a point: what is fixed, and the axes' values."""
        values = dict(self.fixed)
        for axis, value in zip(self.axes, point, strict=True):
            if value is not None:
                values[axis.key.name] = value
        return values

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything but its name and budget: what a run that goes on must share."""
        record = as_record(self)
        return digest_of({key: record[key] for key in record if key not in ("name", "budget")})


def as_record(study: Study) -> dict[str, Any]:
    """Return a study as its file has it."""
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": study.name,
        "subject": study.subject.as_record(),
        "fixed": dict(study.fixed),
        "axes": [axis.as_record() for axis in study.axes],
        "design": study.design.as_record(),
        "measures": list(study.measures),
    }
    if budget := study.budget.as_record():
        record["budget"] = budget
    return record
