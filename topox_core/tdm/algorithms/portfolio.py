"""The shortest round of all methods that keep one barrier: what the best answer on the page is."""

from __future__ import annotations

from dataclasses import replace

from topox_core.errors import InputError
from topox_core.runs.stopping import Stop
from topox_core.tdm.algorithms.combination import Combination
from topox_core.tdm.algorithms.decomposition import combined
from topox_core.tdm.algorithms.extended import Search, ignore, shortest
from topox_core.tdm.algorithms.restarts import annealing, multi_start
from topox_core.tdm.algorithms.ring_search import with_better_rings
from topox_core.tdm.algorithms.splits import all_subsets_of
from topox_core.tdm.exact.milp import BOUND_BY as PROOF_BY
from topox_core.tdm.exact.milp import BOUND_FOR_ALL_TRAIN, TOLERANCE, prove, refuse_if_too_large
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import OnMoment, Round, TdmSettings

# Columns up to which the exact model is worth its time beside the others.
SMALL_COLUMNS = 2_500


def best_of_all(jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnMoment) -> Round:
    """Return the shortest round with two groups, one barrier for all pod groups, and all-train phases where they help.

    In this order: hill climbing, best grouping, all-train phases, load-aware rings; multi-start and
    annealing where jobs had to be bundled; the exact model with all-train phases where it is small.
    Barriers for each pod group and three groups change what jobs must agree on, and are not among
    them.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk, however the jobs are grouped.
    """
    search = Search("best", jobs, settings, stop, on_moment)
    start = search.start()
    known = (
        None
        if start is None
        else search.round(start.group, all_train=True, source="all-train phases")
    )
    best = shortest(start, known)
    bound_s, bound_by, bound_for, message = 0.0, "", "", ""
    subsets = all_subsets_of(search.table, search.stop)
    if subsets is None:
        return search.answer(
            best or search.too_few_ports(), message="Stopped before all methods had their turn."
        )
    try:
        combination = Combination(search, subsets)
        message = combination.message
        found = combined(search, combination, known, True)
        best = shortest(best, with_better_rings(search, combination, found, True))
    except InputError:
        if best is not None:
            raise
    if start is not None and best is not None and message:  # both begin with hill climbing
        for method in (multi_start, annealing):
            other = method(jobs, replace(settings, time_limit_s=search.left_s), stop, ignore)
            best = shortest(best, search.round(other.group, all_train=True, source=other.algorithm))
    if not search.stop() and _small(search):
        best, bound_s = prove(search, best, True)
        bound_by, bound_for = PROOF_BY, BOUND_FOR_ALL_TRAIN
        if bound_s < best.round_s * (1 - TOLERANCE):
            message = "Stopped before the proof: the optimum is between bound and round."
    best = best or search.too_few_ports()
    answer = search.answer(
        best, bound_s=bound_s, bound_by=bound_by, bound_for=bound_for, message=message
    )
    return replace(answer, message="") if answer.status == "optimal" else answer


def _small(search: Search) -> bool:
    try:
        refuse_if_too_large(search.jobs, search.settings, SMALL_COLUMNS)
    except InputError:
        return False
    return True
