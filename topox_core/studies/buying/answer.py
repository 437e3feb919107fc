"""What follows from the computed networks: which is worth buying, by how much."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import inf

import numpy as np
from numpy.typing import NDArray

from topox_core.economics.comparison import Swing, amount_moved, widest_first
from topox_core.economics.price_sets import SET_BY_SPEED, Catalogue
from topox_core.fabrics.comparison.compare import EQUAL, ties
from topox_core.studies.buying.offers import Estimate, offer_of
from topox_core.studies.buying.question import (
    DELAY,
    POWER,
    PRICE,
    Choice,
    Question,
    Row,
    levels_of,
)
from topox_core.studies.outcomes import priced_at
from topox_core.studies.slices import front_of
from topox_core.text.numbers import time


@dataclass(frozen=True)
class Verdict:
    """What to buy.

    Attributes
    ----------
    offers, rivals
        The best switches on offer, and the best networks without one: the one that costs least by
        the question's criterion, then all that cost the same. Empty where none could be run.
    lead
        The share of the rival's cost that the first offer saves; negative where it costs more.
    least_lead, most_lead
        The same with all figures of the offer at their worst, and at their best.
    possible
        Another offer that would win with its figures at their best, where a rival wins.
    """

    offers: tuple[Row, ...]
    rivals: tuple[Row, ...]
    lead: float = 0.0
    least_lead: float | None = None
    most_lead: float | None = None
    possible: Row | None = None

    @property
    def offer(self) -> Row:
        """The switch on offer that costs least, where there is one."""
        return self.offers[0]

    @property
    def rival(self) -> Row:
        """The network without one that costs least, where there is one."""
        return self.rivals[0]

    @property
    def compared(self) -> bool:
        """Whether there is an offer, and a rival."""
        return bool(self.offers and self.rivals)

    @property
    def wins(self) -> bool:
        """Whether a switch on offer is worth buying."""
        return bool(self.offers) and (not self.rivals or beats(self.lead))

    @property
    def best(self) -> tuple[Row, ...]:
        """All networks that cost least."""
        return self.offers if self.wins else self.rivals

    @property
    def turns(self) -> bool:
        """Whether the ranges of its figures could turn the answer."""
        ends = [one for one in (self.least_lead, self.most_lead) if one is not None]
        return any(beats(end) != self.wins for end in ends) or self.possible is not None


def verdict(question: Question, rows: Sequence[Row]) -> Verdict | None:
    """Return what to buy of the rows that are there; None while none is known."""
    known = [row for row in rows if row.known]
    usual = [row for row in known if row.choice.level == "usual"]
    if not usual:
        return None
    offers = _least(question, [row for row in usual if not row.choice.rival])
    rivals = _least(question, [row for row in usual if row.choice.rival])
    if not offers or not rivals:
        return Verdict(offers, rivals)
    offer, rival = offers[0], rivals[0]
    gain = lead(question, offer, rival)
    at_ends = {level: lead(question, row, rival) for level, row in levels_of(known, offer).items()}
    others = [row for row in known if not row.choice.rival and row.choice.level == "low"]
    hopeful = max(others, key=lambda row: lead(question, row, rival), default=None)
    could = hopeful is not None and not beats(gain) and beats(lead(question, hopeful, rival))
    return Verdict(
        offers, rivals, gain, at_ends.get("high"), at_ends.get("low"), hopeful if could else None
    )


def _least(question: Question, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the row that costs least, then all that cost the same."""
    costs = dict(enumerate(map(question.cost, rows)))
    return tuple(rows[k] for k in sorted(ties(costs), key=costs.__getitem__))


def with_orders_of(rows: Sequence[Row], ordered: Row, tree: Row) -> Row:
    """Return the full fat-tree with the least time known of a switch that never blocks, which can do what any other network does.

    Parameters
    ----------
    rows
        Of all networks, the tree among them.
    ordered
        The time that was computed for such a switch, if any.
    """
    able = (row for row in (*rows, ordered) if row.choice.degree == tree.choice.degree)
    times_ms = (row.iteration_ms for row in able if row.iteration_ms is not None)
    return replace(tree, iteration_ms=min(times_ms))


