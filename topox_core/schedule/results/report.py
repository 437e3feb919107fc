"""From a plan to a result: ticks to milliseconds, bookings to circuits, the gap to a status word."""

from dataclasses import replace

from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.planning.continuous import ContinuousPlans
from topox_core.schedule.planning.planner import Prepared, SchedulePlan
from topox_core.schedule.problem import Problem
from topox_core.schedule.results.result import MET, ClassBound, Result, TracePoint
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import StoppedBy


def to_result(
    prepared: Prepared,
    plan: SchedulePlan,
    bound: int,
    bound_by: str,
    stopped_by: StoppedBy,
    trace: tuple[TracePoint, ...],
    wall_s: float,
    message: str = "",
) -> Result:
    """Return the one result object for a plan on slots with its bound (ticks)."""
    reduction = prepared.reduction
    problem = reduction.problem
    if bound > plan.makespan:
        raise RuntimeError(
            f"a bound of {bound} ticks contradicts a schedule of {plan.makespan}: one of the two is wrong"
        )
    return Result(
        status="optimal" if plan.makespan <= bound else "feasible",
        engine=prepared.settings.engine,
        stopped_by=stopped_by,
        makespan_ms=problem.ms(plan.makespan),
        bound_ms=problem.ms(bound),
        bound_by=bound_by,
        unrounded_bound_ms=round(reduction.unrounded_bound_ms, 9),
        wall_s=wall_s,
        slot_ms=problem.tick_ms if prepared.cluster is None else prepared.cluster.slot_ms,
        tick_ms=problem.tick_ms,
        rounding=round(reduction.rounding, 9),
        settings=replace(prepared.settings, clock="slots"),
        execution=prepared.execution(plan),
        trace=trace,
        message=message,
        classes=(ClassBound(True, problem.ms(plan.makespan), problem.ms(bound)),),
    )


def to_continuous_result(
    plans: ContinuousPlans,
    stopped_by: StoppedBy,
    trace: tuple[TracePoint, ...],
    wall_s: float,
    message: str = "",
) -> Result:
    """Return the one result object for the best iteration on continuous time."""
    prepared, best, bound, slotted = plans.prepared, plans.best, plans.bound, plans.slotted
    assert best is not None
    assert slotted is not None
    reduction, makespan_ms = prepared.reduction, best.makespan_ms
    bound_ms = bound.ms
    if bound_ms > makespan_ms:
        if bound_ms > makespan_ms * (1 + MET):
            raise RuntimeError(
                f"a bound of {bound_ms} ms contradicts a schedule of {makespan_ms} ms: one of the two is wrong"
            )
        bound_ms = makespan_ms  # the two add the same numbers up in another order
    proved = makespan_ms <= bound_ms * (1 + MET)
    return Result(
        status="optimal" if proved else "feasible",
        engine=prepared.settings.engine,
        stopped_by="proof" if proved else stopped_by,
        makespan_ms=makespan_ms,
        bound_ms=bound_ms,
        bound_by=bound.text,
        unrounded_bound_ms=bound_ms,
        wall_s=wall_s,
        slot_ms=reduction.problem.tick_ms * reduction.problem.ticks_per_slot,
        tick_ms=reduction.problem.tick_ms,
        rounding=0.0,
        settings=prepared.settings,
        execution=best.execution,
        trace=trace,
        message=message,
        slotted_ms=reduction.problem.ms(slotted.makespan),
        bound_slotted_ms=reduction.problem.ms(reduction.bound.ticks),
        planned_slot_ms=best.planned_slot_ms,
        switching=best.switching,
        classes=(ClassBound(True, makespan_ms, bound_ms),),
    )


def infeasible(problem: Problem, settings: Settings, reason: str) -> Result:
    """Return the result for a problem without any schedule."""
    bound = best_bound(problem, 0)
    bound_ms = problem.ms(bound.ticks)
    return Result(
        status="infeasible",
        engine=settings.engine,
        stopped_by="proof",
        makespan_ms=None,
        bound_ms=bound_ms,
        bound_by=bound.text,
        unrounded_bound_ms=bound_ms,
        wall_s=0.0,
        slot_ms=problem.tick_ms,
        tick_ms=problem.tick_ms,
        rounding=0.0,
        settings=settings,
        execution=None,
        message=reason,
    )
