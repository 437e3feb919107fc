"""A study: what it is about, what varies and is fixed, which points, what is reported, its limits; from and to files.

Files are ``*.study.json``, format ``topox-study`` version 1 (docs/studies.md).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from topox_core.errors import (
    InputError,
    errors_at,
    errors_in_file,
    printable,
    refuse_if,
    shown,
)
from topox_core.io.assertions import KEY as ASSERT, Assertion, assertions_of
from topox_core.io.content import FileFormat, digest_of, read_object
from topox_core.io.limits import STUDY
from topox_core.schema.fields import PRINTABLE, setting
from topox_core.schema.records import from_values
from topox_core.studies.axes import MAX_POINTS, Axis, Design, Point, axis_of, design_of, unknown_key
from topox_core.studies.keys import USUAL, Key, Value, chosen_measures, of_runs
from topox_core.studies.subject import Kept, Subject, subject_of

FORMAT, VERSION = "topox-study", 1
MAX_AXES, MAX_NAME = 32, 120


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
        given = ((one, getattr(self, one.name)) for one in fields(self))
        return {one.name: value for one, value in given if value != one.default}


@dataclass(frozen=True)
class Study:
    """A study as its file says it; nothing is read or computed yet.

    Attributes
    ----------
    name
        If it is empty, the kind of its subject.
    fixed
        Keys that have another value than the subject's own, at every point.
    measures
        What its tables and pictures show; every measure of a run is kept in any case.
    assertions
        What every point must hold.

    Raises
    ------
    InputError
        If an axis is also fixed or there twice, or there are too many points.
    """

    name: Annotated[str, setting(max_length=MAX_NAME, without=PRINTABLE)]
    subject: Subject
    axes: tuple[Axis, ...] = ()
    fixed: Mapping[str, Value] = field(default_factory=dict)
    design: Design = field(default_factory=Design)
    measures: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    assertions: tuple[Assertion, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.subject.kind.capitalize())
        if not self.measures:
            object.__setattr__(self, "measures", USUAL[self.subject.runs])
        names = [axis.key.name for axis in self.axes]
        alone = self.design.kind == "one_at_a_time"  # its axes have a base, which may be fixed
        fixed = next((name for name in names if name in self.fixed and not alone), "")
        twice = next((name for name in names if names.count(name) > 1), "")
        refuse_if(
            (fixed, f"{fixed} is also in fixed"),
            (twice, f"holds {shown(twice)} twice"),
            (len(names) > MAX_AXES, f"has {len(names)} axes (limit {MAX_AXES})"),
            self.design.too_large(self.axes, self.budget.points),
            field="axes",
        )

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
        """SHA-256 of everything but its name, budget and assertions: what a run that goes on must share."""
        own = ("name", "budget", ASSERT)
        return digest_of({key: one for key, one in as_record(self).items() if key not in own})


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
    if study.assertions:
        record[ASSERT] = [str(one) for one in study.assertions]
    return record


_KEYS = ("name", "subject", "fixed", "axes", "design", "measures", "budget", ASSERT)
_FORM = FileFormat(FORMAT, VERSION, _KEYS, STUDY)


def load_study(
    data: bytes, file: str, folder: Path | None = None, kept: Kept = lambda _: None
) -> Study:
    """Read a study.

    Parameters
    ----------
    folder, kept
        Where the files that it names are looked for, as in :func:`~topox_core.studies.subject.resolve`.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, axis and field.
    """
    file = printable(file, 200) if file else "study"
    return study_of(study_record(data, file), file, folder, kept)


def study_record(data: bytes, file: str) -> dict[str, Any]:
    """Return the record of a study file as it is, its values unread.

    Raises
    ------
    InputError
        If it is no file of this format.
    """
    return read_object(data, file, _FORM)


def study_of(
    record: Mapping[str, Any], file: str, folder: Path | None = None, kept: Kept = lambda _: None
) -> Study:
    """Return the study of a record that was read; arguments and errors as :func:`load_study`."""
    with errors_in_file(file):
        refuse_if(("subject" not in record, "is missing"), field="subject")
        subject = subject_of(record["subject"], folder, kept)
        entries = record.get("axes", [])
        refuse_if(
            (not isinstance(entries, list), f"must be a list in brackets (got {shown(entries)})"),
            field="axes",
        )
        keys = subject.keys
        axes = tuple(
            axis_of(entry, number, keys, subject.digest) for number, entry in enumerate(entries, 1)
        )
        own = {key: record[key] for key in ("name", "budget") if key in record}
        return from_values(
            Study,
            {"name": "", **own},
            file,
            subject=subject,
            axes=axes,
            fixed=_fixed(record.get("fixed", {}), keys),
            design=design_of(record.get("design", {"kind": "grid"}), axes),
            measures=chosen_measures(record.get("measures", USUAL[subject.runs]), subject.runs),
            assertions=assertions_of(record.get(ASSERT, []), of_runs(subject.runs)),
        )


def dump_study(study: Study) -> bytes:
    """Write a study; reading it back gives an equal one."""
    text = json.dumps(as_record(study), indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def _fixed(given: Any, keys: Mapping[str, Key]) -> dict[str, Value]:
    refuse_if(
        (not isinstance(given, dict), f"must be an object in braces (got {shown(given)})"),
        field="fixed",
    )
    fixed = {}
    for name, value in given.items():
        if name not in keys:
            raise InputError(unknown_key(name, keys, "key"), field="fixed")
        with errors_at(field=f"fixed.{name}"):
            fixed[name] = keys[name].value(value)
    return fixed
