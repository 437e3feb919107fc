"""Exact searches pod group by pod group: no job crosses pod groups, which meet only at their barrier.

With Algorithm 3's rings the best round is found, not approached: of each pod group all splits are
worked out, and :mod:`topox_core.tdm.algorithms.combination` finds the best combination. Large pod
groups have their smallest jobs bundled first.

Algorithm 3 looks only at which pairs have a link anyway. Rings that know the load are changed while
the stage gets shorter, in the pod group that a round waits for; its best splits are measured again
with such rings, and all pod groups are combined anew.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from topox_core.tdm.algorithms.combination import (
    Combination,
    Subsets,
    all_splits,
    points_of,
    splits_of,
)
from topox_core.tdm.algorithms.hill_climbing import annealed, start_of
from topox_core.tdm.kernels.grouping import best_alone, three_windows
from topox_core.tdm.kernels.ring_moves import better_rings
from topox_core.tdm.model.jobs import DRAFT, SAME, Round, RoundBound, RoundForm
from topox_core.tdm.model.traffic import Ring, from_lowest
from topox_core.tdm.search import Search, shortest

ALL_TRAIN = RoundForm(all_train=True)
OWN_BARRIERS = RoundForm(per_pod_group=True)
THREE_GROUPS = RoundForm(groups=3, all_train=True, per_pod_group=True)
OUT_OF_TIME = "Stopped before all splits were tried: this is the round of "
# Splits of a pod group that are measured with rings of their own, the likeliest first.
SPLITS = 60
MAX_POD_GROUPS = 12


# What makes a round of all splits, given hill climbing's where there is one.
Find = Callable[[Search, Combination, Round | None], Round]


def by_splits(search: Search, find: Find, form: RoundForm = DRAFT) -> Round:
    """Return what is found of all splits; if stopped before they are worked out hill climbing's round in a form."""
    start, combination = start_of(search), all_splits(search)
    if combination is not None:
        return find(search, combination, start)
    if start is None:
        return search.answer(search.all_at_once(), message=OUT_OF_TIME + "all jobs in one group.")
    return search.answer(search.round(start.group, form), message=OUT_OF_TIME + "hill climbing.")


def combined(
    search: Search, combination: Combination, start: Round | None, form: RoundForm = DRAFT
) -> Round:
    """Return the best round behind one barrier out of all splits; ``start`` if that is shorter.

    With phases in which all train never longer than without.
    Where jobs are bundled, annealing moves them one by one, and all splits of bundles within its groups
    follow. With all-train phases the best round without them comes first.
    """
    bundled = combination.message
    if form.all_train:
        start = combined(search, combination, start) if bundled else start
        if start is not None:
            start = search.round(start.group, form, source="all-train phases")
    result, bound_s = _best_split(search, combination, start, form)
    if bundled:
        bound_s = combination.bound_s(form.all_train)
    if bundled and result.round_s > bound_s * (1 + SAME):
        result = shortest(result, annealed(search, start or result)) or result
        combination.rebundle(result.group)
        result, _ = _best_split(search, combination, result, form)
    return _answer(search, result, bound_s, form, bundled)


def _best_split(
    search: Search, combination: Combination, known: Round | None, form: RoundForm
) -> tuple[Round, float]:
    """Return the best round out of all splits, or the known one if that is shorter, and what no split is below."""
    chosen, bound_s = combination.best(form.all_train)
    result = None
    if chosen:
        result = search.round(combination.group(chosen), form, source="all splits")
    return shortest(result, known) or search.all_at_once(), bound_s


def _answer(search: Search, result: Round, bound_s: float, form: RoundForm, bundled: str) -> Round:
    """Return the answer; that jobs were bundled is worth saying only where it may have cost something."""
    rounds = f"{form.words}, rings of Algorithm 3"
    bound = RoundBound(bound_s, "all splits of every pod group", rounds)
    answer = search.answer(result, bound, message=bundled)
    return replace(answer, message="") if answer.status == "optimal" else answer


def barrier_per_pod_group(search: Search, combination: Combination, start: Round | None) -> Round:
    """Return the best two-group round of every pod group by itself.

    None is longer than behind one barrier.
    """
    result = _alone(search, combination, start, OWN_BARRIERS)
    return result or search.answer(search.all_at_once())


def _alone(
    search: Search, combination: Combination, start: Round | None, form: RoundForm
) -> Round | None:
    """Return the better, for each pod group, of its best split and its part of one barrier's.

    None if none fits.
    """
    bundled, inside = combination.message, search.settings.reading.delay_inside
    if bundled:
        start = combined(search, combination, start)
    points, group, bound_s = combination.points, [0] * len(search.jobs), 0.0
    known = None if start is None else search.round(start.group, form, source="one barrier")
    for g, subsets in enumerate(combination.subsets):
        seconds, at = best_alone(points, g, search.dark_s, inside, form.all_train)
        if at < 0:
            return None if known is None else search.answer(known)
        bound_s = bound_s if subsets.bundled else max(bound_s, seconds)
        for n in subsets.members(int(points.subset[at])):
            group[n] = 1
    result = _better_each(search, search.round(group, form, source="all splits"), known)
    return _answer(search, result, bound_s, form, bundled)


def three_groups(search: Search, combination: Combination, start: Round | None) -> Round:
    """Return rounds of three windows, all-train phases and a barrier for each pod group, best for Algorithm 3's rings.

    Three windows may stay empty, and all-train phases never lengthen a round, so that no pod
    group's round is longer than with two groups (:func:`barrier_per_pod_group`).
    """
    bundled = combination.message
    two = _alone(search, combination, start, replace(OWN_BARRIERS, all_train=True))
    fallback = None
    if two is not None:
        fallback = search.round(two.group, THREE_GROUPS, source="two groups")
    group = [0] * len(search.jobs) if two is None else list(two.group)
    bound_s = 0.0
    for subsets in combination.subsets:
        if search.stop():
            message = "Stopped before all ways of three groups were tried."
            return search.answer(fallback or search.all_at_once(), message=message)
        seconds, first, second = three_windows(subsets.seconds, subsets.computing_s)
        if seconds == np.inf:  # of these bundles none fits
            continue
        bound_s = bound_s if subsets.bundled else max(bound_s, seconds)
        third = len(subsets.seconds) - 1 & ~(first | second)
        for k, subset in enumerate((first, second, third)):
            for n in subsets.members(int(subset)):
                group[n] = k
    result = search.round(group, THREE_GROUPS, source="all ways of three")
    result = _better_each(search, result, fallback)
    return _answer(search, result, bound_s, THREE_GROUPS, bundled)


def _better_each(search: Search, one: Round, other: Round | None) -> Round:
    """Return, of two rounds with a barrier for each pod group, the better one in each."""
    if other is None:
        return one
    group = list(one.group)
    for g, members in enumerate(search.table.members):
        if other.cycle_of(g).round_s < one.cycle_of(g).round_s:
            for n in members:
                group[n] = other.group[n]
    if group == list(one.group):
        return one
    return search.round(group, one.form, source="the better of both")


def load_aware_rings(search: Search, combination: Combination, start: Round | None) -> Round:
    """Return the best grouping's round with better rings where it waits.

    Never longer than with Algorithm 3's.
    """
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
        chosen, _ = combination.best(form.all_train)
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
        excess = (alone.talk_s / caps[:, None]).max(0)
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
