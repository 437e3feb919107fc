"""A published number beside ours, how it counts and is judged; a card's answer made of such rows, and what a claim reads of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from types import MappingProxyType
from typing import Literal

Verdict = Literal["match", "trend", "differs", "not printed"]
Kind = Literal["simulated", "arithmetic", "identity", "quoted"]
# How a row is judged: by its distance from the printed number if there is one, which may also be printed as
# "more than", or state on which side of 1 a ratio is, if need be without a number.
Judged = Literal["", "more than", "side of one", "above one"]

# A number within 10 % of the printed one matches, within 25 % it follows the trend, further off it
# differs. Steps and distances of less than 2 % are level, and what is level shows no trend.
MATCH, TREND, LEVEL = 0.10, 0.25, 0.02
VERDICTS: Mapping[Verdict, tuple[str, str]] = MappingProxyType(
    {
        "match": ("✓", "match"),
        "trend": ("≈", "trend"),
        "differs": ("✗", "differs"),
        "not printed": ("–", "not printed"),
    }
)
NOT_PRINTED = "No number is printed."
# What ours is. A match is earned by the first alone, which could have come out otherwise.
KINDS: Mapping[Kind, str] = MappingProxyType(
    {
        "simulated": "computed by a model, whose result could have been another",
        "arithmetic": "the printed formula on the printed table",
        "identity": "true by construction",
        "quoted": "printed numbers compared with printed numbers",
    }
)
FALLS_BACK = "falls back"
# All that a row may count as, in the order of every count: a verdict, or apart from them why it has none.
APART = ("arithmetic", "identity", "quoted", FALLS_BACK)
COUNTED = (*VERDICTS, *APART)
# The same on pages and in documents, after a count or before a verdict; files keep the keys.
APART_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "arithmetic": "by formula",
        "identity": "by construction",
        "quoted": "quoted",
        FALLS_BACK: "with another row",
    }
)


@dataclass(frozen=True)
class Row:
    """One published number beside ours.

    Attributes
    ----------
    series, item, about
        Which column or line it belongs to, its label, and what it was measured on.
    theirs, ours, unit
        The two numbers; ``theirs`` is None where the paper says something but prints no number.
    verdict, reason
        How near ours is to theirs, and why it came out so.
    bound
        What no schedule on this network can beat, if that is known.
    data
        Further numbers of ours, in the same unit unless the key says otherwise.
    kind, kind_reason
        What ours is, and why where that is not obvious; its card says so (:attr:`Card.kinds`).
    counts_with
        The column whose number stands in this row too, so that the row counts with that column.
    """

    series: str
    item: str
    about: str
    theirs: float | None
    ours: float
    verdict: Verdict
    reason: str
    unit: str = ""
    bound: float | None = None
    data: Mapping[str, float] = field(default_factory=dict)
    kind: Kind = "simulated"
    kind_reason: str = ""
    counts_with: str = ""

    @property
    def counted_as(self) -> str:
        """One of :data:`COUNTED`: the verdict of a simulation, else why the row is counted apart."""
        if self.verdict == "not printed":
            return self.verdict
        apart = FALLS_BACK if self.counts_with else self.kind
        return self.verdict if apart == "simulated" else apart

    @property
    def verdict_words(self) -> str:
        """The verdict with its sign; of a row that is counted apart why, and no sign."""
        sign, words = VERDICTS[self.verdict]
        if self.counted_as not in APART:
            return f"{sign} {words}"
        return (
            f"counts with {self.counts_with}"
            if self.counts_with
            else f"{APART_NAMES[self.kind]}: {words}"
        )

    @property
    def deviation(self) -> float | None:
        """Ours against theirs, as a share of theirs."""
        return None if self.theirs is None else self.ours / self.theirs - 1


def judged(theirs: float, ours: float) -> Verdict:
    """Return the verdict on a number by its distance."""
    distance = abs(ours / theirs - 1)
    return "match" if distance <= MATCH else "trend" if distance <= TREND else "differs"


def judged_as(
    how: Judged,
    theirs: float | None,
    ours: float,
    spread: float = 0.0,
    follows: bool | None = None,
) -> Verdict:
    """Return the verdict on a row.

    A printed ratio clearly above or below 1 states a direction; what is level or goes the other way
    does not follow it. Nor does the mean of several draws that lies less than ``spread``, their
    standard deviation, from 1 on the printed side: there the direction is not shown.

    Parameters
    ----------
    spread
        The standard deviation of the draws that ours is the mean of; 0 of a single number.
    follows
        Whether ours follows what is said without a number; None: nothing is.
    """
    if follows is not None:
        return "trend" if follows else "differs"
    if theirs is None and how == "above one":
        return "trend" if ours - 1 > max(LEVEL, spread) else "differs"
    if theirs is None:
        return "not printed"
    if how == "more than" and ours >= theirs:
        return "match"
    verdict = judged(theirs, ours)
    if how != "side of one" or abs(theirs - 1) <= LEVEL:
        return verdict
    on_its_side = (ours - 1) * (1 if theirs > 1 else -1)
    flat = abs(ours - 1) <= LEVEL and verdict == "trend"
    return "differs" if flat or on_its_side <= max(0.0, spread) else verdict


def drawn(rows: Sequence[Row], rising: bool, unsure: float = LEVEL) -> list[Row]:
    """Return the rows of one series, those without a printed number judged by the way the drawn line goes.

    The first point has nothing before it and a level step shows no direction: both have nothing to
    judge. Level steps add up: a row is held against the last one that was not level, too.

    Parameters
    ----------
    rows
        In the order of the horizontal axis.
    rising
        Whether the line rises in the paper; else it falls.
    unsure
        Steps of up to this share either way count as level.
    """
    judged_rows: list[Row] = []
    way, sign = ("rises", 1) if rising else ("falls", -1)
    before: float | None = None
    since: float | None = None
    for row in rows:
        steps = [sign * (row.ours / one - 1) for one in (before, since) if one is not None] or [0.0]
        before = row.ours
        if since is None or max(map(abs, steps)) > unsure:
            since = row.ours
        if row.theirs is None:
            verdict: Verdict = (
                "differs"
                if min(steps) < -unsure
                else "trend"
                if max(steps) > unsure
                else "not printed"
            )
            words = {
                "trend": "does so here too",
                "differs": "does the opposite here",
                "not printed": "is level here" if judged_rows else "begins here",
            }[verdict]
            row = replace(
                row,
                verdict=verdict,
                reason=f"{NOT_PRINTED[:-1]}; the drawn line {way}, and it {words}.",
            )
        judged_rows.append(row)
    return judged_rows


def same_rows(some: Sequence[Row], others: Sequence[Row]) -> bool:
    """Return whether two runs brought the same rows; ours may differ by the rounding of another machine."""
    return len(some) == len(others) and all(
        math.isclose(one.ours, other.ours, rel_tol=1e-6)
        and replace(one, ours=0.0, bound=None, data={})
        == replace(other, ours=0.0, bound=None, data={})
        for one, other in zip(some, others, strict=True)
    )


def counts_of(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many rows count as what, in the order of :data:`COUNTED`."""
    counts = dict.fromkeys(COUNTED, 0)
    for row in rows:
        counts[row.counted_as] += 1
    return counts


