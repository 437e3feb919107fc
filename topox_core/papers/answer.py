"""What a run of a card gives, and what a claim of its paper reads of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from topox_core.papers.rows import Judged, Row, Verdict, judged_as, stated


@dataclass(frozen=True)
class Answer:
    """What a run of a card gives: rows in the order of the paper, the finding, and what must be known besides.

    Attributes
    ----------
    finding
        The result in one or two sentences made from the numbers.
    remarks
        Sentences on why it came out so.
    facts
        (name, value, note) of numbers worth showing apart.
    lost
        In words, why rows are missing (cancelled, a worker process died).
    """

    card: str
    settings: Mapping[str, str | int | float]
    rows: tuple[Row, ...]
    finding: str
    facts: tuple[tuple[str, str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no row is missing."""
        return not self.lost

    def of(self, series: str) -> tuple[Row, ...]:
        """Return the rows of one series."""
        return tuple(row for row in self.rows if row.series == series)


PICKS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "most": max,
    "least": min,
    "mean": fmean,
}


@dataclass(frozen=True)
class Reading:
    """A number of a card's answer.

    Attributes
    ----------
    series, item
        Which rows it is read from: a series, or of it the items that begin so.
    data
        Which of their further numbers is read; empty: ours.
    pick
        One of :data:`PICKS`.
    spread
        The standard deviation of the draws that it is the mean of, if it is one.
    """

    series: str
    item: str = ""
    data: str = ""
    pick: str = "first"
    spread: Reading | None = None

    def value(self, answer: Answer) -> float:
        """Return the number of a complete answer."""
        rows = [row for row in answer.of(self.series) if row.item.startswith(self.item)]
        return PICKS[self.pick]([row.data[self.data] if self.data else row.ours for row in rows])


@dataclass(frozen=True)
class Claim:
    """One claim of a paper, which a card tries.

    Attributes
    ----------
    words
        The claim in words.
    printed
        The number, or which of the card's printed ones; None where the paper claims a direction only.
    reading, unit, base
        What is set against it, and what both are read from: a bandwidth tax from 1 on.
    other, other_words
        A second reading of the same claim, and on what condition.
    condition
        On what condition the first was computed.
    least
        The number is printed as "more than": any larger one keeps it.
    card, comparable
        The card's name, and False where what the number was measured on is not public, so that ours
        only stands beside (both as the card says).
    """

    words: str
    reading: Reading
    printed: float | None = None
    unit: str = "×"
    base: float = 0.0
    other: Reading | None = None
    other_words: str = ""
    condition: str = ""
    least: bool = False
    card: str = ""
    comparable: bool = True

    def verdict(self, answer: Answer) -> Verdict:
        """Return the judgement on the number, or on the direction: clearly above 1 goes the claimed way."""
        if not self.comparable:
            return "not printed"
        value = self.reading.value(answer) - self.base
        if self.printed is None:
            return stated(value)
        spread = self.reading.spread.value(answer) if self.reading.spread else 0.0
        how: Judged = "side of one" if self.unit == "×" and not self.base else ""
        how = "more than" if self.least else how
        return judged_as(how, self.printed - self.base, value, spread, None)
