"""The timeline: the whole iteration as an image, a window slider on its axis, the Gantt chart and the port use below."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from topox_core.figures.gantt import gantt, in_view, name_kinds_elsewhere, window_words
from topox_core.figures.lanes import Lanes, first_window, overview, port_use
from topox_core.figures.palette import Theme
from topox_core.model.execution import port_table
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import and_more, short
from topox_ui.answers.solving import Drawn
from topox_ui.runs.owner import once
from topox_ui.shell.charts import chart, chart_title, clicked_facts, escape, task_table, title_row
from topox_ui.state.address import keep_address
from topox_ui.state.choices import ScheduleState
from topox_ui.state.widgets import control, menu

HINT = "Number in a port bar: destination server. Outline and dotted line: critical path. Click a bar for its task."


@dataclass(frozen=True)
class _Charts:
    """The charts of one window, and how many bars are in it."""

    whole: go.Figure
    gantt: go.Figure
    bars: int
    ports: go.Figure

    @property
    def size_bytes(self) -> int:
        """About how much memory they take; figures are many small objects, slow to weigh."""
        return 300_000 + 1_500 * self.bars


def _draw(parts: Drawn, lanes: Lanes, window: tuple[float, float], theme: Theme) -> _Charts:
    execution = parts.execution
    figure = gantt(execution, parts.bars, lanes, window, parts.path, theme)
    name_kinds_elsewhere(figure, execution, parts.bars)
    return _Charts(
        overview(parts.image, parts.image_rows, lanes, execution.makespan_ms, window, theme),
        figure,
        len(in_view(parts.bars, lanes, window)),
        port_use(execution, window, theme),
    )


@st.fragment
def timeline(token: str, parts: Drawn, theme: Theme) -> None:
    """Draw the timeline of a result, whose token is given; its sliders redraw nothing else."""
    execution = parts.execution
    with st.container(key="timeline"):
        lanes = _lanes(parts, _picked(parts) or HINT)
        window = _window(parts, lanes, execution.makespan_ms, execution.cluster.slot_ms)
        key = f"{token}|{lanes.first}|{lanes.last}|{window}|{theme.name}|{theme.scale}"
        charts = once("timeline", key, lambda: _draw(parts, lanes, window, theme))
        chart(
            charts.whole,
            "overview",
            f"The whole iteration of {short(execution.makespan_ms)} ms, server by server; the window is framed.",
        )
        chart(
            charts.gantt,
            "gantt",
            f"Gantt chart of servers {lanes.first} to {lanes.last} from {short(window[0])} to {short(window[1])} ms: "
            f"{charts.bars} bars. The table below has the same tasks.",
            lambda: task_table(execution, parts.path, window),
            "Tasks in this window",
            on_click=lambda _facts: None,  # the title says which, when the timeline is drawn next
            before_table=window_words(window, charts.bars),
        )
        chart_title("Out-ports in use", "colour: what they carry; hatched: dark", beside=True)
        chart(
            charts.ports,
            "ports",
            "Out-ports that carry data or are dark, over the same time window.",
            lambda: port_table(execution),
            "Every out-port",
        )
    keep_address()


def _window(parts: Drawn, lanes: Lanes, makespan_ms: float, slot_ms: float) -> tuple[float, float]:
    """Draw the slider that owns the time window; return the window."""
    now = ScheduleState.now()
    low, high = now.from_ms, now.to_ms
    if low is None and high is None:
        low, high = first_window(parts.bars, lanes, makespan_ms, slot_ms)
    low, high = (
        min(low or 0.0, makespan_ms),
        min(high if high is not None else makespan_ms, makespan_ms),
    )
    if high - low < makespan_ms * 1e-4:
        low, high = 0.0, makespan_ms
    step = _step(makespan_ms)
    stops = np.arange(0.0, makespan_ms, step)
    # A last stop so close to the end would read as the end does.
    stops = stops[(stops == 0) | (makespan_ms - stops > step / 10)]
    ends = np.unique(np.append(stops, makespan_ms)).round(9).tolist()
    digits = max(0, 1 - int(np.floor(np.log10(step))))
    low, high = (min(ends, key=lambda e: abs(e - value)) for value in (low, high))
    if low >= high:
        low, high = ends[0], ends[-1]
    control(
        "select_slider",
        "Time window",
        ScheduleState,
        "from_ms",
        value=(low, high),
        options=ends,
        words=lambda v: f"{round(v, digits):,.9g} ms",
        take=_choose_window,
        at=st.container(key="w"),
        label_visibility="collapsed",
    )
    return low, high


def _choose_window(window: tuple[float, float]) -> None:
    if window[0] < window[1]:
        ScheduleState.choose(from_ms=window[0], to_ms=window[1])


def _step(makespan_ms: float) -> float:
    """Return a round step that gives the slider 200 to 500 stops."""
    raw = makespan_ms / 400 if makespan_ms else 1.0
    power = 10.0 ** np.floor(np.log10(raw))
    return float(min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(np.log(s / raw))))


def _lanes(parts: Drawn, note: str) -> Lanes:
    """Write the title, beside it which servers are in view where not all fit; return the lanes in view."""
    lanes, most = parts.lanes, parts.lanes.most_servers
    if most >= lanes.servers:
        chart_title("Timeline", note, beside=True)
        return lanes.showing(0, lanes.servers - 1)
    first = ScheduleState.now().first_server
    if first is None:  # Open where the critical path begins.
        on_chain = parts.bars.server[np.isin(parts.bars.node, parts.path.nodes)]
        first = int(on_chain[0]) if len(on_chain) else 0
    [choice] = title_row((3.2, 1), "Timeline", note, beside=True)
    first = menu(
        "Servers in view",
        ScheduleState,
        "first_server",
        {
            s: f"servers {s} to {min(s + most, lanes.servers) - 1}"
            for s in range(0, lanes.servers, most)
        },
        value=first // most * most,
        at=choice,
        label_visibility="collapsed",
    )
    return lanes.showing(first, first + most - 1)


def _picked(parts: Drawn) -> str:
    """Return the facts of the bar that was clicked, as HTML, or nothing."""
    facts = clicked_facts("gantt")
    if not facts:
        return ""
    task, what, place, start, end, lasts, critical = map(str, facts)
    execution = parts.execution
    graph = execution.graph
    ids = (k for k, one in enumerate(graph.ids) if escape_untrusted(one, "figure") == task)
    node = graph.ids.index(task) if task in graph.ids else next(ids, -1)
    waits = ""
    if node >= 0:
        before = graph.pred_idx[graph.pred_ptr[node] : graph.pred_ptr[node + 1]]
        names = [
            graph.ids[i]
            for i in before[np.argsort(-execution.end_ms[before])].tolist()
            if graph.ids[i]
        ]
        if names:
            waits = f" · after {', '.join(names[:2])}{and_more(len(names), 2)}"
    words = f" · {what} · {place} · {start} to {end} ms ({lasts} ms){waits}{' · critical' if critical else ''}"
    return f"<b>{escape(graph.ids[node] if node >= 0 else task)}</b>{escape(words)}"
