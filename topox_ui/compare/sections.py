"""All fabrics below the first figures: every iteration on one clock, or one of them lane by lane; and what if something breaks."""

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.comparison.failures import FailureOutcome, FixedCircuits, after_failure
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.figures.iteration.gantt import gantt, in_view, window_words
from topox_core.figures.iteration.lanes import (
    Bars,
    Lanes,
    bars_of,
    first_window,
    image_keys,
    lanes_of,
    sent_at_once,
    strip_image,
)
from topox_core.figures.networks.fabrics import before_after, shown_until, strip_words, strips
from topox_core.figures.palette import Theme, traffic
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import TRANSFER
from topox_core.text.numbers import percent, short
from topox_core.topology.failures import FAILURES, Failure
from topox_ui.answers.contest import Contest, Runs
from topox_ui.runs.owner import once
from topox_ui.shell.charts import (
    chart,
    chart_title,
    escape,
    legend_line,
    quiet,
    show_error,
    task_table,
    when_opened,
)
from topox_ui.state.choices import CompareState
from topox_ui.state.widgets import control, menu, pick, servers_in_view, stretch_in_view

ALL = "all"


def lanes(contest: Contest, runs: Runs, theme: Theme) -> None:
    """Draw all fabrics as strips on one clock, or the lanes of the chosen one."""
    title, choice = st.columns([2.3, 1], vertical_alignment="bottom")
    names = {ALL: "All fabrics"} | {name: contest.labels[name] for name in runs}
    picked = menu(
        CompareState,
        "lanes",
        names,
        label="Fabric in view",
        at=choice,
        label_visibility="collapsed",
    )
    if picked == ALL:
        chart_title(
            "The iteration on every fabric, on one clock",
            strip_words(next(iter(runs.values())).execution.cluster.servers),
            at=title,
        )
        draw = partial(_all, contest, runs, theme)
        when_opened(f"{len(runs)} small timelines", "clock", draw, compact=True)
        return
    chart_title(
        f"The iteration on {escape(contest.labels[picked])}",
        "outline and dotted line: critical path",
        at=title,
    )
    _one(contest, picked, runs[picked], theme)


def _all(contest: Contest, runs: Runs, theme: Theme) -> None:
    until = shown_until([run.iteration_ms for run in runs.values()])
    images = {
        name: once(
            "strip",
            f"{_token(run)}|{until}",
            lambda run=run: strip_image(run.execution, until),
        )
        for name, run in runs.items()
    }
    used = traffic(next(iter(runs.values())).execution.graph)
    legend_line(image_keys(images.values(), used), theme)
    chart(
        strips(
            images,
            contest.labels,
            {name: run.iteration_ms for name, run in runs.items()},
            until,
            theme,
        ),
        "strips",
        "The iterations of all fabrics on one time axis: "
        + "; ".join(
            f"{contest.labels[name]} ends at {short(run.iteration_ms)} ms"
            for name, run in runs.items()
        ),
        lambda: {
            "fabric": [contest.labels[name] for name in runs],
            "ends at (ms)": [run.iteration_ms for run in runs.values()],
            "first transfer starts (ms)": [
                _transfers_ms(run.execution)[0] for run in runs.values()
            ],
            "last transfer ends (ms)": [_transfers_ms(run.execution)[1] for run in runs.values()],
        },
        "When they end",
    )


def _transfers_ms(execution: Execution) -> tuple[float | None, float | None]:
    """Return when the first transfer starts and the last one ends."""
    moves = execution.graph.kind == TRANSFER
    if not moves.any():
        return None, None
    return float(execution.start_ms[moves].min()), float(execution.end_ms[moves].max())


def _token(run: FabricRun) -> str:
    execution = run.execution
    cluster = execution.cluster
    what = f"{run.fabric}|{execution.graph.digest}|{cluster.digest}|{cluster.name!r}"
    return f"{what}|{run.iteration_ms}|{float(execution.start_ms.sum())}"


def _parts(run: FabricRun) -> tuple[Execution, Lanes, Bars]:
    """Return what is drawn, its lanes and its bars; without circuits a transfer is a bar in its sender's one out lane."""
    drawn, lanes = sent_at_once(run.execution), lanes_of(run.execution)
    return drawn, lanes, bars_of(drawn, lanes)


@st.fragment
def _one(contest: Contest, name: str, run: FabricRun, theme: Theme) -> None:
    execution = run.execution
    drawn, lanes, bars = once("lanes", _token(run), lambda: _parts(run))
    lanes = servers_in_view(CompareState, "lanes_server", lanes)
    whole_ms = execution.makespan_ms
    first_ms = first_window(bars, lanes, whole_ms, execution.cluster.slot_ms)
    window = stretch_in_view(CompareState, whole_ms, first_ms, "lanes_", at=st.container(key="w"))
    shown = in_view(bars, lanes, window)
    chart(
        gantt(drawn, bars, lanes, window, run.path, theme),
        "lanes_gantt",
        f"Gantt chart of {contest.labels[name]} from {short(window[0])} to {short(window[1])} ms: {len(shown)} bars.",
        lambda: task_table(execution, run.path, window),
        "Tasks in this window",
        before_table=window_words(window, len(shown)),
    )


