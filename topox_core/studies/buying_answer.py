"""What follows from the computed networks: which is worth buying, by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from topox_core.studies.buying import Question, Row
from topox_core.studies.pareto import Front, front_of

# Offers whose cost differs by less are called as good.
AS_GOOD = 0.01
# Costs that differ by less are equal: neither wins.
EQUAL = 1e-9


@dataclass(frozen=True)
class Verdict:
    """What to buy.

    Attributes
    ----------
    winner
        The network that costs least by the question's criterion.
    offer, rival
        The best switch on offer, and the best network without one; None where none could be run.
    lead
        The share of the rival's cost that the offer saves; negative where it costs more.
    least_lead, most_lead
        The same with all figures of the offer at their worst, and at their best.
    as_good
        Other offers, with as many ports as they need, within 1 % of the best one.
    possible
        Another offer that would win with its figures at their best, where a rival wins.
    """

    winner: Row
    offer: Row | None
    rival: Row | None
    lead: float = 0.0
    least_lead: float | None = None
    most_lead: float | None = None
    as_good: tuple[Row, ...] = ()
    possible: Row | None = None

    @property
    def wins(self) -> bool:
        """Whether a switch on offer is worth buying."""
        return self.offer is not None and self.winner is self.offer

    @property
    def turns(self) -> bool:
        """Whether the ranges of its figures could turn the answer."""
        ends = [one for one in (self.least_lead, self.most_lead) if one is not None]
        return any((end > EQUAL) != self.wins for end in ends) or self.possible is not None


def verdict(question: Question, rows: Sequence[Row]) -> Verdict | None:
    """Return what to buy of the rows that are there; None while none is known."""
    known = [row for row in rows if row.known]
    usual = [row for row in known if row.choice.level == "usual"]
    if not usual:
        return None
    offers = [row for row in usual if not row.choice.rival]
    rivals = [row for row in usual if row.choice.rival]
    offer = min(offers, key=question.cost, default=None)
    rival = min(rivals, key=question.cost, default=None)
    if offer is None or rival is None:
        found = offer or rival
        assert found is not None
        return Verdict(found, offer, rival)
    wins = lead(question, offer, rival) > EQUAL
    at_ends = {
        row.choice.level: lead(question, row, rival)
        for row in known
        if (row.choice.key, row.choice.degree) == (offer.choice.key, offer.choice.degree)
        and row.choice.level != "usual"
    }
    near = question.cost(offer) * (1.0 + AS_GOOD)
    as_good = [row for row in offers if row is not offer and question.cost(row) <= near]
    others = [row for row in known if not row.choice.rival and row.choice.level == "low"]
    hopeful = max(others, key=lambda row: lead(question, row, rival), default=None)
    possible = None
    if not wins and hopeful is not None and lead(question, hopeful, rival) > EQUAL:
        possible = hopeful
    return Verdict(
        offer if wins else rival,
        offer,
        rival,
        lead(question, offer, rival),
        at_ends.get("high"),
        at_ends.get("low"),
        tuple(as_good),
        possible,
    )


def lead(question: Question, row: Row, rival: Row) -> float:
    """Return the share of the rival's cost that a network saves."""
    theirs = question.cost(rival)
    return 1.0 - question.cost(row) / theirs if 0 < theirs < inf else 0.0


def front_of_rows(rows: Sequence[Row]) -> Front:
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
    front = front_of([[row.iteration_ms for row in rows], [row.network_usd for row in rows]]).on
    first: dict[tuple[float | None, float | None], int] = {}
    for k, row in enumerate(rows):
        if front[k]:
            first.setdefault((row.network_usd, row.iteration_ms), k)
    return tuple(k for _, k in sorted(first.items(), key=lambda one: one[0][0] or 0.0))
