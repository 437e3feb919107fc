"""Replay: the orders of a plan on continuous time, with unrounded durations and the true reconfiguration delay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.model.cluster import Cluster
from topox_core.model.durations import durations_ms
from topox_core.model.execution import BookedPorts, Circuits, Execution
from topox_core.model.passes import topological_order
from topox_core.model.transfer_graph import TRANSFER, FloatArray, TransferGraph
from topox_core.schedule.circuits.port_numbers import PortNumbers
from topox_core.schedule.kernels.known_order import (
    Holders,
    Places,
    around,
    orders_of,
)
from topox_core.schedule.planner import Prepared, SchedulePlan
from topox_core.schedule.problem import Int32
from topox_core.schedule.reduction import devices_of
from topox_core.schedule.repetition import starts_in_order
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import ELSEWHERE, TraceSource

ALIKE = 1e-9  # relative: times that differ by less are the same
TIME_DIGITS = 9  # of times in ms that are compared


@dataclass(frozen=True)
class Replay:
    """A plan's orders carried out as early as they allow: starts in ms, each transfer on the ports it booked.

    No task starts later than in the slotted plan: planned durations and dark times are rounded up,
    so that every term of a start is no later than a number that the plan respects.
    ``planned_slot_ms`` is the slot of that plan, None where the orders come from no plan on slots.
    """

    graph: TransferGraph
    cluster: Cluster
    start_ms: FloatArray
    length_ms: FloatArray
    ports: BookedPorts
    source: TraceSource
    switching: Literal["planned", "provisioned"] = "planned"
    planned_slot_ms: float | None = None

    @cached_property
    def makespan_ms(self) -> float:
        """End of the last task."""
        return float((self.start_ms + self.length_ms).max(initial=0.0))

    @cached_property
    def changes(self) -> int:
        """How many circuits had to be set up during the iteration."""
        return int(self.ports.changed.sum())

    @property
    def cost(self) -> tuple[float, int]:
        """What is minimised: the makespan, then the number of circuit changes."""
        return self.makespan_ms, self.changes

    @property
    def execution(self) -> Execution:
        """The iteration as it runs."""
        end_ms = self.start_ms + self.length_ms
        circuits = Circuits.at(
            self.graph, self.ports, self.start_ms, end_ms, self.cluster.reconfiguration_ms
        )
        return Execution(self.graph, self.cluster, self.start_ms, end_ms, circuits)


def replay(prepared: Prepared, plan: SchedulePlan, cluster: Cluster) -> Replay:
    """Carry out the orders of a plan with continuous circuits on a cluster's unrounded durations and delay.

    Parameters
    ----------
    prepared, plan
        The problem on slots, and a plan of it that books ports.
    cluster
        Whose durations and delay count. Its slot may be another than the one that was planned on.
    """
    graph, problem = prepared.graph, prepared.reduction.problem
    if graph is None or problem.network is None:
        raise ValueError("only a plan with circuits can be replayed")
    booking = plan.booking
    ports = BookedPorts.none()
    if booking is not None:
        ports = BookedPorts(
            booking.node,
            booking.switch,
            booking.source_port,
            booking.destination_port,
            np.zeros(len(booking.node), np.bool_),
        )
    generator = prepared.planner.ports
    dark, limit = (generator.ports.dark, generator.ports.limit) if generator is not None else (0, 0)
    first = plan.start // problem.ticks_per_slot
    end = first + problem.duration // problem.ticks_per_slot
    places = Places(problem.network.switches, limit, dark, first, end)
    length_ms, repeats = durations_ms(graph, cluster), prepared.settings.repeats
    order = Sequence(problem.order, plan.start, problem.device, length_ms, 0.0, repeats)
    carried_out = _carried_out(graph, cluster, order, ports, places, plan.source)
    return replace(carried_out, planned_slot_ms=problem.tick_ms * problem.ticks_per_slot)


def replayed(execution: Execution, cluster: Cluster, exclusive_devices: bool) -> Execution:
    """Carry out the orders of an execution with circuits on another cluster, which counts no places on switches.

    With a delay of 0 it is a schedule of a non-blocking switch.
    """
    nothing = np.zeros(0, np.int64)
    places = Places(0, 0, 0, nothing, nothing)
    result = _in_the_same_order(execution, cluster, exclusive_devices, places)
    return replace(result.execution, circuits=Circuits.none())


def released_unrounded(execution: Execution, exclusive_devices: bool) -> Execution:
    """Carry out the orders of a plan on slots, what follows a transfer being released at its unrounded end.

    Eq. 5 of TOPO-X as printed: s + p of the transfer, not the end of its last slot. Transfers still
    start on slots and no task starts later than in the plan.
    """
    cluster = execution.cluster
    places = _places_of(execution, cluster)
    return _in_the_same_order(execution, cluster, exclusive_devices, places, False, True).execution


def replayed_on_circuits(
    execution: Execution, cluster: Cluster, settings: Settings, rounded: bool = False
) -> Execution:
    """Carry out the orders of an execution with circuits on a cluster with another delay or speed.

    Every order at a device, a port and a place on a switch (eq. 7) is kept. Where neither the delay
    nor a duration grows, no task starts later than in the execution, whose starts keep these orders.
    ``rounded``: durations are those of the execution, and transfers start on slots.
    """
    places = _places_of(execution, cluster)
    exclusive, repeats = settings.exclusive_devices, settings.repeats
    return _in_the_same_order(
        execution, cluster, exclusive, places, repeats, rounded, rounded
    ).execution


def first_ms(execution: Execution, settings: Settings) -> float | None:
    """Return how long the first iteration of a schedule takes, whose first circuits stand when it begins.

    None where every iteration takes as long.
    """
    cluster = execution.cluster
    if not settings.repeats or not len(execution.circuits) or execution.layout is not None:
        return None
    first = replace(settings, iteration="first")
    ms = replayed_on_circuits(execution, cluster, first, settings.on_slots).makespan_ms
    return ms if ms < execution.makespan_ms * (1 - ALIKE) else None


def _in_the_same_order(
    execution: Execution,
    cluster: Cluster,
    exclusive_devices: bool,
    places: Places,
    repeats: bool = False,
    on_slots: bool = False,
    rounded: bool = False,
) -> Replay:
    graph, circuits = execution.graph, execution.circuits
    ports = BookedPorts(
        circuits.node,
        circuits.switch,
        circuits.source_port,
        circuits.destination_port,
        circuits.changed,
    )
    device = np.full(len(graph), -1, np.int32)
    if exclusive_devices:
        device = devices_of(graph)[0]
    succ_ptr, succ_idx = graph.successors
    topological = topological_order(graph.pred_ptr, succ_ptr, succ_idx)
    length_ms = execution.end_ms - execution.start_ms if rounded else durations_ms(graph, cluster)
    slot_ms = cluster.slot_ms if on_slots else 0.0
    order = Sequence(topological, execution.start_ms, device, length_ms, slot_ms, repeats)
    return _carried_out(graph, cluster, order, ports, places, ELSEWHERE)


def _places_of(execution: Execution, cluster: Cluster) -> Places:
    """Return when the circuits of an execution hold places on their switches, set-ups included, as ranks in time."""
    circuits, n = execution.circuits, len(execution.graph)
    # Equal times differ in their last digits: they were added up in different orders.
    times = np.round(np.concatenate([circuits.setup_ms, circuits.end_ms]), TIME_DIGITS)
    rank = np.unique(times, return_inverse=True)[1].astype(np.int64)
    first, end = np.zeros(n, np.int64), np.zeros(n, np.int64)
    first[circuits.node], end[circuits.node] = np.split(rank, 2)
    return Places(cluster.switches, cluster.switch_limit, 0, first, end)


@dataclass(frozen=True)
class Sequence:
    """In which order nodes run: by start, then by place in a topological order; what device each holds (-1: none).

    With how long each takes, whether transfers start on slots (0: they do not), and whether the last
    users of ports come before the first.
    """

    topological: Int32
    start: NDArray[Any]
    device: Int32
    length_ms: FloatArray
    slot_ms: float
    repeats: bool


def _carried_out(
    graph: TransferGraph,
    cluster: Cluster,
    order: Sequence,
    ports: BookedPorts,
    places: Places,
    source: TraceSource,
) -> Replay:
    n, length_ms = len(graph), order.length_ms
    place = np.empty(n, np.int64)
    place[order.topological] = np.arange(n)
    sequence = np.lexsort((place, order.start)).astype(np.int32)
    out_port, in_port = _port_numbers(graph, cluster, ports)
    holders = Holders(
        np.where(length_ms > 0, order.device, -1).astype(np.int32),
        _of_nodes(n, ports.node, out_port),
        _of_nodes(n, ports.node, in_port),
        _of_nodes(n, ports.node, ports.switch),
    )
    orders = orders_of(sequence, holders, places)
    if order.repeats:
        orders = around(orders, holders)
    on_grid = graph.kind == TRANSFER
    start_ms = starts_in_order(
        graph.pred_ptr,
        graph.pred_idx,
        length_ms,
        orders,
        cluster.reconfiguration_ms,
        order.slot_ms,
        on_grid,
    )
    booked = replace(ports, changed=orders.changed[ports.node])
    return Replay(graph, cluster, start_ms, length_ms, booked, source)


def _port_numbers(
    graph: TransferGraph, cluster: Cluster, ports: BookedPorts
) -> tuple[Int32, Int32]:
    """Return numbers of the ports in use: out-ports and in-ports apart, unless a half-duplex port is both."""
    ends = graph.source[ports.node], graph.destination[ports.node]
    shape = cluster.switches, cluster.ports_per_server
    carried = ports.switch, ports.source_port, ports.destination_port
    known = PortNumbers.of(ends, carried, shape, cluster.duplex == "half")
    number = np.unique(np.concatenate([known.out_port, known.in_port]), return_inverse=True)[1]
    out_port, in_port = number.astype(np.int32).reshape(2, -1)
    return out_port, in_port


def _of_nodes(n: int, node: Int32, value: Int32) -> Int32:
    column = np.full(n, -1, np.int32)
    column[node] = value
    return column
