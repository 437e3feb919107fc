"""What can still be read of a damaged library, taken into another one. The damaged file stays as it is."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from topox_core.errors import InputError
from topox_core.library.opening import MAGIC, MAX_CELL_BYTES, damage_of, errors_of
from topox_core.library.packing import inflated
from topox_core.library.record import RunRecord
from topox_core.library.rows import decode
from topox_core.library.run_library import RUNS, RunLibrary
from topox_core.library.schema import APPLICATION_ID
from topox_core.library.study_rows import STUDIES, decode_study

_AT_ONCE = 200
# Numbers are looked up one by one, a million in a few seconds.
_MOST_NUMBERS, _MOST_DELETED, _LEAST_ROW_BYTES = 20_000_000, 200_000, 50
_HOPELESS = 5_000
_PAGE_BYTES = 4096


@dataclass(frozen=True)
class Rescued:
    """What came out of a damaged library.

    Attributes
    ----------
    runs, lost
        Read, and not readable although there was, or had been, a run of that number.
    new
        Of those read, how many were not in the other library.
    results_lost
        Of the runs read, how many had a result that cannot be read.
    """

    runs: int
    lost: int
    new: int
    results_lost: int
    studies: int
    inputs: int


def rescue(damaged: Path, target: RunLibrary) -> Rescued:
    """Read a damaged library run by run, and take into another all that is whole.

    A row is whole if it can be decoded, its measures agree with the columns that repeat them, and
    its result unpacks to what its checksum says.

    Raises
    ------
    InputError
        If the damaged file cannot be read at all, or the other library cannot be written to.
    """
    with errors_of(damaged), tempfile.TemporaryDirectory(prefix="topox-rescue-") as folder:
        if not damaged.is_file():
            raise InputError("there is no such file", file=str(damaged))
        damage_of(damaged)  # refuses what is not ours
        copy = Path(folder) / "copy.sqlite"
        shutil.copyfile(damaged, copy)
        log = damaged.with_name(f"{damaged.name}-wal")
        if log.is_file():
            shutil.copyfile(log, Path(f"{copy}-wal"))
        _mend_head(copy, Path(folder) / "empty.sqlite")
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
            connection.row_factory = sqlite3.Row
            return _Wreck(connection, str(damaged), copy.stat().st_size).taken_into(target)


def _mend_head(copy: Path, empty: Path) -> None:
    """Give a copy a head that SQLite opens: our own where it is overwritten, and the length it has now.

    The tables of every library begin at the same pages, since they are made in the same order.
    """
    with copy.open("r+b") as stream:
        head = bytearray(stream.read(_PAGE_BYTES))
        if not head.startswith(MAGIC) or int.from_bytes(head[68:72], "big") != APPLICATION_ID:
            RunLibrary.open(empty).close()
            head = bytearray(empty.read_bytes()[:_PAGE_BYTES])
        page_bytes = int.from_bytes(head[16:18], "big")
        page_bytes = 65536 if page_bytes == 1 else max(page_bytes, 512)
        head[28:32] = (copy.stat().st_size // page_bytes).to_bytes(4, "big")
        head[92:96] = head[24:28]  # which says that the length is right
        stream.seek(0)
        stream.write(head)


class _Wreck:
    """A damaged library, of which any statement may fail."""

    def __init__(self, connection: sqlite3.Connection, file: str, file_bytes: int) -> None:
        self._connection, self._file = connection, file
        self._results_lost = self._lost = 0
        self._most = file_bytes // _LEAST_ROW_BYTES + _MOST_DELETED

    def taken_into(self, target: RunLibrary) -> Rescued:
        """Read everything that can be read into another library."""
        inputs = 0
        for row in self._rows("inputs", "rowid"):
            with suppress(InputError):
                content = inflated(row["content"], self._file, "input")
                target.keep_input(str(row["digest"]), str(row["kind"]), str(row["name"]), content)
                inputs += 1
        numbers: dict[int, int] = {}
        new = 0
        records = self._records()
        while piece := list(islice(records, _AT_ONCE)):
            added = target.add_each(record for _, record in piece)
            numbers |= {old: run for (old, _), (run, _) in zip(piece, added, strict=True)}
            new += sum(is_new for _, is_new in added)
        studies = 0
        for row in self._rows("studies", "id", STUDIES):
            with suppress(InputError):
                study = decode_study(row, self._file)
                target.take_study(study, self._points(study.id, numbers))
                studies += 1
        lost = max(self._lost, self._known() - len(numbers))
        return Rescued(len(numbers), lost, new, self._results_lost, studies, inputs)

    def _known(self) -> int:
        """Return how many runs an index still lists: one that a bad page hides is not found, which is no error."""
        with suppress(sqlite3.DatabaseError):
            row = self._connection.execute("SELECT count(*) FROM runs").fetchone()
            return int(row[0])
        return 0

    def _records(self) -> Iterator[tuple[int, RunRecord]]:
        for row in self._rows("runs", "id", RUNS, count=True):
            try:
                one = decode(row, self._file)
            except InputError:
                self._lost += 1
                continue
            yield (
                one.id,
                replace(one.record, result=self._result(one.id) if one.has_result else None),
            )

    def _result(self, run: int) -> bytes | None:
        try:
            row = self._connection.execute(
                "SELECT content FROM results WHERE run = ?", (run,)
            ).fetchone()
            if row is not None:
                inflated(row["content"], self._file, f"run {run}")
                return bytes(row["content"])
        except (sqlite3.DatabaseError, InputError):
            pass
        self._results_lost += 1
        return None

    def _points(self, study: int, numbers: dict[int, int]) -> dict[int, int]:
        points: dict[int, int] = {}
        with suppress(sqlite3.DatabaseError):
            for row in self._connection.execute(
                "SELECT point, run FROM study_points WHERE study = ? ORDER BY point", (study,)
            ):
                if row["run"] in numbers:
                    points[row["point"]] = numbers[row["run"]]
        return points

    def _rows(
        self, table: str, number: str, select: str = "", count: bool = False
    ) -> Iterator[sqlite3.Row]:
        """Yield the rows of a table, looked up one by one: one bad page does not end it, as it ends a scan."""
        statement = f"{select or f'SELECT * FROM {table}'} WHERE {table}.{number} = ?"
        last = self._last(table, number)
        read = False
        for at in range(1, (last or self._most) + 1):
            try:
                row = self._connection.execute(statement, (at,)).fetchone()
            except sqlite3.DatabaseError:
                self._lost += count and last is not None
                if at >= _HOPELESS and not read:
                    return  # its first page or the list of tables is gone: every look-up fails
                continue
            if row is not None:
                read = True
                yield row

    def _last(self, table: str, number: str) -> int | None:
        """Return the largest number that a row may have; None if the file no longer tells."""
        found = []
        for statement, values in (
            (f"SELECT max({number}) FROM {table}", ()),
            ("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)),
        ):
            with suppress(sqlite3.DatabaseError):
                row = self._connection.execute(statement, values).fetchone()
                if row is not None and isinstance(row[0], int):
                    found.append(row[0])
        if not found:
            return None
        # A number that is itself damaged may be anything: what the two agree on is believed, and else
        # what a file of this length can hold after many deletions.
        agreed = min(found) if len(found) == 2 else 0
        return min(max(agreed, min(max(found), self._most)), _MOST_NUMBERS)
