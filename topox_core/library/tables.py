"""Runs as tables: side by side, what was set and came out differently; for other programs, one row a run, as CSV and Parquet."""

import importlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from topox_core.errors import InputError, refuse_if
from topox_core.io.tables import table_bytes
from topox_core.library.rows import RunFilter, StoredRun
from topox_core.library.run_library import ALL, RunLibrary

MAX = 20  # a table of more columns is read by nobody


@dataclass(frozen=True)
class ComparedValue:
    """One setting or measure of several runs, in their order; None where a run has none."""

    name: str
    values: tuple[Any, ...]

    @property
    def equal(self) -> bool:
        """Whether all runs have the same."""
        return all(value == self.values[0] for value in self.values)

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Each value as a multiple of the first run's; None where one is no number or the first is 0."""
        first = self.values[0]
        return tuple(
            value / first if _is_number(value) and _is_number(first) and first else None
            for value in self.values
        )


@dataclass(frozen=True)
class RunComparison:
    """Several runs and all that they were given and came to."""

    runs: tuple[StoredRun, ...]
    settings: tuple[ComparedValue, ...]
    outcome: tuple[ComparedValue, ...]


def different(values: Iterable[ComparedValue]) -> tuple[ComparedValue, ...]:
    """Return the settings or measures that some runs have differently."""
    return tuple(one for one in values if not one.equal)


def alike(values: Iterable[ComparedValue]) -> dict[str, Any]:
    """Return by name the settings or measures that all runs have alike."""
    return {one.name: one.values[0] for one in values if one.equal}


def compare_runs(runs: Sequence[StoredRun]) -> RunComparison:
    """Compare two or more runs.

    Raises
    ------
    InputError
        If there are fewer than two or more than 20.
    """
    refuse_if(
        (not (2 <= len(runs) <= MAX), f"must be 2 to {MAX} (got {len(runs)})"),
        file="runs to compare",
    )
    settings = compared([{**_given(one), **flat(one.record.settings)} for one in runs])
    # The cluster's digest says no more than the keys that differ.
    if any(one.name.startswith("cluster.") and not one.equal for one in settings):
        settings = tuple(one for one in settings if one.name != "cluster")
    return RunComparison(tuple(runs), settings, compared([_came_to(one) for one in runs]))


def _given(one: StoredRun) -> dict[str, Any]:
    record = one.record
    keys = ("kind", "subject", "graph", "cluster", "version")
    return {key: getattr(record, key) for key in keys if getattr(record, key)}


def _came_to(one: StoredRun) -> dict[str, Any]:
    record = one.record
    words = {"status": record.status, "stopped_by": record.stopped_by}
    last = {"message": record.message} if record.message else {}
    return {**words, **record.measures, **last}


def compared(records: Sequence[Mapping[str, Any]]) -> tuple[ComparedValue, ...]:
    """Return all that several mappings hold, by name, in the order in which the names first appear."""
    names = dict.fromkeys(name for record in records for name in record)
    return tuple(
        ComparedValue(name, tuple(record.get(name) for record in records)) for name in names
    )


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings with every object in them taken apart: ``subject.name``."""
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            values |= flat(value, f"{prefix}{name}.")
        else:
            values[prefix + name] = value
    return values


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
