"""Training jobs from and to files: ``*.job.json``, format ``topox-job`` version 1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TypeVar

from topox_core.errors import InputError, errors_in_file, printable, shown, unknown
from topox_core.io.json import FileFormat, read_object, without_header
from topox_core.io.limits import TRAINING_JOB
from topox_core.schema.records import from_values
from topox_core.training.job import PARTS, Job
from topox_core.training.machine import MACHINES, Machine
from topox_core.training.plan import Plan
from topox_core.training.schedule import Schedule
from topox_core.training.shape import SHAPES, Shape

FORMAT, VERSION = "topox-job", 1
_FORM = FileFormat(FORMAT, VERSION, PARTS, TRAINING_JOB)
_Part = TypeVar("_Part", Shape, Plan, Machine, Schedule)


def load_job(data: bytes, file: str) -> Job:
    """Read a job; shape and machine are objects, or the names of known ones.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, part and field.
    """
    file = printable(file, 200) if file else "job"
    record = without_header(read_object(data, file, _FORM))
    for part in ("shape", "plan", "machine"):
        if part not in record:
            raise InputError("is missing", file=file, field=part)
    with errors_in_file(file):
        return Job(
            _named(SHAPES, record["shape"], "shape") or _part(Shape, record["shape"], "shape"),
            _part(Plan, record["plan"], "plan"),
            _named(MACHINES, record["machine"], "machine")
            or _part(Machine, record["machine"], "machine"),
            _part(Schedule, record.get("schedule", {}), "schedule"),
            **{key: record[key] for key in ("name", "title", "source") if key in record},
        )


def dump_job(job: Job) -> bytes:
    """Write a job, all of its fields; reading it back gives an equal one."""
    values = asdict(job)
    names = ("name", "title", "source", "shape", "plan", "machine", "schedule")
    record = {"format": FORMAT, "version": VERSION, **{name: values[name] for name in names}}
    return (json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _named(known: Mapping[str, _Part], entry: object, what: str) -> _Part | None:
    """Return the known one that is named; None if the entry is no name."""
    if not isinstance(entry, str):
        return None
    if entry not in known:
        raise InputError(f"{unknown(entry, known, 'name')} (got {shown(entry)})", field=what)
    return known[entry]


def _part(kind: type[_Part], entry: object, item: str) -> _Part:
    if not isinstance(entry, dict):
        words = "a name or an object" if kind in (Shape, Machine) else "an object in braces"
        raise InputError(f"must be {words} (got {shown(entry)})", field=item)
    return from_values(kind, entry, "", item)
