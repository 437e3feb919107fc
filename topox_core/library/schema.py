"""The tables of a library, and how an older file gets those of today."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

# "TOPX": a file says by it that it is a library of ours.
APPLICATION_ID = 0x544F5058


Migration = Callable[[sqlite3.Connection], None]


def _first_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of version 1."""
    for statement in _VERSION_1:
        connection.execute(statement)


# ``measures`` holds every measure; the columns before it repeat those that runs are filtered by.
# ``result_bytes`` is null where no result was kept: a result that is missing is known to be lost.
# Ids are never used again, so that a link to a deleted run leads to no other run.
_VERSION_1 = (
    """CREATE TABLE studies (
        id INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL, name TEXT NOT NULL, record BLOB NOT NULL,
        points INTEGER NOT NULL, created REAL NOT NULL, version TEXT NOT NULL, state TEXT NOT NULL,
        UNIQUE (digest, version))""",
    """CREATE TABLE inputs (
        digest TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, bytes INTEGER NOT NULL, content BLOB NOT NULL)""",
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, version TEXT NOT NULL, kind TEXT NOT NULL,
        subject TEXT NOT NULL, name TEXT NOT NULL, graph TEXT NOT NULL, cluster TEXT NOT NULL, seed INTEGER,
        host TEXT NOT NULL, started REAL NOT NULL, wall_s REAL NOT NULL, status TEXT NOT NULL, stopped_by TEXT NOT NULL,
        iteration_ms REAL, bound_ms REAL, gap REAL, dark_share REAL, changes REAL, dollars REAL, watts REAL,
        settings TEXT NOT NULL, measures TEXT NOT NULL, message TEXT NOT NULL, link TEXT NOT NULL, result_bytes INTEGER,
        UNIQUE (key, version))""",
    # Apart from the runs, so that filters do not read them.
    """CREATE TABLE results (
        run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, content BLOB NOT NULL)""",
    # A run may be a point of several studies, and several points of a study may be one run.
    """CREATE TABLE study_points (
        study INTEGER NOT NULL REFERENCES studies (id) ON DELETE CASCADE, point INTEGER NOT NULL,
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, PRIMARY KEY (study, point)) WITHOUT ROWID""",
    "CREATE INDEX runs_started ON runs (started)",
    "CREATE INDEX runs_subject ON runs (subject, graph, started)",
    "CREATE INDEX runs_graph ON runs (graph, started)",
    "CREATE INDEX runs_iteration ON runs (iteration_ms)",
    "CREATE INDEX points_run ON study_points (run)",
)


# By the version they lead to, from 1. A new one goes to the end; none that was released changes.
MIGRATIONS: tuple[Migration, ...] = (_first_tables,)


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the tables of an open library up to today's, each step in one transaction with its version."""
    while (version := user_version(connection)) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have done it while this one waited.
            if user_version(connection) == version:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                migrations[version](connection)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def user_version(connection: sqlite3.Connection) -> int:
    """Return the version of the tables in a file; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def has_the_tables(
    connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS
) -> bool:
    """Return whether a file holds exactly our tables: no view or trigger runs when it is read."""
    expected = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(expected, migrations[: user_version(connection)])
        return _objects(expected) == _objects(connection)
    finally:
        expected.close()


def _objects(connection: sqlite3.Connection) -> set[tuple[str, str, str | None]]:
    found = connection.execute("SELECT type, name, sql FROM sqlite_master")
    # sqlite_stat tables are what ANALYZE leaves behind.
    return {row for row in found if not row[1].startswith("sqlite_stat")}


def can_be_read(
    connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS
) -> bool:
    """Return whether a file of a newer version still has, as tables, all the columns that this one reads."""
    expected = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(expected, migrations)
        return all(
            columns <= _columns(connection).get(name, set())
            for name, columns in _columns(expected).items()
        )
    finally:
        expected.close()


def _columns(connection: sqlite3.Connection) -> dict[str, set[str]]:
    return {
        name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
        for name in ("studies", "inputs", "runs", "results", "study_points")
        if connection.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)
        ).fetchone()
    }
