"""The one entry to scheduling: any engine, from the best of the rules' plans and of the candidates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from topox_core.compiled import working_s
from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import TransferGraph
from topox_core.runs.stopping import AfterSeconds, Stop, any_of, never
from topox_core.schedule.continuous import Candidates, ContinuousPlans, plan_on_continuous_time
from topox_core.schedule.engines.engine import StoppedBy
from topox_core.schedule.feasibility import impossible
from topox_core.schedule.planner import (
    Prepared,
    SchedulePlan,
    keeping_reduced,
    prepare,
    prepare_problem,
)
from topox_core.schedule.problem import Problem
from topox_core.schedule.proof import Proof
from topox_core.schedule.reduction import ports_on_switch
from topox_core.schedule.replay import Replay
from topox_core.schedule.report import infeasible, to_continuous_result, to_result
from topox_core.schedule.result import Result, TracePoint
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import LOADS


def stricter(settings: Settings, cluster: Cluster) -> tuple[Settings, ...]:
    """Return the readings one step stricter, on the same cluster and clock, for the list engine.

    A circuit for every transfer is stricter than shared ones, devices that compute one task at a
    time than free ones, circuits that stay on real ports than circuits drawn slot by slot. With one
    port of a server on each switch, cabling and free choice of the switch (``any_port``) are the
    same thing; with several, free choice is stricter, since eqs 9 and 10 then grant one a switch.
    """
    own = replace(settings, engine="list")
    if settings.on_slots:
        own = replace(own, clock="slots")
    steps = []
    if settings.share_circuits:
        steps.append(replace(own, share_circuits=False))
    if not settings.exclusive_devices:
        steps.append(replace(own, exclusive_devices=True))
    if settings.any_port:
        cabled = replace(own, any_port=False)
        if cluster.ports_per_server == cluster.switches:
            return (cabled,)  # the same schedules; the other steps are its own
    elif settings.circuits == "per-slot":
        if ports_on_switch(cluster, settings) > 1:
            steps.append(replace(own, any_port=True))
        if not settings.share_circuits:
            steps.append(replace(own, circuits="continuous"))
    return tuple(steps)


def carried_over(
    plan: SchedulePlan, strict: Prepared, prepared: Prepared
) -> tuple[Prepared, SchedulePlan]:
    """Return a plan of a stricter reading as one of ``prepared``, on a tick fine enough for both.

    Transfers keep their slots, so that the plan stays as long as it is or becomes shorter, where
    compute is rounded to a finer tick.
    """
    graph, cluster = prepared.graph_and_cluster
    given, own = (one.reduction.problem.ticks_per_slot for one in (strict, prepared))
    both = math.lcm(given, own)
    if both != own:
        ticked = replace(prepared.settings, tick=cluster.slot_ms / both)
        finer = prepare(graph, cluster, ticked)
        prepared = replace(finer, settings=prepared.settings)
    problem, planner = prepared.reduction.problem, prepared.planner
    start = plan.start * (both // given)
    makespan = int((start + problem.duration).max(initial=0))
    if planner.ports is None:
        return prepared, planner.with_circuits(start, makespan, plan.source)
    kept = replace(plan, start=start, makespan=makespan)
    return prepared, replace(kept, reduced_start=start, reduced_makespan=makespan)


def length_ms(prepared: Prepared, plan: SchedulePlan) -> float:
    """Return the length of a plan, which ticks of another length measure otherwise."""
    return prepared.reduction.problem.ms(plan.makespan)


OnPoint = Callable[[TracePoint], None]
# The part of an engine's time limit after which no plan of a stricter reading is begun: on a large
# graph such plans, one core at a time, would leave no time for search and bounds.
STRICTER_SHARE = 0.03


def solve(
    graph: TaskGraph | TransferGraph,
    cluster: Cluster,
    settings: Settings,
    stop: Stop = never,
    on_point: OnPoint | None = None,
    candidates: Candidates | None = None,
) -> Result:
    """Schedule one training iteration and return the result with its bound.

    Parameters
    ----------
    graph
        A task graph, or the transfers that it was lowered to.
    settings
        ``engine`` names the solver: ``list`` alone; ``highs``, ``cpsat`` or ``printed`` from the
        list schedule on; ``auto`` all together, within ``threads`` cores.
    stop
        Ends the solve with the best schedule so far once it returns True.
    on_point
        Receives every improvement of schedule or bound.
    candidates
        Makes plans that compete with those of the priority rules. The app, the commands and the
        comparison pass the circuit controllers (:func:`topox_core.fabrics.scheduled.schedule`).

    Raises
    ------
    InputError
        If graph, cluster and settings do not go together; file and field are named.
    """
    began = working_s()
    return _solve(prepare(graph, cluster, settings), began, stop, on_point, candidates)


def prove(
    graph: TaskGraph | TransferGraph,
    cluster: Cluster,
    settings: Settings,
    candidates: Candidates | None = None,
) -> Proof:
    """Return a solve that runs in the background; arguments and errors as :func:`solve`."""
    began = working_s()
    prepared = prepare(graph, cluster, settings)
    if not settings.on_slots:
        plans, trace = _best_replay(prepared, began, never, None, candidates)
        return _continuous_proof(plans, working_s() - began, trace)
    prepared, plan, trace = _best_candidate(prepared, began, never, None, candidates)
    return Proof(prepared, plan, working_s() - began, trace)


def solve_problem(
    problem: Problem, settings: Settings, stop: Stop = never, on_point: OnPoint | None = None
) -> Result:
    """Solve a bare problem (PSPLIB) with the same engines; the result has no execution.

    Raises
    ------
    InputError
        If the engine is ``printed``, which needs circuits.
    """
    began = working_s()
    if settings.engine == "printed":
        raise InputError(
            "must be list, highs, cpsat or auto (got 'printed')", file="settings", field="engine"
        )
    reason = impossible(problem)
    if reason is not None:
        return infeasible(problem, settings, reason)
    return _solve(
        prepare_problem(problem, replace(settings, clock="slots")), began, stop, on_point, None
    )


def _solve(
    prepared: Prepared,
    began: float,
    stop: Stop,
    on_point: OnPoint | None,
    candidates: Candidates | None,
) -> Result:
    if prepared.graph is not None and not prepared.settings.on_slots:
        return _solve_continuously(prepared, began, stop, on_point, candidates)
    prepared, plan, trace = _best_candidate(prepared, began, stop, on_point, candidates)
    spent_s = working_s() - began
    if prepared.settings.engine != "list" and not stop():
        return Proof(prepared, plan, spent_s, trace, blocks=True).finish(stop, on_point)
    bound = prepared.reduction.bound
    stopped_by: StoppedBy = "heuristic" if prepared.settings.engine == "list" else "cancelled"
    if plan.makespan <= bound.ticks:
        stopped_by = "proof"
    return to_result(prepared, plan, bound.ticks, bound.text, stopped_by, tuple(trace), spent_s)


def _solve_continuously(
    prepared: Prepared,
    began: float,
    stop: Stop,
    on_point: OnPoint | None,
    candidates: Candidates | None,
) -> Result:
    plans, trace = _best_replay(prepared, began, stop, on_point, candidates)
    spent_s = working_s() - began
    listed = prepared.settings.engine == "list" or prepared.settings.switching == "provisioned"
    if listed or plans.solved or stop():
        stopped_by: StoppedBy = "heuristic" if listed else "cancelled"
        return to_continuous_result(plans, stopped_by, tuple(trace), spent_s)
    return _continuous_proof(plans, spent_s, trace, blocks=True).finish(stop, on_point)


def _continuous_proof(
    plans: ContinuousPlans, spent_s: float, trace: list[TracePoint], blocks: bool = False
) -> Proof:
    """Return a search on the slots whose plans were the best once replayed."""
    assert plans.planned_on is not None
    assert plans.plan_to_improve is not None
    settings = plans.prepared.settings
    if settings.switching == "provisioned":
        settings = replace(settings, time_limit_s=0.0)  # its order is known: nothing to search for
    prepared = replace(plans.planned_on, settings=settings)
    return Proof(prepared, plans.plan_to_improve, spent_s, trace, plans, blocks=blocks)


def _best_replay(
    prepared: Prepared,
    began: float,
    stop: Stop,
    on_point: OnPoint | None,
    candidates: Candidates | None,
) -> tuple[ContinuousPlans, list[TracePoint]]:
    """Return the iterations by rules and candidates within the time limit, and the trace to the best."""
    plans, trace = ContinuousPlans.of(prepared), list[TracePoint]()

    def record(best: Replay) -> None:
        point = TracePoint(
            working_s() - began, best.makespan_ms, plans.bound.ms, best.source, LOADS
        )
        if not trace or point.incumbent_ms != trace[-1].incumbent_ms:
            trace.append(point)
            if on_point is not None:
                on_point(point)

    plans.on_better = record
    ended, late = _limits(prepared.settings, began, stop)
    _plan_never_behind_stricter(plans, candidates, ended, late)
    plans.on_better = None
    return plans, trace


def _limits(settings: Settings, began: float, stop: Stop) -> tuple[Stop, Stop]:
    """Return when planning ends, and when no stricter reading is planned any more: an engine wants its time."""
    ended = any_of(stop, AfterSeconds(settings.time_limit_s, began, working_s))
    if settings.engine == "list":
        return ended, ended
    late = AfterSeconds(STRICTER_SHARE * settings.time_limit_s, began, working_s)
    return ended, any_of(ended, late)


def _plan_never_behind_stricter(
    plans: ContinuousPlans, candidates: Candidates | None, ended: Stop, late: Stop
) -> None:
    """Plan on continuous time; the best iteration of every stricter reading planned before ``late`` is a candidate."""
    plan_on_continuous_time(plans, candidates, ended)
    prepared = plans.prepared
    graph, cluster = prepared.graph_and_cluster
    for settings in stricter(prepared.settings, cluster):
        try:
            if late():
                continue
            strict = ContinuousPlans.of(prepare(graph, cluster, settings))
            if plans.best is None or strict.bound.ms >= plans.best.makespan_ms:
                continue
            _plan_never_behind_stricter(strict, candidates, late, late)
        except InputError:  # it may be refused where the weaker reading is not
            continue
        if strict.best is not None:
            plans.take_replay(strict.best)
        if strict.slotted is not None:
            plans.take(*carried_over(strict.slotted, strict.prepared, prepared))


def _best_candidate(
    prepared: Prepared,
    began: float,
    stop: Stop,
    on_point: OnPoint | None,
    candidates: Candidates | None,
) -> tuple[Prepared, SchedulePlan, list[TracePoint]]:
    """Return the best plan by rules and candidates within the time limit, the problem that it is one of, and the trace to it.

    The best plan of every stricter reading of the model is a candidate; where that is the best, its
    tick may be finer than that of ``prepared``.
    """
    trace: list[TracePoint] = []

    def record(of: Prepared, plan: SchedulePlan) -> None:
        bound_ms = of.reduction.problem.ms(of.reduction.bound.ticks)
        point = TracePoint(working_s() - began, length_ms(of, plan), bound_ms, plan.source, LOADS)
        if not trace or point.incumbent_ms != trace[-1].incumbent_ms:
            trace.append(point)
            if on_point is not None:
                on_point(point)

    ended, late = _limits(prepared.settings, began, stop)
    best = _best_of_own(prepared, candidates, ended, partial(record, prepared))
    of, best = _never_behind_stricter(prepared, best, candidates, late, {})
    record(of, best)
    return of, best, trace


def _best_of_own(
    prepared: Prepared,
    candidates: Candidates | None,
    ended: Stop,
    better: Callable[[SchedulePlan], None] | None = None,
) -> SchedulePlan:
    """Return the best of the plans by rules and candidates; ``better`` is told each better one."""
    best = prepared.planner.best_plan(ended, better)
    if candidates is not None and not ended():
        for plan in candidates(prepared):
            if plan.cost < best.cost:
                best = keeping_reduced(plan, best)
                if better is not None:
                    better(best)
    return best


def _never_behind_stricter(
    prepared: Prepared,
    best: SchedulePlan,
    candidates: Candidates | None,
    late: Stop,
    known: dict[Settings, tuple[Prepared, SchedulePlan]],
) -> tuple[Prepared, SchedulePlan]:
    """Return the best of a plan and those of every stricter reading planned before ``late``, and its problem.

    ``known`` keeps the best plan of each reading, which several others are relaxations of.
    """
    graph, cluster = prepared.graph, prepared.cluster
    if graph is None or cluster is None:
        return prepared, best
    for settings in stricter(prepared.settings, cluster):
        if settings not in known:
            try:
                if late():
                    continue
                strict = prepare(graph, cluster, settings)
                bound_ms = strict.reduction.problem.ms(strict.reduction.bound.ticks)
                if bound_ms >= length_ms(prepared, best):
                    continue  # no plan of it is shorter
                plan = _best_of_own(strict, candidates, late)
                known[settings] = _never_behind_stricter(strict, plan, candidates, late, known)
            except InputError:  # too many ports to book, where circuits per slot need no booking
                continue
        strict, plan = known[settings]
        if length_ms(strict, plan) < length_ms(prepared, best):
            prepared, best = carried_over(plan, strict, prepared)
    return prepared, best
