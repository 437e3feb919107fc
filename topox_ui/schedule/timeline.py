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
from topox_core.fabrics.crossover.passed_plans import PassedPlan
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
    Case,
    Drawn,
    known,
    known_first_answer,
    known_plans,
    prefetch,
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
from topox_ui.state.address import keep_address
from topox_ui.state.choices import ScheduleState
from topox_ui.state.session import Lasting
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


Points = Mapping[str, DelayPoint]


def delay_panel(case: Case, result: Result, theme: Theme) -> None:
    """Draw the curve; a large graph waits for a button, circuits that pay no delay have none.

    The page is painted with the delays that are known, and the others follow.
    """
    owner = run_owner()
    if case.settings.circuits == "per-slot" or result.execution is None:
        owner.end(DELAYS)
        return
    now, cases = case.cluster.reconfiguration_ms, _cases(case)
    chart_title("If the delay were different", "iteration time, ms (log); dotted: lower bound")
    if _waits_for_a_click(case, result):
        st.button(
            f"Try {len(cases)} delays",
            key="try_delays",
            on_click=lambda: _ASKED_FOR.set(case.graph.digest),
            help=f"{count(len(case.graph.tasks))} tasks: takes a few seconds.",
        )
        return
    own: dict[str, DelayPoint] = {}
    for one in reversed(
        cases.values()
    ):  # from the longest delay on: a plan serves every shorter one
        there = result if one is case else known(one) or known_first_answer(one)
        if there is not None:
            own[one.key] = DelayPoint.of(with_plans(one, there))
    points = ChainMap(own, owner.results(DELAYS), _listed())
    _drawn(cases, points, now, theme)
    if _missing(cases, points):
        _when_painted(cases, points, now, time.monotonic())


def delays_to_come(case: Case, result: Result) -> bool:
    """Return whether other delays are still to be planned: a plan for a longer one may be shorter here."""
    if case.settings.circuits == "per-slot" or _waits_for_a_click(case, result):
        return False
    points = ChainMap(run_owner().results(DELAYS), _listed())
    return any(
        one is not case
        and one.key not in points
        and known(one) is None
        and known_first_answer(one) is None
        for one in _cases(case).values()
    )


def _cases(case: Case) -> dict[float, Case]:
    """Return the case at every delay of the curve, from the shortest, its own among them."""
    now = case.cluster.reconfiguration_ms
    return {
        delay: case if delay == now else case.at_delay(delay)
        for delay in sorted({*(step * case.cluster.slot_ms for step in STEPS), now})
    }


def _waits_for_a_click(case: Case, result: Result) -> bool:
    """Whether a graph is so large that its delays are planned only when asked for."""
    tasks = 0 if result.execution is None else len(result.execution.graph)
    return tasks > MAX_TASKS and _ASKED_FOR.get() != case.graph.digest


@st.cache_resource(show_spinner=False)
def _listed() -> Kept[DelayPoint]:
    """Return the points of list schedules that any session had worked out; names are in the keys, not in the points."""
    return Kept(MAX_SHARED)


@st.fragment(run_every=PAINTED_S)
def _when_painted(cases: dict[float, Case], points: Points, now: float, painted_s: float) -> None:
    """Have the delays that are not known scheduled once the page is painted, and the curve drawn again when they are."""
    owner, missing = run_owner(), _missing(cases, points)
    case = cases[now]
    owner.ended(DELAYS)
    if not missing:
        owner.end(DELAYS)  # another session may have had them worked out
        st.rerun()
    if time.monotonic() - painted_s < PAINTED_S / 2:
        owner.end(DELAYS)  # of the setting before
    elif prepared() and owner.run(DELAYS, case.key) is None:
        owner.start(
            DELAYS,
            case.key,
            lambda _slots: futures_run(
                {delay: prefetch(cases[delay]) for delay in missing}, partial(_keep, cases)
            ),
            partial(_keep_lost, cases, owner.results(DELAYS)),
        )


def _keep(cases: dict[float, Case], delay: float, result: Result) -> None:
    """Keep what was scheduled behind what anybody waits for: its plan before its point, which the page is drawn again for."""
    known_plans().add(cases[delay].job_key, PassedPlan.of(result))
    _listed()[cases[delay].key] = DelayPoint.of(result)


def _keep_lost(
    cases: dict[float, Case],
    points: MutableMapping[str, DelayPoint],
    result: CellsResult[float, Result],
) -> str:
    """Leave delays empty that have no answer, which would be asked for again without end; return in words what was lost.

    Graph and settings may not go together at a delay: then nothing was.
    """
    for delay in result.failures:
        points[cases[delay].key] = DelayPoint()
    lost = {k: one for k, one in result.failures.items() if not isinstance(one, InputError)}
    return ". ".join(replace(result, failures=lost).lost)


def _missing(cases: dict[float, Case], points: Points) -> list[float]:
    """Return the delays that have no point yet, from the smallest."""
    return [delay for delay, case in cases.items() if case.key not in points]


def _drawn(cases: dict[float, Case], points: Points, now: float, theme: Theme) -> None:
    if note := run_owner().note(DELAYS):
        st.caption(as_label(note))
    tried = list(cases)
    shown = [points.get(one.key, DelayPoint()) for one in cases.values()]
    makespans = [point.makespan_ms for point in shown]
    floor = min(point.bound_ms for point in shown if point.bound_ms is not None)
    chart(
        delays(tried, makespans, floor, now, theme),
        "delays",
        "Iteration time by reconfiguration delay: "
        + ", ".join(
            f"{d:g} ms gives {short(m)} ms"
            for d, m in zip(tried, makespans, strict=True)
            if m is not None
        ),
        lambda: {
            "delay (ms)": tried,
            "iteration (ms)": makespans,
            "bound (ms)": [point.bound_ms for point in shown],
            "status": [point.status for point in shown],
        },
    )
