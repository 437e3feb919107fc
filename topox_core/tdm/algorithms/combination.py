"""One split of every pod group out of all of them, jobs bundled where these were too many.

Pod groups that share a barrier meet only in maxima: of the two groups' communication, and of their
computing. For given caps on the computing, one pass over the pod groups' fronts finds the best pair
of communications (:func:`topox_core.tdm.kernels.grouping.cheapest`); the caps are searched in
boxes, by branch and bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.csr import row_pointer
from topox_core.runs.run import Stop
from topox_core.tdm.kernels.grouping import (
    Points,
    Switching,
    cheapest,
    round_length_s,
    stages,
    turns,
    undominated,
)
from topox_core.tdm.model.jobs import PULL, PUSH, Jobs, Reading
from topox_core.tdm.model.rounds import after_push_s, computing_of
from topox_core.tdm.model.traffic import Floats, StageTable
from topox_core.tdm.search import Search

# Bundles of a pod group: more give nearly nothing (10 to 16 gave the same round on large mixes),
# and each doubles the work.
MAX_BUNDLES = 14
FEWEST_BUNDLES = 6
# Steps of one compiled call for all subsets of a pod group: it cannot be stopped.
WORK = 45_000_000


@dataclass(frozen=True)
class Subsets:
    """All subsets of one pod group's bundles: bit b of a subset stands for the b-th bundle.

    Attributes
    ----------
    seconds
        Communication of each subset, infinite where ports are too few.
    computing_s
        ``[way, subset]`` longest computing, after a push and after a pull.
    turn
        ``[group, subset]`` whether circuits change when the stages of the first and the second
        group begin, if the subset is the second group.
    """

    bundles: tuple[tuple[int, ...], ...]
    seconds: Floats
    computing_s: Floats
    turn: NDArray[np.bool_]

    @property
    def bundled(self) -> bool:
        """Whether some jobs must stay together."""
        return any(len(bundle) > 1 for bundle in self.bundles)

    def members(self, subset: int) -> Iterator[int]:
        """Yield the jobs of a subset."""
        for b, bundle in enumerate(self.bundles):
            if subset >> b & 1:
                yield from bundle


def _most_bundles(table: StageTable, members: Sequence[int]) -> int:
    """Return into how many bundles the jobs of a pod group go: fewer where each subset takes longer."""
    network, most = table.jobs.network, MAX_BUNDLES
    pods = network.pods_per_group
    # Every job adds its pairs, and links are given one by one, each after a pass over all pods.
    steps = len(members) * pods**2 + network.ports_per_pod * pods * pods // 2
    while most > FEWEST_BUNDLES and (1 << most) * steps > WORK:
        most -= 1
    return most


def bundles_of(
    table: StageTable, members: Sequence[int], group: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Return jobs that are to stay together: every job alone where the pod group is small.

    Above that the two smallest bundles of one kind (same group, same collective, same computing) are
    joined, as long as need be; if no two are of one kind, the two smallest of a group.
    """
    jobs, most = table.jobs.jobs, _most_bundles(table, members)
    kinds: dict[tuple[object, ...], list[tuple[float, tuple[int, ...]]]] = {}
    for n in members:
        job = jobs[n]
        kind = (group[n], job.collective, job.train_s, after_push_s(job, table.reading))
        kinds.setdefault(kind, []).append((job.total_gbit, (n,)))
    for bundles in kinds.values():
        bundles.sort()
    count = len(members)
    while count > most:
        joinable = [bundles for bundles in kinds.values() if len(bundles) > 1]
        if not joinable:
            kinds = {
                (k,): sorted(one for kind, of in kinds.items() if kind[0] == k for one in of)
                for k in {kind[0] for kind in kinds}
            }
            continue
        smallest = min(joinable, key=lambda bundles: (bundles[0][0] + bundles[1][0], bundles[0][1]))
        (a, first), (b, second) = smallest.pop(0), smallest.pop(0)
        smallest.append((a + b, tuple(sorted(first + second))))
        smallest.sort()
        count -= 1
    return tuple(sorted(bundle for bundles in kinds.values() for _, bundle in bundles))


