"""Plans passed from longer delays to shorter ones: the order of a slow switch is an order for a faster one.

For fixed orders at devices, ports and switches no start grows if the delay shrinks, so that a plan
that was found for one delay bounds what planning needs for every shorter one from above.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from topox_core.fabrics.run import Chosen, FabricRequest, FabricRun, JobRequest
from topox_core.fabrics.scheduled import planned_run
from topox_core.model.execution import Circuits, Execution
from topox_core.model.transfer_graph import FloatArray, Lowering
from topox_core.schedule.bounds.circuit_bound import circuit_bound
from topox_core.schedule.bounds.unrounded import Bound
from topox_core.schedule.replay import replayed_on_circuits
from topox_core.schedule.result import MET, ClassBound, Result, TracePoint
from topox_core.schedule.source import LOADS, TraceSource
from topox_core.text.numbers import delay_label


@dataclass(frozen=True)
class PassedPlan:
    """A schedule that switches, found for one delay, without its graph: how it was lowered is enough to have it again."""

    delay_ms: float
    lowering: Lowering
    start_ms: FloatArray
    end_ms: FloatArray
    circuits: Circuits

    @staticmethod
    def of(run: FabricRun) -> PassedPlan | None:
        """Return the plan of a scheduled iteration; None where its circuits stay fixed."""
        execution = run.execution
        if run.result is None or run.result.switching == "fixed":
            return None
        return PassedPlan(
            execution.cluster.reconfiguration_ms,
            execution.graph.lowering,
            execution.start_ms,
            execution.end_ms,
            execution.circuits,
        )

    def on(self, job: JobRequest) -> tuple[FabricRequest, Execution]:
        """Return the job lowered as the plan was, and the plan carried out on its cluster.

        On slots the plan stays as it is: it keeps to a delay that is no longer than its own.
        """
        request = job.lowered(self.lowering)
        slow = job.cluster.changed(reconfiguration_ms=self.delay_ms)
        planned = Execution(request.graph, slow, self.start_ms, self.end_ms, self.circuits)
        if job.settings.on_slots:
            return request, replace(planned, cluster=job.cluster)
        exclusive = job.settings.exclusive_devices
        return request, replayed_on_circuits(planned, job.cluster, exclusive)


@dataclass(frozen=True)
class Passed:
    """A plan carried out at a shorter delay, and a bound on every schedule that switches and is lowered so."""

    plan: PassedPlan
    execution: Execution
    bound: Bound


def best_passed(
    job: JobRequest, plans: Iterable[PassedPlan], than_ms: float = float("inf")
) -> Passed | None:
    """Return the best of the plans for longer delays on a job's cluster; None if none is shorter than ``than_ms``.

    Parameters
    ----------
    job
        What was planned; only the delay of its cluster differs.
    plans
        Those for the same or a shorter delay are left out.
    """
    best, best_ms = None, than_ms * (1 - 1e-9)
    for plan in plans:
        if plan.delay_ms > job.cluster.reconfiguration_ms:
            request, execution = plan.on(job)
            if execution.makespan_ms < best_ms:
                best, best_ms = (plan, request, execution), execution.makespan_ms
    if best is None:
        return None
    plan, request, execution = best
    bound = circuit_bound(request.graph, request.cluster, request.settings.exclusive_devices)
    return Passed(plan, execution, bound)


def with_passed_plans(job: JobRequest, run: FabricRun, plans: Iterable[PassedPlan]) -> FabricRun:
    """Return the scheduled run, or that of the best plan for a longer delay where it is shorter."""
    passed = best_passed(job, plans, run.iteration_ms)
    if passed is None or run.result is None:
        return run
    lowering = passed.plan.lowering
    chosen = None if run.chosen is None else Chosen(lowering, run.chosen.free)
    return replace(planned_run(_result(run.result, passed)), chosen=chosen)


def _result(before: Result, passed: Passed) -> Result:
    """Return the result of a plan that was passed on; its bound holds for the way in which it is lowered."""
    makespan_ms = passed.execution.makespan_ms
    classes = tuple(_with_passed(one, before, passed) for one in before.classes)
    bound_ms = min(one.bound_ms for one in classes)
    proved = makespan_ms <= bound_ms * (1 + MET)
    source = TraceSource("controllers", f"the plan for {delay_label(passed.plan.delay_ms)}")
    return replace(
        before,
        status="optimal" if proved else "feasible",
        stopped_by="proof" if proved else before.stopped_by,
        makespan_ms=makespan_ms,
        bound_ms=bound_ms,
        bound_by=before.bound_by if bound_ms == before.bound_ms else passed.bound.text,
        unrounded_bound_ms=min(before.unrounded_bound_ms, bound_ms),
        execution=passed.execution,
        settings=replace(before.settings, lowering=passed.plan.lowering),
        switching="planned",
        classes=classes,
        alternative=None,
        trace=(*before.trace, TracePoint(before.wall_s, makespan_ms, bound_ms, source, LOADS)),
    )


def _with_passed(known: ClassBound, before: Result, passed: Passed) -> ClassBound:
    """Return what is known of a class once a plan was passed on; its bound holds for the way in which the plan is lowered."""
    if not known.changes_circuits:
        return known
    same = passed.plan.lowering == (before.alternative or before).settings.lowering
    makespan_ms = passed.execution.makespan_ms
    return replace(
        known,
        best_ms=makespan_ms,
        bound_ms=min(known.bound_ms if same else passed.bound.ms, makespan_ms),
    )


def rounding_ms(result: Result) -> float:
    """Return what slots add to a schedule that switches: how much sooner its orders end on continuous time."""
    execution = result.execution
    if execution is None or not result.settings.on_slots or result.settings.circuits == "per-slot":
        return 0.0
    exclusive = result.settings.exclusive_devices
    carried_out = replayed_on_circuits(execution, execution.cluster, exclusive)
    return max(0.0, execution.makespan_ms - carried_out.makespan_ms)
