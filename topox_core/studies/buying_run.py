"""The buyer's study in the background: networks first, then the break-even questions, each point on the one engine."""

import concurrent.futures
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace

from topox_core.economics.comparison import Swing
from topox_core.fabrics.passed_plans import PassedPlan
from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import RunsInTurn
from topox_core.studies.buying import (
    DELAY,
    FABRIC,
    MEASURES,
    Choice,
    Question,
    Row,
    buying_study,
    with_known_plans,
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
    swings,
    tornado,
    uncertain_figures,
    verdict,
    with_orders_of,
)
from topox_core.studies.offers import offer_of
from topox_core.studies.study_run import PointRow, Step, StudyPlan, StudyResult, steps_run

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
            rows = with_slower_plans(_rows(question.choices, networks, there=True))
            answer = replace(answer, rows=rows, verdict=verdict(question, rows))
        return replace(answer, lost=lost, complete=complete)

    return steps_run(_rounds(question, told.append, plans), read, library, executor, known)


_Asked = Generator[Step, StudyResult, tuple[Row, ...]]


def _networks(
    question: Question, words: str, choices: Sequence[Choice], plans: Sequence[PassedPlan]
) -> _Asked:
    """Yield the study of some networks, and return a row of each."""
    # Steps of a search are no studies that somebody would open.
    listed = words == NETWORKS
    name = "" if listed else f"{words.capitalize()} for {question.resolved.title}"
    study = buying_study(question, choices, name[:120])
    result = yield Step(words, StudyPlan(study, question.resolved), listed)
    return with_known_plans(question, _rows(choices, result), plans)


def _rows(choices: Sequence[Choice], result: StudyResult, there: bool = False) -> tuple[Row, ...]:
    """Return a row of each network; without a time where its point was lost (``there``: no row)."""
    rows = []
    for choice, row in zip(choices, result.rows, strict=True):
        if row.measures is not None:
            time_ms, usd, watts = (row.measures.get(name) for name in MEASURES)
            rows.append(Row(choice, time_ms, usd, watts, row.message, row.run))
        elif not there:
            rows.append(Row(choice, None, None, None, "was not computed"))
    return tuple(rows)


def _rounds(
    question: Question, tell: Callable[[Answer], object], plans: Sequence[PassedPlan]
) -> Generator[Step, StudyResult, None]:
    """Yield the studies one after another, each given what came of the one before."""
    answer = Answer(question)
    raw = yield from _networks(question, NETWORKS, question.choices, plans)
    rows = with_slower_plans(raw)
    found = verdict(question, rows)
    answer = replace(answer, rows=rows, verdict=found)
    tell(answer)
    if found is None or not found.compared:
        return
    trees = [row for row in rows if row.choice.key == "fat_tree" and row.known]
    if trees and question.by != "price":
        tree = min(trees, key=question.cost)
        packets = replace(tree.choice, values={**tree.choice.values, FABRIC: "ideal"})
        [ordered] = yield from _networks(question, IN_ORDER, [packets], plans)
        answer = replace(answer, in_order=with_orders_of(rows, ordered, tree))
        tell(answer)
    choice, rival = found.offer.choice, found.rival
    offer = offer_of(question.offers, choice.key)
    slowest: Slowest | None = None
    slow: tuple[Row, ...] = ()
    delays = first_delays() if question.by != "price" else ()
    while delays:
        tried = [question.at(offer, choice.degree, "usual", {DELAY: delay}) for delay in delays]
        new = yield from _networks(question, SLOWEST, tried, plans)
        slow = with_slower_plans((*slow, *new, *raw))[: len(slow) + len(new)]
        slowest = slowest_of(question, slow, rival)
        delays = delays_between(slowest)
    degrees = fewer_ports(question, choice.degree)
    some = [question.at(offer, one) for one in degrees if question.unfit(offer, one) is None]
    fewer = (yield from _networks(question, FEWEST, some, plans)) if some else ()
    fewer = with_slower_plans(fewer)
    fewest = fewest_of(question, [*fewer, found.offer], rival)
    turned = Turned(slowest, fewest, highest_port_usd(question, found.offer, rival))
    answer = replace(answer, searched=(*slow, *fewer), turned=turned)
    tell(answer)
    figures = uncertain_figures(question, choice, rival.choice)
    mine = yield from _networks(question, HANGS_ON, tornado(choice, figures), plans)
    theirs = yield from _networks(question, HANGS_ON, tornado(rival.choice, figures), plans)
    together = with_slower_plans((*mine, *raw))[: len(mine)]
    swinging = swings(question, figures, together, theirs, answer.in_order)
    tell(replace(answer, swings=swinging))


def base_lead(answer: Answer) -> float:
    """Return the lead that the tornado swings round."""
    found = answer.verdict
    if found is None or not found.compared:
        return 0.0
    return lead(answer.question, found.offer, found.rival)
