"""The scheduled fabric: the optimiser of TOPO-X on a lowered graph, never behind the controllers it competes with."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from topox_core.fabrics.breakdown import breakdown
from topox_core.fabrics.circuit_bounds import circuit_bound
from topox_core.fabrics.circuit_requests import Profile
from topox_core.fabrics.circuit_traffic import circuit_traffic
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.io.task_graph_file import check_fits
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.stopping import Stop, never
from topox_core.schedule.circuits.assignment import Booking, changed_rows
from topox_core.schedule.engines.engine import StoppedBy
from topox_core.schedule.folding.folded_proof import started
from topox_core.schedule.generation.port_scheduler import Booked
from topox_core.schedule.planner import Planner, Prepared, SchedulePlan
from topox_core.schedule.proof import Proof
from topox_core.schedule.reduction import reduce
from topox_core.schedule.report import story_line, to_result
from topox_core.schedule.result import Result, StoryLine
from topox_core.schedule.settings import Settings


def run_scheduled(order: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration whose start times and circuits were planned together (TOPO-X, eqs 2-10).

    The engine of ``order.settings`` plans on the cluster's slots. What the provisioned controller
    does is one of its candidates, with its durations and its delay rounded up to slots, so that the
    plan is never behind it on this clock. Slots that are long against the transfers can still put
    it behind what the controllers do on continuous time; ``message`` says so then.

    Raises
    ------
    InputError
        If graph, cluster and settings do not go together; file and field are named.
    Stopped
        If ``stop()`` is true before there is a plan.
    """
    if stop():
        raise Stopped
    profile = None if order.settings.any_port else Profile.of(order)
    result = _solved(order, profile, stop)
    assert result.execution is not None  # list scheduling always finds one
    circuits = result.execution.circuits
    bound_ms, bound_by = _best_bound(order, result)
    said = [result.message, "" if profile is None else _behind(result, profile)]
    return FabricRun(
        fabric="scheduled",
        execution=result.execution,
        bound_ms=bound_ms,
        bound_by=bound_by,
        traffic=circuit_traffic(result.execution),
        breakdown=breakdown(result.execution, order.settings.exclusive_devices),
        circuits_changed=int(circuits.changed.sum()),
        dark_ms=float((circuits.start_ms - circuits.setup_ms).sum()),
        result=result,
        message=" ".join(part for part in said if part),
    )


def planned(graph: TaskGraph, cluster: Cluster, settings: Settings, stop: Stop = never) -> Result:
    """Return the plan by rules and by what the controllers do: the one that every page shows for a setting.

    Raises
    ------
    InputError
        If graph, cluster and settings do not go together; file and field are named.
    """
    order = _order(graph, cluster, replace(settings, engine="list"))
    return _solved(order, _profile(order), stop)


def proving(graph: TaskGraph, cluster: Cluster, settings: Settings) -> Proof:
    """Return an exact solve in the background that starts from what :func:`planned` returns.

    Raises
    ------
    InputError
        As :func:`planned`.
    """
    order = _order(graph, cluster, settings)
    began = time.monotonic()
    prepared, best, story = _listed(order, _profile(order), never, began)
    return started(prepared, best, time.monotonic() - began, story)


def _order(graph: TaskGraph, cluster: Cluster, settings: Settings) -> FabricRequest:
    check_fits(graph, cluster)
    return FabricRequest(lower(graph, settings.lowering), cluster, settings)


def _profile(order: FabricRequest) -> Profile | None:
    return None if order.settings.any_port else Profile.of(order)


