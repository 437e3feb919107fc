"""A study as a row of the library."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from topox_core.errors import InputError
from topox_core.library.rows import inflated

STUDIES = "SELECT studies.*, (SELECT count(*) FROM study_points WHERE study = studies.id) AS kept FROM studies"


@dataclass(frozen=True)
class StoredStudy:
    """A study of a library.

    Attributes
    ----------
    digest, version
        What was asked, and which code answers: together they name a study.
    record
        The study file.
    points, kept
        How many it has, and how many of them are in the library.
    created
        Seconds since the epoch.
    state
        ``begun`` at first, then what :meth:`RunLibrary.set_study_state` said last.
    """

    id: int
    digest: str
    name: str
    record: Mapping[str, Any]
    points: int
    kept: int
    created: float
    version: str
    state: str


def decode_study(row: sqlite3.Row, file: str) -> StoredStudy:
    """Return a row as a study.

    Raises
    ------
    InputError
        If a cell is not what the library writes.
    """
    item = f"study {row['id']}"
    kinds = {"digest": str, "name": str, "points": int, "version": str, "state": str}
    for column, kind in {**kinds, "created": float}.items():
        if not isinstance(row[column], kind):
            raise InputError("is damaged", file=file, item=item, field=column)
    try:
        record = json.loads(inflated(row["record"], file, item))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        record = None
    if not isinstance(record, dict):
        raise InputError("must be a JSON object", file=file, item=item, field="record")
    keys = ("id", *kinds, "kept", "created")
    return StoredStudy(record=record, **{key: row[key] for key in keys})
