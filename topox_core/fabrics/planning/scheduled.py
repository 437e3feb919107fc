"""The scheduled fabric: the optimiser of TOPO-X on a lowered graph, never behind the controllers it competes with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from topox_core.compiled import working_s
from topox_core.fabrics.controllers.circuits import Profile, run_provisioned
from topox_core.fabrics.controllers.phases import phased, run_phased
from topox_core.fabrics.fluid.simulator import go_on
from topox_core.fabrics.planning.fixed_beside import (
    FixedBeside,
    beside_first_fixed,
    beside_fixed,
    fixed_beside,
    stays_fixed,
    with_fixed,
)
from topox_core.fabrics.planning.lowering_search import (
    MAX_NODES,
    ProvisionedMs,
    RunLowered,
    bound_of,
    fastest_run,
    planned_lowering,
    result_over_every,
    standing_over_every,
)
from topox_core.fabrics.planning.passed_plans import PlanChoice
from topox_core.fabrics.planning.shipped import shipped_plan
from topox_core.fabrics.run import Fabric, FabricRequest, FabricRun, JobRequest
from topox_core.io.task_graph_file import check_fits
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import Stop, never
from topox_core.schedule.bounds.unrounded import Bound, circuit_bound
from topox_core.schedule.circuits.held_ports import Booking
from topox_core.schedule.planning.planner import Prepared, SchedulePlan
from topox_core.schedule.planning.replay import Replay, first_ms, starts_in_order
from topox_core.schedule.problem import Int
from topox_core.schedule.race.proof import Proof
from topox_core.schedule.rcpsp.reduction import Reduction, reduce
from topox_core.schedule.results.result import Result
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import OnPoint, prove as prove_with, solve
from topox_core.schedule.source import TraceSource


def run_in_collective(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration on provisioned circuits, its collectives as they were lowered.

    Where the settings leave algorithms open, each collective takes the one that is fastest alone, those
    with messages split unevenly over the ports among them
    (:mod:`topox_core.fabrics.planning.collective_choice`), so that no iteration is longer than provisioned.

    Raises
    ------
    InputError, Stopped
        As :func:`~topox_core.fabrics.controllers.circuits.run_reactive`.
    """
    return replace(run_provisioned(request, stop), fabric="in_collective")


PROVISIONED = TraceSource("controllers", "provisioned")
PHASES = TraceSource("controllers", "phase by phase")
IMPROVED = TraceSource("controllers", "provisioned, improved")
RIVALS: Mapping[str, Fabric] = {"phased": run_phased, "in_collective": run_in_collective}
MAX_PLANNED_BY_PHASES = 5_000  # nodes; the order itself is a candidate whatever the size


def run_scheduled(request: FabricRequest, stop: Stop, *, quickly: bool = False) -> FabricRun:
    """Run an iteration whose start times and circuits were planned together (TOPO-X, eqs 2-10).

    On continuous time what the provisioned controller does is one of the candidates, and so are
    circuits that stay fixed, so that the iteration is never longer than on either of those fabrics.
    On slots both are rounded up; ``message`` says so where a controller without slots is faster.
    ``quickly``: no order phase by phase.

    Raises
    ------
    InputError
        If graph, cluster and settings do not go together; file and field are named.
    Stopped
        If ``stop()`` is true before there is a plan.
    """
    go_on(stop)
    controllers = Controllers(request, quickly)
    profile = controllers.profile  # before planning: refuses what all controllers refuse
    result = solve(request.graph, request.cluster, request.settings, stop, candidates=controllers)
    fixed = fixed_beside(request, stop)
    result = with_fixed(request, result, fixed)
    if fixed is not None and result.switching == "fixed":
        return replace(
            fixed.run,
            fabric="scheduled",
            bound_ms=result.bound_ms,
            bound_by=result.bound_by,
            result=result,
            message=stays_fixed(result, fixed.run),
        )
    run = planned_run(result)
    if not request.settings.on_slots:
        return run
    bound_ms, bound_by = _best_bound(request, result)
    message = " ".join(part for part in (result.message, _behind(result, profile)) if part)
    return replace(run, bound_ms=bound_ms, bound_by=bound_by, message=message)


