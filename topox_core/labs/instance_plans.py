"""Schedules of the small instances for their reveals: every order that a closed form tells of, as start times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from topox_core.fabrics.scheduled import schedule
from topox_core.labs.generators.board import Board
from topox_core.labs.generators.fan_out import RECEIVERS, FanOut
from topox_core.labs.generators.patience import Patience
from topox_core.labs.hand_schedule import length_ms
from topox_core.labs.keys import files_of, instance_of
from topox_core.labs.lab import Lab, Screen
from topox_core.labs.lesson import LESSON_SETTINGS
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution
from topox_core.model.task_graph import TaskGraph

GBPS = 8.0
# Of a figure: more bars than that are no picture for a lab.
MAX_TASKS = 400


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


@dataclass(frozen=True)
class FileInstance:
    """An instance that a lab's files hold, with what drawn ones offer."""

    graph_of_files: TaskGraph
    cluster_of_files: Cluster

    def graph(self) -> TaskGraph:
        """Return the task graph."""
        return self.graph_of_files

    def cluster(self) -> Cluster:
        """Return the cluster."""
        return self.cluster_of_files


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
    return FileInstance(files.graph, files.cluster)


def hand_plans(instance: Any, ports: int = 1, port_gbps: float = GBPS) -> tuple[HandPlan, ...]:
    """Return the schedules that a reveal draws; none where an instance has no closed form of them.

    Parameters
    ----------
    ports, port_gbps
        Of a server, and the speed of each; only instance *fan-out* has others than one of 8 Gbit/s.
    """
    if isinstance(instance, Board):
        return _of_board(instance)
    if isinstance(instance, Patience):
        return _of_patience(instance)
    if isinstance(instance, FanOut):
        return (_of_fan_out(instance, ports, port_gbps),)
    return ()


def bound_of(graph: TaskGraph, cluster: Cluster) -> tuple[float, str]:
    """Return the lower bound of an instance, in ms, and what binds."""
    result = schedule(graph, cluster, LESSON_SETTINGS)
    return result.bound_ms, result.bound_by


def planned(graph: TaskGraph, cluster: Cluster) -> Execution:
    """Return the list schedule of a graph."""
    execution = schedule(graph, cluster, LESSON_SETTINGS).execution
    assert execution is not None  # the rules always find a plan
    return execution


def _of_board(one: Board) -> tuple[HandPlan, ...]:
    graph, cluster = one.graph(), one.cluster()
    plans = []
    for name, x, y in (
        ("x_first", one.a, one.a + one.x),
        ("y_first", one.a + one.y, one.a),
    ):
        starts = {"a": 0, "x": x, "y": y, "b": x + one.x, "c": y + one.y, "z": x + one.x + one.b}
        plans.append(HandPlan(name, graph, cluster, {k: float(v) for k, v in starts.items()}))
    return tuple(plans)


def _of_patience(one: Patience) -> tuple[HandPlan, ...]:
    graph, cluster = one.graph(), one.cluster()
    plans = []
    for name in ("first", "between", "last"):
        # The port of server 0 sends act0 and the weights, that of server 2 receives act1 and the weights.
        weights = 0 if name == "first" else None
        act0 = max(one.f0, one.weights) if name == "first" else one.f0
        f1 = act0 + one.act0
        if name == "between":
            weights = f1
        received = 0 if weights is None else weights + one.weights
        act1 = max(f1 + one.f1, received)
        f2 = act1 + one.act1
        if weights is None:
            weights = f2
        u2 = max(f2 + one.f2, weights + one.weights)
        starts = {
            "f0": 0,
            "act0": act0,
            "f1": f1,
            "act1": act1,
            "f2": f2,
            "weights": weights,
            "u2": u2,
        }
        plans.append(HandPlan(name, graph, cluster, {k: float(v) for k, v in starts.items()}))
    return tuple(plans)


def _of_fan_out(one: FanOut, ports: int, port_gbps: float) -> HandPlan:
    graph, cluster = one.graph(), one.cluster(ports, port_gbps)
    lengths = {task.id: length_ms(task, cluster) for task in graph.tasks}
    orders = (_ordered(order, lengths, ports) for order in permutations(range(1, RECEIVERS + 1)))
    ends = ((max(starts[name] + lengths[name] for name in starts), starts) for starts in orders)
    return HandPlan("best", graph, cluster, min(ends, key=lambda one: one[0])[1])


def _ordered(
    order: tuple[int, ...], lengths_ms: Mapping[str, float], ports: int
) -> dict[str, float]:
    """Return start times where the next free port takes the next transfer."""
    free = [lengths_ms["f"]] * ports
    starts = {"f": 0.0}
    for k in order:
        port = free.index(min(free))
        starts[f"w{k}"] = free[port]
        free[port] += lengths_ms[f"w{k}"]
        starts[f"c{k}"] = free[port]
    return starts
