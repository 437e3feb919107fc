"""What a solve finds before any exact engine runs, while the engine loads: most solves of small problems end here."""

import threading
from dataclasses import dataclass

from topox_core.runs.cores import give_way
from topox_core.runs.stopping import AfterSeconds, Stop
from topox_core.schedule.bounds.propagation import raise_bounds
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.best_known import initially_known
from topox_core.schedule.engines.disjunctions import LEARNING_TASKS
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.planner import (
    Planner,
    SchedulePlan,
    keeping_reduced,
)
from topox_core.schedule.search.local_search import LocalSearch, Pace
from topox_core.schedule.source import HEADS_AND_TAILS, LOADS, TraceSource

ROOT_TASKS = 600  # up to so many tasks bounds are raised by propagation


# Seconds of that: where CP-SAT only learns it decides soon itself, and the sooner the earlier it starts.
ROOT_S, LEARNT_SOON_S, ROOT_SEARCH_S = 0.2, 0.1, 0.05


@dataclass(frozen=True)
class RootPhase:
    """What is known before any engine runs; ``search_planner`` has the heads and tails of ancestors (None: not made yet)."""

    plan: SchedulePlan
    bound: int
    bound_by: str
    bound_source: TraceSource
    search_planner: Planner | None


def root_phase(planner: Planner, plan: SchedulePlan, bound_by: str, limits: Limits) -> RootPhase:
    """Return what a short local search and, for small problems, bounds without a search tree give: most solves end here."""
    search_planner, bound, source = None, planner.bound, LOADS
    counts_dark = planner.ports is not None and planner.ports.ports.dark > 0
    if plan.makespan > planner.bound and (planner.problem.n <= ROOT_TASKS or counts_dark):
        search_planner, better = planner.with_ancestor_tails()
        if better is not None:
            bound, bound_by, source = better.ticks, better.text, HEADS_AND_TAILS
    search = LocalSearch(search_planner or planner, plan, limits.seed)
    _search(search, AfterSeconds(min(ROOT_SEARCH_S, limits.time_limit_s)))
    plan = _better_of(plan, search, planner)
    if planner.problem.n > ROOT_TASKS or plan.reduced_makespan <= bound:
        return RootPhase(plan, bound, bound_by, source, search_planner)
    enough = threading.Event()
    beside = threading.Thread(target=_search, args=(search, enough.is_set, True), daemon=True)
    if limits.threads > 1:
        beside.start()
    root_s = LEARNT_SOON_S if planner.problem.n < LEARNING_TASKS else ROOT_S
    root_s = min(root_s, limits.time_limit_s)
    known = initially_known(
        planner.problem, Limits(root_s, bound=bound, solution=Solution(plan.reduced_start))
    )
    raise_bounds(known, AfterSeconds(root_s))
    enough.set()
    if limits.threads > 1:
        beside.join()
    return RootPhase(
        _better_of(plan, search, planner),
        max(bound, known.bound),
        known.bound_by or bound_by,
        known.bound_source if known.bound_by else source,
        search_planner,
    )


def _search(search: LocalSearch, stop: Stop, on_another_core: bool = False) -> None:
    """Take a search forward until told to stop, in short calls."""
    if on_another_core:
        give_way()
    pace = Pace(ROOT_SEARCH_S / 5)
    while not stop() and not search.finished:
        pace.timed(search.go_on)


def _better_of(plan: SchedulePlan, search: LocalSearch, planner: Planner) -> SchedulePlan:
    """Return the plan, or the search's if that is better."""
    known = plan.makespan if planner.ports is not None else plan.reduced_makespan
    if search.cost >= (known, plan.changes):
        return plan
    searched = search.best_plan()
    return keeping_reduced(searched, plan) if searched.cost < plan.cost else plan
