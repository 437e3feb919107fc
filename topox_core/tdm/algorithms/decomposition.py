"""Exact searches pod group by pod group: no job crosses pod groups, which meet only at their barrier.

With Algorithm 3's rings the best round is found, not approached: of each pod group all splits are
worked out, and :mod:`topox_core.tdm.algorithms.caps` finds the best combination. Large pod groups have their
smallest jobs bundled first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topox_core.runs.stopping import Stop
from topox_core.tdm.algorithms.combination import Combination
from topox_core.tdm.algorithms.extended import Search, shortest
from topox_core.tdm.algorithms.splits import all_subsets_of
from topox_core.tdm.kernels.grouping import best_alone, three_windows
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import OnMoment, Round, TdmSettings

GIVEN_RINGS = "two groups, rings of Algorithm 3"
ALL_TRAIN = "two groups and all-train phases, rings of Algorithm 3"
OWN_BARRIERS = "two groups and a barrier for each pod group, rings of Algorithm 3"
THREE_GROUPS = "three groups and a barrier for each pod group, rings of Algorithm 3"
BOUND_BY = "all splits of every pod group"
OUT_OF_TIME = "Stopped before all splits were worked out: this is the round of "


def best_grouping(jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnMoment) -> Round:
    """Return the best two-group round for the rings of Algorithm 3; never longer than hill climbing's.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk, however the jobs are grouped.
    """
    return _one_barrier(Search("best-grouping", jobs, settings, stop, on_moment), False)


def with_all_train(jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnMoment) -> Round:
    """Return the best round with phases in which all train; never longer than :func:`best_grouping`'s.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk, however the jobs are grouped.
    """
    return _one_barrier(Search("all-train", jobs, settings, stop, on_moment), True)


def _one_barrier(search: Search, all_train: bool) -> Round:
    start = search.start()
    subsets = all_subsets_of(search.table, search.stop)
    if subsets is None:
        known = (
            start if start is None or not all_train else search.round(start.group, all_train=True)
        )
        return _unfinished(search, known)
    return combined(search, Combination(search, subsets), start, all_train)


def combined(
    search: Search, combination: Combination, start: Round | None, all_train: bool
) -> Round:
    """Return the best round behind one barrier out of all splits; ``start`` if that is shorter.

    With all-train phases the best round without them comes first.
    """
    if all_train:
        start = combined(search, combination, start, False) if combination.message else start
        start = (
            None
            if start is None
            else search.round(start.group, all_train=True, source="all-train phases")
        )
    bundled = combination.message
    best, chosen = combination.best(all_train)
    bound_s = combination.bound_s(all_train) if bundled else best.bound_s
    found = (
        search.round(combination.group(chosen), all_train=all_train, source="all splits")
        if chosen
        else None
    )
    found = shortest(found, start) or search.too_few_ports()
    if bundled:
        group = combination.rebundle(found.group, all_train)
        found = (
            shortest(found, search.round(group, all_train=all_train, source="other bundles"))
            or found
        )
    return _told(search, found, bound_s, ALL_TRAIN if all_train else GIVEN_RINGS, bundled)


def _told(search: Search, found: Round, bound_s: float, bound_for: str, bundled: str) -> Round:
    """Return the answer; that jobs were bundled is worth saying only where it may have cost something."""
    answer = search.answer(
        found, bound_s=bound_s, bound_by=BOUND_BY, bound_for=bound_for, message=bundled
    )
    return replace(answer, message="") if answer.status == "optimal" else answer


def _unfinished(search: Search, start: Round | None) -> Round:
    if start is None:
        return search.answer(search.too_few_ports(), message=OUT_OF_TIME + "all jobs in one group.")
    return search.answer(start, message=OUT_OF_TIME + "hill climbing.")


def barrier_per_pod_group(
    jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnMoment
) -> Round:
    """Return the best two-group round of every pod group by itself; none is longer than behind one barrier.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk, however the jobs are grouped.
    """
    search = Search("barrier-per-pod-group", jobs, settings, stop, on_moment)
    start = search.start()
    subsets = all_subsets_of(search.table, search.stop)
    if subsets is None:
        return _unfinished(
            search, None if start is None else search.round(start.group, barrier="pod_group")
        )
    return _alone(search, Combination(search, subsets), start, False) or search.answer(
        search.too_few_ports()
    )


def _alone(
    search: Search, combination: Combination, start: Round | None, all_train: bool
) -> Round | None:
    """Choose for each pod group the better of its best split and what it does with one barrier for all; None if none fits."""
    points, subsets, bundled = combination.points, list(combination.subsets), combination.message
    if bundled:
        start = combined(search, combination, start, False)
    group = [0] * len(search.jobs)
    bound_s = 0.0
    known = None
    if start is not None:
        known = search.round(
            start.group, all_train=all_train, barrier="pod_group", source="one barrier"
        )
    for g, of_pod_group in enumerate(subsets):
        seconds, at = best_alone(
            points, g, search.dark_s, search.settings.reading.delay_inside, all_train
        )
        if at < 0:
            return None if known is None else search.answer(known)
        bound_s = bound_s if of_pod_group.bundled else max(bound_s, seconds)
        if known is not None and known.cycle_of(g).round_s < seconds:
            for n in search.table.members[g]:
                group[n] = known.group[n]
        else:
            for n in of_pod_group.members(int(points.subset[at])):
                group[n] = 1
    found = search.round(group, all_train=all_train, barrier="pod_group", source="all splits")
    return _told(search, found, bound_s, OWN_BARRIERS, bundled)


def three_groups(jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnMoment) -> Round:
    """Return rounds of three windows, all-train phases and a barrier for each pod group, best for Algorithm 3's rings.

    Three windows may stay empty, and all-train phases never lengthen a round, so that no pod
    group's round is longer than with two groups (:func:`barrier_per_pod_group`).

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk, however the jobs are grouped.
    """
    search = Search("three-groups", jobs, settings, stop, on_moment)
    start = search.start()
    subsets = all_subsets_of(search.table, search.stop)
    if subsets is None:
        known = (
            None
            if start is None
            else search.round(start.group, groups=3, all_train=True, barrier="pod_group")
        )
        return _unfinished(search, known)
    combination = Combination(search, subsets)
    bundled = combination.message
    two = _alone(search, combination, start, True)
    fallback = None
    if two is not None:
        fallback = search.round(
            two.group, groups=3, all_train=True, barrier="pod_group", source="two groups"
        )
    group = [0] * len(jobs) if two is None else list(two.group)
    bound_s = 0.0
    for of_pod_group in subsets:
        if search.stop():
            message = "Stopped before all ways of three groups were worked out."
            return search.answer(fallback or search.too_few_ports(), message=message)
        seconds, first, second = three_windows(
            of_pod_group.seconds, of_pod_group.train_s, of_pod_group.between_s
        )
        if seconds == np.inf:  # of these bundles none fits
            continue
        bound_s = bound_s if of_pod_group.bundled else max(bound_s, seconds)
        third = len(of_pod_group.seconds) - 1 & ~(first | second)
        for k, subset in enumerate((first, second, third)):
            for n in of_pod_group.members(int(subset)):
                group[n] = k
    found = search.round(
        group, groups=3, all_train=True, barrier="pod_group", source="all ways of three"
    )
    mixed = found if fallback is None else _better_each(search, found, fallback)
    return _told(search, mixed, bound_s, THREE_GROUPS, bundled)


def _better_each(search: Search, found: Round, fallback: Round) -> Round:
    """Return, of two rounds with barriers of their own, the better one for each pod group."""
    worse = [
        g
        for g in range(len(search.table.members))
        if fallback.cycle_of(g).round_s < found.cycle_of(g).round_s
    ]
    if not worse:
        return found
    group = np.array(found.group)
    for g in worse:
        members = list(search.table.members[g])
        group[members] = np.array(fallback.group)[members]
    return search.round(
        group.tolist(), groups=3, all_train=True, barrier="pod_group", source="the better of both"
    )
