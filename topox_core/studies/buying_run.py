"""The buyer's study in the background: networks first, then the questions turned round, each point on the one engine."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace

from topox_core.economics.comparison import Swing
from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import RunProgress
from topox_core.studies.buying import (
    DELAY,
    MEASURES,
    Choice,
    Question,
    Row,
    buying_study,
    with_slower_plans,
)
from topox_core.studies.buying_answer import (
    Slowest,
    Verdict,
    delays_between,
    fewer_ports,
    fewest_of,
    first_delays,
    highest_port_usd,
    lead,
    slowest_of,
    verdict,
)
from topox_core.studies.buying_tornado import swings, tornado_study, uncertain_figures
from topox_core.studies.design import Design
from topox_core.studies.offers import offer_of
from topox_core.studies.study import Study
from topox_core.studies.study_run import PointRow, StudyPlan, StudyRun

NETWORKS, SLOWEST, FEWEST, HANGS_ON = (
    "the networks",
    "the slowest switch",
    "the fewest ports",
    "what it hangs on",
)


@dataclass(frozen=True)
class Turned:
    """The questions turned round, for the best switch on offer against the best network without one.

    Attributes
    ----------
    slowest
        None where the delay does not count.
    fewest_ports
        None where no number of ports tried wins.
    highest_usd
        Up to which price of a port it wins; None where the price does not count.
    """

    slowest: Slowest | None
    fewest_ports: int | None
    highest_usd: float | None


@dataclass(frozen=True)
class Answer:
    """The answer as far as it is known.

    Attributes
    ----------
    rows
        Of the question's networks, in their order; those still to come are left out.
    searched
        Of the networks that were computed for the questions turned round.
    turned, swings
        None while they are still to come, or where nothing can be compared.
    lost
        In words, why points are missing.
    complete
        Whether nothing is still to come.
    """

    question: Question
    rows: tuple[Row, ...] = ()
    searched: tuple[Row, ...] = ()
    verdict: Verdict | None = None
    turned: Turned | None = None
    swings: tuple[Swing, ...] | None = None
    lost: tuple[str, ...] = ()
    complete: bool = False


@dataclass(frozen=True)
class Step:
    """A study on the way to the answer, with the network that each of its points is."""

    words: str
    study: Study
    choices: tuple[Choice, ...]


def listed(question: Question, words: str, choices: Sequence[Choice]) -> Step:
    """Return a step of some networks."""
    name = "" if words == NETWORKS else f"{words.capitalize()} for {question.resolved.title}"
    return Step(words, buying_study(question, choices, name[:120]), tuple(choices))


class BuyingRun:
    """A run of a question; its contract is that of :class:`~topox_core.runs.run.Run`.

    Parameters
    ----------
    library
        Where every point is kept; None keeps them in ``known`` only.
    executor
        As of :class:`~topox_core.studies.study_run.StudyRun`.
    known
        Points computed before, by their key, which are not computed again; new ones are added.
    """

    def __init__(
        self,
        question: Question,
        library: RunLibrary | None = None,
        executor: concurrent.futures.Executor | int | None = None,
        known: MutableMapping[str, PointRow] | None = None,
    ) -> None:
        self.question = question
        self._library, self._executor = library, executor
        self._known: MutableMapping[str, PointRow] = {} if known is None else known
        self._answer = Answer(question)
        self._lock = threading.RLock()  # one thread takes it forward, another draws what is there
        self._lost: list[str] = []
        self._cancelled = self._closed = False
        self._began, self._ended_s = time.monotonic(), 0.0
        self._rounds = _rounds(question, self._tell)
        self._step: Step | None = None
        self._run: StudyRun | None = None
        self._plan: StudyPlan | None = None
        self._next(None)

    @property
    def running(self) -> bool:
        """Whether something is still to come."""
        return self._step is not None and not self._closed

    @property
    def progress(self) -> RunProgress:
        """How far this step is."""
        elapsed_s = self._ended_s or time.monotonic() - self._began
        run, step = self._run, self._step
        if run is None or step is None:
            return RunProgress(elapsed_s, 1.0)
        now = run.progress
        return replace(now, elapsed_s=elapsed_s, words=step.words)

    def poll(self) -> None:
        """Begin the next step once one has ended."""
        with self._lock:
            if self._run is None or self._closed:
                return
            self._run.poll()
            if not self._run.running:
                self._take()

    def cancel(self) -> None:
        """Stop; what is there is kept."""
        with self._lock:
            self._cancelled = True
            if self._run is not None:
                self._run.cancel()
                self._take_known()
            self.close()

    def close(self) -> None:
        """End the run at once."""
        self._closed = True
        self._ended_s = self._ended_s or time.monotonic() - self._began
        if self._run is not None:
            self._run.close()

    def result(self) -> Answer:
        """Return the answer as it stands, with the networks of the step under way."""
        with self._lock:
            answer = self._answer
            if self._step is not None and self._step.words == NETWORKS:
                self._take_known()
                rows = with_slower_plans(self._rows_there())
                answer = replace(answer, rows=rows, verdict=verdict(self.question, rows))
            done = self._step is None and not self._cancelled
            return replace(answer, lost=tuple(dict.fromkeys(self._lost)), complete=done)

    # -- the steps ---------------------------------------------------------------------------------

    def _tell(self, answer: Answer) -> None:
        self._answer = answer

    def _next(self, rows: tuple[Row, ...] | None) -> None:
        """Begin the next step, and pass over those of which everything is known."""
        while True:
            try:
                step = next(self._rounds) if rows is None else self._rounds.send(rows)
            except StopIteration:
                self._step = self._run = None
                self._ended_s = time.monotonic() - self._began
                return
            self._step = step
            self._plan = plan = StudyPlan(step.study, self.question.resolved)
            missing = [k for k in range(len(step.choices)) if plan.key_of(k) not in self._known]
            if missing:
                if len(missing) < len(step.choices):
                    points = tuple(step.study.points[k] for k in missing)
                    few = replace(step.study, design=Design("listed", listed=points))
                    plan = StudyPlan(few, self.question.resolved)
                # Steps of a search are no studies that somebody would open.
                shown = step.words == NETWORKS
                self._run = StudyRun(plan, self._library, self._executor, listed=shown)
                if self._run.running:
                    return
                self._take_known()
                self._run.close()
            rows = self._rows()

    def _take(self) -> None:
        run = self._run
        assert run is not None
        self._take_known()
        self._lost += run.result().lost
        run.close()
        self._next(self._rows())

    def _take_known(self) -> None:
        run = self._run
        if run is not None:
            for row in run.result().rows:
                if row.done:
                    self._known[run.plan.key_of(row.number)] = row

    def _rows(self) -> tuple[Row, ...]:
        """Return a row of every network of the step; without a time where its point was lost."""
        there = {id(row.choice): row for row in self._rows_there()}
        assert self._step is not None
        lost = "was not computed"
        return tuple(
            there.get(id(one), Row(one, None, None, None, lost)) for one in self._step.choices
        )

    def _rows_there(self) -> tuple[Row, ...]:
        step, plan = self._step, self._plan
        assert step is not None
        assert plan is not None
        known = [(one, self._known.get(plan.key_of(k))) for k, one in enumerate(step.choices)]
        return tuple(
            _row(one, row.measures, row)
            for one, row in known
            if row is not None and row.measures is not None
        )


def _row(choice: Choice, measures: Mapping[str, float | None], row: PointRow) -> Row:
    time_ms, usd, watts = (measures.get(name) for name in MEASURES)
    return Row(choice, time_ms, usd, watts, row.message, row.run)


def _rounds(
    question: Question, tell: Callable[[Answer], None]
) -> Generator[Step, tuple[Row, ...], None]:
    """Yield the steps one after another, each given the rows of the one before."""
    answer = Answer(question)
    raw = yield listed(question, NETWORKS, question.choices)
    searched: tuple[Row, ...] = ()
    rows = with_slower_plans(raw)
    found = verdict(question, rows)
    answer = replace(answer, rows=rows, verdict=found)
    tell(answer)
    if found is None or not found.compared:
        return
    choice, rival = found.offer.choice, found.rival
    offer = offer_of(question.offers, choice.key)
    slowest: Slowest | None = None
    if question.by != "price":
        slow: tuple[Row, ...] = ()
        delays = first_delays()
        while delays:
            new = yield listed(
                question,
                SLOWEST,
                [question.at(offer, choice.degree, "usual", {DELAY: delay}) for delay in delays],
            )
            slow = with_slower_plans((*slow, *new, *raw))[: len(slow) + len(new)]
            slowest = slowest_of(question, slow, rival)
            delays = delays_between(slowest)
        searched = slow
    fewest = fewest_of(question, [found.offer], rival)
    if fewer := fewer_ports(question, choice.degree):
        some = [
            question.offer(offer, degree)
            for degree in fewer
            if question.unfit(offer, degree) is None
        ]
        fewer_rows = with_slower_plans((yield listed(question, FEWEST, some)) if some else ())
        searched = (*searched, *fewer_rows)
        fewest = fewest_of(question, [*fewer_rows, found.offer], rival)
    turned = Turned(slowest, fewest, highest_port_usd(question, found.offer, rival))
    answer = replace(answer, searched=searched, turned=turned)
    tell(answer)
    figures = uncertain_figures(question, choice, rival.choice)
    mine = yield Step(HANGS_ON, *tornado_study(question, choice, figures))
    theirs = yield Step(HANGS_ON, *tornado_study(question, rival.choice, figures))
    together = with_slower_plans((*mine, *raw))[: len(mine)]
    tell(replace(answer, swings=swings(question, figures, together, theirs)))


def base_lead(answer: Answer) -> float:
    """Return the lead that the tornado swings round."""
    found = answer.verdict
    if found is None or not found.compared:
        return 0.0
    return lead(answer.question, found.offer, found.rival)
