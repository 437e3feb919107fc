"""The result file, ``*.schedule.json``: read, refused with one clear line, and laid out in columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from topox_core.check.intervals import Float, Int
from topox_core.errors import InputError
from topox_core.io.errors import shown
from topox_core.io.json import check_header, json_object
from topox_core.io.limits import unpacked
from topox_core.io.ranges import check_one_of

FORMAT, VERSION = "topox-schedule", 1
STATUSES = ("optimal", "feasible", "infeasible", "unknown")
# Server, switch and port numbers; far above any cluster, far below what the arrays hold.
MAX_NUMBER = 1_000_000_000
# Lengths of a tick or slot; what lies beyond is a slip of units, and would overflow.
SHORTEST_MS, LONGEST_MS = 1e-9, 1e9


@dataclass(frozen=True)
class Schedule:
    """A result in columns: tasks, the transfers that collectives became, and circuits.

    ``has_schedule`` is false where the result has no makespan (infeasible, or stopped before any).
    Ports are -1 where the file leaves them out. All times in ms.
    """

    status: str
    has_schedule: bool
    makespan_ms: float
    bound_ms: float
    gap: float | None
    slot_ms: float
    tick_ms: float
    settings: Mapping[str, Any]
    task: list[str]
    start_ms: Float
    end_ms: Float
    transfer: list[str]
    collective: list[str]
    transfer_source: Int
    transfer_destination: Int
    transfer_bytes: Float
    transfer_dependencies: list[Sequence[str]]
    circuit_task: list[str]
    switch: Int
    source: Int
    destination: Int
    source_port: Int
    destination_port: Int
    setup_ms: Float
    circuit_start_ms: Float
    circuit_end_ms: Float
    fixed: FixedCircuits | None = None


@dataclass(frozen=True)
class FixedCircuits:
    """Circuits that never change, in columns: links, paths between servers, the links that each crosses, and rates.

    ``rate`` is what one transfer gets on a path from ``rate_start_ms`` to ``rate_end_ms``, in bytes
    per ms.
    """

    link_source: Int
    link_destination: Int
    link_circuits: Int
    path_source: Int
    path_destination: Int
    hop_path: Int
    hop_link: Int
    rate_path: Int
    rate_start_ms: Float
    rate_end_ms: Float
    rate: Float

    @staticmethod
    def of(record: Any, file: str) -> FixedCircuits | None:
        """Return the columns of ``fixed``, None if the result has no such key.

        Raises
        ------
        InputError
            If a key is missing, a value is of the wrong kind, or a row names a path or link that is
            not there.
        """
        if record is None:
            return None
        if not isinstance(record, Mapping):
            raise InputError(f"must be an object (got {shown(record)})", file=file, field="fixed")
        links = _Rows(record, "links", "link", file, needed=True)
        paths = _Rows(record, "paths", "path", file, needed=True)
        hops = _Rows(record, "hops", "hop", file, needed=True)
        rates = _Rows(record, "rates", "rate", file, needed=True)
        columns = FixedCircuits(
            links.counts("source"),
            links.counts("destination"),
            links.counts("circuits"),
            paths.counts("source"),
            paths.counts("destination"),
            hops.counts("path"),
            hops.counts("link"),
            rates.counts("path"),
            rates.numbers("start_ms"),
            rates.numbers("end_ms"),
            rates.numbers("bytes_per_ms"),
        )
        for noun, named, there in (
            ("path", columns.hop_path, columns.path_source),
            ("link", columns.hop_link, columns.link_source),
            ("path", columns.rate_path, columns.path_source),
        ):
            if named.max(initial=-1) >= len(there):
                raise InputError(
                    f"names {noun} {named.max()}, but there are {len(there)}",
                    file=file,
                    field="fixed",
                )
        return columns


def read_schedule(data: bytes, file: str = "") -> dict[str, Any]:
    """Return the record of a result file, gzipped or not, once its shape is right.

    Whether ids are known and appear once is a matter of the constraints (eq. 3), not of the shape.

    Raises
    ------
    InputError
        If the file is no such record; names the item and the field.
    """
    record = json_object(unpacked(data, file), file)
    columns_of(record, file)
    return record


def columns_of(record: Any, file: str = "") -> Schedule:
    """Return a result record as columns.

    Raises
    ------
    InputError
        If a key is missing or a value is of the wrong kind; names the item and the field.
    """
    if not isinstance(record, Mapping):
        raise InputError(f"must be one JSON object (got {shown(record)})", file=file)
    check_header(dict(record), FORMAT, VERSION, file)
    status = record.get("status")
    check_one_of(status, STATUSES, file=file, field="status")
    settings = record.get("settings")
    if not isinstance(settings, Mapping):
        raise InputError(
            "must be an object: the choices the result was made with", file=file, field="settings"
        )
    makespan = _number(record, "makespan_ms", file, optional=status in ("infeasible", "unknown"))
    there = makespan is not None
    tasks = _Rows(record, "tasks", "task", file, needed=there)
    transfers = _Rows(record, "transfers", "transfer", file, needed=False)
    circuits = _Rows(record, "circuits", "circuit", file, needed=there)
    return Schedule(
        status=str(status),
        has_schedule=there,
        makespan_ms=makespan or 0.0,
        bound_ms=_number(record, "bound_ms", file, optional=not there) or 0.0,
        gap=_number(record, "gap", file, optional=True),
        slot_ms=_length(record, "slot_ms", file, optional=not there),
        tick_ms=_length(record, "tick_ms", file, optional=not there),
        settings=settings,
        task=tasks.words("id"),
        start_ms=tasks.numbers("start_ms"),
        end_ms=tasks.numbers("end_ms"),
        transfer=transfers.words("id"),
        collective=transfers.words("collective"),
        transfer_source=transfers.counts("source"),
        transfer_destination=transfers.counts("destination"),
        transfer_bytes=transfers.numbers("size_bytes"),
        transfer_dependencies=transfers.lists("dependencies"),
        circuit_task=circuits.words("task"),
        switch=circuits.counts("switch"),
        source=circuits.counts("source"),
        destination=circuits.counts("destination"),
        source_port=circuits.counts("source_port", absent=-1),
        destination_port=circuits.counts("destination_port", absent=-1),
        setup_ms=circuits.numbers("setup_ms"),
        circuit_start_ms=circuits.numbers("start_ms"),
        circuit_end_ms=circuits.numbers("end_ms"),
        fixed=FixedCircuits.of(record.get("fixed"), file),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: object) -> bool:
    """Return whether a value from a file is a number that can be counted with."""
    try:
        return _is_number(value) and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_list_of_words(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_word, value))


def _number(record: Mapping[str, Any], key: str, file: str, optional: bool) -> float | None:
    value = record.get(key)
    if value is None and optional:
        return None
    if not is_finite(value):
        raise InputError(f"must be a finite number (got {shown(value)})", file=file, field=key)
    return float(value)  # type: ignore[arg-type]


def _length(record: Mapping[str, Any], key: str, file: str, optional: bool) -> float:
    value = _number(record, key, file, optional)
    if value is None:
        return 1.0
    if not SHORTEST_MS <= value <= LONGEST_MS:
        raise InputError(
            f"must be from {SHORTEST_MS:g} to {LONGEST_MS:g} ms (got {value:g})",
            file=file,
            field=key,
        )
    return value


class _Rows:
    """The rows of one list of the record, read a column at a time; errors name the row."""

    def __init__(
        self, record: Mapping[str, Any], key: str, noun: str, file: str, needed: bool
    ) -> None:
        rows = record.get(key)
        if rows is None and not needed:
            rows = []
        if rows is None:
            raise InputError(
                "is missing: this is a summary (expected the whole result, as `schedule --output` writes it)",
                file=file,
                field=key,
            )
        if not isinstance(rows, list | tuple):
            raise InputError(f"must be a list (got {shown(rows)})", file=file, field=key)
        self._rows, self._noun, self._file = rows, noun, file
        if not set(map(type, rows)) <= {dict}:
            for i, row in enumerate(rows):
                if not isinstance(row, Mapping):
                    raise InputError(
                        f"must be an object (got {shown(row)})", file=file, item=self._name(i)
                    )

    def _name(self, i: int) -> str:
        row, circuit = self._rows[i], self._noun == "circuit"
        label = row.get("task" if circuit else "id") if isinstance(row, Mapping) else None
        if not isinstance(label, str):
            return f"{self._noun} number {i}"
        return f"circuit number {i} (of {label})" if circuit else f"{self._noun} {label}"

    def _column(
        self, field: str, right: Callable[[object], bool], types: set[type], expected: str
    ) -> list[Any]:
        try:
            column = [row[field] for row in self._rows]
        except KeyError:
            i = next(i for i, row in enumerate(self._rows) if field not in row)
            raise InputError(
                f"is missing; expected {expected}", file=self._file, item=self._name(i), field=field
            ) from None
        # The set of types settles thousands of good rows at once; only odd ones are looked at
        # singly.
        if not set(map(type, column)) <= types:
            self._refuse(column, field, right, expected)
        return column

    def _refuse(
        self, column: list[Any], field: str, right: Callable[[object], bool], expected: str
    ) -> None:
        for i, value in enumerate(column):
            if not right(value):
                raise InputError(
                    f"must be {expected} (got {shown(value)})",
                    file=self._file,
                    item=self._name(i),
                    field=field,
                )

    def words(self, field: str) -> list[str]:
        """Return a column of ids."""
        column = self._column(field, _is_word, {str}, "an id")
        if "" in column:
            self._refuse(column, field, _is_word, "an id")
        return column

    def numbers(self, field: str) -> Float:
        """Return a column of finite numbers."""
        column = self._column(field, is_finite, {int, float}, "a finite number")
        try:
            values = np.array(column, np.float64)
        except OverflowError:
            values = np.array([math.nan])
        if not np.isfinite(values).all():
            self._refuse(column, field, is_finite, "a finite number")
        return values

    def counts(self, field: str, absent: int | None = None) -> Int:
        """Return a column of whole numbers from 0.

        ``absent`` stands where the key may be left out and is.
        """
        expected = "a whole number from 0"
        if absent is None:
            return self._as_counts(self._column(field, _is_count, {int}, expected), field, expected)
        column = [row.get(field) for row in self._rows]
        missing = np.array([value is None for value in column], np.bool_)
        if missing.all():
            return np.full(len(column), absent, np.int64)
        if missing.any():
            column = [0 if value is None else value for value in column]
        return np.where(missing, absent, self._as_counts(column, field, expected))

    def _as_counts(self, column: list[Any], field: str, expected: str) -> Int:
        if column and (
            set(map(type, column)) != {int} or min(column) < 0 or max(column) > MAX_NUMBER
        ):
            self._refuse(column, field, _is_count, expected)
        return np.array(column, np.int64)

    def lists(self, field: str) -> list[Sequence[str]]:
        """Return a column of lists of ids."""
        column = self._column(field, _is_list_of_words, {list, tuple}, "a list of ids")
        if not set(map(type, chain.from_iterable(column))) <= {str}:
            self._refuse(column, field, _is_list_of_words, "a list of ids")
        return column
