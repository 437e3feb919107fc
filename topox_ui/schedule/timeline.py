"""The timeline: the iteration as an image, its window slider, Gantt chart and port use; and its time if the delay were different."""

import time
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.planning.passed_plans import PassedPlan
from topox_core.fabrics.run import JobRequest
from topox_core.figures.iteration.gantt import gantt, in_view, name_kinds_elsewhere, window_words
from topox_core.figures.iteration.lanes import Lanes, first_window, overview, port_use
from topox_core.figures.iteration.search import delays
from topox_core.figures.palette import Theme
from topox_core.model.execution import port_table
from topox_core.runs.cells import CellsResult, futures_run
from topox_core.schedule.results.result import Result
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import and_more, count, short
from topox_ui.answers.solving import (
    Drawn,
    known,
    known_first_answer,
    known_plans,
    prefetch,
    settled,
    with_plans,
)
from topox_ui.runs.owner import Kept, RunKind, once, run_owner
from topox_ui.shell.charts import (
    as_label,
    chart,
    chart_title,
    clicked_facts,
    escape,
    task_table,
    title_row,
)
from topox_ui.shell.preparing import prepared
from topox_ui.state.choices import ScheduleState
from topox_ui.state.session import Lasting
from topox_ui.state.widgets import servers_in_view, stretch_in_view

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
        whole_ms = execution.makespan_ms
        first_ms = first_window(parts.bars, lanes, whole_ms, execution.cluster.slot_ms)
        window = stretch_in_view(ScheduleState, whole_ms, first_ms, at=st.container(key="w"))
        key = f"{token}|{lanes.first}|{lanes.last}|{window}|{theme.name}|{theme.scale}"
        charts = once("timeline", key, lambda: _draw(parts, lanes, window, theme))
        chart(
            charts.whole,
            "overview",
            f"The whole iteration of {short(whole_ms)} ms, server by server; the window is framed.",
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


def _lanes(parts: Drawn, note: str) -> Lanes:
    """Write the title, beside it which servers are in view where not all fit; return the lanes in view."""
    if parts.lanes.most_servers >= parts.lanes.servers:
        chart_title("Timeline", note, beside=True)
        return parts.lanes
    # Open where the critical path begins.
    on_chain = parts.bars.server[np.isin(parts.bars.node, parts.path.nodes)]
    first = int(on_chain[0]) if len(on_chain) else 0
    [choice] = title_row((3.2, 1), "Timeline", note, beside=True)
    return servers_in_view(ScheduleState, "first_server", parts.lanes, first, at=choice)


def _picked(parts: Drawn) -> str:
    """Return the facts of the bar that was clicked, as HTML, or nothing."""
    facts = clicked_facts("gantt")
    if not facts:
        return ""
    task, what, place, start, end, lasts, critical = map(str, facts)
    execution = parts.execution
    graph = execution.graph
    shown = (escape_untrusted(one, "figure") for one in graph.ids)
    node = next((k for k, one in enumerate(shown) if one == task), -1)
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


STEPS = (0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 100.0)
MAX_TASKS = 3_000
# The other delays are asked for once the page has stood still for so long, and looked for as often.
PAINTED_S = 1.0
# So many points are shared between sessions; a point is three numbers and a word.
MAX_SHARED = 20_000
DELAYS = RunKind("delays", most_kept=24 * len(STEPS), most_slots=0)
# The large graph whose delays the reader asked for.
_ASKED_FOR = Lasting[str]("delays_for")


@dataclass(frozen=True)
class DelayPoint:
    """Makespan, bound and status at one delay; None and an empty status where there is no schedule."""

    makespan_ms: float | None = None
    bound_ms: float | None = None
    status: str = ""

    @staticmethod
    def of(result: Result) -> "DelayPoint":
        """Return the point of a result."""
        return DelayPoint(result.makespan_ms, result.bound_ms, result.status)


def delay_panel(job: JobRequest, result: Result, theme: Theme) -> None:
    """Draw the curve; a large graph waits for a button, circuits that pay no delay have none.

    The page is painted with the delays that are known, and the others follow.
    """
    owner = run_owner()
    if job.settings.circuits == "per-slot" or result.execution is None:
        owner.end(DELAYS)
        return
    at_delays = _at_delays(job)
    chart_title("If the delay were different", "iteration time, ms (log); dotted: lower bound")
    if _waits_for_a_click(job, result):
        st.button(
            f"Try {len(at_delays)} delays",
            key="try_delays",
            on_click=lambda: _ASKED_FOR.set(job.task_graph.digest),
            help=f"{count(len(job.task_graph.tasks))} tasks: takes a few seconds.",
        )
        return
    points, planned = dict[float, DelayPoint](), _planned()
    for delay, one in reversed(at_delays.items()):  # a plan serves every shorter delay
        there = result if one is job else known(one) or known_first_answer(one)
        points[delay] = planned.get(one.key, DelayPoint())
        if there is not None:
            points[delay] = DelayPoint.of(with_plans(one, there))
    _drawn({delay: points[delay] for delay in at_delays}, job.cluster.reconfiguration_ms, theme)
    if delays_to_come(job, result):
        _when_painted(job, result, time.monotonic())


def delays_to_come(job: JobRequest, result: Result) -> dict[float, JobRequest]:
    """Return the job at the delays that are still to be planned, from the shortest: a plan for a longer one may be shorter here."""
    if job.settings.circuits == "per-slot" or _waits_for_a_click(job, result):
        return {}
    planned = _planned()
    return {
        delay: one
        for delay, one in _at_delays(job).items()
        if one is not job and one.key not in planned and not settled(one)
    }


def _at_delays(job: JobRequest) -> dict[float, JobRequest]:
    """Return the job at every delay of the curve, from the shortest, its own among them."""
    now = job.cluster.reconfiguration_ms
    return {
        delay: job if delay == now else job.at_delay(delay)
        for delay in sorted({*(step * job.cluster.slot_ms for step in STEPS), now})
    }


def _waits_for_a_click(job: JobRequest, result: Result) -> bool:
    """Whether a graph is so large that its delays are planned only when asked for."""
    tasks = 0 if result.execution is None else len(result.execution.graph)
    return tasks > MAX_TASKS and _ASKED_FOR.get() != job.task_graph.digest


@st.cache_resource(show_spinner=False)
def _listed() -> Kept[DelayPoint]:
    """Return the points of list schedules that any session had worked out; names are in the keys, not in the points."""
    return Kept(MAX_SHARED)


def _planned() -> Mapping[str, DelayPoint]:
    """Return the points that were planned beside pages, and empty ones where there is no answer."""
    return ChainMap(run_owner().results(DELAYS), _listed())


@st.fragment(run_every=PAINTED_S)
def _when_painted(job: JobRequest, result: Result, painted_s: float) -> None:
    """Have the delays that are not known scheduled once the page is painted, and the curve drawn again when they are."""
    owner, left = run_owner(), delays_to_come(job, result)
    owner.ended(DELAYS)
    if not left:
        owner.end(DELAYS)  # another session may have had them worked out
        st.rerun()
    if time.monotonic() - painted_s < PAINTED_S / 2:
        owner.end(DELAYS)  # of the setting before
    elif prepared() and owner.run(DELAYS, job.key) is None:
        asked = {delay: prefetch(one) for delay, one in left.items()}
        owner.start(
            DELAYS,
            job.key,
            lambda _slots: futures_run(asked, partial(_keep, left)),
            partial(_keep_lost, left, owner.results(DELAYS)),
        )


def _keep(jobs: dict[float, JobRequest], delay: float, result: Result) -> None:
    """Keep what was scheduled behind what anybody waits for: its plan before its point, which the page is drawn again for."""
    known_plans().add(jobs[delay].key_of_plans, PassedPlan.of(result))
    _listed()[jobs[delay].key] = DelayPoint.of(result)


def _keep_lost(
    jobs: dict[float, JobRequest],
    points: MutableMapping[str, DelayPoint],
    result: CellsResult[float, Result],
) -> str:
    """Leave delays empty that have no answer, which would be asked for again without end; return in words what was lost.

    Graph and settings may not go together at a delay: then nothing was.
    """
    for delay in result.failures:
        points[jobs[delay].key] = DelayPoint()
    lost = {k: one for k, one in result.failures.items() if not isinstance(one, InputError)}
    return ". ".join(replace(result, failures=lost).lost)


def _drawn(points: Mapping[float, DelayPoint], now: float, theme: Theme) -> None:
    if note := run_owner().note(DELAYS):
        st.caption(as_label(note))
    makespans = [point.makespan_ms for point in points.values()]
    bounds = [point.bound_ms for point in points.values()]
    chart(
        delays(list(points), makespans, min(ms for ms in bounds if ms is not None), now, theme),
        "delays",
        "Iteration time by reconfiguration delay: "
        + ", ".join(
            f"{delay:g} ms gives {short(ms)} ms"
            for delay, ms in zip(points, makespans, strict=True)
            if ms is not None
        ),
        lambda: {
            "delay (ms)": list(points),
            "iteration (ms)": makespans,
            "bound (ms)": bounds,
            "status": [point.status for point in points.values()],
        },
    )