def subsets_of(table: StageTable, pod_group: int, group: Sequence[int]) -> Subsets:
    """Return all subsets of a pod group's bundles (:func:`bundles_of`) with what they need."""
    members = table.members[pod_group]
    bundles = bundles_of(table, members, group)
    item = np.full(len(members), -1, np.int64)
    for b, bundle in enumerate(bundles):
        item[table.place[list(bundle)]] = b
    sets = np.arange(1 << len(bundles))[:, None] >> item & 1 == 1
    seconds, links = stages(table.load(pod_group), table.fabric, sets)
    return timed(table.jobs, table.reading, bundles, seconds, turns(links[::-1], links))


def timed(
    jobs: Jobs,
    reading: Reading,
    bundles: tuple[tuple[int, ...], ...],
    seconds: Floats,
    turn: NDArray[np.bool_],
) -> Subsets:
    """Return subsets of bundles by what each communicates and where circuits change, with the longest computing of each."""
    each, longest = computing_of(jobs, reading), np.zeros((2, 1 << len(bundles)))
    for b, bundle in enumerate(bundles):
        own = each[:, list(bundle)].max(1, keepdims=True)
        longest[:, 1 << b : 2 << b] = np.maximum(longest[:, : 1 << b], own)
    return Subsets(bundles, seconds, longest, turn)


def splits_of(subsets: Subsets, switching: bool) -> tuple[NDArray[Any], ...]:
    """Return the columns of :class:`Points` for one pod group, without what another split beats in everything.

    Parameters
    ----------
    switching
        Whether it matters when circuits change.
    """
    talk = np.stack([subsets.seconds[::-1], subsets.seconds])
    computing = np.stack([subsets.computing_s[:, ::-1], subsets.computing_s], axis=1)
    turn = subsets.turn & switching
    kind = np.zeros(len(subsets.seconds), np.int64)
    for column in (*computing[PULL], *computing[PUSH], *turn):
        values, place = np.unique(column, return_inverse=True)
        kind = kind * len(values) + place
    order = np.lexsort((*talk[::-1], kind))
    order = order[np.isfinite(talk[:, order]).all(0)]
    kept = order[undominated(kind[order], talk[1, order])]
    kept = kept[np.lexsort(talk[::-1, kept])]
    return talk[:, kept], computing[:, :, kept], turn[:, kept], kept


def points_of(parts: Sequence[tuple[NDArray[Any], ...]]) -> Points:
    """Return the splits of several pod groups, each from :func:`splits_of`."""
    start = row_pointer([len(part[-1]) for part in parts], np.int64)
    return Points(start, *(np.concatenate(column, axis=-1) for column in zip(*parts, strict=True)))


# Boxes of caps that are bounded; two sums of the same times in another order are no improvement.
MAX_BOXES, TIE = 4_000, 1e-12


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
        by_train = self.train[1] - self.train[0] >= self.between[1] - self.between[0]
        low, high = self.train if by_train else self.between
        middle = (low + high) // 2
        parts = ((low, middle), (middle + 1, high)) if low < high else ()
        return tuple(
            replace(self, train=part) if by_train else replace(self, between=part) for part in parts
        )


class _Boxes:
    """What all boxes share: the points and what a change of circuits costs."""

    def __init__(self, points: Points, dark_s: float, inside: bool, all_train: bool) -> None:
        self.points, self.dark_s, self.inside, self.all_train = points, dark_s, inside, all_train
        self.between, self.train = (np.unique(np.append(one, 0.0)) for one in points.computing_s)

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
        switching = Switching(box.turn, self.dark_s, self.inside)
        bound, chosen = cheapest(self.points, high, low, switching, self.all_train)
        return bound, self.length(chosen) if np.isfinite(bound) else bound, chosen

    def _computing(self, box: _Box, end: int) -> Floats:
        between = self.between[-1], self.between[box.between[end]]
        if not box.longest_between_first:
            between = between[::-1]
        return np.array([between, (self.train[-1], self.train[box.train[end]])])

    def length(self, chosen: NDArray[np.int64]) -> float:
        """Return the round of one point for each pod group."""
        talk_s = self.points.talk_s[:, chosen].max(1)
        first, second = self.points.turn[:, chosen]
        length = round_length_s(
            (float(talk_s[0]), float(talk_s[1])),
            self.points.computing_s[:, :, chosen].max(2),
            Switching((bool(first.any()), bool(second.any())), self.dark_s, self.inside),
            self.all_train,
        )
        return float(length)


