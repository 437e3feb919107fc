"""Studies from and to files: ``*.study.json``, format ``topox-study`` version 1 (docs/studies.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topox_core.errors import InputError, errors_in_file, printable, shown
from topox_core.io.json import FileFormat, read_object
from topox_core.io.limits import STUDY
from topox_core.io.ranges import check_text
from topox_core.schema.fields import wrong_values
from topox_core.studies.axes import axis_of, unknown_key
from topox_core.studies.design import design_of
from topox_core.studies.keys import Key, Value
from topox_core.studies.measures import USUAL, chosen_measures
from topox_core.studies.study import FORMAT, MAX_AXES, VERSION, Budget, Study, as_record
from topox_core.studies.subject import Kept, subject_of

_KEYS = ("name", "subject", "fixed", "axes", "design", "measures", "budget")
_FORM = FileFormat(FORMAT, VERSION, _KEYS, STUDY)
MAX_NAME = 120


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
        if "subject" not in record:
            raise InputError("is missing", field="subject")
        name = record.get("name", "")
        check_text(name, MAX_NAME, field="name")
        subject = subject_of(record["subject"], folder, kept)
        entries = record.get("axes", [])
        if not isinstance(entries, list):
            raise InputError(f"must be a list in brackets (got {shown(entries)})", field="axes")
        if len(entries) > MAX_AXES:
            raise InputError(f"has {len(entries)} axes (limit {MAX_AXES})", field="axes")
        keys = subject.keys
        axes = tuple(
            axis_of(entry, number, keys, subject.digest) for number, entry in enumerate(entries, 1)
        )
        measures = record.get("measures", list(USUAL[subject.runs]))
        return Study(
            name or subject.kind.capitalize(),
            subject,
            axes,
            _fixed(record.get("fixed", {}), keys),
            design_of(record.get("design", {"kind": "grid"}), axes),
            chosen_measures(measures, subject.runs),
            _budget(record.get("budget", {})),
        )


def dump_study(study: Study) -> bytes:
    """Write a study; reading it back gives an equal one."""
    text = json.dumps(as_record(study), indent=1, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def _fixed(given: object, keys: Mapping[str, Key]) -> dict[str, Value]:
    if not isinstance(given, dict):
        raise InputError(f"must be an object in braces (got {shown(given)})", field="fixed")
    fixed = {}
    for name, value in given.items():
        if name not in keys:
            raise InputError(unknown_key(name, keys, "key"), field="fixed")
        try:
            fixed[name] = keys[name].value(value)
        except InputError as error:
            raise InputError(error.problem, field=f"fixed.{name}") from None
    return fixed


def _budget(given: Any) -> Budget:
    for field, problem in wrong_values(Budget, given):
        raise InputError(problem, field=f"budget.{field}" if field else "budget")
    return Budget(**given)
