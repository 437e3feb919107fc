"""Lists of objects in a result file, read a column at a time; whatever is wrong is named with its row.

Where circuits stay fixed transfers have paths and rates: who crosses which servers, and how fast when.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, TypeGuard

import numpy as np

from topox_core.check.intervals import Float, Int
from topox_core.errors import InputError, printable, shown, unknown
from topox_core.io.ranges import is_number, is_whole

# Server, switch and port numbers; far above any cluster, far below what the arrays hold.
MAX_NUMBER = 1_000_000_000
PATH_KEYS = frozenset(("servers", "share", "rates"))
# What each column holds, as errors say it.
COUNT, NUMBER, ID = "a whole number from 0", "a finite number", "an id"
IDS, RATES = "a list of ids", "a list of [from_ms, to_ms, gbps]"


def is_finite(value: object) -> TypeGuard[float]:
    """Return whether a value from a file is a number that can be counted with."""
    return is_number(value, -sys.float_info.max, sys.float_info.max)


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value from a file is a number of a server, switch or port."""
    return is_whole(value, 0, MAX_NUMBER)


def _is_word(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value != ""


def _is_list_of_words(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_word, value))


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


class Rows:
    """The rows of one list of the record, read a column at a time; errors name the row.

    Sets of types settle thousands of good values at once; only odd ones are looked at singly.
    """

    def __init__(
        self, record: Mapping[str, Any], key: str, noun: str, file: str, needed: bool
    ) -> None:
        rows = record.get(key)
        if rows is None and needed:
            raise InputError(
                "is missing: this is a summary (expected the whole result, as `schedule --output` writes it)",
                file=file,
                field=key,
            )
        self.rows = _list([] if rows is None else rows, "a list", file, "", key)
        self._noun, self._file = noun, file
        if not set(map(type, self.rows)) <= {dict}:
            self._refuse(self.rows, "", _is_object, "an object")

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

    def _column(self, field: str, expected: str) -> list[Any]:
        try:
            return [row[field] for row in self.rows]
        except KeyError:
            i = next(i for i, row in enumerate(self.rows) if field not in row)
            raise InputError(
                f"is missing; expected {expected}", file=self._file, item=self._name(i), field=field
            ) from None

    def _refuse(
        self, column: Sequence[Any], field: str, right: Callable[[object], bool], expected: str
    ) -> None:
        """Refuse the first value of a column that is not right."""
        for i, value in enumerate(column):
            if not right(value):
                raise wrong(expected, value, self._file, self._name(i), field)

    def words(self, field: str) -> list[str]:
        """Return a column of ids."""
        column = self._column(field, ID)
        if not set(map(type, column)) <= {str} or "" in column:
            self._refuse(column, field, _is_word, ID)
        return column

    def numbers(self, field: str) -> Float:
        """Return a column of finite numbers."""
        column = self._column(field, NUMBER)
        values = _finite(column)
        if values is None:
            self._refuse(column, field, is_finite, NUMBER)
        return np.array(column, np.float64) if values is None else values

    def counts(self, field: str) -> Int:
        """Return a column of whole numbers from 0."""
        return self._counts(self._column(field, COUNT), field)

    def counts_given(self, field: str) -> Int:
        """Return a column of whole numbers from 0, -1 where the key is left out."""
        column = [row.get(field) for row in self.rows]
        absent = [value is None for value in column]
        counts = self._counts([0 if value is None else value for value in column], field)
        return np.where(absent, -1, counts)

    def _counts(self, column: list[Any], field: str) -> Int:
        whole = set(map(type, column)) <= {int}
        if not whole or min(column, default=0) < 0 or max(column, default=0) > MAX_NUMBER:
            self._refuse(column, field, is_count, COUNT)
        return np.array(column, np.int64)

    def lists(self, field: str) -> list[Sequence[str]]:
        """Return a column of lists of ids."""
        column = self._column(field, IDS)
        lists = set(map(type, column)) <= {list, tuple}
        if not lists or not set(map(type, chain.from_iterable(column))) <= {str}:
            self._refuse(column, field, _is_list_of_words, IDS)
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
        totals: list[Any] = []
        # Of each path: its transfer, its share, its servers, its rates and what they are times.
        paths: list[tuple[int, float, Sequence[int], Any, float]] = []
        for number, row in enumerate(rows):
            if "paths" not in row and "rates" not in row:
                continue
            name = row.get("id")
            if not _is_word(name):
                raise wrong(ID, name, file, f"transfer number {number}", "id")
            item = f"transfer {printable(name)}"
            for path in _list(row.get("paths"), "a list of paths", file, item, "paths"):
                if not isinstance(path, Mapping):
                    raise wrong("an object", path, file, item, "paths")
                refuse_unknown(path, PATH_KEYS, file, "paths", item)
                servers, share = _servers(path.get("servers"), file, item), path.get("share")
                if not is_finite(share):
                    raise wrong(NUMBER, share, file, item, "paths.share")
                rates, times = (
                    (path["rates"], 1.0) if "rates" in path else (row.get("rates"), share)
                )
                paths.append((len(names), float(share), servers, rates, float(times)))
            names.append(name)
            totals.append(row.get("rates"))
        owners, shares, ways, given, scale = list(zip(*paths, strict=True)) or [()] * 5
        hops = [(p, a, b) for p, way in enumerate(ways) for a, b in pairwise(way)]
        hop_path, hop_source, hop_destination = np.array(hops, np.int64).reshape(-1, 3).T
        on_paths = _rates(given, [names[i] for i in owners], file)
        return PathsOfTransfers(
            names,
            np.array(owners, np.int64),
            np.array(shares, np.float64),
            np.array([way[0] for way in ways], np.int64),
            np.array([way[-1] for way in ways], np.int64),
            hop_path,
            hop_source,
            hop_destination,
            replace(on_paths, gbps=on_paths.gbps * np.array(scale, np.float64)[on_paths.owner]),
            _rates(totals, names, file),
        )


def _rates(given: Sequence[Any], names: Sequence[str], file: str) -> Rates:
    """Return rows of [from_ms, to_ms, gbps], of one list for each name, as columns."""
    for rows, name in zip(given, names, strict=True):
        _list(rows, RATES, file, f"transfer {printable(name)}", "rates")
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
                    raise wrong("[from_ms, to_ms, gbps]", row, file, item, "rates")
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
        raise wrong(words, value, file, item, "paths.servers")
    return servers


def _list(value: Any, expected: str, file: str, item: str, field: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise wrong(expected, value, file, item, field)
    return value


def wrong(expected: str, value: object, file: str, item: str, field: str) -> InputError:
    """Return the error of a value that is not what was expected."""
    return InputError(f"must be {expected} (got {shown(value)})", file=file, item=item, field=field)
