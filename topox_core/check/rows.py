"""Lists of objects in a result file, read a column at a time; whatever is wrong is named with its row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from topox_core.check.intervals import Float, Int
from topox_core.errors import InputError, printable, shown, unknown

# Server, switch and port numbers; far above any cluster, far below what the arrays hold.
MAX_NUMBER = 1_000_000_000


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: object) -> bool:
    """Return whether a value from a file is a number that can be counted with."""
    try:
        return _is_number(value) and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


def is_count(value: object) -> bool:
    """Return whether a value from a file is a number of a server, switch or port."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_list_of_words(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_word, value))


class Rows:
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
        self.rows, self._noun, self._file = rows, noun, file
        if not set(map(type, rows)) <= {dict}:
            for i, row in enumerate(rows):
                if not isinstance(row, Mapping):
                    raise InputError(
                        f"must be an object (got {shown(row)})", file=file, item=self._name(i)
                    )

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, right: Callable[[Mapping[str, Any]], bool]) -> Rows:
        """Return some of the rows."""
        rows = [row for row in self.rows if right(row)]
        return Rows({"rows": rows}, "rows", self._noun, self._file, needed=False)

    def refuse_unknown(self, keys: frozenset[str]) -> None:
        """Refuse a row with a key that none of these rows has."""
        if not set(chain.from_iterable(self.rows)) <= keys:
            for i, row in enumerate(self.rows):
                refuse_unknown(row, keys, self._file, "", self._name(i))

    def _name(self, i: int) -> str:
        row, circuit = self.rows[i], self._noun == "circuit"
        label = row.get("task" if circuit else "id") if isinstance(row, Mapping) else None
        if not isinstance(label, str):
            return f"{self._noun} number {i}"
        return f"circuit number {i} (of {label})" if circuit else f"{self._noun} {label}"

    def _column(
        self, field: str, right: Callable[[object], bool], types: set[type], expected: str
    ) -> list[Any]:
        try:
            column = [row[field] for row in self.rows]
        except KeyError:
            i = next(i for i, row in enumerate(self.rows) if field not in row)
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
            return self._as_counts(self._column(field, is_count, {int}, expected), field, expected)
        column = [row.get(field) for row in self.rows]
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
            self._refuse(column, field, is_count, expected)
        return np.array(column, np.int64)

    def lists(self, field: str) -> list[Sequence[str]]:
        """Return a column of lists of ids."""
        column = self._column(field, _is_list_of_words, {list, tuple}, "a list of ids")
        if not set(map(type, chain.from_iterable(column))) <= {str}:
            self._refuse(column, field, _is_list_of_words, "a list of ids")
        return column


def refuse_unknown(
    record: Mapping[str, Any], keys: frozenset[str], file: str, field: str, item: str = ""
) -> None:
    """Refuse a key that is not among the known ones; ``field`` is the object that has it."""
    for key in record:
        if key not in keys:
            named = f"{field}.{printable(str(key))}" if field else printable(str(key))
            raise InputError(unknown(key, sorted(keys)), file=file, item=item, field=named)
