"""A card of the gallery: a published table or figure, the switches that change its reading, our run, the verdict.

What a card says, of itself and in each row, stands in ``cards/NAME.toml``, and there is named the module beside it
that computes it, one for several cards of a paper. In that, ``NAME(run)`` yields rows, made by :meth:`CardRun.row`,
in the order of the paper: of a card with calls those that its answers are enough for. One whose card has ``workers``
has ``NAME_calls(run) -> list[Call]`` too, and one whose sentences name more than rows, ``NAME_said(run)``: what else
they name, and as ``facts`` (name, value, note) of numbers worth showing apart. Sentences are templates of Jinja.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import import_module
from operator import attrgetter
from statistics import fmean
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from topox_core.errors import InputError, errors_in_file, refuse_if
from topox_core.papers.rows import (
    NOT_PRINTED,
    Answer,
    CardClaim,
    Judged,
    Kind,
    Row,
    Verdict,
    counted_verdicts,
    judged_as,
)
from topox_core.runs.cells import CellsRun
from topox_core.runs.run import FunctionRun, RunProgress, Stop, finish

Value = str | int | float
Settings = Mapping[str, Value]
# What the module of a card yields, in the order of the paper.
Rows = Iterator[Row]

CANCELLED, UNFINISHED = "cancelled", "Not all points were computed."
# The sentences of cards: a place in single braces, ``f`` writes a number as Python formats it.
_SENTENCES = Environment(
    variable_start_string="{", variable_end_string="}", undefined=StrictUndefined
)
_SENTENCES.filters["f"] = format


@lru_cache(maxsize=1_000)
def sentence(text: str) -> Template:
    """Return a sentence of a card whose places are to be filled in."""
    return _SENTENCES.from_string(text)


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
class Line:
    """Rows as the sentences of a card name them: ``{degree['3D parallel'].first.ours|f('.0f')}``, ``{bound.most.item}``."""

    rows: tuple[Row, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.rows)

    @property
    def kept(self) -> int:
        """How many are as the paper says, at least in their direction."""
        return sum(row.verdict in ("match", "trend") for row in self.rows)

    def __getitem__(self, item: str) -> Line:
        """Return those whose items begin so."""
        return Line(tuple(row for row in self.rows if row.item.startswith(item)))

    def __getattr__(self, pick: str) -> Row:
        """Return the ``first``, ``last``, ``least`` or ``most`` of them."""
        picked = {"least": min, "most": max}.get(pick)
        if picked is not None:
            return picked(self.rows, key=attrgetter("ours"))
        return self.rows[{"first": 0, "last": -1}[pick]]

    @property
    def mean(self) -> float:
        """The mean of our numbers."""
        return fmean(row.ours for row in self.rows)

    @property
    def verdicts(self) -> str:
        """How they came out."""
        return counted_verdicts(self.rows)


@dataclass(frozen=True)
class CardRun:
    """What the module of a card is given.

    Attributes
    ----------
    card, settings
        The card, and every switch with its position.
    answers
        Those of the card's calls that are there, by key.
    rows
        All rows, once they are complete.
    """

    card: Card
    settings: Settings
    answers: Mapping[Any, Any] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()

    def of(self, series: str) -> tuple[Row, ...]:
        """Return the rows of one series."""
        return tuple(row for row in self.rows if row.series == series)

    def ours(self, series: str, item: str) -> float:
        """Return our number of one row."""
        return next(row.ours for row in self.of(series) if row.item == item)

    def row(
        self,
        series: str,
        item: str,
        ours: float,
        *,
        theirs: float | None = None,
        follows: bool | None = None,
        verdict: Verdict | None = None,
        counts_with: str = "",
        data: Mapping[str, float] = MappingProxyType({}),
        **facts: object,
    ) -> Row:
        """Return a row: a number of ours with what the card says of it.

        Parameters
        ----------
        theirs
            The printed number, if it is none of the card's.
        follows
            Where the paper says something without a number: whether ours follows it.
        verdict
            The judgement, if it is another than the card says.
        **facts
            What the words of the row name besides item, both numbers, the verdict, data, and ``settings``.
        """
        card, key = self.card, f"{series}/{item}"
        words = card.words(series, item)
        if theirs is None:
            theirs = card.printed.get(key, card.printed.get(series))
        if verdict is None:
            spread = data.get("standard_deviation", data.get("spread", 0.0))
            verdict = judged_as(words.judged, theirs, ours, spread, follows)
        named = {"item": item, "ours": ours, "theirs": theirs, "verdict": verdict}
        named |= {"settings": self.settings, **data, **facts}
        return Row(
            series,
            item,
            sentence(words.about).render(named),
            theirs,
            ours,
            verdict,
            sentence(words.reason).render(named) or NOT_PRINTED,
            words.unit,
            None,
            dict(data),
            *words.kind,
            counts_with,
        )


@dataclass(frozen=True)
class Call:
    """One call of a card: a key to know its answer by, an importable function and its picklable arguments."""

    key: Any
    function: Callable[..., Any] = field(compare=False)
    arguments: tuple[Any, ...] = field(compare=False)

    def make(self) -> Any:
        """Make it, in a worker."""
        return self.function(*self.arguments)


def answers(
    calls: Sequence[Call],
    stop: Stop,
    lost: list[str],
    executor: Executor | int | None = None,
    tell: Callable[[Mapping[Any, Any]], object] = lambda _: None,
) -> dict[Any, Any]:
    """Return the answer of each call by its key; put the longest calls first.

    Parameters
    ----------
    stop
        Asked now and then; True ends the workers at once.
    lost
        Gets a line for every reason why answers are missing.
    executor
        As of :meth:`Card.run`.
    tell
        Given the answers so far, whenever some have come.

    Raises
    ------
    InputError
        If a call raises one.
    """
    known: dict[Any, Any] = {}

    def take(batch: Sequence[tuple[Call, Any]]) -> None:
        known.update((call.key, answer) for call, answer in batch)
        tell(dict(known))

    run = CellsRun(calls, attrgetter("key"), Call.make, None, executor, take)

    def bad_input() -> list[InputError]:
        return [one for one in run.result().failures.values() if isinstance(one, InputError)]

    finish(run, lambda: stop() or bool(bad_input()))
    for error in bad_input():
        raise error
    result = run.result()
    if result.cancelled:
        lost.append(CANCELLED)
    else:
        lost += [f"{call.key}: {error}" for call, error in result.failures.items()]
        lost += [result.stopped] if result.stopped else []
    return known


@dataclass(frozen=True)
class RowWords:
    """What a card says of the rows of a series, or of one of them: all but the numbers.

    Attributes
    ----------
    about, reason, unit
        Of the row; places in braces are filled in by :meth:`CardRun.row`.
    judged
        How: :func:`~topox_core.papers.rows.judged_as`.
    kind
        What the rows are where they are no simulation, and why.
    """

    about: str = ""
    reason: str = ""
    unit: str = ""
    judged: Judged = ""
    kind: tuple[Kind, str] = ("simulated", "")


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
    series
        Key and words of each column or line, in the order in which they are read.
    row_count
        How many rows a complete run has.
    paper, module
        The paper that it is from, and the module of ``cards`` that computes it.
    choices
        The switches that change the reading.
    printed
        Printed numbers by key.
    claims
        What the paper claims and this card tries.
    logarithmic
        Whether its numbers are read on a logarithmic axis.
    axes
        What its first series shows, in words with the unit, and over what.
    takes_s
        About how long a run takes, in seconds: what is shown before one on this machine is known.
    workers
        Whether worker processes make its calls, side by side.
    built
        Of a paper with nothing public but its abstract: what is built here without it.
    rows
        What its rows say, by ``series`` or ``series/item``.
    finding, remarks
        The sentences of its answer, in which a place in braces names a :class:`Line` by its series, the
        whole as ``all``, or one of ``settings``, ``printed``, ``series`` and what ``said`` returns; a remark
        that comes out empty is left out.
    """

    name: str
    title: str
    source: str
    shows: str
    series: Mapping[str, str]
    row_count: int
    paper: str = ""
    module: str = ""
    choices: tuple[Choice, ...] = ()
    printed: Mapping[str, int | float] = field(default_factory=dict)
    claims: tuple[CardClaim, ...] = ()
    logarithmic: bool = False
    axes: tuple[str, str] = ("", "")
    takes_s: float = 1.0
    workers: bool = False
    built: str = ""
    rows: Mapping[str, RowWords] = field(default_factory=dict)
    finding: str = ""
    remarks: tuple[str, ...] = ()

    def words(self, series: str, item: str = "") -> RowWords:
        """Return what rows of a series say, or one of them."""
        return self.rows.get(f"{series}/{item}") or self.rows.get(series) or RowWords()

    def settings(self, given: Settings | None = None) -> dict[str, Value]:
        """Return every switch with its position: ``given`` on top of the defaults.

        Raises
        ------
        InputError
            If a switch is unknown or has no such position.
        """
        known = {choice.key: choice for choice in self.choices}
        for key in given or {}:
            refuse_if(
                (
                    key not in known,
                    f"unknown switch (expected one of {', '.join(known) or 'none: this card has no switches'})",
                ),
                file=f"card {self.name}",
                field=str(key)[:80],
            )
        with errors_in_file(f"card {self.name}"):
            return {
                key: choice.value((given or {}).get(key, choice.default))
                for key, choice in known.items()
            }

    def play(
        self,
        settings: Settings,
        stop: Stop,
        on_row: Callable[[Row], None],
        executor: Executor | int | None,
    ) -> Answer:
        """Compute rows, each told as soon as it is there; use :meth:`run`."""
        name = self.name.replace("-", "_")
        module = import_module(f"{__package__}.cards.{self.module}")
        rows: Callable[[CardRun], Rows] = getattr(module, name)
        said: Callable[[CardRun], Mapping[str, Any]] = getattr(module, f"{name}_said", lambda _: {})
        run, lost = CardRun(self, settings), list[str]()
        told: set[tuple[str, str]] = set()

        def tell(known: Mapping[Any, Any]) -> None:
            for row in rows(replace(run, answers=known)):
                if (row.series, row.item) not in told:
                    told.add((row.series, row.item))
                    on_row(row)

        if self.workers:
            known = answers(getattr(module, f"{name}_calls")(run), stop, lost, executor, tell)
            run = replace(run, answers=known)
            run = replace(run, rows=tuple(rows(run)))
        else:
            for row in rows(run):
                if stop():
                    lost.append(CANCELLED)
                    break
                run = replace(run, rows=(*run.rows, row))
                on_row(row)
        if lost:
            return Answer(self.name, settings, run.rows, UNFINISHED, lost=tuple(lost))
        named: dict[str, Any] = {
            **{key: Line(run.of(key)) for key in self.series},
            "all": Line(run.rows),
            "settings": settings,
            "printed": self.printed,
            "series": self.series,
            **said(run),
        }
        remarks = [f"Built from the abstract: {self.built}."] if self.built else []
        remarks += filter(None, (sentence(one).render(named) for one in self.remarks))
        finding = sentence(self.finding).render(named)
        facts = named.get("facts", ())
        return Answer(self.name, settings, run.rows, finding, facts, tuple(remarks))

    def run(
        self,
        settings: Settings | None,
        stop: Stop,
        on_row: Callable[[Row], None],
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
        return self.play(self.settings(settings), stop, on_row, executor)

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
