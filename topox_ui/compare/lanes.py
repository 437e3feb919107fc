"""Every fabric's iteration on one clock, or one of them lane by lane."""

from __future__ import annotations

import streamlit as st

from topox_core.fabrics.run import FabricRun
from topox_core.figures.fabrics import shown_until, strip_words, strips
from topox_core.figures.gantt import gantt, in_view, window_words
from topox_core.figures.lanes import (
    Bars,
    Lanes,
    bars_of,
    first_window,
    lanes_of,
    sent_at_once,
    strip_image,
)
from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    CATEGORY_WORDS,
    Theme,
    category_words,
    traffic,
    traffic_category,
)
from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import TRANSFER
from topox_core.text.numbers import short
from topox_ui.answers.contest import Contest, Runs
from topox_ui.compare.state import CompareState
from topox_ui.runs.shared import once
from topox_ui.shell.charts import chart, chart_title, escape, legend_line, task_table
from topox_ui.state.address import keep_address
from topox_ui.state.widgets import control, menu

ALL = "all"


def lanes(contest: Contest, runs: Runs, theme: Theme) -> None:
    """Draw all fabrics as strips on one clock, or the lanes of the chosen one."""
    title, choice = st.columns([2.3, 1], vertical_alignment="bottom")
    names = {ALL: "All fabrics"} | {name: contest.labels[name] for name in runs}
    picked = menu(
        "Fabric in view", CompareState, "lanes", names, at=choice, label_visibility="collapsed"
    )
    if picked == ALL:
        with title:
            chart_title(
                "The iteration on every fabric, on one clock",
                strip_words(next(iter(runs.values())).execution.cluster.servers),
            )
        _all(contest, runs, theme)
        return
    with title:
        chart_title(
            f"The iteration on {escape(contest.labels[picked])}",
            "outline and dotted line: critical path",
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
    legend_line(_keys(next(iter(runs.values())).execution), theme)
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


def _keys(execution: Execution) -> list[tuple[str, str]]:
    """Return the colours with their words: the picture is an image and has no legend of its own."""
    used = traffic(execution.graph)
    words = category_words(used)
    transfers = {category: words[category] for category in map(traffic_category, used)}
    keys = {**CATEGORY_WORDS, **transfers}
    return [(CATEGORY_COLOURS[category], word) for category, word in sorted(keys.items())]


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
    if lanes.most_servers < lanes.servers:
        most = lanes.most_servers
        first = menu(
            "Servers in view",
            CompareState,
            "lanes_server",
            {
                s: f"servers {s} to {min(s + most, lanes.servers) - 1}"
                for s in range(0, lanes.servers, most)
            },
            label_visibility="collapsed",
        )
        lanes = lanes.showing(first, first + most - 1)
    whole, now = execution.makespan_ms, CompareState.now()
    low, high = first_window(bars, lanes, whole, execution.cluster.slot_ms)
    if now.lanes_to_ms is not None:
        low, high = min(now.lanes_from_ms or 0.0, whole), min(now.lanes_to_ms, whole)
    window = (float(low), float(high))
    control(
        "slider",
        "Time window",
        CompareState,
        "lanes_from_ms",
        value=window,
        min_value=0.0,
        max_value=float(whole),
        step=float(whole) / 400 or None,
        take=lambda w: CompareState.choose(lanes_from_ms=w[0], lanes_to_ms=w[1]),
        format="%.3g ms",
        at=st.container(key="w"),
        label_visibility="collapsed",
    )
    keep_address()
    if window[1] - window[0] < whole * 1e-4:
        window = (0.0, whole)
    shown = in_view(bars, lanes, window)
    chart(
        gantt(drawn, bars, lanes, window, run.path, theme),
        "lanes_gantt",
        f"Gantt chart of {contest.labels[name]} from {short(window[0])} to {short(window[1])} ms: {len(shown)} bars.",
        lambda: task_table(execution, run.path, window),
        "Tasks in this window",
        before_table=window_words(window, len(shown)),
    )
