"""The run library: what was computed, kept in one SQLite file that several processes and threads use at once."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topox_core.errors import refuse_if
from topox_core.library.opening import SIDE_FILES, OpenedFile, errors_of, open_file
from topox_core.library.rows import (
    Deleted,
    RunFilter,
    RunRecord,
    StoredRun,
    chunks,
    condition,
    decode,
    deflated,
    inflated,
    json_object,
    put_back,
    put_run,
    storable,
    take_out,
)

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
        refuse_if(
            (not isinstance(row[column], kind), "is damaged"), file=file, item=item, field=column
        )
    record = json_object(inflated(row["record"], file, item), "record", file, item)
    keys = ("id", *kinds, "kept", "created")
    return StoredStudy(record=record, **{key: row[key] for key in keys})


PAGE = 200  # runs of one page of a list
ALL = RunFilter()
RUNS = "SELECT * FROM runs"


@dataclass(frozen=True)
class KeptInput:
    """An input file as it was given to a run."""

    digest: str
    kind: str
    name: str
    content: bytes


class RunLibrary:
    """A library of runs. Every method is one transaction and may be called from any thread.

    All methods raise :class:`InputError` where the file is damaged, full or held by another program
    for longer than 10 s; those that write, where it can only be read.
    """

    def __init__(self, file: OpenedFile) -> None:
        self._file = file
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self.path = file.path
        self.read_only = file.read_only
        self.notices = file.notices

    @classmethod
    def open(
        cls, path: Path | None = None, create: bool = True, read_only: bool = False
    ) -> RunLibrary:
        """Open a library, and begin one where there is none: see :func:`topox_core.library.opening.open_file`."""
        return cls(open_file(path, create, read_only))

    def close(self) -> None:
        """Let go of the file; another call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __enter__(self) -> RunLibrary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # runs, written

    def add(self, records: Iterable[RunRecord]) -> tuple[int, ...]:
        """Keep runs and return their numbers; a run that is there already keeps its own."""
        return tuple(run for run, _ in self.add_each(records))

    def add_each(self, records: Iterable[RunRecord]) -> list[tuple[int, bool]]:
        """Keep runs as :meth:`add` does, and return number and whether it was written for each."""
        with self._writing() as connection:
            return [put_run(connection, record) for record in records]

    def rename(self, run: int, name: str) -> None:
        """Give a run a name, or take it away.

        Raises
        ------
        InputError
            If there is no such run.
        """
        self._change("UPDATE runs SET name = ? WHERE id = ?", storable(name), "run", run)

    def delete(self, runs: Sequence[int]) -> Deleted:
        """Take runs out and return what :meth:`restore` needs; numbers that are no run are passed over."""
        with self._writing() as connection:
            return take_out(connection, runs)

    def restore(self, deleted: Deleted) -> int:
        """Put deleted runs back under their old numbers, and return how many."""
        with self._writing() as connection:
            return put_back(connection, deleted)

    def copy_to(self, path: Path, which: RunFilter = ALL) -> None:
        """Write runs with their results, inputs and studies as a library of their own: a new file.

        Raises
        ------
        InputError
            If there is such a file already, or it cannot be written.
        """
        refuse_if(
            (path.exists(), "is there already; a library is exported to a new file"), file=str(path)
        )
        partial = path.with_name(f".topox-{os.getpid()}.part")
        with errors_of(path):
            try:
                with closing(self._file.connect()) as connection:
                    connection.execute("VACUUM INTO ?", (str(partial),))
                if which != ALL:
                    with RunLibrary.open(partial) as copy:
                        copy._keep_only(which)
                with closing(sqlite3.connect(partial)) as connection:
                    # What was taken out is gone from the file; it has no log, so that it can be read
                    # where nothing can be written beside it.
                    connection.execute("PRAGMA journal_mode = DELETE")
                    connection.execute("VACUUM")
                partial.rename(path)
            finally:
                for side in ("", *SIDE_FILES):
                    partial.with_name(partial.name + side).unlink(missing_ok=True)

    def _keep_only(self, which: RunFilter) -> None:
        """Delete all other runs, and the inputs and studies that none is left of."""
        needed = set[str]().union(*(one.digests for one in self.each(which)))
        where, values = condition(which)
        with self._writing() as connection:
            connection.execute(f"DELETE FROM runs WHERE NOT ({where})", values)
            connection.execute(
                "DELETE FROM studies WHERE id NOT IN (SELECT study FROM study_points)"
            )
            connection.execute(
                "DELETE FROM inputs WHERE digest NOT IN (SELECT value FROM json_each(?))",
                (json.dumps(list(needed)),),
            )

    # runs, read

    def runs(
        self,
        which: RunFilter = ALL,
        before: tuple[float, int] | None = None,
        limit: int = PAGE,
    ) -> list[StoredRun]:
        """Return runs, newest first.

        Parameters
        ----------
        before
            ``place`` of the last run of the page before; None begins with the newest.
        """
        where, values = condition(which)
        if before is not None:
            where, values = f"{where} AND (started, id) < (?, ?)", [*values, *before]
        return self._select(
            f"{RUNS} WHERE {where} ORDER BY started DESC, id DESC LIMIT ?", [*values, limit]
        )

    def each(self, which: RunFilter = ALL, pieces: int = 500) -> Iterator[StoredRun]:
        """Yield runs in the order of their numbers; nothing is held between them, so that others may write."""
        where, values = condition(which)
        last = 0
        while found := self._select(
            f"{RUNS} WHERE id > ? AND {where} ORDER BY id LIMIT ?", [last, *values, pieces]
        ):
            yield from found
            last = found[-1].id

    def get(self, run: int) -> StoredRun:
        """Return a run by its number.

        Raises
        ------
        InputError
            If there is no such run.
        """
        found = self._select(f"{RUNS} WHERE id = ?", [run])
        self._check_there(found, "run", run)
        return found[0]

    def known(self, keys: Iterable[str], version: str | None = None) -> dict[str, StoredRun]:
        """Return by key the runs that are there: of one version of the code, or the newest of any."""
        of_version, values = ("", []) if version is None else (" AND version = ?", [version])
        found: list[StoredRun] = []
        for piece, marks in chunks(list(dict.fromkeys(keys))):
            found += self._select(
                f"{RUNS} WHERE key IN ({marks}){of_version} ORDER BY started, id",
                [*piece, *values],
            )
        return {one.record.key: one for one in found}

    def result(self, run: int) -> bytes | None:
        """Return the result file of a run, inflated; None if only its numbers were kept.

        Raises
        ------
        InputError
            If it is damaged or gone, or unpacks to more than a file may have.
        """
        found = self._rows(
            "SELECT result_bytes, content FROM runs LEFT JOIN results ON run = id WHERE id = ?",
            [run],
        )
        if not found or found[0]["result_bytes"] is None:
            return None
        refuse_if(
            (not isinstance(found[0]["content"], bytes), "its result is damaged"),
            file=str(self.path),
            item=f"run {run}",
        )
        return inflated(found[0]["content"], str(self.path), f"run {run}")

    def count(self, which: RunFilter = ALL) -> int:
        """Return how many runs there are."""
        where, values = condition(which)
        (row,) = self._rows(f"SELECT count(*) AS runs FROM runs WHERE {where}", values)
        return int(row["runs"])

    def subjects(self, which: RunFilter = ALL) -> list[str]:
        """Return the names of what was run, newest first."""
        where, values = condition(which)
        found = self._rows(
            f"SELECT subject FROM runs WHERE {where} GROUP BY subject ORDER BY max(started) DESC",
            values,
        )
        return [str(row["subject"]) for row in found]

    def statuses(self) -> list[str]:
        """Return the status words that there are, in alphabetical order."""
        found = self._rows("SELECT DISTINCT status FROM runs ORDER BY 1")
        return [str(row["status"]) for row in found]

    # studies

    def add_study(
        self, digest: str, name: str, record: Mapping[str, Any], points: int, version: str
    ) -> int:
        """Begin a study, or find it again by digest and version, and return its number."""
        packed = deflated(json.dumps(dict(record), allow_nan=False).encode())
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO studies (digest, name, record, points, created, version, state) "
                "VALUES (?, ?, ?, ?, ?, ?, 'begun') ON CONFLICT (digest, version) DO UPDATE SET "
                "name = excluded.name, record = excluded.record, points = excluded.points",
                (digest, storable(name), packed, points, time.time(), version),
            )
            row = connection.execute(
                "SELECT id FROM studies WHERE digest = ? AND version = ?", (digest, version)
            ).fetchone()
        return int(row["id"])

    def link_points(self, study: int, runs: Mapping[int, int]) -> None:
        """Say which runs are points of a study: by number of the point, number of the run."""
        with self._writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO study_points VALUES (?, ?, ?)",
                [(study, point, run) for point, run in runs.items()],
            )

    def set_study_state(self, study: int, state: str) -> None:
        """Say how a study stands.

        Raises
        ------
        InputError
            If there is no such study.
        """
        self._change("UPDATE studies SET state = ? WHERE id = ?", state, "study", study)

    def studies(self) -> list[StoredStudy]:
        """Return all studies, newest first.

        Raises
        ------
        InputError
            If the file of one is damaged.
        """
        found = self._rows(f"{STUDIES} ORDER BY created DESC, id DESC")
        return [decode_study(row, str(self.path)) for row in found]

    # inputs

    def keep_inputs(self, files: Iterable[KeptInput]) -> None:
        """Keep input files, each once; their digests are what runs have as ``graph`` or ``cluster``."""
        rows = [
            (one.digest, one.kind, storable(one.name), len(one.content), deflated(one.content))
            for one in files
        ]
        if rows:
            with self._writing() as connection:
                connection.executemany("INSERT OR IGNORE INTO inputs VALUES (?, ?, ?, ?, ?)", rows)

    def input(self, digest: str) -> KeptInput | None:
        """Return an input file; None if it was not kept.

        Raises
        ------
        InputError
            If it is damaged.
        """
        for row in self._rows("SELECT * FROM inputs WHERE digest = ?", [digest]):
            content = inflated(row["content"], str(self.path), f"input {digest[:12]}")
            return KeptInput(digest, str(row["kind"]), str(row["name"]), content)
        return None

    # what all of them go through

    def _select(self, statement: str, values: Sequence[object]) -> list[StoredRun]:
        return [decode(row, str(self.path)) for row in self._rows(statement, values)]

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        with self._reading() as connection:
            return connection.execute(statement, values).fetchall()

    def _change(self, statement: str, value: str, kind: str, number: int) -> None:
        """Change one row; refuse a number that there is not."""
        with self._writing() as connection:
            changed = connection.execute(statement, (value, number)).rowcount
            self._check_there(changed, kind, number)

    def _check_there(self, found: object, kind: str, number: int) -> None:
        problem = f"there is no such {kind}"
        refuse_if((not found, problem), file=str(self.path), item=f"{kind} {number}")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to one thread.

        Raises
        ------
        InputError
            In place of any error of SQLite's in the block.
        """
        with self._lock, errors_of(self._file.path):
            self._connection = self._connection or self._file.connect()
            try:
                yield self._connection
            except BaseException:
                # Whatever state it is in; a transaction is rolled back. The file may have been
                # damaged or set aside.
                self.close()
                raise

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection within a transaction: all that the block writes is kept, or nothing of it.

        The transaction asks to write from its beginning. One that began by reading would fail at
        once where another process wrote meanwhile, however long it may wait.

        Raises
        ------
        InputError
            If the library can only be read, another program does not let go of it, or in place of
            any other error of SQLite's.
        """
        refuse_if(
            (self._file.read_only, f"can only be read: {self._file.read_only}"),
            file=str(self._file.path),
        )
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
