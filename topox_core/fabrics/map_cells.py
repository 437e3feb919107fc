"""The calls of a map, each made in a worker process: one cell, or the plans of one column passed on."""

from __future__ import annotations

from dataclasses import replace

from topox_core.errors import InputError
from topox_core.fabrics.compare import run_freely
from topox_core.fabrics.passed_plans import PassedPlan, best_passed, rounding_ms
from topox_core.fabrics.registry import PAYS_DELAY
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.fabrics.sweep import Cell, CellResult, Column, ColumnResult, MapJob, at_point
from topox_core.fabrics.winner import MapOutcome


def run_call(job: MapJob, call: Cell | Column) -> CellResult | ColumnResult:
    """Make one call of a map."""
    return _run_cell(job, call) if isinstance(call, Cell) else _pass_on(job, call)


def _request(job: MapJob, value: float, delay_ms: float | None) -> JobRequest:
    cluster = at_point(job.cluster, job.by, value, delay_ms or 0.0)
    return JobRequest(job.task_graph, cluster, job.settings, job.options)


def _run_cell(job: MapJob, cell: Cell) -> CellResult:
    """Run one cell; why a fabric cannot run stands beside the others' outcomes."""
    paying = cell.delay_ms is not None
    request = _request(job, cell.value, cell.delay_ms)
    outcomes: dict[str, MapOutcome] = {}
    failed: dict[str, str] = {}
    runs: dict[str, FabricRun] = {}
    for name in job.fabrics:
        if (name in PAYS_DELAY) != paying:
            continue
        try:
            run = runs[name] = run_freely(name, replace(request, runs=runs))
        except InputError as error:
            failed[name] = str(error)
            continue
        outcomes[name] = _outcome(run)
    plan = PassedPlan.of(runs["scheduled"].result) if "scheduled" in runs else None
    return CellResult(outcomes, failed, plan)


def _outcome(run: FabricRun) -> MapOutcome:
    result = run.result
    outcome = MapOutcome(
        run.iteration_ms,
        run.bound_ms,
        run.circuits_changed,
        run.dark_ms,
        run.traffic.bandwidth_tax,
    )
    if result is None:
        return outcome
    switched = result.alternative or result
    if switched.switching == "fixed" or result.settings.switching == "fixed":
        return replace(outcome, keeps_fixed=True)
    return replace(
        outcome,
        plan_ms=switched.makespan_ms,
        plan_bound_ms=next(
            (one.bound_ms for one in result.classes if one.changes_circuits), switched.bound_ms
        ),
        rounding_ms=rounding_ms(switched),
        keeps_fixed=result.switching == "fixed",
    )


def _pass_on(job: MapJob, column: Column) -> ColumnResult:
    """Carry the plans of a column out at every shorter delay, and keep what is better there."""
    better: dict[float, MapOutcome] = {}
    for delay_ms, alone in zip(column.delay_ms, column.alone, strict=True):
        request = _request(job, column.value, delay_ms)
        passed = best_passed(request, column.plans, alone.iteration_ms)
        if passed is None:
            continue
        circuits, makespan_ms = passed.execution.circuits, passed.execution.makespan_ms
        bound_ms = min(alone.plan_bound_ms, passed.bound.ms, makespan_ms)
        better[delay_ms] = replace(
            alone,
            iteration_ms=makespan_ms,
            bound_ms=min(alone.bound_ms, bound_ms),
            circuits_changed=int(circuits.changed.sum()),
            dark_ms=float((circuits.start_ms - circuits.setup_ms).sum()),
            bandwidth_tax=1.0,
            plan_ms=makespan_ms,
            plan_bound_ms=bound_ms,
            keeps_fixed=False,
        )
    return ColumnResult(better)
