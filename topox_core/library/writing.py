"""Rows of runs written, taken out and put back, each within a transaction of the caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from topox_core.library.record import FAILED, RunRecord
from topox_core.library.rows import COLUMNS, encode

CHUNK = 500  # SQLite takes at least 999 values in a statement
_VALUES = ", ".join(f":{column}" for column in COLUMNS)
_INSERT = (
    f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({_VALUES}) "
    "ON CONFLICT (key, version) DO NOTHING"
)
_UPDATE = (
    f"UPDATE runs SET {', '.join(f'{column} = :{column}' for column in COLUMNS)} WHERE id = :id"
)


@dataclass(frozen=True)
class Deleted:
    """Runs that were taken out, whole, so that they can be put back."""

    runs: tuple[dict[str, Any], ...]
    results: tuple[tuple[int, bytes], ...]
    points: tuple[tuple[int, int, int], ...]

    def __len__(self) -> int:
        return len(self.runs)


def put_run(connection: sqlite3.Connection, record: RunRecord) -> tuple[int, bool]:
    """Write a run unless it is there, and return its number and whether anything was written.

    What is there stays, but for what it lacks: a run that failed or was cancelled gives way to one
    that did not; a missing name is filled in, and so is the result of the very same outcome.
    """
    row = encode(record)
    cursor = connection.execute(_INSERT, row)
    if cursor.rowcount == 1:
        run = int(cursor.lastrowid or 0)
        _put_result(connection, run, record.result)
        return run, True
    there = connection.execute(
        "SELECT * FROM runs WHERE key = :key AND version = :version", row
    ).fetchone()
    run = int(there["id"])
    if _is_unfinished(there) and not _is_unfinished(row):
        row = {**row, "id": run, "name": row["name"] or there["name"]}
        connection.execute(_UPDATE, row)
        connection.execute("DELETE FROM results WHERE run = ?", (run,))
        _put_result(connection, run, record.result)
        return run, True
    if row["name"] and not there["name"]:
        connection.execute("UPDATE runs SET name = ? WHERE id = ?", (row["name"], run))
    same = all(row[column] == there[column] for column in ("status", "stopped_by", "measures"))
    if same and there["result_bytes"] is None and record.result is not None:
        size = row["result_bytes"]
        connection.execute("UPDATE runs SET result_bytes = ? WHERE id = ?", (size, run))
        _put_result(connection, run, record.result)
    return run, False


def _is_unfinished(row: sqlite3.Row | dict[str, Any]) -> bool:
    return bool(row["status"] == FAILED or row["stopped_by"] == "cancelled")


def _put_result(connection: sqlite3.Connection, run: int, content: bytes | None) -> None:
    if content is not None:
        connection.execute("INSERT INTO results VALUES (?, ?)", (run, content))


def take_out(connection: sqlite3.Connection, runs: Sequence[int]) -> Deleted:
    """Delete runs with their results and their places in studies, and return all that went."""
    rows, results, points = [], [], []
    for chunk, marks in chunks(runs):
        rows += [
            dict(row)
            for row in connection.execute(f"SELECT * FROM runs WHERE id IN ({marks})", chunk)
        ]
        results += [
            (int(row[0]), bytes(row[1]))
            for row in connection.execute(
                f"SELECT run, content FROM results WHERE run IN ({marks})", chunk
            )
        ]
        points += [
            (int(row[0]), int(row[1]), int(row[2]))
            for row in connection.execute(
                f"SELECT study, point, run FROM study_points WHERE run IN ({marks})", chunk
            )
        ]
        connection.execute(f"DELETE FROM runs WHERE id IN ({marks})", chunk)
    return Deleted(tuple(rows), tuple(results), tuple(points))


def put_back(connection: sqlite3.Connection, deleted: Deleted) -> int:
    """Write deleted runs again under their old numbers, and return how many; what came in their place stays."""
    names = ("id", *COLUMNS)
    insert = f"INSERT OR IGNORE INTO runs ({', '.join(names)}) VALUES (:id, {_VALUES})"
    back = {int(row["id"]) for row in deleted.runs if connection.execute(insert, row).rowcount == 1}
    connection.executemany(
        "INSERT OR IGNORE INTO results VALUES (?, ?)",
        [one for one in deleted.results if one[0] in back],
    )
    # A study that was deleted meanwhile takes no point any more.
    connection.executemany(
        "INSERT OR IGNORE INTO study_points SELECT :study, :point, :run WHERE EXISTS "
        "(SELECT 1 FROM studies WHERE id = :study)",
        [
            {"study": study, "point": point, "run": run}
            for study, point, run in deleted.points
            if run in back
        ],
    )
    return len(back)


def chunks(values: Sequence[Any]) -> Iterator[tuple[Sequence[Any], str]]:
    """Yield values in pieces that one statement takes, each with as many question marks."""
    for first in range(0, len(values), CHUNK):
        piece = values[first : first + CHUNK]
        yield piece, ", ".join("?" * len(piece))
