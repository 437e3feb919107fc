"""Failures in the middle of a scheduled iteration: what remains of cluster and tasks."""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from msgspec import structs

from topox_core.errors import refuse_if
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution, Layout
from topox_core.model.task_graph import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    TRANSFER_KINDS,
    Task,
    TaskGraph,
)
from topox_core.model.transfer_graph import TRANSFER
from topox_core.topology.failures import Failure, lost_circuits, on_sides
from topox_core.topology.traffic import Pair


def fail_cluster(cluster: Cluster, failure: Failure) -> Cluster:
    """Return the cluster without a failed switch, which takes its ports from every server.

    Servers of a cluster are alike, so one fibre or port less at one server cannot be said:
    :func:`~topox_core.schedule.planning.rebooking.rebooked` takes it out of a schedule instead.

    Raises
    ------
    InputError
        If no switch would be left, there is no such switch, or a cluster cannot express what
        remains.
    """
    failure.refuse_if(
        (
            cluster.ports_per_server % cluster.switches,
            f"a cluster cannot express what remains: {cluster.ports_per_server} ports are not spread evenly over "
            f"{cluster.switches} switches",
            "ports_per_server",
        ),
        (
            not 0 <= failure.switch < cluster.switches,
            f"there is no such switch (0 to {cluster.switches - 1})",
            "switch",
        ),
        (cluster.switches == 1, "no switch would be left", "switches"),
    )
    each = cluster.ports_per_server // cluster.switches
    return cluster.changed(
        switches=cluster.switches - 1, ports_per_server=cluster.ports_per_server - each
    )


def remaining_graph(
    graph: TaskGraph, execution: Execution, at_ms: float, failure: Failure
) -> TaskGraph:
    """Return the tasks that have not ended at a failure, for a plan that begins then.

    What ended is kept. A compute task goes on where it was, with the time it had left; so does a
    transfer, with its share of bytes, unless it used the failed element: then it starts again. A
    collective in progress becomes those of its transfers that have not ended. Tasks of a failed
    server move to its substitute and start again, as do the collectives it took part in; what the
    server had finished is taken as known to the substitute.

    Parameters
    ----------
    graph
        The graph that ``execution`` ran.
    at_ms
        Moment of the failure; the degraded iteration lasts ``at_ms`` plus the makespan of the new
        plan.

    Raises
    ------
    InputError
        If nothing is left, the graph is another one, or a failed server with tasks has no
        substitute.
    """
    refuse_if(
        (not math.isfinite(at_ms) or at_ms < 0, f"must be a time of at least 0 ms (got {at_ms:g})"),
        file="failure",
        field="at_ms",
    )
    failure.check(execution.cluster.servers)
    nodes: list[list[int]] = [[] for _ in graph.tasks]
    for i, (origin, name) in enumerate(
        zip(execution.graph.origin.tolist(), execution.graph.ids, strict=True)
    ):
        refuse_if((origin >= len(nodes), "is not the graph that was run"), file=graph.name)
        if name:  # not the entry barrier of a collective
            nodes[origin].append(i)
    rest = _Rest(execution, at_ms, failure)
    tasks: list[Task] = []
    for task, own in zip(graph.tasks, nodes, strict=True):
        tasks += rest.of_task(task, own)
    refuse_if(
        (
            not tasks,
            f"no task is left to run at {at_ms:g} ms: the iteration ended at {execution.makespan_ms:g} ms",
        ),
        file="failure",
        field="at_ms",
    )
    left = {task.id for task in tasks}
    return validated(
        graph.name,
        [
            structs.replace(task, dependencies=tuple(d for d in task.dependencies if d in left))
            for task in tasks
        ],
    )


