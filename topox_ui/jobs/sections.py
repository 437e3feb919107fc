"""Sharing below its first screen: one section at a time, so that only what is looked at is computed."""

from __future__ import annotations

import streamlit as st

from topox_core.figures.jobs import lasting, pod_gantt, pod_view, stage_name
from topox_core.figures.palette import Theme
from topox_core.model.execution import Execution
from topox_core.tdm.model.as_execution import execution_of
from topox_core.tdm.model.bottleneck import link_view
from topox_core.tdm.model.round import Cycle
from topox_core.text.numbers import plural
from topox_ui.jobs.solving import Rounds, token
from topox_ui.jobs.state import SECTIONS, JobsState
from topox_ui.jobs.study import study
from topox_ui.jobs.views import how_found, job_table, links, pod_groups, view_of
from topox_ui.runs.shared import once
from topox_ui.shell.charts import Content, chart, task_table
from topox_ui.shell.page import quiet, title_row, when_opened
from topox_ui.state.address import keep_address
from topox_ui.state.widgets import menu, pick

WHOLE = -1


@st.fragment
def _pod(rounds: Rounds, theme: Theme) -> None:
    """Draw the Gantt chart of one pod; its controls redraw nothing else."""
    best = rounds.best
    now = JobsState.now()
    shown = view_of(best, now)
    members = best.jobs.of_group(shown.pod_group)
    cycle = best.cycle_of(shown.pod_group)
    execution = once(
        "pod group",
        f"{token(rounds.case, best)}|{shown.pod_group}",
        lambda: execution_of(best, shown.pod_group),
    )
    left, right = title_row(
        (2, 0.6, 2),
        f"One pod of pod group {shown.pod_group}",
        "Its jobs, then its ports; in a port’s bar: the pod at the other end. Dotted: all wait",
    )
    everyone = {p: f"pod {p}" for p in range(best.jobs.network.pods_per_group)}
    busiest = int(link_view(best, shown.pod_group, shown.group, shown.way).ports.argmax())
    pod = menu(
        "Pod",
        JobsState,
        "pod",
        everyone,
        value=now.pod if now.pod in everyone else busiest,
        at=left,
        label_visibility="collapsed",
    )
    window = _window(cycle, right)
    keep_address()
    view = pod_view(execution, pod, [best.jobs.jobs[n].id for n in members])
    if not len(view.bars):
        quiet(f"No job of this pod group uses pod {pod}.")
        return
    chart(
        pod_gantt(view, window, theme),
        "pod_gantt",
        f"Pod {pod} of pod group {shown.pod_group} in a round of {lasting(cycle.round_s)}: "
        f"{plural(len(view.lanes.jobs), 'job')}, {plural(len(view.lanes.ports), 'port')} in use. The table has every task.",
        lambda: _tasks(execution, pod),
        "Every task of this pod",
    )


def _window(cycle: Cycle, place: st.delta_generator.DeltaGenerator) -> tuple[float, float]:
    """Draw which stage fills the axis; return its begin and end in ms."""
    stages = {n: phase for n, phase in enumerate(cycle.phases) if phase.end_s > phase.start_s}
    words = {n: stage_name(one.group, one.way) for n, one in stages.items()}
    stage = pick(
        "Time",
        JobsState,
        "pod_stage",
        {WHOLE: "whole round", **words},
        at=place,
        label_visibility="collapsed",
    )
    if stage == WHOLE:
        return 0.0, 1000 * cycle.round_s
    return 1000 * stages[stage].start_s, 1000 * stages[stage].end_s


def _tasks(execution: Execution, pod: int) -> Content:
    rows = task_table(execution)
    return rows[
        (rows["server"] == pod) | (rows["source"] == pod) | (rows["destination"] == pod)
    ].drop(columns=["device", "switch", "critical"])


def section(rounds: Rounds, now: JobsState, theme: Theme) -> None:
    """Draw the choice of a section, and that section."""
    several = rounds.best.jobs.network.pod_groups > 1
    have = {name: words for name, words in SECTIONS.items() if several or name != "groups"}
    see = pick("Details", JobsState, "see", have, label_visibility="collapsed")
    if see == "groups" and several:
        pod_groups(rounds, theme)
    elif see == "search":
        how_found(rounds, theme)
    elif see == "study":
        study(now, theme)
    elif see == "jobs":
        job_table(rounds)
    else:
        links(rounds, now, theme)
        when_opened("One pod on the clock, port by port", "jobs_pods", lambda: _pod(rounds, theme))
