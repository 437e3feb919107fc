"""Paths and rates in a result file whose circuits stay fixed: who crosses which servers, and how fast when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np

from topox_core.check.intervals import Float, Int
from topox_core.check.rows import is_count, is_finite, refuse_unknown
from topox_core.errors import InputError, printable, shown

PATH_KEYS = frozenset(("servers", "share", "rates"))


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
