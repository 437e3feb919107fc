"""Plans passed from one setting to another: the order of a slow switch is an order for a faster one.

For fixed orders at devices, ports and switches no start grows if the delay or a duration shrinks, or
if ports are added, so that a plan that was found for one setting bounds what planning needs for every
easier one from above. On harder ones it may still be the best that is known.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from topox_core.fabrics.run import FabricRequest, JobRequest
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution
from topox_core.model.lowering_choices import Lowering
from topox_core.model.transfer_graph import FloatArray
from topox_core.runs.latest import Latest
from topox_core.schedule.bounds.open_bound import open_bound
from topox_core.schedule.bounds.unrounded import Bound, circuit_bound
from topox_core.schedule.planning.replay import replayed_on_circuits
from topox_core.schedule.results.result import MET, ClassBound, Result, TracePoint
from topox_core.schedule.source import LOADS, TraceSource
from topox_core.text.numbers import delay_label

# Jobs that are kept, and plans of each; the oldest make place.
MAX_JOBS, MAX_PLANS = 16, 24


@dataclass(frozen=True)
class PassedPlan:
    """A schedule that switches, found on one cluster, without its graph: how it was lowered is enough to have it again."""

    cluster: Cluster
    lowering: Lowering
    start_ms: FloatArray
    end_ms: FloatArray
    circuits: Circuits
    on_slots: bool = False

    @staticmethod
    def of(result: Result | None) -> PassedPlan | None:
        """Return the plan of a result, or the one that its fixed circuits beat; None where no circuit may change."""
        plan = None if result is None else result.alternative or result
        if plan is None or plan.switching == "fixed" or plan.execution is None:
            return None
        return replace(PassedPlan.carrying(plan.execution), on_slots=plan.settings.on_slots)

    @staticmethod
    def carrying(one: Execution) -> PassedPlan:
        """Return the plan of an execution with circuits."""
        return PassedPlan(one.cluster, one.graph.lowering, one.start_ms, one.end_ms, one.circuits)

    def serves(self, job: JobRequest) -> bool:
        """Whether the plan can be carried out on the cluster of a job: another one that lacks none of its ports.

        On slots, where it stays as it is, it must be on them, and nothing may take longer either. A job whose
        circuits are to be provisioned or fixed takes no plan of another one.
        """
        if job.settings.switching not in ("auto", "planned"):
            return False
        own, other = self.cluster, job.cluster
        each, others = (one.ports_per_server // one.switches for one in (own, other))
        lacks_none = (
            (own.servers, own.duplex, own.devices_per_server)
            == (other.servers, other.duplex, other.devices_per_server)
            and other.switches >= own.switches
            and other.ports_per_switch >= own.ports_per_switch
            and others >= each
        )
        if job.settings.on_slots:
            same = own.changed(reconfiguration_ms=other.reconfiguration_ms)
            shorter = other.reconfiguration_ms < own.reconfiguration_ms
            return self.on_slots and shorter and same.digest == other.digest
        return lacks_none and own.digest != other.digest

    def only_delay_differs(self, cluster: Cluster) -> bool:
        """Whether the plan was made for a cluster, but for its delay."""
        at = self.cluster.changed(reconfiguration_ms=cluster.reconfiguration_ms)
        return at.digest == cluster.digest

    def as_made(self, job: JobRequest) -> Execution:
        """Return the plan carried out on the cluster that it was made for."""
        return self.on(replace(job, cluster=self.cluster))[1]

    def on(self, job: JobRequest) -> tuple[FabricRequest, Execution]:
        """Return the job lowered as the plan was, and the plan carried out on its cluster.

        On slots the plan stays as it is: it keeps to a delay that is no longer than its own.
        """
        request = job.lowered(self.lowering)
        planned = Execution(request.graph, self.cluster, self.start_ms, self.end_ms, self.circuits)
        if job.settings.on_slots:
            return request, replace(planned, cluster=job.cluster)
        return request, replayed_on_circuits(planned, job.cluster, job.settings)


@dataclass(frozen=True)
class Passed:
    """A plan carried out on the cluster of a job, which was lowered for it."""

    plan: PassedPlan
    job: JobRequest
    request: FabricRequest
    execution: Execution

    @cached_property
    def bound(self) -> Bound:
        """A bound on every schedule that switches and may be chosen."""
        job, request = self.job, self.request
        return open_bound(job.task_graph, job.cluster, job.settings, "changing") or circuit_bound(
            request.graph, request.cluster, request.settings
        )


def best_passed(
    job: JobRequest, plans: Iterable[PassedPlan], than_ms: float = float("inf")
) -> Passed | None:
    """Return the best of the plans that can be carried out on a job's cluster; None if none is shorter than ``than_ms``."""
    carried_out = [Passed(plan, job, *plan.on(job)) for plan in plans if plan.serves(job)]
    best = min(carried_out, key=lambda one: one.execution.makespan_ms, default=None)
    shorter = best is not None and best.execution.makespan_ms < than_ms * (1 - 1e-9)
    return best if shorter else None


