"""The buyer's study in the background: networks first, then the break-even questions, each point on the one engine."""

import concurrent.futures
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from topox_core.economics.comparison import Swing
from topox_core.fabrics.planning.passed_plans import PassedPlan
from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import RunsInTurn
from topox_core.studies.buying.answer import (
    FIRST_DELAYS,
    Slowest,
    Verdict,
    beats,
    delays_between,
    fewer_ports,
    fewest_of,
    highest_port_usd,
    lead,
    moved_networks,
    slowest_of,
    swings,
    uncertain_figures,
    verdict,
    with_orders_of,
)
from topox_core.studies.buying.offers import offer_of
from topox_core.studies.buying.question import (
    DELAY,
    FABRIC,
    MEASURES,
    Choice,
    Question,
    Row,
    buying_study,
    with_known_plans,
)
from topox_core.studies.study_run import SERVED, PointRow, Step, StudyPlan, StudyResult, steps_run

NETWORKS, IN_ORDER, SLOWEST, FEWEST, HANGS_ON = (
    "the networks",
    "the order of sending",
    "the slowest switch",
    "the fewest ports",
    "what it depends on",
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
        Of the networks that were computed for break-even points.
    in_order
        A full fat-tree, at its price, whose hosts send in the best order known; None while it is to come, or not asked.
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
    in_order: Row | None = None
    verdict: Verdict | None = None
    turned: Turned | None = None
    swings: tuple[Swing, ...] | None = None
    lost: tuple[str, ...] = ()
    complete: bool = False

    @property
    def ordered(self) -> Row | None:
        """The full fat-tree whose hosts send in an order; None where it is unknown, or no better than the best rival."""
        found, tree = self.verdict, self.in_order
        if found is None or tree is None or not found.compared:
            return None
        return tree if beats(lead(self.question, tree, found.rival)) else None


def buying_run(
    question: Question,
    library: RunLibrary | None = None,
    executor: concurrent.futures.Executor | int | None = None,
    known: MutableMapping[str, PointRow] | None = None,
    plans: Sequence[PassedPlan] = (),
) -> RunsInTurn[Answer]:
    """Start to answer a question.

    Parameters
    ----------
    library, executor, known
        As of :class:`~topox_core.studies.study_run.StudyRun`.
    plans
        Plans of the job that are known from elsewhere, which every switch may use.
    """
    told = [Answer(question)]

    def read(results: Mapping[str, StudyResult], lost: tuple[str, ...], complete: bool) -> Answer:
        answer = told[-1]
        networks = results.get(NETWORKS)
        if answer.verdict is None and networks is not None:  # they are under way
            rows = _rows(question.choices, networks, there=True)
            answer = replace(answer, rows=rows, verdict=verdict(question, rows))
        return replace(answer, lost=lost, complete=complete)

    return steps_run(_rounds(question, told.append, plans), read, library, executor, known)


def _networks(
    question: Question, plans: Sequence[PassedPlan], words: str, choices: Sequence[Choice]
) -> Generator[Step, StudyResult, tuple[Row, ...]]:
    """Yield the study of some networks beside those of the question, whose plans they may use, and return a row of each."""
    # Steps of a search are no studies that somebody would open.
    listed = words == NETWORKS
    name = "" if listed else f"{words.capitalize()} for {question.resolved.title}"
    every = choices if listed else (*choices, *question.choices)
    study = buying_study(question, every, name[:120])
    result = yield Step(words, StudyPlan(study, question.resolved), listed)
    return with_known_plans(question, _rows(every, result)[: len(choices)], plans)


def _rows(choices: Sequence[Choice], result: StudyResult, there: bool = False) -> tuple[Row, ...]:
    """Return a row of each network; without a time where its point was lost (``there``: no row)."""
    rows = []
    for choice, row in zip(choices, result.rows, strict=True):
        if row.measures is not None:
            time_ms, usd, watts = (row.measures.get(name) for name in MEASURES)
            own = "" if row.message == SERVED else row.message  # as every faster switch may be
            rows.append(Row(choice, time_ms, usd, watts, own))
        elif not there:
            rows.append(Row(choice, None, None, None, "was not computed"))
    return tuple(rows)


def _rounds(
    question: Question, tell: Callable[[Answer], object], plans: Sequence[PassedPlan]
) -> Generator[Step, StudyResult, None]:
    """Yield the studies one after another, each given what came of the one before."""
    networks = partial(_networks, question, plans)
    rows = yield from networks(NETWORKS, question.choices)
    found = verdict(question, rows)
    answer = Answer(question, rows, verdict=found)
    tell(answer)
    if found is None or not found.compared:
        return
    trees = [row for row in rows if row.choice.key == "fat_tree" and row.known]
    if trees and question.by != "price":
        tree = min(trees, key=question.cost)
        packets = replace(tree.choice, values={**tree.choice.values, FABRIC: "ideal"})
        [ordered] = yield from networks(IN_ORDER, [packets])
        answer = replace(answer, in_order=with_orders_of(rows, ordered, tree))
        tell(answer)
    rival, degree = found.rival, found.offer.choice.degree
    offer = offer_of(question.offers, found.offer.choice.key)
    slowest: Slowest | None = None
    slow: tuple[Row, ...] = ()
    delays = FIRST_DELAYS if question.by != "price" else ()
    while delays:
        tried = [question.at(offer, degree, "usual", {DELAY: delay}) for delay in delays]
        slow = yield from networks(SLOWEST, [*(row.choice for row in slow), *tried])
        slowest = slowest_of(question, slow, rival)
        delays = delays_between(slowest)
    degrees = [one for one in fewer_ports(question, degree) if question.fits(offer, one)]
    fewer = yield from networks(FEWEST, [question.at(offer, one) for one in degrees])
    fewest = fewest_of(question, [*fewer, found.offer], rival)
    turned = Turned(slowest, fewest, highest_port_usd(question, found.offer, rival))
    answer = replace(answer, searched=(*slow, *fewer), turned=turned)
    tell(answer)
    figures = uncertain_figures(question, found.offer.choice, rival.choice)
    moved = yield from networks(HANGS_ON, moved_networks(figures, found))
    swinging = swings(question, found, figures, moved, answer.ordered)
    tell(replace(answer, swings=swinging))
