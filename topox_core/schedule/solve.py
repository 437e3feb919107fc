"""The front door: schedule a task graph on a cluster with any engine, and get one kind of result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.stopping import Stop, never
from topox_core.schedule.bounds.best_bound import best_bound
from topox_core.schedule.engines.engine import Answer, Limits, OnProgress, Progress, silent
from topox_core.schedule.feasibility import impossible
from topox_core.schedule.folding.folded_proof import started
from topox_core.schedule.planner import Planner, Prepared, SchedulePlan, prepare
from topox_core.schedule.portfolio import Portfolio, opening
from topox_core.schedule.problem import Problem
from topox_core.schedule.proof import Proof
from topox_core.schedule.report import story_line, to_result
from topox_core.schedule.result import Result, StoryLine
from topox_core.schedule.settings import Settings

POLL_S = 0.02

OnLine = Callable[[StoryLine], None]


def no_lines(line: StoryLine) -> None:
    """Take no notice of the story."""


def quick(
    graph: TaskGraph,
    cluster: Cluster,
    settings: Settings,
    stop: Stop = never,
    on_line: OnLine = no_lines,
) -> Result:
    """Return the list schedule with its bound; what every slider move asks for.

    Raises
    ------
    InputError
        If graph, cluster and settings do not go together; file and field are named.
    """
    began = time.monotonic()
    prepared = prepare(graph, cluster, replace(settings, engine="list"))
    story: list[StoryLine] = []
    plan = _listed(prepared, stop, began, story, on_line)
    return _list_result(prepared, plan, story, time.monotonic() - began)


def solve(
    graph: TaskGraph,
    cluster: Cluster,
    settings: Settings,
    stop: Stop = never,
    on_line: OnLine = no_lines,
) -> Result:
    """Schedule one training iteration and return the result with its bound.

    Parameters
    ----------
    settings
        ``engine`` says who solves: ``list`` alone, ``highs``, ``cpsat`` or ``printed`` from the
        list schedule on, ``auto`` all together, within ``threads`` cores.
    stop
        Asked now and then; True ends the solve with the best schedule so far.
    on_line
        Told every improvement of schedule or bound.

    Raises
    ------
    InputError
        If graph, cluster and settings do not go together; file and field are named.
    """
    if settings.engine == "list":
        return quick(graph, cluster, settings, stop, on_line)
    began = time.monotonic()
    prepared = prepare(graph, cluster, settings)
    story: list[StoryLine] = []
    plan = _listed(prepared, stop, began, story, on_line)
    return started(prepared, plan, time.monotonic() - began, story).finish(stop, on_line)


def prove(graph: TaskGraph, cluster: Cluster, settings: Settings) -> Proof:
    """Return a solve that runs in the background, started from the list schedule.

    Raises
    ------
    InputError
        As :func:`solve`.
    """
    began = time.monotonic()
    prepared = prepare(graph, cluster, settings)
    story: list[StoryLine] = []
    plan = _listed(prepared, never, began, story, no_lines)
    return started(prepared, plan, time.monotonic() - began, story)


def solve_problem(
    problem: Problem,
    engine: str,
    limits: Limits,
    stop: Stop = never,
    on_progress: OnProgress = silent,
) -> Answer:
    """Solve a bare problem (PSPLIB) with the same engines: ``list``, ``highs``, ``cpsat`` or ``auto``.

    Raises
    ------
    InputError
        If the engine is not one of these.
    """
    if engine not in ("list", "highs", "cpsat", "auto"):
        raise InputError(
            f"must be list, highs, cpsat or auto (got {engine!r})", file="settings", field="engine"
        )
    began = time.monotonic()
    bound = best_bound(problem, 0)
    reason = impossible(problem)
    if reason is not None:
        return Answer(None, bound.ticks, bound.text, "proof", infeasible=True, message=reason)
    planner = Planner.of(problem, bound.ticks, continuous=False, dark_slots=0)

    def tell(plan: SchedulePlan) -> None:
        on_progress(Progress(time.monotonic() - began, plan.makespan, bound.ticks, plan.source))

    plan = planner.best_plan(stop, tell)
    listed = Answer(
        plan.start,
        bound.ticks,
        bound.text,
        "proof" if plan.makespan <= bound.ticks else "heuristic",
    )
    if engine == "list" or listed.stopped_by == "proof":
        return listed
    known = opening(planner, plan, bound.text, limits)
    left = max(0.0, limits.time_limit_s - (time.monotonic() - began))
    limits = replace(limits, time_limit_s=left, bound=known.bound, start=None)
    race = Portfolio(planner, known.plan, engine, limits, known.bound_by, known.steered)
    try:
        while race.running:
            for moment in race.poll():
                on_progress(
                    Progress(moment.elapsed_s, moment.makespan, moment.bound, moment.source)
                )
            if stop():
                race.cancel()
            time.sleep(POLL_S)
        return Answer(
            race.plan.start, race.bound, race.bound_by, race.stopped_by, message=race.message
        )
    finally:
        race.close()


def _listed(
    prepared: Prepared, stop: Stop, began: float, story: list[StoryLine], on_line: OnLine
) -> SchedulePlan:
    """Return the best plan by rules, telling and keeping every better one."""
    bound = prepared.reduction.bound.ticks

    def tell(plan: SchedulePlan) -> None:
        line = story_line(prepared, time.monotonic() - began, plan.makespan, bound, plan.source)
        if not story or line.incumbent_ms != story[-1].incumbent_ms:
            story.append(line)
            on_line(line)

    return prepared.planner.best_plan(
        lambda: stop() or time.monotonic() - began > prepared.settings.time_limit_s, tell
    )


def _list_result(
    prepared: Prepared, plan: SchedulePlan, story: list[StoryLine], wall_s: float
) -> Result:
    bound = prepared.reduction.bound
    return to_result(
        prepared,
        plan,
        bound.ticks,
        bound.text,
        "proof" if plan.makespan <= bound.ticks else "heuristic",
        tuple(story),
        wall_s,
    )
