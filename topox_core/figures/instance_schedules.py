"""Schedules of a lab's instance: entered by hand, told by closed forms, or planned; and its lower bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from topox_core.figures.gantt import gantt as gantt_of
from topox_core.figures.hand_gantt import HandBar, hand_bars, hand_gantt, lane_names
from topox_core.figures.lanes import bars_of, lanes_of
from topox_core.figures.picture import Asking, Picture
from topox_core.io.exports import TASK_COLUMNS, task_rows
from topox_core.labs.generators.generator import GivenTable
from topox_core.labs.hand_schedule import length_ms
from topox_core.labs.instance_plans import GBPS, HandPlan, bound_of, hand_plans, planned
from topox_core.labs.lesson import LESSON_SETTINGS
from topox_core.model.cluster import Cluster
from topox_core.model.critical_path import critical_path
from topox_core.model.task_graph import TaskGraph

# Of a figure, as a class room's network allows (docs/labs.md).
MOST_BARS = 400
# Values that a lower bound, or what binds, would tell.
_BOUND = ("path", "load", "reached", "binds", "proof")
# Values that a schedule with some ports tells.
_TOLD = ("optimum", "first", "when", "x_first", "y_first", "between", "last", "load", "one")


def _is_scheduled(asking: Asking) -> bool:
    """Whether the instance is a task graph on a cluster."""
    return hasattr(asking.instance, "graph") and hasattr(asking.instance, "cluster")


def by_hand(asking: Asking) -> list[Picture]:
    """Return the schedule that is being entered, as far as it has starts."""
    if not _is_scheduled(asking):
        return []
    graph, cluster = sheet_of(asking)
    starts = dict(asking.starts_ms)
    lanes = lane_names(graph, cluster)
    bars = hand_bars(graph, cluster, starts)
    whole = sum(length_ms(task, cluster) for task in graph.tasks)
    figure = hand_gantt(graph, cluster, starts, asking.theme, min(whole, 20.0))
    end = max((bar.end_ms for bar in bars), default=0.0)
    alt = asking.say(
        "hand.alt",
        tasks=len(bars),
        of=len(graph.tasks),
        end=f"{end:g}",
        bars=_words(asking, bars, lanes) or asking.say("hand.empty"),
    )
    title, note = asking.say("hand.title"), asking.say("hand.note")
    return [Picture("hand", title, note, figure, alt, _table(asking, bars, lanes))]


def sheet_of(asking: Asking) -> tuple[TaskGraph, Cluster]:
    """Return the tasks that are placed by hand, and their cluster: with two ports where two are asked about."""
    one = asking.instance
    if "two" in asking.keys:
        return one.graph(), one.cluster(2)
    return one.graph(), one.cluster()


def plans(asking: Asking, bound_too: bool = False) -> list[Picture]:
    """Return a Gantt chart of every order that is told of, or of the planned schedule.

    With a bound where one is asked for and no question asks for it any more.
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
    bound_ms, binds = (None, "")
    if bound_too and not (asking.screen.stage != "reveal" and asking.hides(*_BOUND)):
        bound_ms, binds = bound_of(told[0].graph, told[0].cluster)
        if asking.hides(*_BOUND):
            binds = ""
    until = max(plan.makespan_ms for plan in told)
    return [_told(asking, plan, until, bound_ms, binds) for plan in told]


def bounds(asking: Asking) -> list[Picture]:
    """Return the shortest schedule with its lower bound."""
    if "gantt" in asking.screen.show:
        return []  # drawn there
    every = plans(asking, bound_too=True)
    told = hand_plans(asking.instance)
    if not told:
        return every
    if not every:
        return []
    return [every[min(range(len(told)), key=lambda k: told[k].makespan_ms)]]


def _told(
    asking: Asking, plan: HandPlan, until_ms: float, bound_ms: float | None, binds: str
) -> Picture:
    bars = hand_bars(plan.graph, plan.cluster, plan.starts_ms)
    lanes = lane_names(plan.graph, plan.cluster)
    figure = hand_gantt(plan.graph, plan.cluster, plan.starts_ms, asking.theme, until_ms, bound_ms)
    end = f"{plan.makespan_ms:g}"
    note = asking.say("plan.note", end=end)
    alt = asking.say("plan.alt", tasks=len(plan.graph.tasks), end=end)
    alt = f"{alt} {_words(asking, bars, lanes)}."
    if bound_ms is not None:
        note = asking.say("plan.bound", end=end, bound=f"{bound_ms:g}")
        alt = f"{alt} {asking.say('plan.bound_alt', bound=f'{bound_ms:g}')}"
    if bound_ms is not None and binds:
        words = asking.say("binds", binds=binds)
        note, alt = f"{note}. {words}", f"{alt} {words}"
    name = asking.say(f"plans.{plan.name}")
    return Picture(f"plan_{plan.name}", name, note, figure, alt, _table(asking, bars, lanes))


def _planned(asking: Asking, graph: TaskGraph, cluster: Cluster) -> list[Picture]:
    """Return the list schedule of an instance without closed forms, such as one from files.

    Only as many servers as have :data:`MOST_BARS` together; none where the first alone has more.
    """
    execution = planned(graph, cluster)
    lanes = lanes_of(execution)
    bars = bars_of(execution, lanes)
    fit = np.flatnonzero(np.bincount(bars.server, minlength=lanes.servers).cumsum() <= MOST_BARS)
    if not len(fit):
        return []
    last = int(fit[-1])
    path = critical_path(execution, LESSON_SETTINGS.exclusive_devices)
    window = (0.0, execution.makespan_ms)
    shown = lanes.showing(0, last)
    figure = gantt_of(execution, bars, shown, window, path, asking.theme)
    rows = tuple(
        tuple("" if cell is None else str(cell) for cell in row)
        for row in task_rows(execution, path)
    )
    end = f"{execution.makespan_ms:g}"
    alt = asking.say("plan.alt", tasks=len(rows), end=end)
    title, note = asking.say("plans.planned"), asking.say("plan.note", end=end)
    if last + 1 < lanes.servers:
        note = asking.say("plan.part", end=end, drawn=last + 1, servers=lanes.servers)
    return [Picture("planned", title, note, figure, alt, GivenTable(tuple(TASK_COLUMNS), rows))]


Lanes = Sequence[tuple[int, int, str]]


def _lane_of(bar: HandBar, lanes: Lanes) -> str:
    return next(name for server, port, name in lanes if (server, port) == (bar.server, bar.port))


def _words(asking: Asking, bars: Sequence[HandBar], lanes: Lanes) -> str:
    return "; ".join(
        asking.say(
            "bar_over" if bar.overlaps else "bar",
            task=bar.task.id,
            start=f"{bar.start_ms:g}",
            end=f"{bar.end_ms:g}",
            where=_lane_of(bar, lanes),
        )
        for bar in bars
    )


def _table(asking: Asking, bars: Sequence[HandBar], lanes: Lanes) -> GivenTable:
    rows = [
        (bar.task.id, _lane_of(bar, lanes), f"{bar.start_ms:g}", f"{bar.end_ms:g}") for bar in bars
    ]
    return asking.table(("task", "where", "start", "end"), rows)


def starts_of(given: Mapping[str, object]) -> dict[str, float]:
    """Return those starts of a schedule by hand that are numbers."""
    return {
        name: float(start)
        for name, start in given.items()
        if isinstance(start, int | float) and not isinstance(start, bool)
    }
