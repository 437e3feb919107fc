"""Runs as tables for other programs: CSV and Parquet, one row a run, one column a setting and a measure."""

import importlib
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from topox_core.errors import InputError
from topox_core.io.tables import table_bytes
from topox_core.library.comparison import flat
from topox_core.library.rows import RunFilter, StoredRun
from topox_core.library.run_library import ALL, RunLibrary

_FIRST = ("run", "name", "kind", "subject", "status", "stopped_by")
_LAST = (
    "message",
    "seed",
    "version",
    "host",
    "started",
    "wall_s",
    "graph",
    "cluster",
    "key",
    "link",
)


def run_table(
    library: RunLibrary, which: RunFilter = ALL
) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """Return runs as a table: its columns, and its rows of numbers, words, truth values and None.

    Runs are read as the rows are walked through. A setting or measure that is called as a column of
    every run has ``settings.`` or ``measures.`` before its name.
    """
    settings: dict[str, None] = {}
    measures: dict[str, None] = {}
    for one in library.each(which):
        settings.update(dict.fromkeys(_settings(one)))
        measures.update(dict.fromkeys(one.record.measures))
    columns = (
        *_FIRST,
        *(_apart(name, "settings") for name in settings),
        *(_apart(name, "measures", *settings) for name in measures),
        *_LAST,
    )
    return columns, _rows(library, which, tuple(settings), tuple(measures))


def _settings(one: StoredRun) -> dict[str, Any]:
    """Return the settings of a run but for the seed, which has a column of its own."""
    values = flat(one.record.settings)
    if values.get("seed", object()) == one.record.seed:
        del values["seed"]
    return values


def _apart(name: str, of: str, *others: str) -> str:
    return f"{of}.{name}" if name in (*_FIRST, *_LAST, *others) else name


def _rows(
    library: RunLibrary, which: RunFilter, settings: tuple[str, ...], measures: tuple[str, ...]
) -> Iterator[tuple[Any, ...]]:
    for one in library.each(which):
        record, given = one.record, _settings(one)
        fixed = {name: getattr(record, name, None) for name in (*_FIRST, *_LAST)}
        fixed |= {"run": one.id, "started": _date(record.started)}
        yield (
            *(fixed[name] for name in _FIRST),
            *(_cell(given.get(name)) for name in settings),
            *(record.measures.get(name) for name in measures),
            *(fixed[name] for name in _LAST),
        )


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value


def _date(started: float) -> str:
    """Return a time in seconds since the epoch as ISO 8601 in UTC."""
    try:
        return datetime.fromtimestamp(started, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, OSError, ValueError):  # a year that no calendar has
        return ""


def runs_csv(library: RunLibrary, which: RunFilter = ALL) -> bytes:
    """Return runs as CSV in which no cell is a formula."""
    return table_bytes(*run_table(library, which))


def runs_parquet(library: RunLibrary, which: RunFilter = ALL) -> bytes:
    """Return runs as Parquet: columns of numbers as numbers, all others as text.

    Raises
    ------
    InputError
        If the package pyarrow is not installed.
    """
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            "is not installed, which Parquet needs: pip install pyarrow, or export CSV",
            file="pyarrow",
        ) from None
    columns, rows = run_table(library, which)
    cells = list(zip(*rows, strict=True)) or [() for _ in columns]
    arrays = {
        name: _arrow_column(arrow, column) for name, column in zip(columns, cells, strict=True)
    }
    out = io.BytesIO()
    parquet.write_table(arrow.table(arrays), out)
    return out.getvalue()


def _arrow_column(arrow: Any, column: tuple[Any, ...]) -> Any:
    kinds = {type(value) for value in column if value is not None}
    if kinds == {bool}:
        return arrow.array(column, arrow.bool_())
    if kinds == {int} and all(value is None or -(1 << 63) <= value < 1 << 63 for value in column):
        return arrow.array(column, arrow.int64())
    if kinds and kinds <= {int, float}:
        return arrow.array([None if value is None else float(value) for value in column])
    words = [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in column
    ]
    return arrow.array(words, arrow.string())