def counted_verdicts(rows: Iterable[Row]) -> str:
    """Return how simulated rows came out, and apart from them how many others there are.

    As in ``✓ 9 match, ≈ 3 trend, ✗ 2 differ of 14 judged; not counted: 3 by construction; 2 not printed``.
    """
    counts = counts_of(rows)
    judged_rows = sum(counts[one] for one in ("match", "trend", "differs"))
    words: dict[Verdict, str] = {"match": "match", "trend": "trend", "differs": "differ"}
    known = ", ".join(
        f"{VERDICTS[one][0]} {counts[one]} {word}" for one, word in words.items() if counts[one]
    )
    apart = apart_words(counts)
    parts = [
        f"{known} of {judged_rows} judged" if judged_rows else "none judged",
        f"not counted: {apart}" if apart else "",
        f"{counts['not printed']} not printed" if counts["not printed"] else "",
    ]
    return "; ".join(filter(None, parts))


def apart_words(counts: Mapping[str, int]) -> str:
    """Return how many rows are counted apart, by why: ``15 by formula, 3 by construction``; empty if none."""
    return ", ".join(f"{counts[name]} {APART_NAMES[name]}" for name in APART if counts.get(name))


# -- the answer of a card, and what a claim of its paper reads of it --------------------------------


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
class CardClaim:
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
            return judged_as("above one", None, value)
        spread = self.reading.spread.value(answer) if self.reading.spread else 0.0
        how: Judged = "side of one" if self.unit == "×" and not self.base else ""
        how = "more than" if self.least else how
        return judged_as(how, self.printed - self.base, value, spread)
