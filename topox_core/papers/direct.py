"""Cards whose rows are computed one after the other in this process, and their kinds of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from topox_core.papers.calls import CANCELLED
from topox_core.papers.card import NOT_PRINTED, Answer, OnRow, Row, Settings, Verdict, judged
from topox_core.runs.stopping import Stop

RowsOf = Callable[[Settings], Iterable[Row]]
# The finding and the remarks, from all rows.
WordsOf = Callable[[Sequence[Row]], tuple[str, tuple[str, ...]]]
UNFINISHED = "Not all points were computed."


def direct(name: str, rows: RowsOf, words: WordsOf) -> Callable[[Settings, Stop, OnRow], Answer]:
    """Return how a card plays whose rows come from ``rows``, asked to stop before each of them."""

    def play(settings: Settings, stop: Stop, on_row: OnRow) -> Answer:
        known: list[Row] = []
        for row in rows(settings):
            if stop():
                return Answer(name, settings, tuple(known), UNFINISHED, lost=(CANCELLED,))
            known.append(row)
            on_row(row)
        finding, remarks = words(known)
        return Answer(name, settings, tuple(known), finding, remarks=remarks)

    return play


def printed(
    series: str, item: str, about: str, theirs: float, ours: float, reason: str, **more: Any
) -> Row:
    """Return a row whose printed number is judged by its distance; ``more`` is unit, bound or data."""
    return Row(series, item, about, theirs, ours, judged(theirs, ours), reason, **more)


def at_least(
    series: str, item: str, about: str, theirs: float, ours: float, reason: str, **more: Any
) -> Row:
    """Return a row whose number is printed as "more than": any larger number keeps it."""
    verdict: Verdict = "match" if ours >= theirs else judged(theirs, ours)
    return Row(series, item, about, theirs, ours, verdict, reason, **more)


def directed(
    series: str, item: str, about: str, follows: bool, ours: float, reason: str, **more: Any
) -> Row:
    """Return a row for what a paper says without a number: the claimed way, or not."""
    return Row(series, item, about, None, ours, "trend" if follows else "differs", reason, **more)


def unprinted(
    series: str, item: str, about: str, ours: float, reason: str = "", **more: Any
) -> Row:
    """Return a row that nothing printed can be set against."""
    reason = reason or NOT_PRINTED
    return Row(series, item, about, None, ours, "not printed", reason, **more)


def row_of(rows: Iterable[Row], series: str, item: str) -> Row:
    """Return one row by series and item."""
    return next(row for row in rows if (row.series, row.item) == (series, item))
