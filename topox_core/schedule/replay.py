"""Replay: the orders of a plan on continuous time, with unrounded durations and the true reconfiguration delay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from topox_core.model.cluster import Cluster
from topox_core.model.durations import durations_ms
from topox_core.model.execution import BookedPorts, Circuits, Execution
from topox_core.model.transfer_graph import FloatArray, TransferGraph
from topox_core.schedule.circuits.assignment import Booking
from topox_core.schedule.kernels.known_order import (
    Holders,
    Orders,
    Places,
    in_known_order,
    orders_of,
)
from topox_core.schedule.planner import Prepared, SchedulePlan
from topox_core.schedule.problem import Int32, SwitchNetwork
from topox_core.schedule.source import TraceSource


@dataclass(frozen=True)
class Replay:
    """A plan's orders carried out as early as they allow: starts in ms, each transfer on the ports it booked.

    No task starts later than in the slotted plan: planned durations and dark times are rounded up,
    so that every term of a start is no later than a number that the plan respects.
    """

    graph: TransferGraph
    cluster: Cluster
    start_ms: FloatArray
    length_ms: FloatArray
    ports: BookedPorts
    source: TraceSource
    switching: Literal["planned", "provisioned"] = "planned"

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
    length_ms = durations_ms(graph, cluster)
    booking = plan.booking if plan.booking is not None else _no_booking()
    orders = _orders(prepared, plan, booking, length_ms)
    start_ms = in_known_order(
        graph.pred_ptr,
        graph.pred_idx,
        length_ms,
        orders,
        cluster.reconfiguration_ms,
        0.0,
        problem.on_grid,
    )
    ports = BookedPorts(
        booking.node,
        booking.switch,
        booking.source_port,
        booking.destination_port,
        orders.changed[booking.node],
    )
    return Replay(graph, cluster, start_ms, length_ms, ports, plan.source)


def _no_booking() -> Booking:
    none, slots = np.zeros(0, np.int32), np.zeros(0, np.int64)
    return Booking(none, none, none, none, slots, slots)


def _orders(
    prepared: Prepared, plan: SchedulePlan, booking: Booking, length_ms: FloatArray
) -> Orders:
    """Return who comes before whom in a plan: by start, then by a topological order."""
    problem = prepared.reduction.problem
    assert problem.network is not None
    place = np.empty(problem.n, np.int64)
    place[problem.order] = np.arange(problem.n)
    sequence = np.lexsort((place, plan.start)).astype(np.int32)
    node = booking.node
    out_port, in_port = _port_numbers(problem.network, booking)
    holders = Holders(
        np.where(length_ms > 0, problem.device, -1).astype(np.int32),
        _of_nodes(problem.n, node, out_port),
        _of_nodes(problem.n, node, in_port),
        _of_nodes(problem.n, node, booking.switch),
    )
    ports = prepared.planner.ports
    dark, limit = (ports.ports.dark, ports.ports.limit) if ports is not None else (0, 0)
    first = plan.start // problem.ticks_per_slot
    end = first + problem.duration // problem.ticks_per_slot
    places = Places(problem.network.switches, limit, dark, first, end)
    return orders_of(sequence, holders, places)


def _port_numbers(network: SwitchNetwork, booking: Booking) -> tuple[Int32, Int32]:
    """Return numbers of the ports in use: out-ports and in-ports apart, unless a half-duplex port is both."""
    k = network.ports_on_switch
    source, destination = network.source[booking.node], network.destination[booking.node]
    out_port = (source.astype(np.int64) * network.switches + booking.switch) * k
    in_port = (destination.astype(np.int64) * network.switches + booking.switch) * k
    apart = 0 if network.half_duplex else network.servers * network.switches * k
    both = np.concatenate(
        [out_port + booking.source_port, in_port + booking.destination_port + apart]
    )
    number = np.unique(both, return_inverse=True)[1].astype(np.int32)
    return number[: len(source)], number[len(source) :]


def _of_nodes(n: int, node: Int32, value: Int32) -> Int32:
    column = np.full(n, -1, np.int32)
    column[node] = value
    return column
