"""Which runs of a library are meant: a filter, and what it is in SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from topox_core.errors import InputError
from topox_core.library.record import CARD
from topox_core.library.rows import storable

Value = bool | int | float | str | None
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.\-]+")
# SQLite may read the last digit of a number in JSON differently from Python.
SAME = 1e-12
MOST = 1e300


@dataclass(frozen=True)
class RunFilter:
    """The runs for which all of this holds; what is empty or None is not asked.

    Attributes
    ----------
    subject
        Its name, or its digest.
    text
        A part of the name or the subject; A to Z as a to z.
    without
        Kinds that are left out.
    shortest_ms, longest_ms
        The iteration time, both ends included; runs without one are left out.
    settings
        By key, the value that a setting has; None: it is null or not there. Numbers are equal
        that differ by less than one part in 10^12.
    """

    subject: str = ""
    status: str = ""
    kind: str = ""
    version: str = ""
    study: int | None = None
    text: str = ""
    without: tuple[str, ...] = ()
    shortest_ms: float | None = None
    longest_ms: float | None = None
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
    terms: list[tuple[str, tuple[object, ...]]] = []
    if which.subject:
        terms.append(("(subject = ? OR graph = ?)", (which.subject, which.subject)))
    equal = [("status", which.status), ("kind", which.kind), ("version", which.version)]
    terms += [(f"{column} = ?", (wanted,)) for column, wanted in equal if wanted]
    terms += [("kind <> ?", (kind,)) for kind in which.without]
    if which.study is not None:
        terms.append(("id IN (SELECT run FROM study_points WHERE study = ?)", (which.study,)))
    if which.text:
        term = "(instr(lower(name), lower(?)) OR instr(lower(subject), lower(?)))"
        terms.append((term, (which.text, which.text)))
    if which.shortest_ms is not None:
        terms.append(("iteration_ms >= ?", (which.shortest_ms,)))
    if which.longest_ms is not None:
        terms.append(("iteration_ms <= ?", (which.longest_ms,)))
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
    if isinstance(value, bool | int | float) and abs(value) <= MOST:
        number = float(value)
        ends = sorted((number * (1 - SAME), number * (1 + SAME)))
        return f"{found} BETWEEN ? AND ?", (*of_key, *ends)
    raise InputError("must be a finite number or a word", file="filter", field=key)
