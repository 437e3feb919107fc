"""Bounds of answers whose rings or algorithms were left open: they hold over every lowering that is offered."""

from __future__ import annotations

from dataclasses import replace

from topox_core.fabrics.registry import CHOOSES
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.schedule.bounds.open_bound import Way, open_bound
from topox_core.schedule.bounds.unrounded import Bound
from topox_core.schedule.result import MET, FixedCircuits, Result
from topox_core.schedule.source import LOADS

# What runs on fixed circuits and on the ideal switch; the other fabrics that choose change circuits.
WAYS: dict[str, Way] = {"static": "fixed", "static_graph": "fixed", "ideal": "packets"}


def bound_of(job: JobRequest, way: Way) -> Bound | None:
    """Return what no lowering that the settings leave open goes below; None where nothing is open."""
    return open_bound(job.task_graph, job.cluster, job.settings, way)


def standing_over_every(job: JobRequest, standing: FixedCircuits) -> FixedCircuits:
    """Return fixed circuits with a bound over every lowering."""
    bound = bound_of(job, "fixed")
    if bound is None:
        return standing
    return replace(standing, bound_ms=min(bound.ms, standing.makespan_ms), bound_by=bound.text)


def result_over_every(job: JobRequest, result: Result) -> Result:
    """Return a result whose bounds hold over every lowering; what was proved of its own lowering stays beside them."""
    if result.makespan_ms is None or not result.classes:
        return result
    ways: dict[bool, Way] = {True: "changing", False: "fixed"}
    bounds = {
        one.changes_circuits: bound_of(job, ways[one.changes_circuits]) for one in result.classes
    }
    known = {changes: bound for changes, bound in bounds.items() if bound is not None}
    if not known:
        return result
    least = min(known.values(), key=lambda bound: bound.ms)
    makespan_ms, bound_ms = result.makespan_ms, min(result.makespan_ms, least.ms)
    proved, ended = makespan_ms <= bound_ms * (1 + MET), result.stopped_by
    if ended == "proof":
        # The lowering of fixed circuits may be another one than that of the bound.
        ended = "heuristic" if result.switching == "fixed" else "lowering"
    slotted_ms, other = result.bound_slotted_ms, result.alternative
    return replace(
        result,
        status="optimal" if proved else "feasible",
        stopped_by="proof" if proved else ended,
        bound_ms=bound_ms,
        bound_by=least.text,
        bound_tasks=(),
        unrounded_bound_ms=min(result.unrounded_bound_ms, bound_ms),
        bound_slotted_ms=None if slotted_ms is None else min(slotted_ms, least.ms),
        classes=tuple(
            replace(one, bound_ms=min(known[one.changes_circuits].ms, one.best_ms or makespan_ms))
            for one in result.classes
        ),
        lowered_bound_ms=next(
            (one.bound_ms for one in result.classes if one.changes_circuits), None
        ),
        alternative=None if other is None else result_over_every(job, other),
        trace=tuple(replace(p, bound_ms=bound_ms, bound_source=LOADS) for p in result.trace),
    )


def run_over_every(name: str, job: JobRequest, run: FabricRun) -> FabricRun:
    """Return the run of a fabric that chooses for itself with a bound over every lowering that it could have chosen."""
    if run.result is not None:
        result = result_over_every(job, run.result)
        return replace(run, bound_ms=result.bound_ms, bound_by=result.bound_by, result=result)
    if name not in CHOOSES and name not in WAYS:
        return run
    bound = bound_of(job, WAYS.get(name, "changing"))
    if bound is None:
        return run
    return replace(run, bound_ms=min(bound.ms, run.iteration_ms), bound_by=bound.text)