def _listed(
    order: FabricRequest, profile: Profile | None, stop: Stop, began: float
) -> tuple[Prepared, SchedulePlan, list[StoryLine]]:
    """Plan by rules and by what the controllers do; return the best plan and its story."""
    prepared = _prepared(order)
    bound = prepared.reduction.bound
    story: list[StoryLine] = []

    def tell(plan: SchedulePlan) -> None:
        line = story_line(
            prepared, time.monotonic() - began, plan.makespan, bound.ticks, plan.source
        )
        if not story or line.incumbent_ms != story[-1].incumbent_ms:
            story.append(line)

    best = prepared.planner.best_plan(stop, tell)
    for plan in _as_the_controllers_do(prepared, profile):
        if plan.cost < best.cost:
            best = (
                replace(
                    plan, reduced_start=best.reduced_start, reduced_makespan=best.reduced_makespan
                )
                if plan.reduced_makespan > best.reduced_makespan
                else plan
            )
            tell(best)
    return prepared, best, story


def _solved(order: FabricRequest, profile: Profile | None, stop: Stop) -> Result:
    """Plan, then let the exact engine go on if one is asked for."""
    began = time.monotonic()
    prepared, best, story = _listed(order, profile, stop, began)
    bound = prepared.reduction.bound
    if order.settings.engine == "list" or stop():
        ended: StoppedBy = "heuristic" if order.settings.engine == "list" else "cancelled"
        if best.makespan <= bound.ticks:
            ended = "proof"
        return to_result(
            prepared, best, bound.ticks, bound.text, ended, tuple(story), time.monotonic() - began
        )
    return started(prepared, best, time.monotonic() - began, story).finish(stop)


def _prepared(order: FabricRequest) -> Prepared:
    reduction = reduce(order.graph, order.cluster, order.settings)
    planner = Planner.of(
        reduction.problem,
        reduction.bound.ticks,
        order.settings.circuits == "continuous",
        reduction.dark_slots,
    )
    return Prepared(order.graph, order.cluster, order.settings, reduction, planner)


def _as_the_controllers_do(prepared: Prepared, profile: Profile | None) -> Iterator[SchedulePlan]:
    """Yield what the provisioned controller does on the planner's clock, as it is and as an order to start from."""
    if profile is None:
        return
    problem, planner = prepared.reduction.problem, prepared.planner
    start = profile.start_ticks(
        problem.duration, problem.on_grid, problem.ticks_per_slot, prepared.reduction.dark_slots
    )
    makespan = int((start + problem.duration).max(initial=0))
    if planner.ports is None:
        yield planner.realised(start, makespan, "provisioned order")
        return
    node = profile.node
    first = start[node] // problem.ticks_per_slot
    booking = Booking(
        node,
        profile.known.switch[node],
        *profile.ports(node),
        first,
        first + problem.duration[node] // problem.ticks_per_slot,
    )
    assert problem.network is not None
    changes = int(changed_rows(booking, problem.network).sum())
    exact = SchedulePlan(start, makespan, booking, changes, "provisioned", start, makespan)
    yield exact
    better = planner.ports.improved(
        Booked(start, makespan, booking, changes, "provisioned, improved"), planner.bound
    )
    yield replace(
        exact,
        start=better.start,
        makespan=better.makespan,
        booking=better.booking,
        changes=better.changes,
        source=better.source,
    )
    yield planner.realised(start, makespan, "provisioned order")


def _best_bound(order: FabricRequest, result: Result) -> tuple[float, str]:
    """Return the better of the plan's own bound and that of circuits without slots, which no slotted plan beats either."""
    if not order.settings.share_circuits:
        unslotted = circuit_bound(order.graph, order.cluster, order.settings.exclusive_devices)
        if result.bound_ms < unslotted.ms <= (result.makespan_ms or 0.0):
            return unslotted.ms, unslotted.text
    return result.bound_ms, result.bound_by


def _behind(result: Result, profile: Profile) -> str:
    """Say that the controllers on continuous time are faster, and by how much; empty if they are not."""
    provisioned = float((profile.provisioned_start_ms() + profile.length_ms).max(initial=0.0))
    planned = result.makespan_ms or 0.0
    if planned <= provisioned * (1 + 1e-9):
        return ""
    return (
        f"On slots of {result.slot_ms:g} ms, to which every transfer is rounded up, the plan takes {planned:.9g} ms; "
        f"provisioned switching without slots takes {provisioned:.9g} ms. Shorter slots close the distance."
    )
