"""Rings that know the load, where it matters: in the pod group that a round waits for.

Algorithm 3 looks only at which pairs have a link anyway. Here rings are changed while the stage
gets shorter; the best splits of that pod group are measured again with such rings, and all pod
groups are combined anew.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topox_core.tdm.algorithms.combination import Combination, all_splits
from topox_core.tdm.algorithms.decomposition import combined
from topox_core.tdm.algorithms.hill_climbing import start_of
from topox_core.tdm.algorithms.splits import Subsets, points_of, splits_of
from topox_core.tdm.kernels.ring_moves import better_rings
from topox_core.tdm.model.round import DRAFT, Round, RoundForm
from topox_core.tdm.model.traffic import Ring, from_lowest
from topox_core.tdm.search import Search, shortest

# Splits of a pod group that are measured with rings of their own, the likeliest first.
SPLITS = 60
MAX_POD_GROUPS = 12


def load_aware_rings(search: Search) -> Round:
    """Return the best grouping's round with better rings where it waits.

    Never longer than with Algorithm 3's.
    """
    start, combination = start_of(search), all_splits(search)
    if combination is None:
        message = "Stopped before all splits were tried."
        return search.answer(start or search.all_at_once(), message=message)
    result = combined(search, combination, start)
    better = with_better_rings(search, combination, result, DRAFT)
    return search.answer(better, message=result.message)


def with_better_rings(
    search: Search, combination: Combination, start: Round, form: RoundForm
) -> Round:
    """Return a round with better rings in the pod groups it waits for, one after the other.

    ``start`` if none helps.
    """
    rings = _Rings(search)
    best = start
    for _ in range(MAX_POD_GROUPS):
        slowest = _slowest(best, rings.done)
        if search.stop() or slowest is None:
            break
        combination.replace(slowest, rings.improved(slowest, combination.subsets[slowest], best))
        _, chosen = combination.best(form.all_train)
        group, laps = combination.group(chosen), rings.of(combination.subsets, chosen)
        result = search.round(group, form, rings=laps, source="rings that know the load")
        best = shortest(best, result) or best
    return best


def _slowest(current: Round, done: set[int]) -> int | None:
    """Return a pod group that one of the two communications waits for and that is not done yet."""
    order = np.argsort(-current.communication_s.max(0))
    for k in order:
        g = int(current.communication_s[:, k].argmax())
        if g not in done and current.communication_s[g, k] > 0:
            return g
    return None


class _Rings:
    """Rings of the subsets that were measured with rings of their own, by pod group."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.done: set[int] = set()
        self._rings: dict[tuple[int, int], dict[int, Ring]] = {}

    def improved(self, pod_group: int, subsets: Subsets, current: Round) -> Subsets:
        """Return a pod group's subsets with the times that better rings give the likeliest of them."""
        self.done.add(pod_group)
        seconds, full = subsets.seconds.copy(), len(subsets.seconds) - 1
        for split in self._likeliest(subsets, current):
            if self.search.stop():
                break
            for subset in (split, full & ~split):
                if (pod_group, subset) not in self._rings and subset:
                    seconds[subset] = self._improve(pod_group, subsets, subset)
        return replace(subsets, seconds=seconds)

    def _likeliest(self, subsets: Subsets, current: Round) -> list[int]:
        """Return the splits that are nearest to fit into the round, each as its second group."""
        caps = np.maximum(current.communication_s.max(0), 1e-9)
        alone = points_of([splits_of(subsets, False)])
        excess = np.maximum(alone.first_s / caps[0], alone.second_s / caps[1])
        return [int(alone.subset[at]) for at in np.argsort(excess, kind="stable")[:SPLITS]]

    def _improve(self, pod_group: int, subsets: Subsets, subset: int) -> float:
        table = self.search.table
        chosen = table.chosen(pod_group, list(subsets.members(subset)))
        seconds, laps = better_rings(table.load(pod_group), chosen, table.fabric)
        rings = {}
        for n in subsets.members(subset):
            lap = laps[table.place[n]]
            if (lap >= 0).any():
                rings[n] = from_lowest(lap[lap >= 0])
        self._rings[pod_group, subset] = rings
        return float(seconds)

    def of(self, subsets: list[Subsets], chosen: list[int]) -> dict[int, Ring]:
        """Return the rings of the chosen second groups and of the rest, where they have any of their own."""
        rings: dict[int, Ring] = {}
        for g, second in enumerate(chosen):
            first = len(subsets[g].seconds) - 1 & ~second
            for subset in (first, second):
                rings |= self._rings.get((g, subset), {})
        return rings
