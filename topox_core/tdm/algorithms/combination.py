"""One split of every pod group out of all of them, and bundles drawn anew where a round waits for bundled jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topox_core.tdm.algorithms.caps import Best, best_split
from topox_core.tdm.algorithms.splits import (
    Subsets,
    bundles_around,
    points_of,
    splits_of,
    subsets_of,
)
from topox_core.tdm.kernels.grouping import Points
from topox_core.tdm.model.round import SAME, RoundForm
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.search import Search

# Bundles drawn anew at most, and in a row without gain.
MAX_DRAWS = 40
MAX_IN_VAIN = 8


class Combination:
    """All splits of all pod groups, and the best way to take one of each."""

    def __init__(self, search: Search, subsets: Sequence[Subsets]) -> None:
        self.search = search
        self.subsets = list(subsets)
        self._splits = [self._reduced(one) for one in subsets]

    def _reduced(self, subsets: Subsets) -> tuple[NDArray[np.generic], ...]:
        return splits_of(subsets, self.search.dark_s > 0)

    def replace(self, pod_group: int, subsets: Subsets) -> None:
        """Put other subsets in the place of a pod group's."""
        self.subsets[pod_group] = subsets
        self._splits[pod_group] = self._reduced(subsets)

    @property
    def points(self) -> Points:
        """The splits of all pod groups."""
        return points_of(self._splits)

    def best(self, all_train: bool) -> tuple[Best, list[int]]:
        """Return the best choice behind one barrier, and the second group's subset in each pod group (empty: none fits)."""
        points = self.points
        best = self._best_of(points, all_train)
        return best, [int(points.subset[at]) for at in best.chosen]

    def bound_s(self, all_train: bool) -> float:
        """Return what no round is below, with these rings: the best round of the pod groups without bundles alone."""
        whole = [
            splits
            for splits, one in zip(self._splits, self.subsets, strict=True)
            if not one.bundled
        ]
        return self._best_of(points_of(whole), all_train).bound_s if whole else 0.0

    def _best_of(self, points: Points, all_train: bool) -> Best:
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

    def rebundle(self, group: Sequence[int], form: RoundForm) -> list[int]:
        """Return a grouping at least as good: bundles are drawn anew where the round waits for them.

        Jobs are bundled only with jobs of their group, so that the grouping at hand stays within
        reach.
        """
        search, table = self.search, self.search.table
        random = np.random.default_rng(search.settings.seed)
        best, kept, vain = round_of(table, group, form).round_s, list(group), 0
        for _ in range(MAX_DRAWS):
            waits_for = self._longest_bundled(kept, vain)
            if waits_for is None or vain == MAX_IN_VAIN or search.stop():
                break
            members = table.members[waits_for]
            bundles = bundles_around(table, members, kept, random)
            before = self.subsets[waits_for]
            self.replace(waits_for, subsets_of(table, waits_for, bundles))
            _, chosen = self.best(form.all_train)
            drawn = self.group(chosen) if chosen else kept
            length = round_of(table, drawn, form).round_s
            vain += 1
            if length < best * (1 - SAME):
                best, kept, vain = length, drawn, 0
            elif length > best * (1 + SAME):
                self.replace(waits_for, before)
        return kept

    def _longest_bundled(self, group: Sequence[int], turn: int) -> int | None:
        """Return a pod group with bundles that one of the two communications waits for, in turns.

        None if none does.
        """
        table = self.search.table
        longest = []
        for k in (0, 1):
            seconds = [
                table.communication_s(g, [n for n in members if group[n] == k])
                for g, members in enumerate(table.members)
            ]
            longest.append(int(np.argmax(seconds)))
        bundled = [g for g in dict.fromkeys(longest) if self.subsets[g].bundled]
        return bundled[turn % len(bundled)] if bundled else None


def all_splits(search: Search) -> Combination | None:
    """Return the splits of all pod groups, or None if stopped before they are worked out."""
    subsets = []
    for g in range(len(search.table.members)):
        if search.stop():
            return None
        subsets.append(subsets_of(search.table, g))
    return Combination(search, subsets)