class _Rest:
    """What is left of a task at the moment of failure."""

    def __init__(self, execution: Execution, at_ms: float, failure: Failure) -> None:
        self.execution, self.at_ms, self.failure = execution, at_ms, failure
        self.start, self.end = execution.start_ms.tolist(), execution.end_ms.tolist()
        self.broken = _transfers_on(execution, at_ms, failure)
        self.waits = {one.id: one.dependencies for one in execution.graph.lowered}
        self.gone = failure.server if failure.kind == "server" else -1

    def of_task(self, task: Task, nodes: list[int]) -> Iterator[Task]:
        """Yield what is left of a task; of a collective its transfers and closing barrier."""
        if all(self.end[i] <= self.at_ms for i in nodes):
            return
        touched = self.gone >= 0 and self.gone in (
            task.server,
            task.source,
            task.destination,
            *(task.members or ()),
        )
        if touched:
            yield self._moved(task)
        elif len(nodes) > 1 and any(self.start[i] < self.at_ms for i in nodes[:-1]):
            yield from self._of_collective(task, nodes)
        else:
            yield self._shortened(task, nodes[-1], task.size_bytes, task.duration_ms)

    def _left(self, i: int) -> float:
        """Return the share of a node that is still to be done."""
        start, end = self.start[i], self.end[i]
        if start >= self.at_ms or end <= start or i in self.broken:
            return 1.0
        return float((end - self.at_ms) / (end - start))

    def _shortened(
        self, task: Task, i: int, size_bytes: float | None, duration_ms: float | None
    ) -> Task:
        left = self._left(i)
        if left == 1.0 or task.kind in COLLECTIVE_KINDS:
            return task
        return structs.replace(
            task,
            size_bytes=None if size_bytes is None else size_bytes * left,
            duration_ms=None if duration_ms is None else duration_ms * left,
        )

    def _of_collective(self, task: Task, nodes: list[int]) -> Iterator[Task]:
        graph = self.execution.graph
        left = [i for i in nodes[:-1] if self.end[i] > self.at_ms]
        for i in left:
            transfer = structs.replace(
                task,
                id=graph.ids[i],
                kind="communication",
                members=None,
                root=None,
                source=int(graph.source[i]),
                destination=int(graph.destination[i]),
                size_bytes=float(graph.size_bytes[i]),
                dependencies=self.waits[graph.ids[i]],
            )
            yield self._shortened(transfer, i, transfer.size_bytes, None)
        yield structs.replace(
            task,
            kind="barrier",
            members=None,
            root=None,
            size_bytes=None,
            dependencies=(*task.dependencies, *(graph.ids[i] for i in left)),
        )

    def _moved(self, task: Task) -> Task:
        substitute = self.failure.stand_in()
        if task.kind in COMPUTE_KINDS:
            return structs.replace(task, server=substitute)
        if task.kind in TRANSFER_KINDS:
            ends = tuple(
                substitute if s == self.gone else s for s in (task.source, task.destination)
            )
            if ends[0] == ends[1]:  # both ends are now one server: nothing crosses the network
                return structs.replace(
                    task,
                    kind="barrier",
                    source=None,
                    destination=None,
                    size_bytes=None,
                    duration_ms=None,
                )
            return structs.replace(task, source=ends[0], destination=ends[1])
        members = task.members or ()
        left = (m for m in members if m != self.gone or substitute not in members)
        return structs.replace(
            task,
            members=tuple(substitute if m == self.gone else m for m in left),
            root=substitute if task.root == self.gone else task.root,
        )


def _transfers_on(execution: Execution, at_ms: float, failure: Failure) -> frozenset[int]:
    """Return the transfers in flight on the failed element, or between its servers."""
    graph, of, cluster = execution.graph, execution.circuits, execution.cluster
    flying = (graph.kind == TRANSFER) & (execution.start_ms < at_ms) & (execution.end_ms > at_ms)
    each = max(1, cluster.ports_per_server // cluster.switches)
    hit = np.zeros(len(graph), np.bool_)
    if failure.kind == "server":
        hit = (graph.source == failure.server) | (graph.destination == failure.server)
    elif execution.layout is not None:
        pairs = zip(graph.source.tolist(), graph.destination.tolist(), strict=True)
        broken = _broken_pairs(execution.layout, failure, each)
        hit = np.array([pair in broken for pair in pairs], np.bool_)
    else:
        on = (of.source == failure.source) & (of.destination == failure.destination)
        if failure.kind != "fibre" or failure.port >= 0:
            sides = failure.sides(cluster.servers, cluster.ports_per_server, each)
            planes = (of.switch * each + port for port in (of.source_port, of.destination_port))
            on = on_sides(sides, of.source, of.destination, *planes)
        hit[of.node[on & (of.start_ms <= at_ms) & (of.end_ms > at_ms)]] = True
    return frozenset(np.flatnonzero(flying & hit).tolist())


def _broken_pairs(layout: Layout, failure: Failure, ports_per_switch: int) -> frozenset[Pair]:
    """Return the pairs with a route over a circuit that the failure takes from the layout."""
    lost = lost_circuits(layout, failure, ports_per_switch)
    gone = set(zip(*np.nonzero(lost), strict=True))
    return frozenset(
        pair
        for pair, routes in layout.routes.items()
        if any(hop in gone for route in routes for hop in pairwise(route))
    )