def planned_run(result: Result) -> FabricRun:
    """Return the run of a schedule that switches."""
    execution = result.execution
    assert execution is not None  # list scheduling always finds one
    return FabricRun.of(
        "scheduled",
        execution,
        Bound(result.bound_ms, result.bound_by),
        result.settings,
        result=result,
        message=result.message,
        first_ms=first_ms(execution, result.settings),
    )


def better_run(run: FabricRun, result: Result) -> FabricRun:
    """Return the scheduled run with a better result for the same setting, found elsewhere; the better bound stays."""
    if result.switching == "fixed":
        better = replace(run, execution=result.execution or run.execution, result=result)
    else:
        better = planned_run(result)
    return replace(
        better,
        bound_ms=max(run.bound_ms, result.bound_ms),
        bound_by=result.bound_by,
        chosen=run.chosen and replace(run.chosen, lowering=result.settings.lowering),
    )


def schedule(
    graph: TaskGraph,
    cluster: Cluster,
    settings: Settings,
    stop: Stop = never,
    on_point: OnPoint | None = None,
    *,
    quickly: bool = False,
) -> Result:
    """Schedule one training iteration by rules, circuit controllers and the engine of ``settings``.

    The one entry of app, commands and comparison; arguments and errors as
    :func:`topox_core.schedule.solve.solve`; ``quickly``: a list schedule is a :func:`first_plan`.
    """
    began, began_working, asked_s = time.monotonic(), working_s(), settings.time_limit_s
    if settings.free and settings.engine == "list":
        check_fits(graph, cluster)
        job = JobRequest(graph, cluster, settings)
        planned = (first_plan if quickly else freely_scheduled)(job, stop).result
        assert planned is not None
        planned = result_over_every(job, planned)
        if on_point is not None:
            for point in planned.trace:
                on_point(point)
        return planned
    job, order = JobRequest(graph, cluster, settings), _order(graph, cluster, settings, stop)
    fixed, settings = _fixed_over_every(job, order, stop), order.settings
    if settings.engine != "list":  # the limit is for all of it
        left_s = max(0.0, asked_s - (working_s() - began_working))
        settings = replace(settings, time_limit_s=left_s)
    if on_point is not None and fixed is not None:
        on_point = fixed.standing.heard_by(on_point)
    result = solve(order.graph, cluster, settings, stop, on_point, Controllers(order))
    result = result_over_every(job, with_fixed(order, result, fixed))
    worked_s = working_s() - began_working  # before the wall's, so that it is never the longer one
    return replace(
        result,
        settings=replace(result.settings, time_limit_s=asked_s),
        wall_s=time.monotonic() - began,
        working_s=worked_s,
    )


def prove(graph: TaskGraph, cluster: Cluster, settings: Settings) -> Proof:
    """Return an exact solve in the background that starts as :func:`schedule` does, its time limit counted alike."""
    began, began_working, asked_s = time.monotonic(), working_s(), settings.time_limit_s
    job, order = JobRequest(graph, cluster, settings), _order(graph, cluster, settings, never)
    fixed, settings = _fixed_over_every(job, order, never), order.settings
    worked_s, waited_s = working_s() - began_working, time.monotonic() - began
    settings = replace(settings, time_limit_s=max(0.0, asked_s - worked_s))
    proof = prove_with(order.graph, cluster, settings, Controllers(order))

    def combined(result: Result) -> Result:
        spent_s = result.wall_s
        result = result_over_every(job, with_fixed(order, result, fixed))
        return replace(
            result,
            settings=replace(result.settings, time_limit_s=asked_s),
            wall_s=waited_s + spent_s,
            working_s=worked_s + spent_s,
        )

    proof.combine_with_fixed = combined
    proof.static_circuits = None if fixed is None else fixed.standing
    return proof


def first_plan(job: JobRequest, stop: Stop = never) -> FabricRun:
    """Return a scheduled run at once: rules, the provisioned order and the fixed circuits that the matrix of bytes asks for.

    The provisioned controller chooses how collectives are lowered, among few choices (moe, 5 speeds by 6 delays: a
    fifth of the time of :func:`freely_scheduled`, 0.6 % longer in the mean, at most 16 %). Raises as that.
    """
    job = beside_first_fixed(job, stop)
    return fastest_run("scheduled", job, *_runs(stop, quickly=True), few=True)


