"""The one entry to scheduling: any engine, from the best of the rules' plans and of the candidates."""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from topox_core.compiled import working_s
from topox_core.errors import InputError, refuse_if
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import TransferGraph
from topox_core.runs.run import AfterSeconds, Stop, any_of, never
from topox_core.schedule.planning.continuous import (
    Candidates,
    ContinuousPlans,
    plan_on_continuous_time,
)
from topox_core.schedule.planning.planner import (
    Prepared,
    SchedulePlan,
    prepare,
    prepare_problem,
)
from topox_core.schedule.problem import Problem
from topox_core.schedule.race.proof import Proof
from topox_core.schedule.rcpsp.feasibility import impossible
from topox_core.schedule.rcpsp.reduction import ports_on_switch
from topox_core.schedule.results.report import infeasible, to_continuous_result, to_result
from topox_core.schedule.results.result import Result, TracePoint
from topox_core.schedule.settings import TIME, Settings
from topox_core.schedule.source import LOADS, StoppedBy, TraceSource


def stricter(settings: Settings, cluster: Cluster) -> tuple[Settings, ...]:
    """Return the readings one step stricter, on the same cluster and clock, for the list engine.

    A circuit for every transfer is stricter than shared ones, devices that compute one task at a
    time than free ones, circuits that stay on real ports than circuits drawn slot by slot. With one
    port of a server on each switch, cabling and free choice of the switch (``any_port``) are the
    same thing; with several, free choice is stricter, since eqs 9 and 10 then grant one a switch.
    """
    own, steps = settings.by_rules, []
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
    if planner.ports is None:
        return prepared, planner.with_circuits(start, plan.source)
    makespan = int((start + problem.duration).max(initial=0))
    return prepared, replace(plan, start=start, makespan=makespan)


def length_ms(prepared: Prepared, plan: SchedulePlan) -> float:
    """Return the length of a plan, which ticks of another length measure otherwise."""
    return prepared.reduction.problem.ms(plan.makespan)


def _bound_ms(prepared: Prepared) -> float:
    return prepared.reduction.problem.ms(prepared.reduction.bound.ticks)


OnPoint = Callable[[TracePoint], None]


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
        comparison pass the circuit controllers (:func:`topox_core.fabrics.planning.scheduled.schedule`).

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
    return Proof(*_planned(prepare(graph, cluster, settings), began, never, None, candidates))


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
    refuse_if(
        (settings.engine == "printed", "must be list, highs, cpsat or auto (got 'printed')"),
        file="settings",
        field="engine",
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
    settings = prepared.settings
    found = _planned(prepared, began, stop, on_point, candidates)
    prepared, plan, spent_s, trace, plans = found
    known = plans is not None and settings.switching == "provisioned"
    listed = settings.engine == "list" or known
    if not (listed or stop() or (plans is not None and plans.solved)):
        return Proof(*found, blocks=True).finish(stop, on_point)
    stopped_by: StoppedBy = "heuristic" if listed else "cancelled"
    if plans is not None:
        return to_continuous_result(plans, stopped_by, tuple(trace), spent_s)
    bound = prepared.reduction.bound
    if plan.makespan <= bound.ticks:
        stopped_by = "proof"
    return to_result(prepared, plan, bound.ticks, bound.text, stopped_by, tuple(trace), spent_s)


def _planned(
    prepared: Prepared,
    began: float,
    stop: Stop,
    on_point: OnPoint | None,
    candidates: Candidates | None,
) -> tuple[Prepared, SchedulePlan, float, list[TracePoint], ContinuousPlans | None]:
    """Return what a :class:`Proof` begins with: the best plan by rules and candidates within the time limit.

    With the problem that it is one of, the seconds that it took, the trace to it and, on continuous
    time, all plans, of which it is the one whose replay is the best. The best plan of every stricter
    reading of the model is a candidate; where that is the best, its tick may be finer than that of
    ``prepared``.
    """
    trace: list[TracePoint] = []
    # When planning ends, and when no stricter reading is planned any more: an engine wants its time.
    settings = prepared.settings
    ended = late = any_of(stop, AfterSeconds(settings.time_limit_s, began, working_s))
    if settings.engine != "list":
        share_s = TIME.stricter_share * settings.time_limit_s
        late = any_of(ended, AfterSeconds(share_s, began, working_s))

    def note(incumbent_ms: float, bound_ms: float, source: TraceSource) -> None:
        if not trace or incumbent_ms != trace[-1].incumbent_ms:
            trace.append(TracePoint(working_s() - began, incumbent_ms, bound_ms, source, LOADS))
            if on_point is not None:
                on_point(trace[-1])

    if prepared.graph is None or settings.on_slots:
        for best in _better_and_better(prepared, candidates, ended):
            note(length_ms(prepared, best), _bound_ms(prepared), best.source)
        of, best = _never_behind_stricter(prepared, best, candidates, late, {})
        note(length_ms(of, best), _bound_ms(of), best.source)
        return of, best, working_s() - began, trace, None
    plans = ContinuousPlans.of(prepared)
    plans.on_better = lambda best: note(best.makespan_ms, plans.bound.ms, best.source)
    _plan_never_behind_stricter(plans, candidates, ended, late)
    plans.on_better = None
    assert plans.planned_on is not None
    assert plans.plan_to_improve is not None
    if settings.switching == "provisioned":
        settings = replace(settings, time_limit_s=0.0)  # its order is known: nothing to search for
    of = replace(plans.planned_on, settings=settings)
    return of, plans.plan_to_improve, working_s() - began, trace, plans


def _plan_never_behind_stricter(
    plans: ContinuousPlans, candidates: Candidates | None, ended: Stop, late: Stop
) -> None:
    """Plan on continuous time; the best iteration of the stricter reading, planned before ``late``, is a candidate."""
    plan_on_continuous_time(plans, candidates, ended)
    prepared = plans.prepared
    graph, cluster = prepared.graph_and_cluster
    for settings in stricter(prepared.settings, cluster):  # devices held alone
        with suppress(InputError):  # it may be refused where the weaker reading is not
            strict = ContinuousPlans.of(prepare(graph, cluster, settings))
            if late() or plans.best is None or strict.bound.ms >= plans.best.makespan_ms:
                continue
            plan_on_continuous_time(strict, candidates, late)
            if strict.best is not None:
                plans.take_replay(strict.best)
            if strict.slotted is not None:
                plans.take(*carried_over(strict.slotted, strict.prepared, prepared))


def _better_and_better(
    prepared: Prepared, candidates: Candidates | None, ended: Stop
) -> Iterator[SchedulePlan]:
    """Yield plans by rules, then candidates, each better than those before; at least one."""
    for best in prepared.planner.plans(ended):
        yield best
    if candidates is not None and not ended():
        for plan in candidates(prepared):
            if plan.cost < best.cost:
                best = plan
                yield best


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
                if _bound_ms(strict) >= length_ms(prepared, best):
                    continue  # no plan of it is shorter
                *_, plan = _better_and_better(strict, candidates, late)
                known[settings] = _never_behind_stricter(strict, plan, candidates, late, known)
            except InputError:  # too many ports to book, where circuits per slot need no booking
                continue
        strict, plan = known[settings]
        if length_ms(strict, plan) < length_ms(prepared, best):
            prepared, best = carried_over(plan, strict, prepared)
    return prepared, best
