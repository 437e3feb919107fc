"""The contest that the Compare page chooses: its fabrics, what is known of its maps, its runs, each kept by its setting."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from topox_core.economics.clusters import same_cost_nic_gbps
from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import check_delay, compare
from topox_core.fabrics.comparison.words import FULL, YARDSTICK, why_not
from topox_core.fabrics.crossover.sweep import ColumnResult, Point, Sweep, at_point, usual_axes
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.passed_plans import PassedPlan
from topox_core.fabrics.planning.scheduled import better_run
from topox_core.fabrics.registry import ENTRIES, FABRICS, SPOKEN
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.runs.run import Stop
from topox_core.text.numbers import plural
from topox_ui.answers.solving import (
    joined,
    known,
    known_plans,
    with_plans,
)
from topox_ui.runs.owner import Kept, session_over
from topox_ui.state.choices import ContestState
from topox_ui.state.prices import catalogue


@dataclass(frozen=True)
class Contest:
    """Which fabrics compete, with their options, their names in words and those within a sentence."""

    fabrics: tuple[str, ...]
    options: FabricOptions
    labels: Mapping[str, str]
    spoken: Mapping[str, str]


def contest_of(job: JobRequest) -> Contest:
    """Return the contest that the Compare page chooses on a job's cluster."""
    cluster, now = job.cluster, ContestState.now()
    options = FabricOptions(topology_variant=now.variant)
    words, spoken = "Fat-tree, same cost", "a fat-tree of the same cost"
    if now.fat_tree == "cost":
        nic_gbps = same_cost_nic_gbps(cluster, catalogue(), now.cost_ratio)
        options = replace(options, equivalent_gbps=nic_gbps)
    else:
        rack = now.servers_per_rack or max(1, cluster.servers // 4)
        options = replace(
            options,
            oversubscription=now.oversubscription,
            servers_per_rack=min(rack, cluster.servers),
        )
        words = f"Fat-tree, {options.oversubscription:g}:1"
        spoken = f"a fat-tree oversubscribed {options.oversubscription:g}:1"
    fabrics = tuple(name for name in FABRICS if name in now.fabrics)
    return Contest(fabrics, options, {**FABRICS, "fat_tree": words}, {**SPOKEN, "fat_tree": spoken})


MAX_CALLS = 500  # kept for all sessions: some seven maps, each call with a schedule


@st.cache_resource(show_spinner=False)
def map_calls() -> Kept[Point | ColumnResult]:
    """Return what has been computed for maps, for all sessions: the same input has the same map."""
    return Kept(MAX_CALLS)


def sweep_of(job: JobRequest, contest: Contest, by: Literal["port_gbps", "degree"]) -> Sweep:
    """Return the map of a job: its own speed or degree says where it is cut; its delay does not matter.

    Raises
    ------
    InputError
        If a degree does not go with the cluster's switches.
    """
    fabrics = tuple(name for name in contest.fabrics if name not in (YARDSTICK, FULL))
    axes, now, nic_gbps = usual_axes(job.cluster, by), ContestState.now(), ()
    if now.fat_tree == "cost":
        places = [at_point(job.cluster, by, value, 0.0) for value in axes.values]
        nic_gbps = tuple(same_cost_nic_gbps(one, catalogue(), now.cost_ratio) for one in places)
    options = replace(contest.options, equivalent_gbps=None)
    return Sweep(
        job.task_graph, job.cluster, job.by_rules.settings, axes, fabrics, options, nic_gbps
    )


def map_plans(job: JobRequest, contest: Contest) -> tuple[PassedPlan, ...]:
    """Return the plans that maps have for a job at any delay."""
    if job.settings.circuits == "per-slot" or not set(contest.fabrics) - {YARDSTICK, FULL}:
        return ()
    sweep = sweep_of(job, contest, "port_gbps")
    if job.cluster.port_gbps not in sweep.axes.values:
        return ()
    return sweep.column(job.cluster.port_gbps, map_calls()).plans


Runs = dict[str, FabricRun]
WORTH_A_WORD = 1_500  # tasks; fewer run before a spinner could be read


def run_all(job: JobRequest, contest: Contest) -> tuple[Runs, tuple[str, ...]]:
    """Run what has not been run for this very setting; return the runs, and a line for each reason why others cannot.

    Raises
    ------
    InputError
        If the delay is absurd, or no fabric can run.
    """
    check_delay(job.cluster)
    runs: Runs = {}
    refused: dict[str, InputError] = {}
    large = len(job.task_graph.tasks) >= WORTH_A_WORD
    # The ideal switch comes last: what the others do is among its candidates.
    order = sorted(contest.fabrics, key=lambda name: name == "ideal")
    for k, name in enumerate(order, start=1):
        words = f"{contest.labels[name]}, {k} of {len(contest.fabrics)}: {plural(len(job.task_graph.tasks), 'task')}"
        try:
            with st.spinner(words) if large else nullcontext():
                run = _run(
                    _key(job, name, contest.options, runs),
                    job,
                    name,
                    contest.options,
                    runs,
                    session_over(),
                )
        except InputError as error:
            refused[name] = error
            if len(refused) == len(contest.fabrics):
                raise
            continue
        runs[name] = _best_plan(job, contest, run) if name == "scheduled" else run
    ordered = {name: runs[name] for name in contest.fabrics if name in runs}
    return ordered, why_not(refused, contest.labels)


@st.fragment(run_every=1.0)
def redraw_when_shorter(job: JobRequest, planned: FabricRun) -> None:
    """Draw a page again once a plan is known that is shorter than the one in view."""
    if (
        planned.result
        and (with_plans(job, planned.result).makespan_ms or 0.0) < planned.iteration_ms
    ):
        st.rerun()


def _key(job: JobRequest, name: str, options: FabricOptions, runs: Runs) -> str:
    # No page gives a layout; whatever else a fabric reads, circuits that stay may be beside it.
    read = {"topology_variant", *ENTRIES[name].options} - {"layout"}
    own = [getattr(options, one) for one in sorted(read)]
    # A plan that is better by now may be better than the ideal switch was; a plan may keep circuits
    # that were searched.
    known = [
        run.iteration_ms
        for one, run in runs.items()
        if name == "ideal" or (name == "scheduled" and one == "static_graph")
    ]
    return f"{job.key}|{job.settings.seed}|{name}|{own}|{known}"


@st.cache_resource(max_entries=256, show_spinner=False)
def _run(
    key: str,  # noqa: ARG001
    _job: JobRequest,
    name: str,
    _options: FabricOptions,
    _known: Runs,
    _over: Stop,
) -> FabricRun:
    settings = _job.by_rules.settings
    runs = compare(_job.task_graph, _job.cluster, settings, (name,), _options, _over, known=_known)
    if _over():  # nobody is there to see it, and what was cut short is not for others
        raise StopException
    return runs[name]


def _best_plan(job: JobRequest, contest: Contest, run: FabricRun) -> FabricRun:
    """Return the run of the best plan that is known, from the map and other pages too, who hear of it."""
    for plan in map_plans(job, contest):
        known_plans().add(job.key_of_plans, plan)
    mine, proved = run.result, known(job)
    if mine is None or mine.makespan_ms is None:
        return run
    best = with_plans(job, mine if proved is None else joined(mine, proved))
    return run if best is mine else better_run(run, best)
