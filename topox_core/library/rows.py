"""What the library keeps of one run, and the run as a row of it, and back."""

import json
import math
import re
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from topox_core.errors import InputError, as_mb, refuse_if
from topox_core.io.limits import MAX_FILE_BYTES
from topox_core.schema.fields import plain_setting

FAILED = "failed"  # the status of a run that has no result
CARD = "card"  # the kind of an answer of a published card, which lists of runs leave out


@dataclass(frozen=True)
class RunRecord:
    """One run, as it is added to a library.

    Attributes
    ----------
    key
        SHA-256 (hex) of what was computed: inputs and settings, not the version of the code.
    version
        Which code computed it: :func:`topox_core.runs.identity.code_version`.
    kind
        ``fabric`` (one task graph on one fabric), ``schedule`` (one solve), ``rail``, ``round``
        (time division), ``bill`` (cost alone) or ``card`` (an answer of a published card).
    subject
        What was run, as people call it.
    graph
        Digest of the subject: task graph, jobs or preset.
    cluster
        Digest of the cluster; empty if there is none.
    settings
        Flat, keyed as in a study file: ``cluster.port_gbps``, ``fabric``, ``seed``.
    status
        The status word of a result (``optimal``, ``feasible``, ...), ``failed`` where there is none.
    measures
        Named as in a study file: ``iteration_ms``, ``gap``, ``dollars``; None where it has no value.
    message
        Why it failed, or what else must be known.
    name
        Given by the user.
    link
        Query string of the page state that shows it; empty where no page can.
    host
        The machine that computed it.
    started
        Seconds since the epoch.
    wall_s
        How long it took.
    result
        The result file as deflated JSON; None where only numbers were kept.
    """

    key: str
    version: str
    kind: str
    subject: str
    graph: str
    cluster: str
    settings: Mapping[str, Any]
    status: str
    stopped_by: str
    measures: Mapping[str, float | None]
    message: str = ""
    seed: int | None = None
    name: str = ""
    link: str = ""
    host: str = ""
    started: float = 0.0
    wall_s: float = 0.0
    result: bytes | None = None


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
    refuse_if(
        (
            unpacking.unconsumed_tail,
            f"unpacks to more than the {as_mb(MAX_FILE_BYTES)} a file may have",
        ),
        file=file,
        item=item,
    )
    refuse_if((not unpacking.eof, "is damaged (it ends too early)"), file=file, item=item)
    return content


