"""Rings that know the load, where it matters: in the pod group that a round waits for.

Algorithm 3 looks only at which pairs have a link anyway. Here rings are changed while the stage
gets shorter; the best splits of that pod group are measured again with such rings, and all pod
groups are combined anew.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topox_core.runs.stopping import Stop
from topox_core.tdm.algorithms.combination import Combination
from topox_core.tdm.algorithms.decomposition import combined
from topox_core.tdm.algorithms.extended import Search, shortest
from topox_core.tdm.algorithms.splits import Subsets, all_subsets_of, points_of, splits_of
from topox_core.tdm.kernels.ring_moves import better_rings
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import OnMoment, Round, TdmSettings
from topox_core.tdm.model.traffic import Ring, from_lowest

# Splits of a pod group that are measured with rings of their own, the likeliest first.
SPLITS = 60
MOST_POD_GROUPS = 12


def load_aware_rings(jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnMoment) -> Round:
    """Return the best grouping's round with better rings where it waits; never longer than with Algorithm 3's.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk, however the jobs are grouped.
    """
    search = Search("load-aware-rings", jobs, settings, stop, on_moment)
    start = search.start()
    subsets = all_subsets_of(search.table, search.stop)
    if subsets is None:
        return search.answer(
            start or search.too_few_ports(), message="Stopped before all splits were worked out."
        )
    combination = Combination(search, subsets)
    found = combined(search, combination, start, False)
    return search.answer(
        with_better_rings(search, combination, found, False), message=found.message
    )


def with_better_rings(
    search: Search, combination: Combination, found: Round, all_train: bool
) -> Round:
    """Return a round with better rings in the pod groups it waits for, one after the other; ``found`` if none helps."""
    rings = _Rings(search)
    best = found
    for _ in range(MOST_POD_GROUPS):
        waits_for = _longest(best, rings.done)
        if search.stop() or waits_for is None:
            break
        combination.replace(waits_for, rings.look(waits_for, combination.subsets[waits_for], best))
        _, chosen = combination.best(all_train)
        group, laps = combination.group(chosen), rings.of(combination.subsets, chosen)
        best = (
            shortest(
                best,
                search.round(
                    group, all_train=all_train, rings=laps, source="rings that know the load"
                ),
            )
            or best
        )
    return best


def _longest(found: Round, done: set[int]) -> int | None:
    """Return a pod group that one of the two communications waits for and that has not been looked at."""
    order = np.argsort(-found.communication_s.max(0))
    for k in order:
        g = int(found.communication_s[:, k].argmax())
        if g not in done and found.communication_s[g, k] > 0:
            return g
    return None


class _Rings:
    """Times and rings of the subsets that were looked at, by pod group."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.done: set[int] = set()
        self._rings: dict[tuple[int, int], dict[int, Ring]] = {}

    def look(self, pod_group: int, subsets: Subsets, found: Round) -> Subsets:
        """Return a pod group's subsets with the times that better rings give the likeliest of them."""
        self.done.add(pod_group)
        seconds, full = subsets.seconds.copy(), len(subsets.seconds) - 1
        for split in self._likeliest(subsets, found):
            if self.search.stop():
                break
            for subset in (split, full & ~split):
                if (pod_group, subset) not in self._rings and subset:
                    seconds[subset] = self._improve(pod_group, subsets, subset)
        return replace(subsets, seconds=seconds)

    def _likeliest(self, subsets: Subsets, found: Round) -> list[int]:
        """Return the splits that are nearest to fit into the round, each as its second group."""
        caps = np.maximum(found.communication_s.max(0), 1e-9)
        alone = points_of([splits_of(subsets, False)])
        excess = np.maximum(alone.first_s / caps[0], alone.second_s / caps[1])
        return [int(alone.subset[at]) for at in np.argsort(excess, kind="stable")[:SPLITS]]

    def _improve(self, pod_group: int, subsets: Subsets, subset: int) -> float:
        table = self.search.table
        chosen: NDArray[np.bool_] = np.zeros(len(table.members[pod_group]), np.bool_)
        chosen[table.place[list(subsets.members(subset))]] = True
        seconds, laps = better_rings(table.load(pod_group), chosen, table.fabric)
        rings = {}
        for n in subsets.members(subset):
            lap = laps[table.place[n]]
            if (lap >= 0).any():
                rings[n] = from_lowest(lap[lap >= 0])
        self._rings[pod_group, subset] = rings
        return float(seconds)

    def of(self, subsets: list[Subsets], chosen: list[int]) -> dict[int, Ring]:
        """Return the rings of the chosen second groups and of the rest, where they were looked at."""
        rings: dict[int, Ring] = {}
        for g, second in enumerate(chosen):
            first = len(subsets[g].seconds) - 1 & ~second
            for subset in (first, second):
                rings |= self._rings.get((g, subset), {})
        return rings