class PlanChoice:
    """The best of a job's own result and of plans for other clusters, each of which is carried out once.

    A move of a slider adds a plan or two to those that are known; of a thousand tasks each takes 3 ms to carry out.
    """

    def __init__(self, job: JobRequest, own: Result) -> None:
        self._job, self._own, self._best = job, own, own
        self._weighed: tuple[PassedPlan, ...] = ()
        self._lock = threading.Lock()

    def among(self, plans: Iterable[PassedPlan]) -> Result:
        """Return the job's own result, or that of the best plan so far where it is shorter."""
        if self._best.makespan_ms is None or self._own.status == "optimal":
            return self._own
        with self._lock:
            known, self._weighed = self._weighed, tuple(plans)
            new = [plan for plan in self._weighed if not any(plan is one for one in known)]
            passed = best_passed(self._job, new, self._best.makespan_ms)
            if passed is not None:
                self._best = _result(self._own, passed)
            return self._best


@dataclass(frozen=True)
class KnownPlans:
    """The last plans of many jobs, kept so that whoever plans another setting has them among its own."""

    _kept: Latest[tuple[PassedPlan, ...]] = field(default_factory=lambda: Latest(MAX_JOBS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, key: str, plan: PassedPlan | None) -> None:
        """Keep a plan of the job with this key, whatever its cluster; None is no plan."""
        with self._lock:
            kept = self.of(key)
            if plan is not None and not any(plan.start_ms is one.start_ms for one in kept):
                self._kept[key] = (*kept, plan)[-MAX_PLANS:]

    def of(self, key: str) -> tuple[PassedPlan, ...]:
        """Return what is kept of a job."""
        return self._kept.get(key, ())


def _result(before: Result, passed: Passed) -> Result:
    """Return the result of a plan that was passed on; where no choice is open its bound holds for the way in which it is lowered."""
    makespan_ms = passed.execution.makespan_ms
    classes = tuple(_with_passed(one, before, passed) for one in before.classes)
    bound_ms = min(one.bound_ms for one in classes)
    proved = makespan_ms <= bound_ms * (1 + MET)
    at = passed.plan.only_delay_differs(passed.execution.cluster)
    delay = delay_label(passed.plan.cluster.reconfiguration_ms)
    words = f"a delay of {delay}" if at else "another cluster"
    source = TraceSource("passed", f"a plan made for {words}")
    return replace(
        before,
        status="optimal" if proved else "feasible",
        # A plan shorter than one that is proved for its lowering has another.
        stopped_by="proof"
        if proved
        else "heuristic"
        if before.stopped_by == "lowering"
        else before.stopped_by,
        makespan_ms=makespan_ms,
        bound_ms=bound_ms,
        bound_by=before.bound_by if bound_ms == before.bound_ms else passed.bound.text,
        unrounded_bound_ms=min(before.unrounded_bound_ms, bound_ms),
        execution=passed.execution,
        settings=replace(before.settings, lowering=passed.plan.lowering),
        switching="planned",
        classes=classes,
        alternative=None,
        lowered_bound_ms=None,
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
    carried_out = replayed_on_circuits(execution, execution.cluster, result.settings)
    return max(0.0, execution.makespan_ms - carried_out.makespan_ms)