# Measures that have a column of their own besides.
PROMOTED = ("iteration_ms", "bound_ms", "gap", "dark_share", "changes", "dollars", "watts")
_TEXT = (
    *("key", "version", "kind", "subject", "name", "graph", "cluster", "host", "status"),
    *("stopped_by", "message", "link"),
)
# What a cell of each other column is.
_CELLS: Mapping[str, tuple[Any, str]] = {
    **dict.fromkeys(_TEXT, (str, "text")),
    **dict.fromkeys(("started", "wall_s"), (float, "a number")),
    **dict.fromkeys(("seed", "result_bytes"), (int | None, "a whole number")),
}
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
    place, seed = {"file": "run", "item": record.subject}, record.seed or 0
    large = not -(1 << 63) <= seed < 1 << 63
    refuse_if(
        (not _KEY.fullmatch(record.key), "must be a SHA-256 in 64 hexadecimal digits", "key"),
        (large, "must be a whole number of at most 63 bits", "seed"),
        file="run",
        item=record.subject,
    )
    try:
        settings = json.dumps(dict(record.settings), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InputError(f"cannot be kept: {error}", field="settings", **place) from None
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
    for column, (kind, words) in _CELLS.items():
        refuse_if(
            (not isinstance(row[column], kind), f"must be {words}"),
            file=file,
            item=item,
            field=column,
        )
    refuse_if(
        (not _KEY.fullmatch(row["key"]), "must be a SHA-256"), file=file, item=item, field="key"
    )
    measures = json_object(row["measures"], "measures", file, item)
    for name, value in measures.items():
        refuse_if(
            (
                isinstance(value, bool) or not isinstance(value, int | float | None),
                f"holds {name!r} as no number",
            ),
            file=file,
            item=item,
            field="measures",
        )
    for name in PROMOTED:
        refuse_if(
            (row[name] != measures.get(name), "is not the measure beside it"),
            file=file,
            item=item,
            field=name,
        )
    text = {column: row[column] for column in _TEXT}
    record = RunRecord(
        **text,
        seed=row["seed"],
        started=row["started"],
        wall_s=row["wall_s"],
        settings=json_object(row["settings"], "settings", file, item),
        measures=measures,
    )
    return StoredRun(row["id"], record, row["result_bytes"] is not None)


def json_object(content: Any, column: str, file: str, item: str) -> dict[str, Any]:
    """Return the object of a cell that holds JSON; raises InputError where it holds none."""
    try:
        value = _DECODER.decode(content.decode() if isinstance(content, bytes) else content)
    except (TypeError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError("must be a JSON object", file=file, item=item, field=column)
    return value


def _refuse(word: str) -> None:
    raise ValueError(word)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


CHUNK = 500  # SQLite takes at least 999 values in a statement
_VALUES = ", ".join(f":{column}" for column in COLUMNS)
_INSERT = (
    f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({_VALUES}) "
    "ON CONFLICT (key, version) DO NOTHING"
)
_UPDATE = (
    f"UPDATE runs SET {', '.join(f'{column} = :{column}' for column in COLUMNS)} WHERE id = :id"
)


# What goes with a run: the tables, and the column that names the run.
_TAKEN = {"runs": "id", "results": "run", "study_points": "run"}


# Runs that were taken out, whole, so that they can be put back: the rows of each table.
Deleted = Mapping[str, Sequence[Mapping[str, Any]]]


def put_run(connection: sqlite3.Connection, record: RunRecord) -> tuple[int, bool]:
    """Write a run unless it is there, and return its number and whether anything was written.

    What is there stays, but for what it lacks: a run that failed or was cancelled gives way to one
    that did not; a missing name or link is filled in, and so is the result of the very same outcome.
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
    for column in ("name", "link"):
        if row[column] and not there[column]:
            connection.execute(f"UPDATE runs SET {column} = ? WHERE id = ?", (row[column], run))
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
    taken: dict[str, list[dict[str, Any]]] = {table: [] for table in _TAKEN}
    for chunk, marks in chunks(runs):
        for table, column in _TAKEN.items():
            where = f"{table} WHERE {column} IN ({marks})"
            taken[table] += map(dict, connection.execute(f"SELECT * FROM {where}", chunk))
        connection.execute(f"DELETE FROM runs WHERE id IN ({marks})", chunk)
    return taken


def put_back(connection: sqlite3.Connection, deleted: Deleted) -> int:
    """Write deleted runs again under their old numbers, and return how many; what came in their place stays."""
    names = ("id", *COLUMNS)
    insert = f"INSERT OR IGNORE INTO runs ({', '.join(names)}) VALUES (:id, {_VALUES})"
    back = {row["id"] for row in deleted["runs"] if connection.execute(insert, row).rowcount == 1}
    again = {
        "results": "VALUES (:run, :content)",
        # A study that was deleted meanwhile takes no point any more.
        "study_points": "SELECT :study, :point, :run WHERE EXISTS (SELECT 1 FROM studies WHERE id = :study)",
    }
    for table, values in again.items():
        there = [row for row in deleted[table] if row["run"] in back]
        connection.executemany(f"INSERT OR IGNORE INTO {table} {values}", there)
    return len(back)


def chunks(values: Sequence[Any]) -> Iterator[tuple[Sequence[Any], str]]:
    """Yield values in pieces that one statement takes, each with as many question marks."""
    for first in range(0, len(values), CHUNK):
        piece = values[first : first + CHUNK]
        yield piece, ", ".join("?" * len(piece))


Value = bool | int | float | str | None
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.\-]+")
# SQLite may read the last digit of a number in JSON differently from Python.
SAME = 1e-12
MAX = 1e300


@dataclass(frozen=True)
class RunFilter:
    """The runs for which all of this holds; what is empty or None is not asked.

    Attributes
    ----------
    text
        A to Z as a to z.
    without
        Kinds that are left out.
    kept_only
        Whether points that only a study computed are left out.
    shortest_ms, longest_ms
        Both ends included; runs without an iteration time are left out.
    settings
        By key, the value that a setting has; None: it is null or not there. Numbers are equal
        that differ by less than one part in 10^12.
    """

    subject: Annotated[
        str,
        plain_setting("Subject", "of this task graph, job or preset: its name or digest"),
    ] = ""
    status: Annotated[str, plain_setting("Status", "optimal, feasible, simulated, failed, ...")] = (
        ""
    )
    kind: Annotated[
        str,
        plain_setting(
            "Kind",
            "fabric, schedule, rail, round or bill; card lists answers of published cards, which are left out otherwise",
        ),
    ] = ""
    version: Annotated[str, plain_setting("Version", "computed by this version of the code")] = ""
    study: Annotated[int | None, plain_setting("Study", "points of this study")] = None
    text: Annotated[str, plain_setting("Words", "with these words in name or subject")] = ""
    without: tuple[str, ...] = ()
    kept_only: bool = False
    shortest_ms: Annotated[
        float | None, plain_setting("From", "with an iteration of at least so many ms")
    ] = None
    longest_ms: Annotated[
        float | None, plain_setting("To", "with an iteration of at most so many ms")
    ] = None
    settings: Mapping[str, Value] = field(default_factory=dict)


# Answers of published cards are kept beside runs, and are no runs of the reader.
RUNS_ONLY = RunFilter(without=(CARD,))


def condition(which: RunFilter) -> tuple[str, list[object]]:
    """Return a filter as a condition on the table ``runs`` and its values.

    Raises
    ------
    InputError
        If a setting is compared with what is no number, word, truth value or None.
    """
    asked: list[tuple[object, str]] = [
        (which.subject, "(subject = ? OR graph = ?)"),
        (which.status, "status = ?"),
        (which.kind, "kind = ?"),
        (which.version, "version = ?"),
        *((kind, "kind <> ?") for kind in which.without),
        # A point has neither; what a page or a command keeps has the one or the other, a solve is kept by hand.
        (which.kept_only or None, "(name <> '' OR link <> '' OR kind = 'schedule')"),
        (which.study, "id IN (SELECT run FROM study_points WHERE study = ?)"),
        (which.text, "(instr(lower(name), lower(?)) OR instr(lower(subject), lower(?)))"),
        (which.shortest_ms, "iteration_ms >= ?"),
        (which.longest_ms, "iteration_ms <= ?"),
    ]
    terms = [
        (term, (wanted,) * term.count("?")) for wanted, term in asked if wanted not in ("", None)
    ]
    terms += [_setting_is(key, value) for key, value in which.settings.items()]
    values = [value for _, given in terms for value in given]
    return (
        " AND ".join(term for term, _ in terms) or "1",
        [storable(value) if isinstance(value, str) else value for value in values],
    )


def _setting_is(key: str, value: Value) -> tuple[str, tuple[object, ...]]:
    """Return the condition that a setting has a value."""
    of_key: tuple[object, ...] = ()
    if _PLAIN_KEY.fullmatch(key):
        found = f"json_extract(settings, '$.\"{key}\"')"
    else:
        found = "(SELECT value FROM json_each(settings) WHERE json_each.key = ?)"
        of_key = (key,)
    if value is None:
        return f"{found} IS NULL", of_key
    if isinstance(value, str):
        return f"{found} = ?", (*of_key, value)
    if isinstance(value, bool | int | float) and abs(value) <= MAX:
        number = float(value)
        ends = sorted((number * (1 - SAME), number * (1 + SAME)))
        return f"{found} BETWEEN ? AND ?", (*of_key, *ends)
    raise InputError("must be a finite number or a word", file="filter", field=key)
