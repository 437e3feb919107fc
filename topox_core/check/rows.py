"""Lists of objects in a result file, read a column at a time; whatever is wrong is named with its row.

Where circuits stay fixed transfers have paths and rates: who crosses which servers, and how fast when.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np

from topox_core.check.intervals import Float, Int
from topox_core.errors import InputError, printable, shown, unknown

# Server, switch and port numbers; far above any cluster, far below what the arrays hold.
MAX_NUMBER = 1_000_000_000
PATH_KEYS = frozenset(("servers", "share", "rates"))


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


@dataclass(frozen=True)
class Rates:
    """Rates in rows: what each belongs to, from when until when (ms), gigabits a second."""

    owner: Int
    begin_ms: Float
    end_ms: Float
    gbps: Float


@dataclass(frozen=True)
class PathsOfTransfers:
    """The paths of transfers in columns, and the rates on them.

    Attributes
    ----------
    transfer
        Ids of the transfers that have paths.
    owner, share
        Of each path: its transfer, a position in ``transfer``, and the part of the bytes it takes.
    source, destination
        First and last server of each path.
    hop_path, hop_source, hop_destination
        From server to server along each path, in rows.
    rates
        On each path; where a path has none of its own, the transfer's times the share.
    totals
        Of each transfer, as the file says.
    """

    transfer: list[str]
    owner: Int
    share: Float
    source: Int
    destination: Int
    hop_path: Int
    hop_source: Int
    hop_destination: Int
    rates: Rates
    totals: Rates

    @staticmethod
    def of(rows: Sequence[Mapping[str, Any]], file: str) -> PathsOfTransfers:
        """Return the columns of ``transfers``; those without ``paths`` are left out.

        Raises
        ------
        InputError
            If a value is of the wrong kind; the transfer and the field are named.
        """
        names: list[str] = []
        owner: list[int] = []
        share: list[float] = []
        servers: list[Sequence[int]] = []
        totals: list[Any] = []
        rates: list[Any] = []
        scale: list[float] = []
        for number, row in enumerate(rows):
            if "paths" not in row and "rates" not in row:
                continue
            name = row.get("id")
            if not isinstance(name, str) or not name:
                raise _wrong("an id", name, file, f"transfer number {number}", "id")
            item = f"transfer {printable(name)}"
            for path in _list(row.get("paths"), "a list of paths", file, item, "paths"):
                if not isinstance(path, Mapping):
                    raise _wrong("an object", path, file, item, "paths")
                refuse_unknown(path, PATH_KEYS, file, "paths", item)
                servers.append(_servers(path.get("servers"), file, item))
                if not is_finite(path.get("share")):
                    raise _wrong("a finite number", path.get("share"), file, item, "paths.share")
                owner.append(len(names))
                share.append(float(path["share"]))
                own = "rates" in path
                rates.append(path["rates"] if own else row.get("rates"))
                scale.append(1.0 if own else share[-1])
            names.append(name)
            totals.append(row.get("rates"))
        of_path = [names[i] for i in owner]
        hops = [(p, a, b) for p, path in enumerate(servers) for a, b in pairwise(path)]
        hop_path, hop_source, hop_destination = np.array(hops, np.int64).reshape(-1, 3).T
        on_paths = _rates(rates, of_path, file)
        times = np.array(scale)[on_paths.owner] if scale else np.zeros(0)
        return PathsOfTransfers(
            names,
            np.array(owner, np.int64),
            np.array(share),
            np.array([path[0] for path in servers], np.int64),
            np.array([path[-1] for path in servers], np.int64),
            hop_path,
            hop_source,
            hop_destination,
            Rates(on_paths.owner, on_paths.begin_ms, on_paths.end_ms, on_paths.gbps * times),
            _rates(totals, names, file),
        )


def _rates(given: Sequence[Any], names: Sequence[str], file: str) -> Rates:
    """Return rows of [from_ms, to_ms, gbps], of one list for each name, as columns."""
    expected = "a list of [from_ms, to_ms, gbps]"
    for rows, name in zip(given, names, strict=True):
        _list(rows, expected, file, f"transfer {printable(name)}", "rates")
    every = list(chain.from_iterable(given))
    whole = set(map(type, every)) <= {list, tuple} and set(map(len, every)) <= {3}
    values = list(chain.from_iterable(every)) if whole else []
    table = _finite(values)
    if not whole or table is None:
        for rows, name in zip(given, names, strict=True):
            for row in rows:
                right = isinstance(row, list | tuple) and len(row) == 3
                if not right or not all(map(is_finite, row)):
                    item = f"transfer {printable(name)}"
                    raise _wrong("[from_ms, to_ms, gbps]", row, file, item, "rates")
    assert table is not None
    begin, end, gbps = table.reshape(-1, 3).T
    return Rates(np.repeat(np.arange(len(given)), [len(rows) for rows in given]), begin, end, gbps)


def _finite(values: Sequence[Any]) -> Float | None:
    """Return numbers from a file as an array, None if one is not finite or no number."""
    if not set(map(type, values)) <= {int, float}:
        return None
    try:
        table = np.array(values, np.float64)
    except OverflowError:
        return None
    return table if np.isfinite(table).all() else None


def _servers(value: Any, file: str, item: str) -> Sequence[int]:
    words = "a list of two servers at least"
    servers = _list(value, words, file, item, "paths.servers")
    if len(servers) < 2 or not all(map(is_count, servers)):
        raise _wrong(words, value, file, item, "paths.servers")
    return servers


def _list(value: Any, expected: str, file: str, item: str, field: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise _wrong(expected, value, file, item, field)
    return value


def _wrong(expected: str, value: object, file: str, item: str, field: str) -> InputError:
    return InputError(f"must be {expected} (got {shown(value)})", file=file, item=item, field=field)
