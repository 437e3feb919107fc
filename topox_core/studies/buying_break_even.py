"""The questions turned round: the slowest switch, the fewest ports and the highest price that still win."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from topox_core.studies.buying import DELAY, PRICE, Choice, Question, Row
from topox_core.studies.buying_answer import beats, lead

# Between these delays is searched for the slowest; a switch slower than the last changes nothing in a job.
FASTEST_MS, SLOWEST_MS = 1e-3, 1e5
DECADES = 9
BETWEEN = 6
NEAR = 1.02
MOST_TRIED = 8


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
    if len(fewer) <= MOST_TRIED:
        return fewer
    return tuple(sorted({fewer[k * len(fewer) // MOST_TRIED] for k in range(MOST_TRIED)}))


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
