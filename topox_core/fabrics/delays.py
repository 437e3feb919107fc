"""One setting at another reconfiguration delay: what the delay curve of a schedule is made of."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.errors import InputError
from topox_core.fabrics.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.result import Result
from topox_core.schedule.settings import Settings


@dataclass(frozen=True)
class DelayPoint:
    """Makespan, bound and status at one delay; None and an empty status where there is no schedule."""

    makespan_ms: float | None = None
    bound_ms: float | None = None
    status: str = ""

    @staticmethod
    def of(result: Result) -> DelayPoint:
        """Return the point of a result."""
        return DelayPoint(result.makespan_ms, result.bound_ms, result.status)


def delay_point(
    graph: TaskGraph, cluster: Cluster, settings: Settings, delay_ms: float
) -> DelayPoint:
    """Return the point of a graph at a delay; it is empty where graph and settings do not go together there."""
    try:
        at_delay = cluster.changed(reconfiguration_ms=delay_ms)
        return DelayPoint.of(schedule(graph, at_delay, settings))
    except InputError:
        return DelayPoint()
