"""A card of the gallery: a published table or figure, the switches that change its reading, our run, the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Literal

from topox_core.errors import InputError, errors_in_file
from topox_core.papers.calls import computed_by
from topox_core.runs.run import FunctionRun, RunProgress
from topox_core.runs.stopping import Stop

Verdict = Literal["match", "trend", "differs", "not printed"]
Kind = Literal["simulated", "arithmetic", "identity", "quoted"]
Value = str | int | float
Settings = Mapping[str, Value]

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
        "simulated": "ours computed by a model that could have come out otherwise",
        "arithmetic": "the printed formula on the printed table",
        "identity": "true by construction",
        "quoted": "theirs beside theirs",
    }
)
FALLS_BACK = "falls back"
# All that a row may count as, in the order of every count: a verdict, or apart from them why it has none.
APART = ("arithmetic", "identity", "quoted", FALLS_BACK)
COUNTED = (*VERDICTS, *APART)

# A card that takes no longer is run when its page opens.
QUICK_S = 2.0
# Papers in the order of the gallery, and how the source of a card of theirs begins.
PAPERS: Mapping[str, str] = MappingProxyType(
    {
        "TOPO-X": "TOPO-X",
        "TopoOpt": "TopoOpt",
        "Opus": "Photonic Rails",
        "Time division": "TDM drafts",
        "Lecture": "Lecture",
        "DELTA": "DELTA",
        "Spectra": "Spectra",
        "SWOT": "SWOT",
        "MixNet": "MixNet",
    }
)


@dataclass(frozen=True)
class Choice:
    """A switch that changes the reading.

    Attributes
    ----------
    key, name, meaning
        The word on the command line, the label, and what it changes.
    options
        (value, words) of each position.
    default
        The position without a wish.
    """

    key: str
    name: str
    meaning: str
    options: tuple[tuple[Value, str], ...]
    default: Value

    def value(self, given: Value) -> Value:
        """Return the option that ``given`` names, whatever its type.

        Raises
        ------
        InputError
            If there is none.
        """
        for value, _ in self.options:
            if given == value or str(given).strip() == str(value):
                return value
        known = ", ".join(str(value) for value, _ in self.options)
        raise InputError(f"must be one of {known} (got {str(given)[:80]!r})", field=self.key)

    def words(self, value: Value) -> str:
        """Return the words of a position."""
        return dict(self.options)[value]


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
        return f"counts with {self.counts_with}" if self.counts_with else f"{self.kind}: {words}"

    @property
    def deviation(self) -> float | None:
        """Ours against theirs, as a share of theirs."""
        return None if self.theirs is None else self.ours / self.theirs - 1


@dataclass(frozen=True)
class Answer:
    """What a run of a card gives: rows in the order of the paper, the finding, and what must be known besides.

    Attributes
    ----------
    finding
        The result in one or two sentences made from the numbers.
    facts
        (name, value, note) of numbers worth showing apart.
    remarks
        Sentences on why it came out so.
    lost
        In words, why rows are missing (cancelled, a worker process died).
    """

    card: str
    settings: Settings
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


OnRow = Callable[[Row], None]


@dataclass(frozen=True)
class Card:
    """A published table or figure that can be run here.

    Attributes
    ----------
    name, title, source
        The word on the command line, a heading, and where it was published (section, table or
        figure).
    shows
        What the original shows, in a sentence.
    choices
        The switches that change the reading.
    series
        Key and words of each column or line, in the order in which they are read.
    row_count
        How many rows a complete run has.
    play
        Runs it; use :meth:`run`.
    logarithmic
        Whether its numbers are read on a logarithmic axis.
    takes_s
        About how long a run takes, in seconds: what is shown before one on this machine is known.
    kinds
        What its rows are where they are no simulation, and why: by series, or by series and item.
    """

    name: str
    title: str
    source: str
    shows: str
    choices: tuple[Choice, ...]
    series: Mapping[str, str]
    row_count: int
    play: Callable[[Settings, Stop, OnRow], Answer]
    logarithmic: bool = False
    takes_s: float = 1.0
    kinds: Mapping[str | tuple[str, str], tuple[Kind, str]] = field(default_factory=dict)

    def kind(self, series: str, item: str = "") -> tuple[Kind, str]:
        """Return what rows of a series are, or one of them, and why where that is not obvious."""
        return self.kinds.get((series, item)) or self.kinds.get(series) or ("simulated", "")

    def classified(self, row: Row) -> Row:
        """Return a row with its kind."""
        kind, reason = self.kind(row.series, row.item)
        return replace(row, kind=kind, kind_reason=reason)

    @property
    def quick(self) -> bool:
        """Whether a page may run it without being asked."""
        return self.takes_s < QUICK_S

    @property
    def paper(self) -> str:
        """The paper that it is from, a key of :data:`PAPERS`; empty if it is from another one."""
        named = (name for name, begins in PAPERS.items() if self.source.startswith(begins))
        return next(named, "")

    def settings(self, given: Settings | None = None) -> dict[str, Value]:
        """Return every switch with its position: ``given`` on top of the defaults.

        Raises
        ------
        InputError
            If a switch is unknown or has no such position.
        """
        known = {choice.key: choice for choice in self.choices}
        for key in given or {}:
            if key not in known:
                expected = ", ".join(known) or "none: this card has no switches"
                problem = f"unknown switch (expected one of {expected})"
                raise InputError(problem, file=f"card {self.name}", field=str(key)[:80])
        with errors_in_file(f"card {self.name}"):
            return {
                key: choice.value((given or {}).get(key, choice.default))
                for key, choice in known.items()
            }

    def answer(
        self,
        settings: Settings,
        rows: Iterable[Row],
        finding: str,
        remarks: tuple[str, ...],
        lost: Iterable[str],
    ) -> Answer:
        """Return what a run of this card gives."""
        return Answer(self.name, settings, tuple(rows), finding, (), remarks, tuple(lost))

    def run(
        self,
        settings: Settings | None,
        stop: Stop,
        on_row: OnRow,
        executor: Executor | int | None = None,
    ) -> Answer:
        """Run the card.

        Parameters
        ----------
        settings
            Positions of switches; those left out have their defaults.
        stop
            Asked now and then; True ends the run with the rows that are there.
        on_row
            Told every row as soon as it is there, in no order.
        executor
            Who computes what comes in calls: an executor, which whoever made it ends, or how many
            worker processes; by default one a core.

        Raises
        ------
        InputError
            As :meth:`settings`.
        """
        with computed_by(executor):
            play = self.play(
                self.settings(settings), stop, lambda row: on_row(self.classified(row))
            )
        return replace(play, rows=tuple(map(self.classified, play.rows)))

    def start(
        self, settings: Settings | None = None, executor: Executor | int | None = None
    ) -> FunctionRun[Answer, Row]:
        """Start the card in the background; raises InputError as :meth:`settings` does, before it starts."""
        play = partial(self.run, self.settings(settings), executor=executor)
        return FunctionRun(play, self._measure, f"card {self.name}")

    def _measure(self, rows: tuple[Row, ...], elapsed_s: float) -> RunProgress:
        done, total = len(rows), self.row_count
        return RunProgress(
            elapsed_s,
            min(1.0, done / total),
            done,
            total,
            "numbers",
            f"last {rows[-1].item}" if rows else "",
            elapsed_s * max(0.0, total / done - 1) if done else None,
        )


def judged(theirs: float, ours: float, level: float | None = None) -> Verdict:
    """Return the verdict on a number: by its distance, and by the side of ``level`` that it is on.

    Parameters
    ----------
    level
        The value that means "no difference", such as 1 of a ratio. A printed number clearly above or
        below it states a direction; what is level or goes the other way does not follow it.
    """
    distance = abs(ours / theirs - 1)
    verdict: Verdict = "match" if distance <= MATCH else "trend" if distance <= TREND else "differs"
    if level is None or abs(theirs / level - 1) <= LEVEL:
        return verdict
    if (ours - level) * (theirs - level) <= 0:
        return "differs"
    flat = abs(ours / level - 1) <= LEVEL
    return "differs" if flat and verdict == "trend" else verdict


def judged_over(theirs: float, mean: float, spread: float, level: float) -> Verdict:
    """Return the verdict on the mean of several draws, where chance has a part in each.

    The mean is judged as one number; where it lies less than ``spread``, the standard deviation of
    the draws, from ``level`` on the printed side, the printed direction is not shown and the row
    differs.
    """
    verdict = judged(theirs, mean, level)
    side = 1 if theirs > level else -1
    hidden = spread > 0 and side * (mean - level) <= spread
    return "differs" if hidden and abs(theirs / level - 1) > LEVEL else verdict


def stated(ours: float, level: float = 1.0, above: bool = True, spread: float = 0.0) -> Verdict:
    """Return the verdict where a sentence says that a number is above (or below) ``level``, without a number.

    ``spread`` is the standard deviation of the draws that ``ours`` is the mean of.
    """
    beyond = (ours - level) * (1 if above else -1)
    return "trend" if beyond > max(LEVEL * level, spread) else "differs"


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
    before = since = None
    for row in rows:
        if before is None or since is None:
            steps = [0.0]
        else:
            steps = [sign * (row.ours / one - 1) for one in (before, since)]
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
                "trend": "goes that way here too",
                "differs": "goes the other way here",
                "not printed": "is level here" if judged_rows else "begins here",
            }[verdict]
            row = replace(
                row,
                verdict=verdict,
                reason=f"{NOT_PRINTED[:-1]}; the drawn line {way}, and it {words}.",
            )
        judged_rows.append(row)
    return judged_rows


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    known = list(values)
    return math.exp(sum(map(math.log, known)) / len(known))


def counts_of(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many rows count as what, in the order of :data:`COUNTED`."""
    counts = dict.fromkeys(COUNTED, 0)
    for row in rows:
        counts[row.counted_as] += 1
    return counts


def counted_verdicts(rows: Iterable[Row]) -> str:
    """Return how simulated rows came out, and apart from them how many others there are.

    As in ``✓ 9 match, ≈ 3 trend, ✗ 2 differ of 14 judged; not counted: 3 identity; 2 not printed``.
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
    """Return how many rows are counted apart, by why: ``15 arithmetic, 3 identity``; empty if none."""
    return ", ".join(f"{counts[name]} {name}" for name in APART if counts.get(name))