def failures(job: JobRequest, contest: Contest, runs: Runs, theme: Theme) -> None:
    """Offer an expander in which one element is taken out of fixed and of planned circuits."""
    when_opened(
        "What if something breaks",
        "failures",
        lambda: _without_one(job, contest, runs, theme),
        icon="link_off",
    )


def _without_one(job: JobRequest, contest: Contest, runs: Runs, theme: Theme) -> None:
    if not {"static", "scheduled"} & set(runs):
        quiet("Choose fixed or planned circuits on the left: a failure is repaired there.")
        return
    job = replace(job.by_rules, options=contest.options, runs=runs)
    try:
        fixed = once(
            "laid circuits",
            f"{job.key}|{job.settings.seed}|{job.options.topology_variant}",
            lambda: FixedCircuits.of(job),
        )
        failure, at_share = _element(job, fixed)
    except InputError as error:
        show_error(error)
        return
    with st.spinner("Repairing and running again"):
        outcomes = _outcomes(job, fixed, failure, at_share)
    _drawn(failure, outcomes, theme)


def _element(job: JobRequest, fixed: FixedCircuits) -> tuple[Failure, float]:
    """Draw the controls and return what fails, and when, as a share of the scheduled iteration."""
    kind_at, first, second, moment_at = st.columns([1.5, 1, 1, 1.6], vertical_alignment="bottom")
    kind = pick(CompareState, "fails", FAILURES, label="What fails", at=kind_at)
    failure = _failure(kind, job.cluster, fixed, first, second)
    at = control(
        "slider",
        CompareState,
        "failed_at",
        label="Moment, for the schedule",
        at=moment_at,
        min_value=0,
        max_value=90,
        step=5,
        format="%d %%",
        help="When it fails, as a share of the planned iteration. The rest is planned again from there.",
    )
    return failure, at / 100


def _failure(kind: str, cluster: Cluster, fixed: FixedCircuits, first: Any, second: Any) -> Failure:
    """Draw the choice of an element of a kind in one or two places."""
    if kind == "switch":
        switches = range(cluster.switches)
        return Failure.of_switch(
            menu(CompareState, "failed_switch", switches, label="Switch", at=first)
        )
    if kind == "fibre":
        links = {f"{a}-{b}": (a, b) for a, b in fixed.links}
        chosen = menu(
            CompareState,
            "failed_circuit",
            {name: f"S{a} → S{b}" for name, (a, b) in links.items()},
            label="Circuit",
            at=first,
            help="One of the fixed circuits. Circuits that change lose the out-port at its source.",
        )
        return Failure.fibre(*links.get(chosen, (-1, -1)))
    servers = {s: f"S{s}" for s in range(cluster.servers)}
    server = menu(CompareState, "failed_server", servers, label="Server", at=first)
    if kind == "port":
        ports = range(cluster.ports_per_server)
        return Failure.of_port(
            server, menu(CompareState, "failed_port", ports, label="Port", at=second)
        )
    del servers[server]
    if not servers:
        raise InputError(
            "no other server could take the tasks over", file="failure", field="substitute"
        )
    other = menu(CompareState, "substitute", servers, label="Its tasks go to", at=second)
    return Failure.of_server(server, other)


def _outcomes(
    job: JobRequest, fixed: FixedCircuits, failure: Failure, at_share: float
) -> tuple[FailureOutcome, ...]:
    """Return how the fabrics go on, by the times before: a plan may have got better meanwhile."""
    before = {name: run.iteration_ms for name, run in job.runs.items()}
    key = f"{job.key}|{job.settings.seed}|{job.options}|{before}|{failure!r}|{at_share:.9g}"
    return once("failure", key, lambda: after_failure(job, fixed, failure, at_share))


def _drawn(failure: Failure, outcomes: tuple[FailureOutcome, ...], theme: Theme) -> None:
    known = [one for one in outcomes if one.after_ms is not None]
    chart_title(
        f"Without {failure}", "iteration before and after; filled: undisturbed, hatched: degraded"
    )
    if known:
        rows = [(one.label, one.fabric, one.before_ms, float(one.after_ms or 0.0)) for one in known]
        chart(
            before_after(rows, theme),
            "failure",
            "Iteration before and after the failure: "
            + "; ".join(
                f"{label} {short(before)} ms to {short(after)} ms"
                for label, _, before, after in rows
            ),
            lambda: {
                "way": [one.label for one in outcomes],
                "undisturbed (ms)": [one.before_ms for one in outcomes],
                "degraded (ms)": [one.after_ms for one in outcomes],
                "longer": [
                    percent(one.after_ms / one.before_ms - 1)
                    if one.after_ms is not None
                    else "cannot go on"
                    for one in outcomes
                ],
                "what was done": [" ".join(one.done) for one in outcomes],
            },
            "Before and after",
        )
    items = "".join(
        f"<li>{'' if one.after_ms is not None else '<b class=bad>✗</b> '}<b>{escape(one.label)}</b>: "
        f"{escape(_first(one.done))}</li>"
        for one in outcomes
    )
    st.html(f'<ul class="quiet" style="padding-left:1.1rem">{items}</ul>')


def _first(done: tuple[str, ...], most: int = 3) -> str:
    more = f" And {len(done) - most} more, in the table." if len(done) > most else ""
    return " ".join(done[:most]) + more