def lead(question: Question, row: Row, rival: Row) -> float:
    """Return the share of the rival's cost that a network saves."""
    theirs = question.cost(rival)
    return 1.0 - question.cost(row) / theirs if 0 < theirs < inf else 0.0


def beats(lead: float) -> bool:
    """Return whether a share saved is more than what is called equal."""
    return (1.0 - lead) * (1.0 + EQUAL) < 1.0


def front_of_rows(rows: Sequence[Row]) -> NDArray[np.bool_]:
    """Return which networks no other one beats in time, price and watts together."""
    return front_of(
        [
            [row.iteration_ms for row in rows],
            [row.network_usd for row in rows],
            [row.network_w for row in rows],
        ]
    )


# Between these delays is searched for the slowest; a switch slower than the last changes nothing in a job.
FASTEST_MS, SLOWEST_MS = 1e-3, 1e5
DECADES = 9
BETWEEN = 6
NEAR = 1.02
MAX_TRIED = 8


@dataclass(frozen=True)
class Slowest:
    """Up to which delay a switch still wins.

    Attributes
    ----------
    wins_ms
        The longest delay computed at which it wins, and at every shorter one; None where it does
        not even win at the shortest.
    loses_ms
        The shortest delay computed beyond, at which it does not; None where it wins at all of them.
    """

    wins_ms: float | None
    loses_ms: float | None


def slowest_of(question: Question, rows: Sequence[Row], rival: Row) -> Slowest:
    """Return up to which delay rows of one switch, alike but for it, win over the rival."""
    in_order = sorted(rows, key=lambda row: float(row.choice.values[DELAY]))
    won = list(takewhile(lambda row: beats(lead(question, row, rival)), in_order))
    last, first = won[-1:], in_order[len(won) :][:1]
    ends = (float(some[0].choice.values[DELAY]) if some else None for some in (last, first))
    return Slowest(*ends)


def _spread(low_ms: float, high_ms: float, count: int) -> tuple[float, ...]:
    return tuple(float(f"{one:.6g}") for one in np.geomspace(low_ms, high_ms, count))


# One a decade.
FIRST_DELAYS = _spread(FASTEST_MS, SLOWEST_MS, DECADES)


def delays_between(found: Slowest) -> tuple[float, ...]:
    """Return the delays to look at next, evenly spread (logarithmically) over where the answer turns; none where it is known."""
    wins_ms, loses_ms = found.wins_ms, found.loses_ms
    if wins_ms is None or loses_ms is None or loses_ms <= NEAR * wins_ms:
        return ()
    return _spread(wins_ms, loses_ms, BETWEEN + 2)[1:-1]


