"""Replay: the orders of a plan on continuous time, with unrounded durations and the true reconfiguration delay.

Where the iteration repeats, the first users of ports wait for the last ones of the iteration before.
One iteration after the other begins when the last task of the one before has ended (a barrier). Start
times are sums and maxima, so that they come back after a few iterations, all of them shifted by one
period; the period is the largest mean of a cycle of the orders (max-plus algebra: Baccelli, Cohen,
Olsder and Quadrat, *Synchronization and Linearity*, 1992, section 3.7).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.csr import ranks
from topox_core.model.cluster import Cluster
from topox_core.model.execution import BookedPorts, Circuits, Execution, PortsHeld
from topox_core.model.transfer_graph import (
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
    durations_ms,
)
from topox_core.schedule.circuits.held_ports import PortNumbers
from topox_core.schedule.kernels.known_order import (
    AROUND,
    CIRCUIT,
    Holders,
    Orders,
    Places,
    around,
    in_known_order,
    orders_of,
)
from topox_core.schedule.planning.planner import Prepared, SchedulePlan
from topox_core.schedule.problem import Int32
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import ELSEWHERE, TraceSource

ALIKE = 1e-9  # relative: times that differ by less are the same
TIME_DIGITS = 9  # of times in ms that are compared
# Iterations that may pass before circuits come back; those that do not by then are held back. Of
# 2,000 random graphs of 25 tasks 1,954 took at most three, all but two at most 18.
MAX_ITERATIONS = 24
ADDED_UP = 1e-12  # relative: times that differ by less are added up in another order


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
    if graph is None or plan.booking is None:
        raise ValueError("only a plan with circuits can be replayed")
    generator = prepared.planner.ports
    dark, limit = (generator.ports.dark, generator.ports.limit) if generator is not None else (0, 0)
    first = plan.start // problem.ticks_per_slot
    end = first + problem.duration // problem.ticks_per_slot
    places = Places(problem.switch_network.switches, limit, dark, first, end)
    length_ms, repeats = durations_ms(graph, cluster), prepared.settings.repeats
    order = Sequence(plan.start, problem.device, length_ms, 0.0, repeats)
    carried_out = _carried_out(graph, cluster, order, plan.booking, places, plan.source)
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
    graph = execution.graph
    device, _ = graph.devices(exclusive_devices)
    length_ms = execution.end_ms - execution.start_ms if rounded else durations_ms(graph, cluster)
    slot_ms = cluster.slot_ms if on_slots else 0.0
    order = Sequence(execution.start_ms, device, length_ms, slot_ms, repeats)
    return _carried_out(graph, cluster, order, execution.circuits, places, ELSEWHERE)


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
    """In which order nodes run: by start, then by place in the graph's order; what device each holds (-1: none).

    With how long each takes, whether transfers start on slots (0: they do not), and whether the last
    users of ports come before the first.
    """

    start: NDArray[Any]
    device: Int32
    length_ms: FloatArray
    slot_ms: float
    repeats: bool


def _carried_out(
    graph: TransferGraph,
    cluster: Cluster,
    order: Sequence,
    ports: PortsHeld,
    places: Places,
    source: TraceSource,
) -> Replay:
    n, length_ms = len(graph), order.length_ms
    sequence = np.lexsort((ranks(graph.order), order.start)).astype(np.int32)
    out_port, in_port = _port_numbers(graph, cluster, ports)
    holders = Holders(
        np.where(length_ms > 0, order.device, -1).astype(np.int32),
        np.stack([_of_nodes(n, ports.node, port) for port in (out_port, in_port)]),
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
    held = ports.node, ports.switch, ports.source_port, ports.destination_port
    booked = BookedPorts(*held, orders.changed[ports.node])
    return Replay(graph, cluster, start_ms, length_ms, booked, source)


def _port_numbers(graph: TransferGraph, cluster: Cluster, ports: PortsHeld) -> tuple[Int32, Int32]:
    """Return numbers of the ports in use: out-ports and in-ports apart, unless a half-duplex port is both."""
    ends = graph.source[ports.node], graph.destination[ports.node]
    shape = cluster.switches, cluster.ports_per_server
    known = PortNumbers.of(ends, ports, shape, cluster.duplex == "half")
    number = np.unique(np.concatenate([known.out_port, known.in_port]), return_inverse=True)[1]
    out_port, in_port = number.astype(np.int32).reshape(2, -1)
    return out_port, in_port


def _of_nodes(n: int, node: Int32, value: Int32) -> Int32:
    column = np.full(n, -1, np.int32)
    column[node] = value
    return column


# -- the iteration that repeats --------------------------------------------------------------------------


def starts_in_order(
    pred_ptr: IntArray,
    pred_idx: IntArray,
    length: FloatArray,
    orders: Orders,
    dark: float,
    slot: float,
    on_grid: NDArray[np.bool_],
) -> FloatArray:
    """Return the earliest starts that keep all orders, of the repeated iteration where those go around the clock.

    Parameters are those of :func:`~topox_core.schedule.kernels.known_order.in_known_order`. The
    last end is the period, since the first users of ports that change wait at the beginning for
    what does not fit at the end.
    """

    def following(ended: FloatArray) -> FloatArray:
        return in_known_order(pred_ptr, pred_idx, length, orders, dark, slot, on_grid, ended)

    ended = np.full(len(length), -np.inf)
    start = following(ended)
    before = orders.before[:CIRCUIT]
    last = np.unique(AROUND - before[before <= AROUND])  # who is waited for around the clock
    if not len(last):
        return start
    begins, ends = [0.0], [ended[last]]
    for _ in range(MAX_ITERATIONS):
        period = float((start + length).max())
        begins.append(begins[-1] + period)
        ended = start + length - period
        ends.append(ended[last])
        late = [np.maximum(one, -dark) for one in ends]
        same = [np.allclose(late[-1], one, ADDED_UP, ADDED_UP * period) for one in late[:-1]]
        if same[-1]:
            return start
        if any(same):
            break
        start = following(ended)
    else:
        return _held_back(start, length, orders, dark, slot)
    # A cycle of several iterations: the latest of each end, less what has passed, repeats by itself.
    first = same.index(True)
    turns = len(ends) - 1 - first
    mean = (begins[-1] - begins[first]) / turns
    shift = [begins[first + k] - begins[first] - k * mean for k in range(turns)]
    ended[last] = np.max([ends[first + k] + shift[k] for k in range(turns)], axis=0) - max(shift)
    return _held_back(following(ended), length, orders, dark, slot)


def _held_back(
    start: FloatArray, length: FloatArray, orders: Orders, dark: float, slot: float
) -> FloatArray:
    """Return the starts shifted by what the first users of ports lack if each iteration is like this one."""
    end = start + length
    ended = end - end.max()
    lack = 0.0
    for before in orders.before[:CIRCUIT]:
        first = np.flatnonzero(before <= AROUND)
        needed = ended[AROUND - before[first]] + np.where(orders.changed[first], dark, 0.0)
        lack = max(lack, float((needed - start[first]).max(initial=0.0)))
    if lack <= ADDED_UP * float(end.max()):
        return start
    return start + (np.ceil(lack / slot) * slot if slot > 0 else lack)
