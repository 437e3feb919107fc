"""A run as a row of the library, and back."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from topox_core.errors import InputError, as_mb
from topox_core.io.limits import MAX_FILE_BYTES
from topox_core.library.record import RunRecord

# Level 6 takes twice the time of level 1 and a fifth less room on result files.
LEVEL = 6


def deflated(content: bytes) -> bytes:
    """Return a content as a library keeps it."""
    return zlib.compress(content, LEVEL)


def inflated(packed: bytes, file: str, item: str) -> bytes:
    """Return a content that a library kept.

    Raises
    ------
    InputError
        If it is damaged, or larger than any file of ours may be.
    """
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(packed, MAX_FILE_BYTES)
    except (zlib.error, TypeError) as error:
        raise InputError(f"is damaged ({error})", file=file, item=item) from None
    if unpacking.unconsumed_tail:
        problem = f"unpacks to more than the {as_mb(MAX_FILE_BYTES)} a file may have"
        raise InputError(problem, file=file, item=item)
    if not unpacking.eof:
        raise InputError("is damaged (it ends too early)", file=file, item=item)
    return content


# Measures that have a column of their own besides.
PROMOTED = ("iteration_ms", "bound_ms", "gap", "dark_share", "changes", "dollars", "watts")
_TEXT = (
    *("key", "version", "kind", "subject", "name", "graph", "cluster", "host", "status"),
    *("stopped_by", "message", "link"),
)
COLUMNS = (*_TEXT, "seed", "started", "wall_s", *PROMOTED, "settings", "measures", "result_bytes")
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class StoredRun:
    """A run of a library: what was recorded, without its result file, and the number it has there."""

    id: int
    record: RunRecord
    has_result: bool

    @property
    def place(self) -> tuple[float, int]:
        """Where it stands in a list, newest first: the next page begins after it."""
        return self.record.started, self.id

    @property
    def digests(self) -> set[str]:
        """Every text of it that may be the digest of an input."""
        return {self.record.graph, self.record.cluster} | _words(self.record.settings)


def _words(record: object) -> set[str]:
    """Return every text in nested settings."""
    if isinstance(record, str):
        return {record}
    inside = list(record.values()) if isinstance(record, dict) else record
    return set().union(*map(_words, inside)) if isinstance(inside, list) else set()


def encode(record: RunRecord) -> dict[str, Any]:
    """Return the columns of a run.

    Measures that are no finite number are kept as having no value: JSON has none for them.

    Raises
    ------
    InputError
        If the key is no SHA-256, the seed has more than 63 bits, or a setting is nothing that JSON has.
    """
    if not _KEY.fullmatch(record.key):
        raise _wrong("key", "must be a SHA-256 in 64 hexadecimal digits", record)
    if record.seed is not None and not -(1 << 63) <= record.seed < 1 << 63:
        raise _wrong("seed", "must be a whole number of at most 63 bits", record)
    try:
        settings = json.dumps(dict(record.settings), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise _wrong("settings", f"cannot be kept: {error}", record) from None
    measures = {
        name: _number(value) if value is not None and math.isfinite(value) else None
        for name, value in record.measures.items()
    }
    row: dict[str, Any] = {column: storable(getattr(record, column)) for column in _TEXT}
    promoted = {name: measures.get(name) for name in PROMOTED}
    return {
        **row,
        "seed": None if record.seed is None else int(record.seed),
        "started": float(record.started),
        "wall_s": float(record.wall_s),
        **{name: None if value is None else float(value) for name, value in promoted.items()},
        "settings": settings,
        "measures": json.dumps(measures, separators=(",", ":")),
        "result_bytes": None if record.result is None else len(record.result),
    }


def _number(value: float) -> float:
    return value if type(value) is int else float(value)


def _wrong(field: str, problem: str, record: RunRecord) -> InputError:
    return InputError(problem, file="run", item=record.subject, field=field)


def storable(text: str) -> str:
    """Return text with broken halves of characters escaped: a file holds whole ones only."""
    return text.encode("utf-8", "backslashreplace").decode()


def decode(row: sqlite3.Row, file: str) -> StoredRun:
    """Return a row as a run.

    Raises
    ------
    InputError
        If a cell is not what :func:`encode` writes: the file was damaged or made by something else.
    """
    item = f"run {row['id']}"
    for column in _TEXT:
        if not isinstance(row[column], str):
            raise InputError("must be text", file=file, item=item, field=column)
    for column in ("started", "wall_s"):
        if not isinstance(row[column], float):
            raise InputError("must be a number", file=file, item=item, field=column)
    if not _KEY.fullmatch(row["key"]):
        raise InputError("must be a SHA-256", file=file, item=item, field="key")
    for column in ("seed", "result_bytes"):
        if not isinstance(row[column], int | None):
            raise InputError("must be a whole number", file=file, item=item, field=column)
    measures = _object(row, "measures", file, item)
    for name, value in measures.items():
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise InputError(f"holds {name!r} as no number", file=file, item=item, field="measures")
    for name in PROMOTED:
        if row[name] != measures.get(name):
            raise InputError("is not the measure beside it", file=file, item=item, field=name)
    text = {column: row[column] for column in _TEXT}
    record = RunRecord(
        **text,
        seed=row["seed"],
        started=row["started"],
        wall_s=row["wall_s"],
        settings=_object(row, "settings", file, item),
        measures=measures,
    )
    return StoredRun(row["id"], record, row["result_bytes"] is not None)


def _object(row: sqlite3.Row, column: str, file: str, item: str) -> Mapping[str, Any]:
    try:
        value = _DECODER.decode(row[column])
    except (TypeError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError("must be a JSON object", file=file, item=item, field=column)
    return value


def _refuse(word: str) -> None:
    raise ValueError(word)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
