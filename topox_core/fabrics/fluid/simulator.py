"""The fluid simulator: transfers share links max-min fairly on continuous time.

Rates change only when a transfer starts or ends, so between two events everything is a straight
line and nothing is rounded to slots or packets. Who goes first on a device is the order of
readiness, written down in :mod:`topox_core.fabrics.kernels.state` and shared by all fabrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import refuse_if
from topox_core.fabrics.kernels.events import advance, begin, resume, unsent
from topox_core.fabrics.kernels.state import ENDED, NOW, State, TaskTables, fresh
from topox_core.model.arrays.csr import flattened, pointer_of, row_pointer
from topox_core.model.cluster import Cluster
from topox_core.model.transfer_graph import (
    COMPUTE,
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
    latency_ms,
    work_bytes,
)
from topox_core.runs.run import Stop

BATCHES_BETWEEN_STOPS = 100
NOBODY = np.zeros(0, np.int32)


class Stopped(Exception):
    """The run was stopped before the iteration ended."""


def go_on(stop: Stop) -> None:
    """Raise :class:`Stopped` if the run is to stop."""
    if stop():
        raise Stopped


def check_servers(graph: TransferGraph, cluster: Cluster) -> int:
    """Return the highest server that a graph names, -1 if none; refuse one that the cluster lacks.

    Raises
    ------
    InputError
        If the graph names a server that the cluster does not have.
    """
    named = (graph.server, graph.source, graph.destination)
    highest = max((int(ends.max()) for ends in named if len(ends)), default=-1)
    refuse_if(
        (
            highest >= cluster.servers,
            f"must be at least {highest + 1}, because the task graph names server {highest} (got "
            f"{cluster.servers})",
        ),
        file="cluster",
        field="servers",
    )
    return highest


@dataclass(frozen=True)
class Pairs:
    """The (source, destination) pairs that talk, each once, by source, then destination.

    ``of_node`` is the pair of each node of the graph, -1 where a node is no transfer. Transfers that
    are marked make pairs ``apart`` from the others between the same servers.
    """

    source: IntArray
    destination: IntArray
    of_node: IntArray
    apart: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.source)

    @property
    def ends(self) -> list[tuple[int, int]]:
        """The pairs one by one."""
        return list(zip(self.source.tolist(), self.destination.tolist(), strict=True))

    @staticmethod
    def of(graph: TransferGraph, cluster: Cluster, apart: NDArray[np.bool_] | None = None) -> Pairs:
        """Return the pairs of a graph; ``apart`` marks nodes.

        Raises
        ------
        InputError
            If the graph names a server that the cluster does not have.
        """
        check_servers(graph, cluster)
        transfers = np.flatnonzero(graph.kind == TRANSFER)
        code = (
            graph.source[transfers].astype(np.int64) * cluster.servers
            + graph.destination[transfers]
        ) * 2
        if apart is not None:
            code += apart[transfers]
        unique, number = np.unique(code, return_inverse=True)
        of_node = np.full(len(graph), -1, np.int32)
        of_node[transfers] = number
        source, destination = (
            ends.astype(np.int32) for ends in divmod(unique // 2, cluster.servers)
        )
        return Pairs(source, destination, of_node, unique % 2 == 1)


@dataclass(frozen=True)
class FluidNetwork:
    """Links with their capacities, and the paths of every pair that talks.

    Attributes
    ----------
    capacity
        Of each link, in bytes per ms. A link is anything shared: a port, a circuit, a rack's
        uplink.
    path_ptr, path_link
        Links of each path, in compressed rows.
    pair_ptr
        Paths of each pair: ``pair_ptr[i]:pair_ptr[i + 1]``; a transfer is split evenly over them.
    """

    capacity: FloatArray
    path_ptr: IntArray
    path_link: IntArray
    pair_ptr: IntArray

    @staticmethod
    def of(capacity: FloatArray, paths: Sequence[Sequence[Sequence[int]]]) -> FluidNetwork:
        """Return the network whose pair i has the paths ``paths[i]``, each a list of links."""
        path_ptr, path_link = flattened([path for of_pair in paths for path in of_pair], np.int32)
        pair_ptr = row_pointer([len(of_pair) for of_pair in paths])
        return FluidNetwork(np.asarray(capacity, np.float64), path_ptr, path_link, pair_ptr)


@dataclass(frozen=True)
class FluidTasks:
    """What a run's tables hold of the tasks alone, whatever the links are.

    Attributes
    ----------
    work_bytes, length_ms
        Bytes left of each node, and how long it takes besides sending them.
    device
        Number of the device that a node must hold alone, or -1.
    group
        Of each node, or -1.
    """

    graph: TransferGraph
    pairs: Pairs
    work_bytes: FloatArray
    length_ms: FloatArray
    device: IntArray
    queue_ptr: IntArray
    group: IntArray

    @staticmethod
    def of(
        graph: TransferGraph,
        cluster: Cluster,
        pairs: Pairs,
        exclusive_devices: bool,
    ) -> FluidTasks:
        """Return the tasks of a graph, with all their bytes."""
        device, _ = graph.devices(exclusive_devices)
        return FluidTasks(
            graph,
            pairs,
            work_bytes(graph, cluster),
            np.where(graph.kind == COMPUTE, graph.duration_ms, latency_ms(graph, cluster)),
            device,
            pointer_of(device[device >= 0], 1),
            np.full(len(graph), -1, np.int32),
        )

    @cached_property
    def moving(self) -> NDArray[np.intp]:
        """The nodes that have bytes left."""
        return np.flatnonzero(self.work_bytes > 0)

    @cached_property
    def pair(self) -> IntArray:
        """The pair of each of them."""
        return self.pairs.of_node[self.moving]

    def on(self, network: FluidNetwork) -> TaskTables:
        """Return the tables for these links, transfers cut into one part for each of their paths; without any it waits for ever."""
        graph, moving = self.graph, self.moving
        split = np.diff(network.pair_ptr)[self.pair]
        counts = np.zeros(len(graph), np.int64)
        counts[moving] = split
        length_ms = self.length_ms
        if (split == 0).any():
            length_ms = length_ms.copy()
            length_ms[moving[split == 0]] = np.inf
        part_ptr = row_pointer(counts)
        part_node = np.repeat(moving, split).astype(np.int32)
        within = np.arange(len(part_node)) - part_ptr[part_node]
        first = np.repeat(network.pair_ptr[self.pair], split)
        part_class = (first + within).astype(np.int32)
        return TaskTables(
            graph.kind,
            *graph.successors,
            device=self.device,
            length_ms=length_ms,
            part_ptr=part_ptr,
            part_class=part_class,
            part_bytes=self.work_bytes[part_node] / counts[part_node],
            part_node=part_node,
            class_ptr=network.path_ptr,
            class_link=network.path_link,
            flow_ptr=pointer_of(part_class, len(network.path_ptr) - 1),
            link_ptr=pointer_of(network.path_link, len(network.capacity)),
            capacity=network.capacity,
            queue_ptr=self.queue_ptr,
            group=self.group,
            rank=NOBODY,
        )


class Simulation:
    """A run that can be watched event by event.

    Parameters
    ----------
    graph, cluster
        What runs; of the cluster the port speed and the latency count.
    pairs, network
        The links, and the paths of every pair of the graph.
    exclusive_devices
        Whether a compute task holds its (server, device) alone.
    group
        Of each node, or -1, if the run is to stop where a group begins or ends.
    """

    def __init__(
        self,
        graph: TransferGraph,
        cluster: Cluster,
        pairs: Pairs,
        network: FluidNetwork,
        exclusive_devices: bool = True,
        group: IntArray | None = None,
    ) -> None:
        self.tasks = FluidTasks.of(graph, cluster, pairs, exclusive_devices)
        if group is not None:
            self.tasks = replace(self.tasks, group=group)
        self.plan: TaskTables = self.tasks.on(network)
        self.state: State = fresh(self.plan, np.diff(graph.pred_ptr))
        begin(self.plan, self.state)

    @property
    def now_ms(self) -> float:
        """Time of the last event."""
        return float(self.state.clock[NOW])

    @property
    def path_rates(self) -> FloatArray:
        """Bytes per ms of each transfer (or part of one) on each path; 0 where there is none."""
        return np.where(self.state.active > 0, self.state.rate, 0.0)

    @property
    def over(self) -> bool:
        """Whether every task has ended."""
        return int(self.state.counts[ENDED]) == len(self.plan.kind)

    def advance(self, batches: int, latest_ms: float = np.inf) -> bool:
        """Run up to ``batches`` batches of events, to news of a group at most; return whether more remain by ``latest_ms``."""
        return advance(self.plan, self.state, batches, latest_ms)

    def unsent(self, now_ms: float) -> FloatArray:
        """Return the bytes of every part of the plan that are not sent by ``now_ms``."""
        return np.asarray(unsent(self.plan, self.state, now_ms))

    def unsent_of_tasks(self, now_ms: float) -> FloatArray:
        """Return the bytes of every task that are not sent by ``now_ms``."""
        has_parts = np.diff(self.plan.part_ptr) > 0
        in_parts = np.bincount(self.plan.part_node, self.unsent(now_ms), len(has_parts))
        return np.where(has_parts, in_parts, self.tasks.work_bytes)

    def moved_to(self, network: FluidNetwork, now_ms: float) -> Simulation:
        """Return the run as it goes on from ``now_ms`` on other links; pairs without a path wait."""
        moved = copy(self)
        moved.tasks = replace(self.tasks, work_bytes=self.unsent_of_tasks(now_ms))
        moved.plan = moved.tasks.on(network)
        moved.state = fresh(moved.plan, self.state.waiting)
        resume(moved.plan, moved.state, now_ms, self.state)
        return moved