def freely_scheduled(job: JobRequest, stop: Stop = never, *, quickly: bool = False) -> FabricRun:
    """Return the scheduled run over the choices that the settings of a job leave free.

    Fixed circuits make their own choices, and a sample has its plan of the release where that is shorter.
    ``quickly``: neither that nor other controllers, and the provisioned controller chooses among few
    (moe: 0.5 s, not 1.1 s; its plans are up to 4 % longer).

    Raises
    ------
    InputError, Stopped
        As :func:`run_scheduled`.
    """
    job = beside_fixed(job, stop)
    best = fastest_run("scheduled", job, *_runs(stop), few=quickly)
    if quickly:
        return best
    plan, least = shipped_plan(job), bound_of(job, "changing")
    if plan is not None and best.result is not None:
        shortest = PlanChoice(job, best.result).among((plan,))
        best = best if shortest is best.result else better_run(best, shortest)
    if least is not None and best.iteration_ms <= least.ms * (1 + 1e-9):
        return best
    for rival in _rivals(job, stop):
        if best.iteration_ms > rival.iteration_ms * (1 + 1e-9) and rival.chosen is not None:
            # A plan for what the rival chose has what the rival does among its candidates.
            other = run_scheduled(job.lowered(rival.chosen.lowering), stop)
            if other.iteration_ms < best.iteration_ms * (1 - 1e-9):
                best = replace(other, chosen=rival.chosen)
    return best


def _rivals(job: JobRequest, stop: Stop) -> Iterator[FabricRun]:
    """Yield the controllers that choose for themselves and that no plan may be behind."""
    if not job.settings.free or job.nodes > MAX_NODES or job.settings.engine != "list":
        return
    if job.settings.any_port or job.settings.switching not in ("auto", "planned"):
        return
    for name, run in RIVALS.items():
        yield job.runs.get(name) or fastest_run(name, job, partial(run, stop=stop))


def _runs(stop: Stop, quickly: bool = False) -> tuple[RunLowered, ProvisionedMs]:
    """Return what plans a lowered job, and what only keeps the order in which its transfers became ready."""
    planned = partial(run_scheduled, stop=stop, quickly=quickly)
    return planned, partial(_provisioned_ms, stop=stop)


def _provisioned_ms(request: FabricRequest, stop: Stop) -> float:
    """Return how long a provisioned iteration takes on the plan's clock.

    On slots every transfer is rounded up, so that many small ones, which are fastest on continuous
    time, may be slowest: a suite's graph of FSDP takes 645 slots by this choice, 965 by the other.
    """
    go_on(stop)
    profile, settings = Profile.of(request), request.settings
    if not settings.on_slots:
        return profile.provisioned_ms()
    reduction = reduce(request.graph, request.cluster, settings)
    ends = _start_ticks(reduction, profile) + reduction.problem.duration
    return reduction.problem.ms(int(ends.max(initial=0)))


def _order(graph: TaskGraph, cluster: Cluster, settings: Settings, stop: Stop) -> FabricRequest:
    """Return what an engine plans, lowered by a choice among what is free, with fixed circuits beside it."""
    check_fits(graph, cluster)
    job = beside_fixed(JobRequest(graph, cluster, settings), stop)
    lowering = settings.lowering
    if settings.free:
        lowering = planned_lowering(job, *_runs(stop))
    return job.lowered(lowering)


def _fixed_over_every(job: JobRequest, request: FabricRequest, stop: Stop) -> FixedBeside | None:
    """Return fixed circuits beside an order, which whoever hears of a solve in between hears with the bound over every lowering."""
    fixed = fixed_beside(request, stop)
    return fixed and replace(fixed, standing=standing_over_every(job, fixed.standing))


