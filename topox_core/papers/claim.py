"""One claim of a paper: its number, and the reading of a card that is set against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from topox_core.papers.card import Answer, Row, Verdict, judged, judged_over, stated


@dataclass(frozen=True)
class Reading:
    """A number of a card's answer, and what it was at the last check.

    ``spread`` is the standard deviation of the draws that it is the mean of, if it is one.
    """

    series: str
    of: Callable[[tuple[Row, ...]], float]
    checked: float
    spread: Reading | None = None

    def value(self, answer: Answer | None) -> float:
        """Return the number of a complete answer, else that of the last check."""
        if answer is None or not answer.complete:
            return self.checked
        return self.of(answer.of(self.series))


@dataclass(frozen=True)
class Claim:
    """One claim of a paper.

    Attributes
    ----------
    card, words
        The card that checks it, and the claim in words.
    printed
        The number; None where the paper claims a direction only.
    reading, unit, base
        What is set against it, and what both are read from: a bandwidth tax from 1 on.
    other, other_words
        A second reading of the same claim, and on what condition.
    condition
        On what condition the first was computed.
    least
        The number is printed as "more than": any larger one keeps it.
    comparable
        False where what the number was measured on is not public, so that ours only stands beside.
    """

    card: str
    words: str
    printed: float | None
    reading: Reading
    unit: str = "×"
    base: float = 0.0
    other: Reading | None = None
    other_words: str = ""
    condition: str = ""
    least: bool = False
    comparable: bool = True

    def verdict(self, answer: Answer | None) -> Verdict:
        """Return the judgement on the number, or on the direction: clearly above 1 goes the claimed way."""
        value = self.reading.value(answer)
        if not self.comparable:
            return "not printed"
        if self.printed is None:
            return stated(value)
        if self.least and value >= self.printed:
            return "match"
        if self.reading.spread is not None:
            return judged_over(self.printed, value, self.reading.spread.value(answer), 1.0)
        ratio = self.unit == "×" and not self.base
        return judged(self.printed - self.base, value - self.base, 1.0 if ratio else None)
