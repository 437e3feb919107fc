"""Schedules of the small instances for their reveals: every order that a closed form tells of, as start times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from types import SimpleNamespace
from typing import Any

from topox_core.fabrics.scheduled import schedule
from topox_core.labs.generators.board import Board
from topox_core.labs.generators.fan_out import RECEIVERS, FanOut
from topox_core.labs.generators.patience import Patience
from topox_core.labs.hand_schedule import length_ms
from topox_core.labs.keys import files_of, instance_of
from topox_core.labs.lab import Lab, Screen
from topox_core.labs.lab import LESSON_SETTINGS
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution
from topox_core.model.task_graph import TaskGraph

GBPS = 8.0
# Of a figure: more bars than that are no picture for a lab.
MAX_TASKS = 400
_RECEIVERS = range(1, RECEIVERS + 1)
# The orders that are told of, by name; of instance *fan-out* the best of all.
_ORDERS: Mapping[type, Sequence[tuple[str, Sequence[str]]]] = {
    Board: (("x_first", "axybcz"), ("y_first", "ayxcbz")),
    Patience: (
        ("first", ("weights", "f0", "act0", "f1", "act1", "f2", "u2")),
        ("between", ("f0", "act0", "weights", "f1", "act1", "f2", "u2")),
        ("last", ("f0", "act0", "f1", "act1", "f2", "weights", "u2")),
    ),
    FanOut: [
        ("best", ("f", *(f"w{k}" for k in order), *(f"c{k}" for k in _RECEIVERS)))
        for order in permutations(_RECEIVERS)
    ],
}


@dataclass(frozen=True)
class HandPlan:
    """One schedule of an instance.

    Attributes
    ----------
    name
        Which order it is: ``x_first``, ``y_first``; ``first``, ``between``, ``last``; ``best``.
    starts_ms
        Start of each task, in ms.
    """

    name: str
    graph: TaskGraph
    cluster: Cluster
    starts_ms: Mapping[str, float]

    @property
    def makespan_ms(self) -> float:
        """When the last task ends."""
        lengths = {task.id: length_ms(task, self.cluster) for task in self.graph.tasks}
        return max(start + lengths[name] for name, start in self.starts_ms.items())


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
    """Return the schedules that a reveal draws; none where an instance has no closed form of them.

    Parameters
    ----------
    ports, port_gbps
        Of a server, and the speed of each; only instance *fan-out* has others than one of 8 Gbit/s.
    """
    if not isinstance(instance, Board | Patience | FanOut):
        return ()
    graph, cluster, orders = instance.graph(), instance.cluster(), _ORDERS[type(instance)]
    if isinstance(instance, FanOut):
        cluster = instance.cluster(ports, port_gbps)
    told = [
        HandPlan(name, graph, cluster, _starts_ms(graph, cluster, order)) for name, order in orders
    ]
    if isinstance(instance, FanOut):
        return (min(told, key=lambda plan: plan.makespan_ms),)
    return tuple(told)


def bound_of(graph: TaskGraph, cluster: Cluster) -> tuple[float, str]:
    """Return the lower bound of an instance, in ms, and what binds."""
    result = schedule(graph, cluster, LESSON_SETTINGS)
    return result.bound_ms, result.bound_by


def planned(graph: TaskGraph, cluster: Cluster) -> Execution:
    """Return the list schedule of a graph."""
    execution = schedule(graph, cluster, LESSON_SETTINGS).execution
    assert execution is not None  # the rules always find a plan
    return execution


def _starts_ms(graph: TaskGraph, cluster: Cluster, order: Iterable[str]) -> dict[str, float]:
    """Return the start of each task, in ms, where ports take their transfers in an order, each the first port that is free.

    What one device computes is in the order of its dependencies already.
    """
    tasks = {task.id: task for task in graph.tasks}
    starts: dict[str, float] = {}
    ends: dict[str, float] = {}
    free: defaultdict[tuple[str, int | None], list[float]]
    free = defaultdict(lambda: [0.0] * cluster.ports_per_server)
    for name in order:
        task = tasks[name]
        sends = task.duration_ms is None
        ports = [free["out", task.source], free["in", task.destination]] if sends else []
        ready = max((ends[one] for one in task.dependencies), default=0.0)
        starts[name] = max([ready, *map(min, ports)])
        ends[name] = starts[name] + length_ms(task, cluster)
        for port in ports:
            port[port.index(min(port))] = ends[name]
    return {name: starts[name] for name in tasks}
