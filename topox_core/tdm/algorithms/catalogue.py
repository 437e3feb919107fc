"""The one entry point to every way to share the fabric, by name, with what a page says about each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Literal

import numpy as np

from topox_core.errors import wrong_setting
from topox_core.io.limits import check_one_of
from topox_core.runs.run import Stop, never
from topox_core.schema.records import wrong_fields
from topox_core.tdm.algorithms.combination import Combination, all_splits
from topox_core.tdm.algorithms.decomposition import (
    ALL_TRAIN,
    OWN_BARRIERS,
    THREE_GROUPS,
    barrier_per_pod_group,
    by_splits,
    combined,
    load_aware_rings,
    three_groups,
    with_better_rings,
)
from topox_core.tdm.algorithms.hill_climbing import annealing, hill_climb, start_of
from topox_core.tdm.exact import prove, too_large
from topox_core.tdm.model.jobs import DRAFT, Jobs, OnRoundTrace, Round, RoundForm, TdmSettings
from topox_core.tdm.model.traffic import TooFewPortsError
from topox_core.tdm.search import Algorithm, Search, shortest

# What the others are measured against, and those that a study of the gain begins with.
BASELINE = "non-tdm"
DEFAULT_ALGORITHMS = ("hill-climbing", "best-grouping", "all-train")


def together(jobs: Jobs, _seed: int = 0) -> Sequence[int]:
    """Return all jobs in one group: all push, all compute, all pull, all compute."""
    return (0,) * len(jobs)


def drawn(jobs: Jobs, seed: int) -> Sequence[int]:
    """Return groups drawn at random."""
    groups: list[int] = np.random.default_rng(seed).integers(0, 2, len(jobs)).tolist()
    return groups


def split_by_traffic(jobs: Jobs, _seed: int = 0) -> Sequence[int]:
    """Return a grouping that evens out the traffic of each pod group.

    The largest job first, each to the lighter group (longest processing time first; ties to the
    lowest index).
    """
    carried = np.zeros((jobs.network.pod_groups, 2))
    group = [0] * len(jobs)
    for n in sorted(range(len(jobs)), key=lambda n: (-jobs.jobs[n].total_gbit, n)):
        row = carried[jobs.jobs[n].pod_group]
        group[n] = int(row.argmin())
        row[group[n]] += jobs.jobs[n].total_gbit
    return tuple(group)


def grouped(
    search: Search, grouping: Callable[[Jobs, int], Sequence[int]], form: RoundForm = DRAFT
) -> Round:
    """Return the round of a grouping that a rule (or a draw) gives."""
    group = grouping(search.jobs, search.settings.seed)
    return search.answer(search.round(group, form), stopped_by="heuristic")


# Columns up to which the exact model is worth its time beside the others.
SMALL_COLUMNS = 2_500


def best_of_all(search: Search, combination: Combination, start: Round | None) -> Round:
    """Return the shortest round with two groups, one barrier for all pod groups, and all-train phases where they help.

    In this order: hill climbing, best grouping, all-train phases, load-aware rings; the exact model
    with all-train phases where it is small. Barriers for each pod group and three groups change what
    jobs must agree on, and are not among them.
    """
    best, bound, message = start, None, combination.message
    try:
        result = combined(search, combination, start, ALL_TRAIN)
        best = shortest(best, with_better_rings(search, combination, result, ALL_TRAIN))
    except TooFewPortsError:
        if best is not None:
            raise
    if not search.stop() and not too_large(search.jobs, search.settings.reading, SMALL_COLUMNS):
        best, bound, unproved = prove(search, best, ALL_TRAIN)
        message = unproved or message
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
    result, bound, message = prove(search, start)
    return search.answer(
        result, bound, stopped_by=search.stop_reason or "time_limit", message=message
    )


Family = Literal["paper", "baseline", "exact", "beyond"]


@dataclass(frozen=True)
class Entry:
    """One algorithm as a user meets it.

    Attributes
    ----------
    explanation
        One paragraph.
    extends
        The algorithm whose round it never makes longer, or None.
    """

    title: str
    explanation: str
    family: Family
    extends: str | None
    run: Algorithm


ALGORITHMS: Mapping[str, Entry] = MappingProxyType(
    {
        BASELINE: Entry(
            "No time division",
            "All jobs push together, all compute, all pull, all compute. The network idles while jobs compute, and the links "
            "of a stage must serve every job at once. All other rounds are compared with it.",
            "baseline",
            None,
            partial(grouped, grouping=together),
        ),
        "static": Entry(
            "One topology",
            "No time division, and circuits that never change: the same links serve pushing and pulling. "
            "This is the fabric with its switches used as a patch panel.",
            "baseline",
            None,
            partial(grouped, grouping=together, form=RoundForm(static=True)),
        ),
        "random": Entry(
            "Random groups",
            "The group of every job is random, from the seed: what time division gains without any search.",
            "baseline",
            None,
            partial(grouped, grouping=drawn),
        ),
        "greedy": Entry(
            "Even traffic",
            "In each pod group jobs are assigned by traffic, the largest first, each to the group with less. Even traffic is not "
            "the same as an even round: ports and computing decide, and this split sees neither.",
            "baseline",
            None,
            partial(grouped, grouping=split_by_traffic),
        ),
        "hill-climbing": Entry(
            "Hill climbing",
            "From all jobs in one group, the one job whose change of group shortens the round most changes it, as long as one "
            "does. The paper's algorithm 1, its loop corrected; links come from algorithm 2, rings from algorithm 3. "
            "It stops on plateaus: a change in a pod group that no barrier waits for gains nothing at once.",
            "paper",
            "non-tdm",
            hill_climb,
        ),
        "milp": Entry(
            "Exact model",
            "The paper's integer program without approximation: groups, rings and links together, solved by CP-SAT from the best "
            "round of the other methods. The only one that proves its round the shortest over all rings; for some ten jobs a pod "
            "group on few pods.",
            "exact",
            "best-grouping",
            exact,
        ),
        "best-grouping": Entry(
            "Best grouping",
            "The exact shortest two-group round with the rings of algorithm 3. No job crosses pod groups, so only the barrier "
            "couples them: all splits of every pod group are computed, and the best combination follows from their "
            "trade-offs in one pass. Above 14 jobs in a pod group the smallest ones are bundled, and annealing moves them one by one.",
            "beyond",
            "hill-climbing",
            partial(by_splits, find=combined),
        ),
        "all-train": Entry(
            "All-train phases",
            "Each half of the round may end in a phase in which all train and nobody communicates. In the paper's form a stage waits "
            "for the other group's training, so that a round pays for both trainings; with the phases it pays for the "
            "longer one. It helps where training outlasts communication.",
            "beyond",
            "best-grouping",
            partial(by_splits, find=partial(combined, form=ALL_TRAIN), form=ALL_TRAIN),
        ),
        "barrier-per-pod-group": Entry(
            "A barrier for each pod group",
            "No job crosses pod groups, so none needs to wait for another one's: each pod group follows a round of its own, the "
            "best one for its jobs. The longest of these rounds is no longer than with one barrier, and the mean over jobs "
            "is much shorter.",
            "beyond",
            "best-grouping",
            partial(by_splits, find=barrier_per_pod_group, form=OWN_BARRIERS),
        ),
        "three-groups": Entry(
            "Three groups",
            "Three windows per half round, a phase in which all train, and a barrier for each pod group; all assignments of "
            "jobs to windows are tried. Smaller groups leave more ports to each pair, and a job computes during two windows "
            "of others.",
            "beyond",
            "barrier-per-pod-group",
            partial(by_splits, find=three_groups, form=THREE_GROUPS),
        ),
        "load-aware-rings": Entry(
            "Load-aware rings",
            "Algorithm 3 reuses links whatever their load. In the pod groups that the round waits for, rings "
            "are changed pod by pod while the stage gets shorter, the likeliest splits are measured again with them, and all pod "
            "groups are combined anew. Kept only where better.",
            "beyond",
            "best-grouping",
            partial(by_splits, find=load_aware_rings),
        ),
        "annealing": Entry(
            "Annealing",
            "From hill climbing's round, jobs change or swap groups at random, for the worse less and less often. Every pod group "
            "counts a little, so that improving one that nobody waits for yet is no plateau. A fixed number of steps, "
            "the same round for the same seed.",
            "beyond",
            "hill-climbing",
            annealing,
        ),
        "best": Entry(
            "Best of all methods",
            "The shortest round that any method here finds in the time given, with two groups and one barrier for all. Hill climbing, "
            "best grouping, all-train phases and load-aware rings look for it, and for small cases the exact model, which then "
            "proves it. Barriers for each pod group and three groups change what the jobs must agree on: choose those by name.",
            "beyond",
            "all-train",
            partial(by_splits, find=best_of_all),
        ),
    }
)


def solve(
    jobs: Jobs, settings: TdmSettings, stop: Stop = never, on_trace: OnRoundTrace | None = None
) -> Round:
    """Return the round of the algorithm that the settings name.

    Parameters
    ----------
    stop
        Stop criterion; once it is true the best round so far is returned.
    on_trace
        Called with every better round and bound.

    Raises
    ------
    TooFewPortsError
        If ports are too few for the pairs that must talk.
    InputError
        If there is no such algorithm, a setting is out of range, or a limit of the algorithm is
        passed.
    """
    check(settings)
    search = Search(jobs, settings, stop, on_trace)
    answer = ALGORITHMS[settings.algorithm].run(search)
    return replace(answer, wall_s=search.elapsed_s)


def check(settings: TdmSettings) -> None:
    """Raise an :class:`InputError` that names the setting if one is out of range."""
    check_one_of(settings.algorithm, ALGORITHMS, file="settings", field="algorithm")
    for field, problem in wrong_fields(settings):
        raise wrong_setting(field, problem)
