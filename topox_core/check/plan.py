"""The input beside the result: every task and transfer that must run, and when the result runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter

import numpy as np

from topox_core.check.intervals import Bool, Float, Int
from topox_core.check.schedule_file import Rules, Schedule
from topox_core.io.task_graph_file import check_fits
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    KINDS,
    TRANSFER_KINDS,
    Task,
    TaskGraph,
)

BARRIER_CODE, COMPUTE_CODE, TRANSFER_CODE, COLLECTIVE_CODE = range(4)
_CODE = {
    **dict.fromkeys(KINDS, BARRIER_CODE),
    **dict.fromkeys(COMPUTE_KINDS, COMPUTE_CODE),
    **dict.fromkeys(TRANSFER_KINDS, TRANSFER_CODE),
    **dict.fromkeys(COLLECTIVE_KINDS, COLLECTIVE_CODE),
}
# A duration of 3.0000000000000004 slots is 3: the quotient of two numbers from a file is not exact.
CEILING_TOLERANCE = 1e-9


@dataclass(frozen=True)
class CheckedPlan:
    """Nodes 0..n-1: the tasks of the graph, then the transfers that the result lists for collectives; times in ms.

    Attributes
    ----------
    node_of
        Node of every id; a task of the graph wins over a listed transfer of the same id.
    source, destination
        -1 except for transfers.
    collective
        Position of a listed transfer's collective in the graph, else -1.
    length_ms
        What a node must take on its clock; NaN for a collective.
    start_ms, end_ms
        The result's; NaN where a node does not appear.
    appearances, unknown
        How many rows each node has in the result, and the ids of rows that are no node.
    circuit_node
        The node that each circuit carries, -1 if unknown.
    tick_ms, tolerance_ms
        The clock of compute tasks, and what two equal times may differ by: far below a tick.
    """

    graph: TaskGraph
    cluster: Cluster
    rules: Rules
    schedule: Schedule
    ids: list[str]
    node_of: dict[str, int]
    kind: Int
    source: Int
    destination: Int
    collective: Int
    length_ms: Float
    start_ms: Float
    end_ms: Float
    appearances: Int
    unknown: list[str]
    circuit_node: Int
    tick_ms: float
    tolerance_ms: float

    @property
    def tasks(self) -> int:
        """Number of nodes that are tasks of the graph; listed transfers come after."""
        return len(self.graph.tasks)

    @cached_property
    def period_ms(self) -> float:
        """The last end: when the next iteration begins."""
        return float(np.nanmax(self.end_ms, initial=0.0))

    @cached_property
    def is_transfer(self) -> Bool:
        """Nodes that need a circuit."""
        return np.asarray(self.kind == TRANSFER_CODE)

    @cached_property
    def edges(self) -> tuple[Int, Int]:
        """Dependencies of the graph as pairs of positions: what waits, and for what."""
        tasks, position = self.graph.tasks, self.graph.position
        waits = [task.dependencies for task in tasks]
        counts = np.fromiter(map(len, waits), np.int64, len(tasks))
        earlier = np.fromiter(
            map(position.__getitem__, chain.from_iterable(waits)), np.int64, int(counts.sum())
        )
        return np.repeat(np.arange(len(tasks)), counts), earlier

    @staticmethod
    def of(graph: TaskGraph, cluster: Cluster, rules: Rules, schedule: Schedule) -> CheckedPlan:
        """Return the nodes of the input with the times of the result.

        Raises
        ------
        InputError
            If the graph names a server or device that the cluster lacks.
        """
        tasks = graph.tasks
        n = len(tasks)
        node_of = {**{name: n + i for i, name in enumerate(schedule.transfer)}, **graph.position}
        kind = np.array([_CODE[task.kind] for task in tasks], np.int64)
        kind = np.append(kind, np.full(len(schedule.transfer), TRANSFER_CODE))
        source = np.append(_column(tasks, "source", -1), schedule.transfer_source)
        destination = np.append(_column(tasks, "destination", -1), schedule.transfer_destination)
        check_fits(graph, cluster)
        tick = schedule.slot_ms / max(1, round(schedule.slot_ms / schedule.tick_ms))
        rows = _positions(node_of, schedule.task)
        known = rows >= 0
        start, end = np.full(len(kind), np.nan), np.full(len(kind), np.nan)
        # Turned round, so that of a task that appears twice the first row counts.
        start[rows[known][::-1]] = schedule.start_ms[known][::-1]
        end[rows[known][::-1]] = schedule.end_ms[known][::-1]
        position = graph.position
        return CheckedPlan(
            graph,
            cluster,
            rules,
            schedule,
            ids=[*position, *schedule.transfer],
            node_of=node_of,
            kind=kind,
            source=source.astype(np.int64),
            destination=destination.astype(np.int64),
            length_ms=_lengths(tasks, cluster, schedule, kind, tick if rules.on_slots else None),
            collective=np.append(np.full(n, -1), _positions(position, schedule.collective)),
            start_ms=start,
            end_ms=end,
            appearances=np.bincount(rows[known], minlength=len(kind)),
            unknown=[schedule.task[i] for i in np.flatnonzero(~known)],
            circuit_node=_positions(node_of, schedule.circuit_task),
            tick_ms=tick,
            tolerance_ms=max(1e-6 * tick, min(2e-9, 1e-2 * tick))
            if rules.on_slots
            # Sums of floats: far below what any clock resolves, whatever the length of the iteration.
            else max(2e-9, 1e-12 * abs(schedule.makespan_ms)),
        )


def _column(tasks: tuple[Task, ...], field: str, missing: float) -> Float:
    """Return a field of all tasks, ``missing`` where it is None."""
    values = map(attrgetter(field), tasks)
    return np.array([missing if value is None else value for value in values], np.float64)


def _positions(position: Mapping[str, int], names: Sequence[str]) -> Int:
    """Return the position of each name, -1 if it has none."""
    return np.array([position.get(name, -1) for name in names], np.int64)


def _lengths(
    tasks: tuple[Task, ...], cluster: Cluster, schedule: Schedule, kind: Int, tick_ms: float | None
) -> Float:
    """Return what each node takes: p_j rounded up to ticks (compute) or slots (transfers); unrounded without a tick."""
    unknown = np.full(len(schedule.transfer), np.nan)
    given = np.append(_column(tasks, "duration_ms", np.nan), unknown)
    size = np.append(_column(tasks, "size_bytes", np.nan), schedule.transfer_bytes)
    # A transfer given by its duration is given whole: the latency belongs to those given by their
    # bytes.
    running = np.where(
        np.isnan(given), cluster.latency_us / 1000 + size * 8 / (cluster.port_gbps * 1e6), given
    )
    if tick_ms is not None:
        given, running = rounded_up(given, tick_ms), rounded_up(running, cluster.slot_ms)
    return np.select(
        [kind == COMPUTE_CODE, kind == TRANSFER_CODE, kind == BARRIER_CODE],
        [given, running, np.zeros(len(kind))],
        np.nan,
    )


def rounded_up(duration_ms: Float, unit_ms: float) -> Float:
    """Return durations in whole units, at least one where there is any duration."""
    units = duration_ms / unit_ms
    whole = np.ceil(units - CEILING_TOLERANCE * np.maximum(1.0, units))
    return np.where(duration_ms > 0, np.maximum(1.0, whole), 0.0) * unit_ms
