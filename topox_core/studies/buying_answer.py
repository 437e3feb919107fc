"""What follows from the computed networks: which is worth buying, by how much."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from topox_core.economics.comparison import Swing
from topox_core.economics.price_sets import SET_BY_SPEED, Catalogue
from topox_core.fabrics.compare import EQUAL, ties
from topox_core.studies.buying import (
    DELAY,
    POWER,
    PRICE,
    Choice,
    Question,
    Row,
)
from topox_core.studies.keys import Value
from topox_core.studies.offers import offer_of
from topox_core.studies.outcomes import priced_at
from topox_core.studies.slices import front_of, steps_of
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
    at_ends = {
        row.choice.level: lead(question, row, rival)
        for row in known
        if (row.choice.key, row.choice.degree) == (offer.choice.key, offer.choice.degree)
        and row.choice.level != "usual"
    }
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


def steps_of_rows(rows: Sequence[Row]) -> tuple[int, ...]:
    """Return which networks no other one beats in time and price, in order of the price, of equal ones the first."""
    return steps_of([row.network_usd for row in rows], [row.iteration_ms for row in rows])


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

    @property
    def near(self) -> bool:
        """Whether nothing is left to search."""
        if self.wins_ms is None or self.loses_ms is None:
            return True
        return self.loses_ms <= NEAR * self.wins_ms


def slowest_of(question: Question, rows: Sequence[Row], rival: Row) -> Slowest:
    """Return up to which delay rows of one switch, alike but for it, win over the rival."""
    wins: float | None = None
    for row in sorted(rows, key=lambda one: float(one.choice.values[DELAY])):
        delay_ms = float(row.choice.values[DELAY])
        if not beats(lead(question, row, rival)):
            return Slowest(wins, delay_ms)
        wins = delay_ms
    return Slowest(wins, None)


def first_delays() -> tuple[float, ...]:
    """Return the delays that are looked at first: one a decade."""
    step = (SLOWEST_MS / FASTEST_MS) ** (1 / (DECADES - 1))
    return tuple(float(f"{FASTEST_MS * step**k:.6g}") for k in range(DECADES))


def delays_between(found: Slowest) -> tuple[float, ...]:
    """Return the delays to look at next, evenly spread (logarithmically) over where the answer turns."""
    if found.near:
        return ()
    assert found.wins_ms is not None
    assert found.loses_ms is not None
    ratio = (found.loses_ms / found.wins_ms) ** (1 / (BETWEEN + 1))
    return tuple(float(f"{found.wins_ms * ratio**k:.6g}") for k in range(1, BETWEEN + 1))


def fewer_ports(question: Question, degree: int) -> tuple[int, ...]:
    """Return the numbers of ports a server below one that its switches can take, at most eight of them."""
    cluster = question.cluster
    step = 1 if cluster.ports_per_server == cluster.switches else cluster.switches
    fewer = tuple(range(step, degree, step))
    if len(fewer) <= MAX_TRIED:
        return fewer
    return tuple(sorted({fewer[k * len(fewer) // MAX_TRIED] for k in range(MAX_TRIED)}))


def fewest_of(question: Question, rows: Sequence[Row], rival: Row) -> int | None:
    """Return the fewest ports a server at which rows of one switch win over the rival; None if at none."""
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
    assert row.iteration_ms is not None
    span = max(1.0, float(row.choice.values[PRICE]))
    free, priced = (
        question.cost(replace(row, network_usd=question.network_usd(at_price(row.choice, usd))))
        for usd in (0.0, span)
    )
    return span * (question.cost(rival) - free) / (priced - free)


def at_price(choice: Choice, usd: float) -> Choice:
    """Return a choice with another price of a port."""
    return replace(choice, values={**choice.values, PRICE: usd})


GPU_HOUR = "gpu_hour"
SENDING = "How hosts on a fat-tree send"
# Prices that have no range of their own move to half and twice.
_PARTS = {
    "nic": "Price of a NIC",
    "transceiver": "Price of a transceiver",
}
_RIVAL_PARTS = {
    "fixed": ("patch_panel_port", "Price of a patch-panel port"),
    "fat_tree": ("packet_switch", "Price of a packet switch"),
    "same_cost": ("packet_switch", "Price of a packet switch"),
}


@dataclass(frozen=True)
class Uncertain:
    """A figure that moves alone: its key in a study (none for the price of a GPU's hour) and its ends."""

    name: str
    key: str
    low: float
    high: float
    unit: str

    def words(self, value: float) -> str:
        """Return a value with its unit."""
        if self.unit == "ms":
            return time(value)
        text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        return f"${text}" if self.unit == "$" else f"{text} {self.unit}".strip()


def prices_of(question: Question) -> Catalogue:
    """Return the prices that a question counts with."""
    return priced_at(question.fixed, SET_BY_SPEED)


def uncertain_figures(question: Question, offer: Choice, rival: Choice) -> tuple[Uncertain, ...]:
    """Return what the lead of an offer over a rival depends on, figures with a range only."""
    one, assumed = offer_of(question.offers, offer.key), question.assumed
    figures = [
        Uncertain("Reconfiguration delay", DELAY, one.delay_ms.low, one.delay_ms.high, "ms"),
        Uncertain("Price of a switch port", PRICE, one.port_usd.low, one.port_usd.high, "$"),
        Uncertain("Power of a switch port", POWER, one.port_w.low, one.port_w.high, "W"),
    ]
    catalogue = prices_of(question)
    parts = dict([*_PARTS.items(), _RIVAL_PARTS[rival.key]])
    for part, words in parts.items():
        usd = catalogue.part(part).price_usd
        figures.append(Uncertain(words, f"prices.{part}.price_usd", usd / 2, usd * 2, "$"))
    for name, key, figure, unit in (
        ("GPU, per hour", GPU_HOUR, assumed.usd_per_gpu_hour, "$"),
        ("Electricity, per kWh", "running.usd_per_kwh", assumed.usd_per_kwh, "$"),
        ("Written off over", "running.years", assumed.years, "years"),
    ):
        figures.append(Uncertain(name, key, figure.low, figure.high, unit))
    return tuple(one for one in figures if one.low < one.high)


def tornado(choice: Choice, figures: Sequence[Uncertain]) -> tuple[Choice, ...]:
    """Return a choice, and the same with each figure alone at either end.

    A price changes no simulation: such points cost next to nothing.
    """
    moved = [
        (one.key, value)
        for one in figures
        if one.key != GPU_HOUR and not (choice.rival and one.key in (DELAY, PRICE, POWER))
        for value in (one.low, one.high)
    ]
    changed = (replace(choice, values={**choice.values, key: value}) for key, value in moved)
    return (choice, *changed)


def order_that_counts(question: Question, rival: Row, in_order: Row | None) -> Row | None:
    """Return the full fat-tree whose hosts send in an order; None where it is unknown, or no better than the best rival."""
    gains = in_order is not None and beats(lead(question, in_order, rival))
    return in_order if gains else None


def swings(
    question: Question,
    figures: Sequence[Uncertain],
    rows: Sequence[Row],
    rival_rows: Sequence[Row],
    in_order: Row | None = None,
) -> tuple[Swing, ...]:
    """Return how far the lead swings with each figure, and with the order in which hosts send, the widest first.

    Parameters
    ----------
    rows, rival_rows
        Of :func:`tornado`, the base first.
    in_order
        A full fat-tree whose hosts send in an order; left out where it is no better than the rival.
    """
    base = lead(question, rows[0], rival_rows[0])
    mine, theirs = _by_change(rows), _by_change(rival_rows)
    found = []
    if (ordered := order_that_counts(question, rival_rows[0], in_order)) is not None:
        left = lead(question, rows[0], ordered)
        found.append((base - left, Swing(SENDING, ("in an order, at most", left), None)))
    for one in figures:
        ends = []
        for value in (one.low, one.high):
            # The base where the figure concerns another network.
            row, rival = (
                mine.get((one.key, value), rows[0]),
                theirs.get((one.key, value), rival_rows[0]),
            )
            ends.append((one.words(value), lead(_assuming(question, one, value), row, rival)))
        span = max(ends[0][1], ends[1][1], base) - min(ends[0][1], ends[1][1], base)
        if isfinite(span) and span >= 0.0005:
            found.append((span, Swing(one.name, ends[0], ends[1])))
    return tuple(swing for _, swing in sorted(found, key=lambda row: -row[0]))


def _by_change(rows: Sequence[Row]) -> dict[tuple[str, Value], Row]:
    """Return the rows after the base by what each has that the base has not."""
    base = rows[0].choice.values.items()
    return {one: row for row in rows[1:] for one in row.choice.values.items() - base}


def _assuming(question: Question, one: Uncertain, value: float) -> Question:
    name = {
        GPU_HOUR: "usd_per_gpu_hour",
        "running.usd_per_kwh": "usd_per_kwh",
        "running.years": "years",
    }.get(one.key)
    if name is None:
        return question
    assumed = question.assumed
    moved = replace(getattr(assumed, name), low=value, usual=value, high=value)
    return replace(question, assumed=replace(assumed, **{name: moved}))