def best_split(
    points: Points, dark_s: float, inside: bool, all_train: bool, stop: Stop
) -> tuple[NDArray[np.int64], float]:
    """Return the point that each pod group takes in the shortest round behind one barrier, and what no split is below.

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
            if bound < best * (1 - TIE):
                heapq.heappush(heap, (bound, next(number), box))
        if not heap or heap[0][0] >= best * (1 - TIE) or stop():
            break
        opened = heapq.heappop(heap)
        pending = list(opened[2].halves())
    else:
        heapq.heappush(heap, opened)  # its halves were not bounded any more
    return chosen, float(min(best, heap[0][0] if heap else best))


class Combination:
    """All splits of all pod groups, and the best way to take one of each."""

    def __init__(self, search: Search, subsets: Sequence[Subsets]) -> None:
        self.search = search
        self.subsets = list(subsets)
        self._splits = [splits_of(one, search.dark_s > 0) for one in subsets]

    def replace(self, pod_group: int, subsets: Subsets) -> None:
        """Put other subsets in the place of a pod group's."""
        self.subsets[pod_group] = subsets
        self._splits[pod_group] = splits_of(subsets, self.search.dark_s > 0)

    @property
    def points(self) -> Points:
        """The splits of all pod groups."""
        return points_of(self._splits)

    def best(self, all_train: bool) -> tuple[list[int], float]:
        """Return the second group's subset in each pod group of the best choice behind one barrier (empty: none fits); and a bound."""
        points = self.points
        chosen, bound_s = self._best_of(points, all_train)
        return [int(points.subset[at]) for at in chosen], bound_s

    def bound_s(self, all_train: bool) -> float:
        """Return what no round is below, with these rings: the best round of the pod groups without bundles alone."""
        whole = [
            splits
            for splits, one in zip(self._splits, self.subsets, strict=True)
            if not one.bundled
        ]
        return self._best_of(points_of(whole), all_train)[1] if whole else 0.0

    def _best_of(self, points: Points, all_train: bool) -> tuple[NDArray[np.int64], float]:
        search = self.search
        inside = search.settings.reading.delay_inside
        return best_split(points, search.dark_s, inside, all_train, search.stop)

    def group(self, chosen: Sequence[int]) -> list[int]:
        """Return the group of each job."""
        group = [0] * len(self.search.jobs)
        for subsets, second in zip(self.subsets, chosen, strict=True):
            for n in subsets.members(second):
                group[n] = 1
        return group

    @property
    def message(self) -> str:
        """What must be said about bundles; empty if every job moves by itself."""
        several = [one for one in self.subsets if one.bundled]
        if not several:
            return ""
        most = max(len(one.bundles) for one in several)
        return (
            f"In {len(several)} of {len(self.subsets)} pod groups the smallest jobs are bundled, into at most {most} bundles "
            "that stay together: the best round for these bundles, not proved the best of all."
        )

    def rebundle(self, group: Sequence[int]) -> None:
        """Bundle jobs anew, with jobs of their own group alone: this grouping is then among the splits."""
        for g, subsets in enumerate(self.subsets):
            if subsets.bundled and not self.search.stop():
                self.replace(g, subsets_of(self.search.table, g, group))


def all_splits(search: Search) -> Combination | None:
    """Return the splits of all pod groups, or None if stopped before they are worked out."""
    subsets, group = [], (0,) * len(search.jobs)
    for g in range(len(search.table.members)):
        if search.stop():
            return None
        subsets.append(subsets_of(search.table, g, group))
    return Combination(search, subsets)
