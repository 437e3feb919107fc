"""The best split of all pod groups at once, by branch and bound over how long each group may compute.

Pod groups that share a barrier meet only in maxima: of the two groups' communication, and of their
computing. For given caps on the computing, one pass over the pod groups' fronts finds the best pair
of communications (:func:`topox_core.tdm.kernels.grouping.cheapest`); the caps are searched in
boxes.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from topox_core.runs.stopping import Stop
from topox_core.tdm.kernels.grouping import Computing, Points, Switching, cheapest, round_length_s

MAX_BOXES = 4_000
SAME = 1e-12


@dataclass(frozen=True)
class Best:
    """The shortest round, the point that each pod group takes in it, and what no split is below."""

    seconds: float
    chosen: NDArray[np.int64]
    bound_s: float


@dataclass(frozen=True)
class _Box:
    """Index ranges (both ends in) of the second group's training and of one group's computing after its push.

    The longest training may be called the first group's; the longest computing between push and
    pull is in one of the two (``longest_between_first``), and only the other one's has a range.
    Circuits may change where ``turn`` says so.
    """

    turn: tuple[bool, bool]
    longest_between_first: bool
    train: tuple[int, int]
    between: tuple[int, int]

    def halves(self) -> tuple[_Box, ...]:
        """Return the box cut in two across its longer side; nothing if it is a point."""
        train, between = self.train[1] - self.train[0], self.between[1] - self.between[0]
        if max(train, between) == 0:
            return ()
        if train >= between:
            return tuple(replace(self, train=part) for part in _halves(self.train))
        return tuple(replace(self, between=part) for part in _halves(self.between))


def _halves(span: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    low, high = span
    middle = (low + high) // 2
    return (low, middle), (middle + 1, high)


class _Boxes:
    """What all boxes share: the points and what a change of circuits costs."""

    def __init__(self, points: Points, dark_s: float, inside: bool, all_train: bool) -> None:
        self.points, self.dark_s, self.inside, self.all_train = points, dark_s, inside, all_train
        self.train = np.unique(np.concatenate(([0.0], points.train_first_s, points.train_second_s)))
        self.between = np.unique(
            np.concatenate(([0.0], points.between_first_s, points.between_second_s))
        )

    def roots(self) -> list[_Box]:
        """Return the boxes that hold everything."""
        turns = (
            [(a, b) for a in (False, True) for b in (False, True)]
            if self.dark_s > 0
            else [(True, True)]
        )
        whole = (0, len(self.train) - 1), (0, len(self.between) - 1)
        return [_Box(turn, first, *whole) for turn in turns for first in (True, False)]

    def bound(self, box: _Box) -> tuple[float, float, NDArray[np.int64]]:
        """Return a bound for the box, and the round of one choice in it with that choice."""
        low, high = (self._computing(box, end) for end in (0, 1))
        switching = Switching(*box.turn, self.dark_s, self.inside)
        bound, chosen = cheapest(self.points, high, low, switching, self.all_train)
        return bound, self.length(chosen) if np.isfinite(bound) else bound, chosen

    def _computing(self, box: _Box, end: int) -> Computing:
        between = float(self.between[-1]), float(self.between[box.between[end]])
        if not box.longest_between_first:
            between = between[::-1]
        return Computing(float(self.train[-1]), float(self.train[box.train[end]]), *between)

    def length(self, chosen: NDArray[np.int64]) -> float:
        """Return the round of one point for each pod group."""
        p = self.points
        computing = (p.train_first_s, p.train_second_s, p.between_first_s, p.between_second_s)
        turn_first, turn_second = (
            bool(turn[chosen].any()) for turn in (p.turn_first, p.turn_second)
        )
        length = round_length_s(
            float(p.first_s[chosen].max()),
            float(p.second_s[chosen].max()),
            Computing(*(float(column[chosen].max()) for column in computing)),
            Switching(turn_first, turn_second, self.dark_s, self.inside),
            self.all_train,
        )
        return float(length)


def best_split(points: Points, dark_s: float, inside: bool, all_train: bool, stop: Stop) -> Best:
    """Return the best choice of one point for each pod group behind one barrier.

    Parameters
    ----------
    dark_s
        What a change of circuits costs at the start of a stage.
    inside
        Whether computing goes on meanwhile.
    all_train
        Whether the round has phases in which all train.
    """
    boxes, number = _Boxes(points, dark_s, inside, all_train), count()
    best, chosen = np.inf, np.zeros(0, np.int64)
    heap: list[tuple[float, int, _Box]] = []
    pending = boxes.roots()
    for _ in range(MAX_BOXES):
        for box in pending:
            bound, seconds, choice = boxes.bound(box)
            if seconds < best:
                best, chosen = seconds, choice
            if bound < best * (1 - SAME):
                heapq.heappush(heap, (bound, next(number), box))
        if not heap or heap[0][0] >= best * (1 - SAME) or stop():
            break
        opened = heapq.heappop(heap)
        pending = list(opened[2].halves())
    else:
        heapq.heappush(heap, opened)  # its halves were not bounded any more
    return Best(best, chosen, min(best, heap[0][0] if heap else best))
