"""The calls of a map, each made in a worker process: one cell, or the plans of one column passed on."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import lru_cache

from topox_core.errors import InputError
from topox_core.fabrics.compare import run_freely
from topox_core.fabrics.passed_plans import PassedPlan, best_passed, rounding_ms
from topox_core.fabrics.registry import PAYS_DELAY
from topox_core.fabrics.run import FabricOptions, FabricRun, JobRequest
from topox_core.fabrics.sweep import By, Cell, CellResult, Column, ColumnResult, at_point
from topox_core.fabrics.winner import MapOutcome
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.settings import Settings

# In a worker process: the job that was unpacked last, by its digest.
_unpacked: dict[str, tuple[TaskGraph, Cluster, Settings, tuple[str, ...], FabricOptions, By]] = {}


def run_call(digest: str, packed: bytes, call: Cell | Column) -> CellResult | ColumnResult:
    """Make one call of a map, whose job is unpacked once."""
    if digest not in _unpacked:
        _unpacked.clear()
        _unpacked[digest] = pickle.loads(packed)
    return _run_cell(digest, call) if isinstance(call, Cell) else _pass_on(digest, call)


def _job(digest: str, value: float, delay_ms: float | None) -> JobRequest:
    graph, cluster, settings, _, options, by = _unpacked[digest]
    return JobRequest(graph, at_point(cluster, by, value, delay_ms or 0.0), settings, options)


def _run_cell(digest: str, cell: Cell) -> CellResult:
    """Run one cell; why a fabric cannot run stands beside the others' outcomes."""
    fabrics, paying = _unpacked[digest][3], cell.delay_ms is not None
    job = _job(digest, cell.value, cell.delay_ms)
    outcomes: dict[str, MapOutcome] = {}
    failed: dict[str, str] = {}
    runs: dict[str, FabricRun] = {}
    if paying and "scheduled" in fabrics and (fixed := _static(digest, cell.value)) is not None:
        runs["static"] = fixed
    for name in fabrics:
        if (name in PAYS_DELAY) != paying:
            continue
        try:
            run = runs[name] = run_freely(name, replace(job, runs=runs))
        except InputError as error:
            failed[name] = str(error)
            continue
        outcomes[name] = _outcome(run)
    plan = PassedPlan.of(runs["scheduled"]) if "scheduled" in runs else None
    return CellResult(outcomes, failed, plan)


@lru_cache(maxsize=8)
def _static(digest: str, value: float) -> FabricRun | None:
    """Return fixed circuits, which do not depend on the delay and are among the plans at every one."""
    job = _job(digest, value, None)
    if job.settings.on_slots:
        return None
    try:
        return run_freely("static", job)
    except InputError:
        return None


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
    bound_ms = result.bound_switching_ms
    return replace(
        outcome,
        plan_ms=switched.makespan_ms,
        plan_bound_ms=switched.bound_ms if bound_ms is None else bound_ms,
        rounding_ms=rounding_ms(switched),
        keeps_fixed=result.switching == "fixed",
    )


def _pass_on(digest: str, column: Column) -> ColumnResult:
    """Carry the plans of a column out at every shorter delay, and keep what is better there."""
    better: dict[float, MapOutcome] = {}
    for delay_ms, alone in zip(column.delay_ms, column.alone, strict=True):
        job = _job(digest, column.value, delay_ms)
        passed = best_passed(job, column.plans, alone.iteration_ms)
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
