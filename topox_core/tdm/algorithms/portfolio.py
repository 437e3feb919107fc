"""Answers that several methods make together: the best of all, and the exact optimum."""

from __future__ import annotations

from dataclasses import replace

from topox_core.errors import wrong_setting
from topox_core.tdm.algorithms.combination import all_splits
from topox_core.tdm.algorithms.decomposition import ALL_TRAIN, combined
from topox_core.tdm.algorithms.hill_climbing import start_of
from topox_core.tdm.algorithms.restarts import annealing, multi_start
from topox_core.tdm.algorithms.ring_search import with_better_rings
from topox_core.tdm.exact.milp import UNPROVED, prove, too_large
from topox_core.tdm.model.round import Round
from topox_core.tdm.model.traffic import TooFewPortsError
from topox_core.tdm.search import Search, shortest

# Columns up to which the exact model is worth its time beside the others.
SMALL_COLUMNS = 2_500


def best_of_all(search: Search) -> Round:
    """Return the shortest round with two groups, one barrier for all pod groups, and all-train phases where they help.

    In this order: hill climbing, best grouping, all-train phases, load-aware rings; multi-start and
    annealing where jobs had to be bundled; the exact model with all-train phases where it is small.
    Barriers for each pod group and three groups change what jobs must agree on, and are not among
    them.
    """
    start = start_of(search)
    known = start and search.round(start.group, ALL_TRAIN, source="all-train phases")
    best, bound, message = shortest(start, known), None, ""
    combination = all_splits(search)
    if combination is None:
        message = "Stopped before all methods had their turn."
        return search.answer(best or search.all_at_once(), message=message)
    message = combination.message
    try:
        result = combined(search, combination, known, ALL_TRAIN)
        best = shortest(best, with_better_rings(search, combination, result, ALL_TRAIN))
    except TooFewPortsError:
        if best is not None:
            raise
    if start is not None and message:  # both begin with hill climbing
        for algorithm, method in (("multi-start", multi_start), ("annealing", annealing)):
            group = method(search.nested(algorithm)).group
            best = shortest(best, search.round(group, ALL_TRAIN, source=algorithm))
    if not search.stop() and not too_large(search.jobs, search.settings.reading, SMALL_COLUMNS):
        best, bound, proved = prove(search, best, ALL_TRAIN)
        message = message if proved else UNPROVED
    answer = search.answer(best or search.all_at_once(), bound, message=message)
    return replace(answer, message="") if answer.status == "optimal" else answer


def exact(search: Search) -> Round:
    """Return the shortest round of all groupings, rings and links, proved if there is time enough."""
    if reason := too_large(search.jobs, search.settings.reading):
        raise wrong_setting("algorithm", f"{reason}: use best-grouping")
    start, combination = start_of(search), all_splits(search)
    if combination is not None:
        try:
            start = shortest(start, combined(search, combination, start))
        except TooFewPortsError:
            start = None  # no rings of Algorithm 3 fit, others may
    result, bound, proved = prove(search, start)
    return search.answer(
        result,
        bound,
        stopped_by=search.stop_reason or "time_limit",
        message="" if proved else UNPROVED,
    )
