"""Descents over all layouts near another one, and kicks out of those that nothing near is faster than.

Iterated local search: where annealing cools down in one valley, a few exchanges at random lead to
the next one, and the descent from there costs little, since a layout is given up as soon as it is
known to be no faster.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from topox_core.fabrics.fluid import go_on
from topox_core.fabrics.layout_times import MatrixStart
from topox_core.runs.stopping import Stop
from topox_core.topology.greedy import Circuits as Matrix

# Of a first answer: layouts tried, and what simulating them may take, in paths looked at on links. It
# runs beside every plan: 0.1 to 1 s on the samples, where eight times the work takes up to 2.5 s and
# gives circuits that are 0 to 10 % faster.
FIRST_STEPS, FIRST_WORK = 20_000, 1_000_000
# In a descent so many layouts that were looked at before count as one that is tried; annealing counts
# each draw, for with few layouts in all it draws the same ones again and again.
DRAWS = 10


@dataclass
class Effort:
    """Layouts that may be tried and the work that simulating them may take, and what is spent of both."""

    steps: int
    work: float = math.inf
    tried: float = 0.0
    worked: int = 0

    @staticmethod
    def of(steps: int) -> Effort:
        """Return the effort of so many layouts; of a first answer for 0."""
        return Effort(steps) if steps else Effort(FIRST_STEPS, FIRST_WORK)

    @property
    def spent(self) -> float:
        """Share that is used up; 1 and more is the end."""
        return max(self.tried / self.steps, self.worked / self.work) if self.steps else 1.0

    def part(self, share: float) -> Effort:
        """Return a share of the effort, nothing of it spent."""
        return Effort(round(self.steps * share), self.work * share)


# Of the layouts near one, so many exchanges, and so many pairs that get a circuit, are looked at.
MAX_EXCHANGES, MAX_PAIRS = 20_000, 2_000
# A kick is so many exchanges; what it led to may be this much slower at first, and nothing at the end.
KICKS, SLOWER = (2, 3), 0.004
MIN_GAIN = 1e-9

Link = tuple[int, int]
# Circuits that go, and circuits that come in their place.
Change = tuple[tuple[Link, ...], tuple[Link, ...]]


@dataclass
class Descent:
    """A search from one start, and what of its effort is spent."""

    start: MatrixStart
    effort: Effort
    rng: random.Random
    stop: Stop
    looked: int = 0

    def __post_init__(self) -> None:
        times = self.start.times
        self.times, self.ports = times, times.cluster.ports_per_server
        self.pairs = times.pairs.ends
        self.before, self.began = times.evaluations, times.work

    @property
    def over(self) -> bool:
        """Whether the effort is spent; raises Stopped if it is to stop."""
        go_on(self.stop)
        evaluations = self.times.evaluations - self.before
        self.effort.tried = evaluations + self.looked / DRAWS
        self.effort.worked = self.times.work - self.began
        return self.effort.spent >= 1

    def time_ms(self, circuits: Matrix, latest_ms: float) -> float:
        """Return the time of a layout, infinite where it is later."""
        self.looked += 1
        return self.times.time_ms(circuits, latest_ms)

    def down(self, at: MatrixStart) -> MatrixStart:
        """Return a layout that nothing near is faster than, or the fastest when the effort is spent."""
        found: MatrixStart | None = at
        while found is not None:
            at, found = found, self._faster(found)
        return at

    def _faster(self, at: MatrixStart) -> MatrixStart | None:
        for change in self.near(at.circuits):
            if self.over:
                return None
            circuits = changed(at.circuits, change)
            time_ms = self.time_ms(circuits, at.time_ms * (1 - MIN_GAIN))
            if time_ms < at.time_ms:
                return replace(at, circuits=circuits, time_ms=time_ms, name="search")
        return None

    def near(self, circuits: Matrix) -> list[Change]:
        """Return what changes a layout into those near it, in an order drawn anew."""
        near = [*self.exchanges(circuits, MAX_EXCHANGES), *self._one_more(circuits)]
        self.rng.shuffle(near)
        return near

    def exchanges(self, circuits: Matrix, most: int) -> Iterator[Change]:
        """Yield exchanges of the ends of two circuits, in an order drawn at random."""
        links = list(zip(*(ends.tolist() for ends in np.nonzero(circuits)), strict=True))
        count = len(links) * (len(links) - 1) // 2
        for number in self.rng.sample(range(count), min(most, count)):
            j = (1 + math.isqrt(1 + 8 * number)) // 2
            (a, b), (c, d) = links[j], links[number - j * (j - 1) // 2]
            if a not in (c, d) and b not in (c, d):
                yield ((a, b), (c, d)), ((a, d), (c, b))

    def _one_more(self, circuits: Matrix) -> Iterator[Change]:
        """Yield one circuit more for each pair, where an exchange does not give it already."""
        out, into = (circuits.sum(axis=axis).tolist() for axis in (1, 0))
        for a, b in self.rng.sample(self.pairs, min(MAX_PAIRS, len(self.pairs))):
            full_out, full_in = out[a] >= self.ports, into[b] >= self.ports
            away = [int(d) for d in np.flatnonzero(circuits[a]) if d != b] if full_out else [-1]
            there = [int(c) for c in np.flatnonzero(circuits[:, b]) if c != a] if full_in else [-1]
            for d in away:
                for c in there:
                    if not (full_out and full_in) or c == d:
                        gone = ((a, d),) * full_out + ((c, b),) * full_in
                        yield gone, ((a, b),)

    def kicked(self, at: MatrixStart) -> MatrixStart:
        """Return a layout a few exchanges away, however slow."""
        circuits = at.circuits
        for _ in range(self.rng.choice(KICKS)):
            for change in self.exchanges(circuits, 1):
                circuits = changed(circuits, change)
        time_ms = self.time_ms(circuits, math.inf)
        return replace(at, circuits=circuits, time_ms=time_ms, name="search")


def changed(circuits: Matrix, change: Change) -> Matrix:
    """Return a layout after a change."""
    after = circuits.copy()
    for a, b in change[0]:
        after[a, b] -= 1
    for a, b in change[1]:
        after[a, b] += 1
    return after


def kicked_on(start: MatrixStart, effort: Effort, rng: random.Random, stop: Stop) -> MatrixStart:
    """Return the best layout that descents with kicks between them find, or the start.

    Raises
    ------
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    descent = Descent(start, effort, rng, stop)
    best = current = descent.down(start)
    while not descent.over:
        found = descent.kicked(current)
        if found.time_ms == math.inf:
            continue
        found = descent.down(found)
        most_ms = current.time_ms * (1 + SLOWER * (1 - effort.spent) * rng.random())
        if found.time_ms <= most_ms:
            current = found
        if found.time_ms < best.time_ms * (1 - 1e-12):
            best = found
    return best
