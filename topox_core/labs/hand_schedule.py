"""Schedules by hand: start times become a result file, which the independent checker reads, and bars on lanes.

And those of the small instances for their reveals: every order that is told of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from topox_core.check.checker import check
from topox_core.check.report import Violation
from topox_core.check.schedule_file import FORMAT, VERSION
from topox_core.errors import check_known, refuse_if, shown
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.io.limits import is_number
from topox_core.labs.generators.generator import GBPS
from topox_core.labs.generators.one_port import FanOut, HandPlan, Ordered, length_ms, needs
from topox_core.labs.keys import files_of, instance_of
from topox_core.labs.lab import LESSON_SETTINGS, Lab, Screen
from topox_core.model.arrays.groups import by_key
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution
from topox_core.model.task_graph import Task, TaskGraph

LATEST_MS = 1e6
# What is told first where several are broken: times before circuits, as a person would mend them.
_ORDER = ("3", "4", "5", "8", "device", "physical")
# Of a figure: more bars than that are no picture for a lab.
MAX_TASKS = 400


@dataclass(frozen=True)
class HandVerdict:
    """What the checker says to a schedule entered by hand.

    Attributes
    ----------
    makespan_ms
        When the last task ends.
    broken, more
        The first constraint that is broken, and how many violations there are besides; None if all hold.
    """

    makespan_ms: float
    broken: Violation | None = None
    more: int = 0


def check_by_hand(graph: TaskGraph, cluster: Cluster, starts_ms: Mapping[str, Any]) -> HandVerdict:
    """Check start times, in ms, by task; a task without one is a broken constraint, not an error.

    Raises
    ------
    InputError
        As :func:`check_starts`.
    """
    check_starts(graph, starts_ms)
    record = _record(graph, cluster, starts_ms)
    report = check(graph, cluster, record, file="schedule by hand")
    broken = None if report.ok else _first(report.violations)
    return HandVerdict(record["makespan_ms"], broken, max(0, report.violated - 1))


def check_starts(graph: TaskGraph, starts_ms: Mapping[str, Any]) -> None:
    """Refuse what are no start times, in ms, by task.

    Raises
    ------
    InputError
        If a task is unknown, or a start is no number.
    """
    known = [task.id for task in graph.tasks]
    for name, start in starts_ms.items():
        check_known(name, known, "task", field="start")
        refuse_if(
            (
                not is_number(start, -LATEST_MS, LATEST_MS),
                f"must be a number of ms up to {LATEST_MS:,.0f} (got {shown(start)})",
            ),
            item=f"task {name}",
            field="start",
        )


def _first(violations: tuple[Violation, ...]) -> Violation:
    # Eq. 2 compares the record's own numbers; what makes them disagree is named by another one.
    ranked = [one for one in violations if one.equation != "2"] or list(violations)
    ranks = {equation: at for at, equation in enumerate(_ORDER)}
    return min(ranked, key=lambda one: ranks.get(one.equation, len(_ORDER)))


def _record(graph: TaskGraph, cluster: Cluster, starts_ms: Mapping[str, Any]) -> dict[str, Any]:
    begun = [(task, float(starts_ms[task.id])) for task in graph.tasks if task.id in starts_ms]
    timed = [(task, start, start + length_ms(task, cluster)) for task, start in begun]
    circuits: list[dict[str, Any]] = [
        {
            "switch": 0,
            "source": task.source,
            "destination": task.destination,
            "setup_ms": start,
            "start_ms": start,
            "end_ms": end,
            "task": task.id,
        }
        for task, start, end in timed
        if task.duration_ms is None
    ]
    _set_up(circuits, cluster.reconfiguration_ms)
    last = max([0.0, *(end for _, _, end in timed)])
    return {
        "format": FORMAT,
        "version": VERSION,
        "status": "feasible",
        "engine": "hand",
        "clock": "slots",
        "makespan_ms": last,
        "bound_ms": 0.0,
        "gap": 1.0 if last > 0 else 0.0,
        "slot_ms": cluster.slot_ms,
        "tick_ms": cluster.slot_ms,
        "settings": {**LESSON_SETTINGS.as_record(), "cluster": {}},
        "tasks": [{"id": one.id, "start_ms": start, "end_ms": end} for one, start, end in timed],
        "transfers": [],
        "circuits": circuits,
    }


def _set_up(circuits: list[dict[str, Any]], delay_ms: float) -> None:
    """Set up every circuit one delay before it carries, or when its ports come free; the first of both ports at once.

    A delay that was ignored is then told as a set-up that is too short.
    """
    free: dict[tuple[str, int], float] = {}
    for row in sorted(circuits, key=lambda row: row["start_ms"]):
        ports = (("out", row["source"]), ("in", row["destination"]))
        ends = [free[port] for port in ports if port in free]
        if ends:
            row["setup_ms"] = max(row["start_ms"] - delay_ms, min(row["start_ms"], max(ends)))
        free |= dict.fromkeys(ports, row["end_ms"])


@dataclass(frozen=True)
class HandBar:
    """One task on its lane.

    Attributes
    ----------
    server, port
        Where it computes, or from where it sends; ``port`` is -1 of a device.
    overlaps
        Whether something else needs the same device or port at the same time.
    """

    task: Task
    server: int
    port: int
    start_ms: float
    end_ms: float
    overlaps: bool


def hand_bars(
    graph: TaskGraph, cluster: Cluster, starts_ms: Mapping[str, float]
) -> tuple[HandBar, ...]:
    """Return a bar for every task that has a start, by start; transfers on the first port that is free."""
    placed: list[HandBar] = []
    free: dict[tuple[int, int], float] = {}
    known = [task for task in graph.tasks if task.id in starts_ms]
    crowded = _crowded(known, cluster, starts_ms)
    for task in sorted(known, key=lambda task: starts_ms[task.id]):
        start = float(starts_ms[task.id])
        end = start + length_ms(task, cluster)
        sends = task.duration_ms is None
        server = int((task.source if sends else task.server) or 0)
        ports = range(cluster.ports_per_server) if sends else (-1,)
        port = next((one for one in ports if free.get((server, one), start) <= start), ports[0])
        free[server, port] = max(end, free.get((server, port), end))
        placed.append(HandBar(task, server, port, start, end, task.id in crowded))
    return tuple(placed)


def _crowded(
    tasks: Sequence[Task], cluster: Cluster, starts_ms: Mapping[str, float]
) -> frozenset[str]:
    """Return the tasks that run while a device or a port they need has no place for them."""
    users = by_key((need, task) for task in tasks for need in needs(task))
    crowded: set[str] = set()
    for (kind, _), of_one in users.items():
        spans = [(starts_ms[one.id], length_ms(one, cluster), one.id) for one in of_one]
        for at, _length, _name in spans:
            here = [name for begin, length, name in spans if begin <= at < begin + length]
            if len(here) > (1 if kind == "device" else cluster.ports_per_server):
                crowded |= {*here}
    return frozenset(crowded)


def lane_names(graph: TaskGraph, cluster: Cluster) -> list[tuple[int, int, str]]:
    """Return the lanes in their order, as (server, port, name): devices that compute, ports that send."""
    several = cluster.ports_per_server > 1
    lanes = {
        (task.server or 0, -1, f"S{task.server} computes")
        for task in graph.tasks
        if task.duration_ms is not None
    }
    lanes |= {
        (task.source or 0, port, f"S{task.source} sends" + (f", {port + 1}" if several else ""))
        for task in graph.tasks
        if task.duration_ms is None
        for port in range(cluster.ports_per_server)
    }
    return sorted(lanes)


def drawn_or_read(lab: Lab, screen: Screen, seed: int) -> Any:
    """Return the instance of a screen: drawn, or a small task graph from its files; None without one.

    Raises
    ------
    InputError
        If a file cannot be used.
    """
    source = lab.instances.get(screen.instance)
    if source is None or source.generator:
        return instance_of(lab, screen, seed)
    files = files_of(lab, source)
    if files.graph is None or files.cluster is None or len(files.graph.tasks) > MAX_TASKS:
        return None
    # With what drawn ones offer.
    return SimpleNamespace(graph=lambda: files.graph, cluster=lambda: files.cluster)


def hand_plans(instance: Any, ports: int = 1, port_gbps: float = GBPS) -> tuple[HandPlan, ...]:
    """Return the schedules that a reveal draws; none where an instance has no orders to tell of.

    Parameters
    ----------
    ports, port_gbps
        Of a server, and the speed of each; only instance *fan-out* has others than one of 8 Gbit/s.
    """
    if not isinstance(instance, Ordered):
        return ()
    if isinstance(instance, FanOut):
        return (replace(instance.best(ports, port_gbps), name="best"),)
    return instance.plans()


def bound_of(graph: TaskGraph, cluster: Cluster) -> tuple[float, str]:
    """Return the lower bound of an instance, in ms, and what binds."""
    result = schedule(graph, cluster, LESSON_SETTINGS)
    return result.bound_ms, result.bound_by


def planned(graph: TaskGraph, cluster: Cluster) -> Execution:
    """Return the list schedule of a graph."""
    execution = schedule(graph, cluster, LESSON_SETTINGS).execution
    assert execution is not None  # the rules always find a plan
    return execution