@dataclass(frozen=True)
class Controllers:
    """What the provisioned controller does with a request, as plans that compete with those of the rules."""

    request: FabricRequest
    quickly: bool = False

    @cached_property
    def profile(self) -> Profile | None:
        """The profiled iteration; None where any switch may be used, which the controllers cannot."""
        return None if self.request.settings.any_port else Profile.of(self.request)

    @cached_property
    def by_phases(self) -> Profile | None:
        """The profile with an order phase by phase, which pays where changes cost something; None if it has to be quick."""
        return None if self.profile is None or self.quickly else phased(self.profile)

    def _under(self, settings: Settings) -> Controllers:
        """Return the controllers where devices and cabling are read as ``settings`` have them."""
        own = self.request.settings
        if (settings.any_port, settings.exclusive_devices) == (own.any_port, own.exclusive_devices):
            return self
        return replace(self, request=replace(self.request, settings=settings))

    def __call__(self, prepared: Prepared) -> Iterator[SchedulePlan]:
        """Yield the provisioned iteration on the planner's clock, as it is and as an order to start from, and phase by phase."""
        controllers = self._under(prepared.settings)
        profile = controllers.profile
        if profile is None:
            return
        planner = prepared.planner
        if planner.ports is not None:
            exact = _on_the_same_ports(prepared, profile, PROVISIONED)
            yield exact
            yield planner.improved(replace(exact, source=IMPROVED))
            small = len(self.request.graph) <= MAX_PLANNED_BY_PHASES
            changes_cost = self.request.cluster.reconfiguration_ms > 0
            if small and changes_cost and (by_phases := controllers.by_phases) is not None:
                exact = _on_the_same_ports(prepared, by_phases, PHASES)
                yield exact
                yield planner.improved(exact)
        start = _start_ticks(prepared.reduction, profile)
        yield planner.with_circuits(start, TraceSource("controllers", "provisioned order"))

    def replays(self, prepared: Prepared) -> Iterator[Replay]:
        """Yield what the controllers do themselves, so that no schedule on continuous time is behind one."""
        controllers = self._under(prepared.settings)
        profile = controllers.profile
        if profile is None:
            return
        yield Replay(
            profile.graph,
            profile.cluster,
            profile.provisioned_start_ms(),
            profile.length_ms,
            profile.booked_ports,
            PROVISIONED,
            "provisioned",
        )
        if prepared.settings.switching == "provisioned":
            return
        by_phases = controllers.by_phases
        if by_phases is None:
            return
        yield Replay(
            by_phases.graph,
            by_phases.cluster,
            by_phases.known.start,
            by_phases.length_ms,
            by_phases.booked_ports,
            PHASES,
        )


def _start_ticks(reduction: Reduction, profile: Profile) -> Int:
    """Return the provisioned starts in ticks, durations and delay in whole ticks and slots."""
    problem, graph = reduction.problem, profile.graph
    start = starts_in_order(
        graph.pred_ptr,
        graph.pred_idx,
        problem.duration.astype(np.float64),
        profile.orders,
        float(reduction.dark_slots * problem.ticks_per_slot),
        float(problem.ticks_per_slot),
        problem.on_grid,
    )
    return np.asarray(np.rint(start), np.int64)


def _on_the_same_ports(prepared: Prepared, profile: Profile, source: TraceSource) -> SchedulePlan:
    """Return an iteration on slots, on the ports that its profile books."""
    problem, start = prepared.reduction.problem, _start_ticks(prepared.reduction, profile)
    booking = Booking.at(problem, profile.booked_ports, start)
    return SchedulePlan.on_circuits(problem, start, booking, source)


def _best_bound(request: FabricRequest, result: Result) -> tuple[float, str]:
    """Return the better of the plan's own bound and that of circuits without slots, which no slotted plan beats either."""
    if not request.settings.share_circuits:
        unslotted = circuit_bound(request.graph, request.cluster, request.settings)
        if result.bound_ms < unslotted.ms <= (result.makespan_ms or 0.0):
            return unslotted.ms, unslotted.text
    return result.bound_ms, result.bound_by


def _behind(result: Result, profile: Profile | None) -> str:
    """Say that the controllers on continuous time are faster, and by how much; empty if they are not."""
    if profile is None:
        return ""
    provisioned = profile.provisioned_ms()
    planned = result.makespan_ms or 0.0
    if planned <= provisioned * (1 + 1e-9):
        return ""
    return (
        f"On slots of {result.slot_ms:g} ms, to which every transfer is rounded up, the plan takes {planned:.9g} ms; "
        f"provisioned circuits without slots take {provisioned:.9g} ms. Shorter slots make the difference smaller."
    )
