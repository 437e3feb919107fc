"""What a solve finds before any exact engine runs, while the engine loads: most solves of small problems end here."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.runs.stopping import AfterSeconds
from topox_core.schedule.bounds.root_bounds import raise_bounds
from topox_core.schedule.engines.best_known import initially_known
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.planner import Planner, SchedulePlan, keeping_reduced
from topox_core.schedule.search.local_search import LocalSearch, Pace
from topox_core.schedule.source import HEADS_AND_TAILS, LOADS, TraceSource

ROOT_TASKS = 600  # up to so many tasks bounds are raised by propagation
ROOT_S, ROOT_SEARCH_S = 0.2, 0.05


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
    stop = AfterSeconds(min(ROOT_SEARCH_S, limits.time_limit_s))
    search = LocalSearch(search_planner or planner, plan, limits.seed)
    pace = Pace(ROOT_SEARCH_S / 5)
    while not stop() and not search.finished:
        pace.timed(search.go_on)
    if search.cost < (
        plan.makespan if planner.ports is not None else plan.reduced_makespan,
        plan.changes,
    ):
        searched_plan = search.best_plan()
        plan = keeping_reduced(searched_plan, plan) if searched_plan.cost < plan.cost else plan
    if planner.problem.n > ROOT_TASKS or plan.reduced_makespan <= bound:
        return RootPhase(plan, bound, bound_by, source, search_planner)
    known = initially_known(
        planner.problem,
        Limits(min(ROOT_S, limits.time_limit_s), bound=bound, start=plan.reduced_start),
    )
    raise_bounds(planner.problem, 1, known, AfterSeconds(min(ROOT_S, limits.time_limit_s)))
    return RootPhase(
        plan,
        max(bound, known.bound),
        known.bound_by or bound_by,
        known.bound_source or source,
        search_planner,
    )
