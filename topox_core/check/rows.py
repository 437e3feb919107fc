"""Lists of objects in a result file as columns; whatever is wrong is named with its row.

Where circuits stay fixed transfers have paths and rates: who crosses which servers, and how fast when.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import isfinite
from typing import Annotated, Any, TypeGuard

import msgspec
import numpy as np

from topox_core.check.intervals import Float, Int
from topox_core.errors import InputError, check_known, printable, shown
from topox_core.io.limits import is_number
from topox_core.schema.fields import fields_of, problems, setting

# Server, switch and port numbers: far above any cluster, far below what the arrays hold.
_Count = Annotated[int, setting(ge=0, le=1_000_000_000)]
_Id = Annotated[str, setting(min_length=1)]
# From when (ms), until when, and gigabits per second.
_Rate = Annotated[list[float], setting(min_length=3, max_length=3)]


class TaskRow(msgspec.Struct):
    """When a task runs."""

    id: _Id
    start_ms: float
    end_ms: float


class TransferRow(msgspec.Struct):
    """A transfer that a collective became."""

    id: _Id
    collective: _Id
    source: _Count
    destination: _Count
    size_bytes: float
    dependencies: list[str]


class StandingRow(msgspec.Struct):
    """A circuit, whoever uses it."""

    switch: _Count
    source: _Count
    destination: _Count
    setup_ms: float
    start_ms: float
    end_ms: float
    source_port: _Count | None = None
    destination_port: _Count | None = None


class CircuitRow(StandingRow, kw_only=True):
    """A circuit of one transfer."""

    task: _Id


class _Path(msgspec.Struct, forbid_unknown_fields=True):
    servers: Annotated[list[_Count], setting(min_length=2)]
    share: float
    rates: list[_Rate] | None = None


class _RoutedRow(msgspec.Struct):
    id: _Id
    paths: list[_Path]
    rates: list[_Rate]


def is_finite(value: object) -> TypeGuard[float]:
    """Return whether a value from a file is a number that can be counted with."""
    return is_number(value, -sys.float_info.max, sys.float_info.max)


def rows_of(record: Mapping[str, Any], key: str, file: str, needed: bool) -> Sequence[Any]:
    """Return a list of the record, empty where it is missing and need not be there."""
    rows = record.get(key)
    if rows is None and needed:
        raise InputError(
            "is missing: this is a summary (expected the whole result, as `schedule --output` writes it)",
            file=file,
            field=key,
        )
    rows = [] if rows is None else rows
    if not isinstance(rows, list | tuple):
        raise wrong("a list", rows, file, "", key)
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise wrong("an object", row, file, f"{key[:-1]} number {i}", "")
    return rows


def columns_of_rows(
    kind: type[msgspec.Struct], rows: Sequence[Mapping[str, Any]], noun: str, file: str
) -> dict[str, list[Any]]:
    """Return the columns of rows of a kind, whatever else they hold; errors name the row."""
    fields = fields_of(kind)
    try:
        made = msgspec.convert(rows, list[kind])  # type: ignore[valid-type]
    except msgspec.ValidationError:
        raise _first_wrong(kind, rows, noun, file) from None
    columns = {name: [getattr(row, name) for row in made] for name in fields}
    if not all(all(map(isfinite, columns[name])) for name in fields if fields[name].kind is float):
        raise _first_wrong(kind, rows, noun, file)
    return columns


def _first_wrong(
    kind: type[msgspec.Struct], rows: Sequence[Mapping[str, Any]], noun: str, file: str
) -> InputError:
    for i, row in enumerate(rows):
        for name, field in fields_of(kind).items():
            found = iter([(name, "is missing")] if field.required else ())
            if name in row:
                found = problems(field.hint, row[name], name)
            for path, problem in found:
                return InputError(problem, file=file, item=name_of_row(row, noun, i), field=path)
    raise AssertionError("one of the rows cannot be read")


def name_of_row(row: Mapping[str, Any], noun: str, i: int) -> str:
    """Return what errors call a row."""
    label = row.get("task" if noun == "circuit" else "id")
    if not isinstance(label, str) or not label.strip():
        return f"{noun} number {i}"
    return f"circuit number {i} (of {label})" if noun == "circuit" else f"{noun} {label}"


def refuse_unknown(
    record: Mapping[str, Any], keys: frozenset[str], file: str, field: str, item: str = ""
) -> None:
    """Refuse a key that is not among the known ones; ``field`` is the object that has it."""
    for key in record:
        named = f"{field}.{printable(str(key))}" if field else printable(str(key))
        check_known(key, sorted(keys), file=file, item=item, field=named)


@dataclass(frozen=True)
class Rates:
    """Rates in rows: what each belongs to, from when until when (ms), gigabits per second."""

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
        routed = [row for row in rows if "paths" in row or "rates" in row]
        columns = columns_of_rows(_RoutedRow, routed, "transfer", file)
        names, totals = columns["id"], columns["rates"]
        owners = [k for k, paths in enumerate(columns["paths"]) for _ in paths]
        paths: list[_Path] = list(chain.from_iterable(columns["paths"]))
        hops = [(p, a, b) for p, path in enumerate(paths) for a, b in pairwise(path.servers)]
        hop_path, hop_source, hop_destination = np.array(hops, np.int64).reshape(-1, 3).T
        # A path without rates of its own has a share of the transfer's.
        given = zip(owners, paths, strict=True)
        on_paths = _rates([totals[k] if path.rates is None else path.rates for k, path in given])
        share = np.array([path.share for path in paths], np.float64)
        times = np.where([path.rates is None for path in paths], share, 1.0)
        on_paths = replace(on_paths, gbps=on_paths.gbps * times[on_paths.owner])
        found = PathsOfTransfers(
            names,
            np.array(owners, np.int64),
            share,
            np.array([path.servers[0] for path in paths], np.int64),
            np.array([path.servers[-1] for path in paths], np.int64),
            hop_path,
            hop_source,
            hop_destination,
            on_paths,
            _rates(totals),
        )
        for owner, rates in ((found.owner, on_paths), (np.arange(len(names)), found.totals)):
            numbers = rates.begin_ms + rates.end_ms + rates.gbps
            for k in np.flatnonzero(~np.isfinite(numbers))[:1]:
                item = f"transfer {printable(names[owner[rates.owner[k]]])}"
                problem = "must be finite numbers: [from_ms, to_ms, gbps], and shares"
                raise InputError(problem, file=file, item=item, field="rates")
        return found


def _rates(given: Sequence[list[list[float]]]) -> Rates:
    """Return rows of [from_ms, to_ms, gbps], of one list for each owner, as columns."""
    table = np.array(list(chain.from_iterable(given)), np.float64).reshape(-1, 3)
    return Rates(np.repeat(np.arange(len(given)), [len(rows) for rows in given]), *table.T)


def wrong(expected: str, value: object, file: str, item: str, field: str) -> InputError:
    """Return the error of a value that is not what was expected."""
    return InputError(f"must be {expected} (got {shown(value)})", file=file, item=item, field=field)
