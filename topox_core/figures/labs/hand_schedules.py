"""Schedules of a lab's instance, entered by hand, told or planned, drawn from start times alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from topox_core.figures.builders import Bar, bars
from topox_core.figures.iteration.gantt import gantt as gantt_of
from topox_core.figures.iteration.lanes import bars_of, lanes_of
from topox_core.figures.labs.picture import Asking, Picture
from topox_core.figures.palette import CATEGORY_COLOURS, CATEGORY_TEXT, FORWARD, SEND, UPDATE, Theme
from topox_core.figures.template import (
    DOTS,
    Figure,
    Layer,
    axis,
    band,
    frame,
    hatched,
    line,
    margins,
    named_axis,
    note,
    upright,
)
from topox_core.io.exports import TASK_COLUMNS, task_rows
from topox_core.labs.generators.generator import GBPS, GivenTable
from topox_core.labs.generators.one_port import HandPlan, length_ms
from topox_core.labs.hand_schedule import (
    HandBar,
    bound_of,
    hand_bars,
    hand_plans,
    lane_names,
    planned,
)
from topox_core.labs.lab import LESSON_SETTINGS
from topox_core.model.arrays.groups import by_key
from topox_core.model.cluster import Cluster
from topox_core.model.critical_path import critical_path
from topox_core.model.task_graph import Task, TaskGraph

RECEIVES = -2  # in place of a port: the lane of what a server with one port receives
# Of the bars on a laptop, and of a letter: they decide which words fit.
PLOT_PX, LETTER_PX = 480.0, 7.0
BAR = 0.78  # of a lane; two that meet share it


def hand_gantt(
    graph: TaskGraph,
    cluster: Cluster,
    starts_ms: Mapping[str, float],
    theme: Theme,
    until_ms: float = 0.0,
    bound_ms: float | None = None,
) -> Figure:
    """Return the tasks that have a start as bars, by server; what overlaps is hatched and has a cross.

    Bars that meet on a lane are half as high, one above the other, so that none hides another.

    Parameters
    ----------
    until_ms
        The axis reaches at least so far.
    bound_ms
        A lower bound to draw as a dotted line.
    """
    sent = hand_bars(graph, cluster, starts_ms)
    lanes = _with_receivers(lane_names(graph, cluster), graph, cluster)
    known = {(server, port) for server, port, _ in lanes}
    arrivals = [
        replace(bar, server=int(bar.task.destination or 0), port=RECEIVES)
        for bar in sent
        if bar.task.duration_ms is None and (bar.task.destination, RECEIVES) in known
    ]
    bars = [*sent, *arrivals]
    rows = {(server, port): k for k, (server, port, _) in enumerate(lanes)}
    halves = _halves(bars)
    last = max([until_ms, bound_ms or 0.0, *(bar.end_ms for bar in bars)], default=1.0) or 1.0
    first = min([0.0, *(bar.start_ms for bar in bars)])
    layers = [
        _bars(here, rows, halves, (category, overlaps, PLOT_PX / (last - first)), theme)
        for overlaps in (False, True)
        for category in (FORWARD, UPDATE, SEND)
        if (here := [b for b in bars if b.overlaps == overlaps and _category(b.task) == category])
    ]
    marks = [
        band(k - 0.5, k + 0.5, theme.band)
        for k, (server, _, _) in enumerate(lanes)
        if server % 2 == 0
    ]
    if bound_ms is not None:
        marks += [
            upright(bound_ms, line(theme.ink, 2, DOTS)),
            note(
                f"{bound_ms:g} ms",
                bound_ms,
                1,
                11.5 * theme.scale,
                theme.ink,
                yref="paper",
                yanchor="bottom",
                xanchor="right",
            ),
        ]
    return frame(
        layers,
        theme,
        (len(lanes) * 26.0 + 62) * theme.scale,
        marks,
        margin=margins(96.0 * theme.scale, 12, 20 * theme.scale, 40 * theme.scale),
        xaxis=axis(
            theme,
            grid=True,
            range=[first - 0.02 * last, last * 1.03],
            dtick=1 if last - first <= 12 else 2 if last - first <= 24 else None,
            title="time, ms",
        ),
        yaxis=named_axis(
            theme,
            [name for _, _, name in lanes],
            None,
            11.5,
            theme.ink,
            range=[len(lanes) - 0.5, -0.5],
        ),
    )


def _with_receivers(
    lanes: Sequence[tuple[int, int, str]], graph: TaskGraph, cluster: Cluster
) -> list[tuple[int, int, str]]:
    """Return the lanes with one more for every server that receives, where each has one port: there too two may meet."""
    if cluster.ports_per_server > 1:
        return list(lanes)
    receives = {int(task.destination or 0) for task in graph.tasks if task.duration_ms is None}
    more = [(server, RECEIVES, f"S{server} receives") for server in receives]
    return sorted([*lanes, *more], key=lambda lane: (lane[0], {-1: 0, RECEIVES: 2}.get(lane[1], 1)))


def _halves(bars: Sequence[HandBar]) -> dict[HandBar, int]:
    """Return for every bar that meets another on its lane its half: -1 above, 1 below, in turn by start."""
    halves: dict[HandBar, int] = {}
    for here in by_key(((bar.server, bar.port), bar) for bar in bars).values():
        meeting = [
            one
            for one in here
            if any(
                one is not other and one.start_ms < other.end_ms and other.start_ms < one.end_ms
                for other in here
            )
        ]
        in_time = sorted(meeting, key=lambda bar: bar.start_ms)
        halves |= {bar: (-1, 1)[k % 2] for k, bar in enumerate(in_time)}
    return halves


def _category(task: Task) -> int:
    if task.duration_ms is None:
        return SEND
    return UPDATE if task.kind == "update" else FORWARD


def _bars(
    of: Sequence[HandBar],
    rows: Mapping[tuple[int, int], int],
    halves: Mapping[HandBar, int],
    look: tuple[int, bool, float],
    theme: Theme,
) -> Layer:
    """Return bars of one look: category, whether they overlap, px a ms."""
    category, overlaps, px = look
    return bars(
        "",
        hatched(theme) if overlaps else CATEGORY_COLOURS[category],
        [
            Bar(
                rows[bar.server, bar.port] + BAR / 4 * halves.get(bar, 0),
                bar.end_ms - bar.start_ms,
                f"<b>{bar.task.id}</b>: {bar.start_ms:g} to {bar.end_ms:g} ms",
                bar.start_ms,
                f"<b>{'✗ ' if overlaps else ''}{_label(bar, px)}</b>",
                bar.task.id,
            )
            for bar in of
        ],
        theme,
        [BAR / (2 if bar in halves else 1) for bar in of],
        ink=theme.ink if overlaps else CATEGORY_TEXT[category],
        size=[10 if bar in halves else 12 for bar in of],
        opacity=0.85 if overlaps else 1.0,
    )


def _label(bar: HandBar, px: float) -> str:
    """Return what fits into a bar: where a transfer leads as well, its name alone, or nothing."""
    task, words = bar.task, [bar.task.id]
    if task.duration_ms is None:
        received = bar.port == RECEIVES
        words.insert(0, f"{task.id} {f'← {task.source}' if received else f'→ {task.destination}'}")
    room = (bar.end_ms - bar.start_ms) * px
    return next((one for one in words if len(one) * LETTER_PX <= room), "")


# Of a figure, as a class room's network allows (docs/labs.md).
MAX_BARS = 400
# Values that a lower bound, or what binds, would tell.
_BOUND = ("path", "load", "reached", "binds", "proof")
# Values that a schedule with some ports tells.
_TOLD = ("optimum", "first", "when", "x_first", "y_first", "between", "last", "load", "one")


def _is_scheduled(asking: Asking) -> bool:
    """Whether the instance is a task graph on a cluster."""
    return hasattr(asking.instance, "graph") and hasattr(asking.instance, "cluster")


def by_hand(asking: Asking, _one: object) -> list[Picture]:
    """Return the schedule that is being entered, as far as it has starts."""
    if not _is_scheduled(asking):
        return []
    graph, cluster = sheet_of(asking)
    until = min(sum(length_ms(task, cluster) for task in graph.tasks), 20.0)
    figure, bars, words, table = _drawn(asking, graph, cluster, dict(asking.starts_ms), until)
    return [
        asking.picture(
            "hand",
            figure,
            table,
            tasks=len(bars),
            of=len(graph.tasks),
            end=f"{max((bar.end_ms for bar in bars), default=0.0):g}",
            bars=words or asking.say("hand.empty"),
        )
    ]


def sheet_of(asking: Asking) -> tuple[TaskGraph, Cluster]:
    """Return the tasks that are placed by hand, and their cluster: with two ports where two are asked about."""
    ports = (2,) if "two" in asking.keys else ()
    return asking.instance.graph(), asking.instance.cluster(*ports)


def plans(asking: Asking, _one: object) -> list[Picture]:
    """Return a Gantt chart of every order that is told of, or of the planned schedule.

    With a bound where the screen shows one and no question asks for it any more.
    """
    if not _is_scheduled(asking):
        return []
    ports, gbps = 1, GBPS
    slider = asking.screen.slider
    if slider is not None and asking.value is not None:
        ports = int(asking.value) if slider.key == "ports" else 1
        gbps = asking.value if slider.key == "port_gbps" else GBPS
    if asking.hides(*(_TOLD if (ports, gbps) == (1, GBPS) else ("two" if ports > 1 else "fast",))):
        return []
    told = hand_plans(asking.instance, ports, gbps)
    if not told:
        return _planned(asking, asking.instance.graph(), asking.instance.cluster())
    bound_ms, binds, hidden = None, "", asking.hides(*_BOUND)
    if "bound" in asking.screen.show and (asking.screen.stage == "reveal" or not hidden):
        bound_ms, binds = bound_of(told[0].graph, told[0].cluster)
    binds = "" if hidden else binds
    until = max(plan.makespan_ms for plan in told)
    return [_told(asking, plan, until, bound_ms, binds) for plan in told]


def bounds(asking: Asking, one: object) -> list[Picture]:
    """Return the shortest schedule with its lower bound."""
    if "gantt" in asking.screen.show:
        return []  # drawn there
    every, told = plans(asking, one), hand_plans(asking.instance)
    if not told or not every:
        return every
    return [every[min(range(len(told)), key=lambda k: told[k].makespan_ms)]]


def _told(
    asking: Asking, plan: HandPlan, until_ms: float, bound_ms: float | None, binds: str
) -> Picture:
    figure, _, words, table = _drawn(
        asking, plan.graph, plan.cluster, plan.starts_ms, until_ms, bound_ms
    )
    end = f"{plan.makespan_ms:g}"
    note = asking.say("plan.note", end=end)
    alt = f"{asking.say('plan.alt', tasks=len(plan.graph.tasks), end=end)} {words}."
    if bound_ms is not None:
        note = asking.say("plan.bound", end=end, bound=f"{bound_ms:g}")
        alt = f"{alt} {asking.say('plan.bound_alt', bound=f'{bound_ms:g}')}"
    if bound_ms is not None and binds:
        why = asking.say("binds", binds=binds)
        note, alt = f"{note}. {why}", f"{alt} {why}"
    return Picture(f"plan_{plan.name}", asking.say(f"plans.{plan.name}"), note, figure, alt, table)


def _planned(asking: Asking, graph: TaskGraph, cluster: Cluster) -> list[Picture]:
    """Return the list schedule of an instance without closed forms, such as one from files.

    Only as many servers as have :data:`MAX_BARS` together; none where the first alone has more.
    """
    execution = planned(graph, cluster)
    lanes = lanes_of(execution)
    bars = bars_of(execution, lanes)
    fit = np.flatnonzero(np.bincount(bars.server, minlength=lanes.servers).cumsum() <= MAX_BARS)
    if not len(fit):
        return []
    last = int(fit[-1])
    path = critical_path(execution, LESSON_SETTINGS.exclusive_devices)
    rows = tuple(
        tuple("" if cell is None else str(cell) for cell in row)
        for row in task_rows(execution, path)
    )
    end = f"{execution.makespan_ms:g}"
    note = asking.say("plan.note", end=end)
    if last + 1 < lanes.servers:
        note = asking.say("plan.part", end=end, drawn=last + 1, servers=lanes.servers)
    return [
        Picture(
            "planned",
            asking.say("plans.planned"),
            note,
            gantt_of(
                execution,
                bars,
                lanes.showing(0, last),
                (0.0, execution.makespan_ms),
                path,
                asking.theme,
            ),
            asking.say("plan.alt", tasks=len(rows), end=end),
            GivenTable(tuple(TASK_COLUMNS), rows),
        )
    ]


def _drawn(
    asking: Asking,
    graph: TaskGraph,
    cluster: Cluster,
    starts_ms: Mapping[str, float],
    until_ms: float,
    bound_ms: float | None = None,
) -> tuple[Figure, tuple[HandBar, ...], str, GivenTable]:
    """Return the chart of a schedule, its bars, the same in words, and as a table."""
    bars = hand_bars(graph, cluster, starts_ms)
    lanes = {(server, port): name for server, port, name in lane_names(graph, cluster)}
    rows = [
        (bar.task.id, lanes[bar.server, bar.port], f"{bar.start_ms:g}", f"{bar.end_ms:g}")
        for bar in bars
    ]
    words = "; ".join(
        asking.say(
            "bar_over" if bar.overlaps else "bar", task=task, where=where, start=start, end=end
        )
        for bar, (task, where, start, end) in zip(bars, rows, strict=True)
    )
    figure = hand_gantt(graph, cluster, starts_ms, asking.theme, until_ms, bound_ms)
    return figure, bars, words, asking.table(("task", "where", "start", "end"), rows)


def starts_of(given: Mapping[str, object]) -> dict[str, float]:
    """Return those starts of a schedule by hand that are numbers."""
    return {
        name: float(start)
        for name, start in given.items()
        if isinstance(start, int | float) and not isinstance(start, bool)
    }