def fewer_ports(question: Question, degree: int) -> tuple[int, ...]:
    """Return the numbers of ports per server below one that its switches can take, at most eight of them."""
    cluster = question.cluster
    step = 1 if cluster.ports_per_server == cluster.switches else cluster.switches
    fewer = range(step, degree, step)
    return tuple(fewer[:: -(-len(fewer) // MAX_TRIED) or 1])


def fewest_of(question: Question, rows: Sequence[Row], rival: Row) -> int | None:
    """Return the fewest ports per server at which rows of one switch win over the rival; None if at none."""
    winning = [row.choice.degree for row in rows if beats(lead(question, row, rival))]
    return min(winning, default=None)


def highest_port_usd(question: Question, row: Row, rival: Row) -> float | None:
    """Return the price of a port at which a network costs just what the rival does.

    The price changes no schedule, and what an iteration costs is linear in it: no run is needed.
    Negative where the network would lose even if its ports were free; None where the price does
    not count.
    """
    if question.by == "time" or not row.known or not rival.known:
        return None
    span = max(1.0, float(row.choice.values[PRICE]))
    free, priced = (question.cost(question.at_price(row, usd)) for usd in (0.0, span))
    return span * (question.cost(rival) - free) / (priced - free)


SENDING = "How hosts on a fat-tree send"
# Prices that have no range of their own move to half and twice: those of every network, and the one of a rival.
_PARTS = {"nic": "Price of a NIC", "transceiver": "Price of a transceiver"}
_OWN_PARTS = (
    {"patch_panel_port": "Price of a patch-panel port"},
    {"packet_switch": "Price of a packet switch"},
)


@dataclass(frozen=True)
class Uncertain:
    """A figure that moves alone: its key in a study, or the assumption that it is, and its ends."""

    name: str
    key: str
    low: float
    high: float
    unit: str

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    def words(self, value: float) -> str:
        """Return a value with its unit."""
        return time(value) if self.unit == "ms" else amount_moved(value, self.unit)

    def moved(self, choice: Choice, value: float) -> Choice:
        """Return a network with another value of the figure: the same one where it is none of its figures."""
        of_switches = self.key in (DELAY, PRICE, POWER)
        own = "." in self.key and not (choice.rival and of_switches)
        return replace(choice, values={**choice.values, self.key: value}) if own else choice

    def assumed(self, question: Question, value: float) -> Question:
        """Return a question that assumes another value: the same one where the figure is no assumption."""
        assumed = question.assumed
        if "." in self.key:
            return question
        moved = replace(getattr(assumed, self.key), low=value, usual=value, high=value)
        return replace(question, assumed=replace(assumed, **{self.key: moved}))


def prices_of(question: Question) -> Catalogue:
    """Return the prices that a question counts with."""
    return priced_at(question.fixed, SET_BY_SPEED)


def uncertain_figures(question: Question, offer: Choice, rival: Choice) -> tuple[Uncertain, ...]:
    """Return what the lead of an offer over a rival depends on, figures with a range only."""
    one, assumed = offer_of(question.offers, offer.key), question.assumed
    own = {**_PARTS, **_OWN_PARTS[rival.key != "fixed"]}
    usd = {part: prices_of(question).part(part).price_usd for part in own}
    figures = (
        ("Reconfiguration delay", DELAY, one.delay_ms, "ms"),
        ("Price of a switch port", PRICE, one.port_usd, "$"),
        ("Power of a switch port", POWER, one.port_w, "W"),
        *(
            (words, f"prices.{part}.price_usd", Estimate(usd[part] / 2, 0.0, usd[part] * 2), "$")
            for part, words in own.items()
        ),
        ("GPU, per hour", "usd_per_gpu_hour", assumed.usd_per_gpu_hour, "$"),
        ("Electricity, per kWh", "usd_per_kwh", assumed.usd_per_kwh, "$"),
        ("Written off over", "years", assumed.years, "years"),
    )
    return tuple(
        Uncertain(name, key, figure.low, figure.high, unit)
        for name, key, figure, unit in figures
        if figure.low < figure.high
    )


def moved_networks(figures: Sequence[Uncertain], found: Verdict) -> tuple[Choice, ...]:
    """Return the best offer and the best rival at both ends of each figure in turn: offer, rival, offer, rival ..."""
    return tuple(
        one.moved(row.choice, value)
        for one in figures
        for value in one.ends
        for row in (found.offer, found.rival)
    )


def swings(
    question: Question,
    found: Verdict,
    figures: Sequence[Uncertain],
    rows: Sequence[Row],
    ordered: Row | None = None,
) -> tuple[Swing, ...]:
    """Return how far the lead swings with each figure, and with the order in which hosts send, the widest first.

    Parameters
    ----------
    rows
        Of :func:`moved_networks`.
    ordered
        A full fat-tree whose hosts send in an order, where it is better than the rival.
    """
    moved = [(one, value) for one in figures for value in one.ends]
    ends = [
        (one.words(value), lead(one.assumed(question, value), mine, theirs))
        for (one, value), mine, theirs in zip(moved, rows[::2], rows[1::2], strict=True)
    ]
    named = zip(figures, ends[::2], ends[1::2], strict=True)
    rows_of = [Swing(one.name, low, high) for one, low, high in named]
    if ordered is not None:
        left = lead(question, found.offer, ordered)
        rows_of.insert(0, Swing(SENDING, ("in an order, at most", left), None))
    return widest_first(rows_of, found.lead)
