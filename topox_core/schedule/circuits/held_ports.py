"""From start times to circuits: which switch and ports carry each transfer, which of them changed, and what checks them.

The ports of a schedule whose circuits take time to set up are an array of three rows over the tasks:
switch, out-port and in-port, ports numbered within (server, switch); -1 where a task is no transfer
or takes no time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.csr import Whole, entries_of, grouped
from topox_core.model.arrays.intervals import Line
from topox_core.model.execution import Circuits, PortsHeld
from topox_core.schedule.kernels.colouring import colour_slots
from topox_core.schedule.problem import Int, Int32, Problem, SwitchNetwork
from topox_core.schedule.rcpsp.feasibility import first_overfull, violation

NOT_CARRIED = -1


@dataclass(frozen=True)
class PortNumbers:
    """The out-port and the in-port of each transfer: one number for one port, wherever it is.

    An out-port and an in-port have different numbers, unless a half-duplex port is both.
    """

    out_port: Int
    in_port: Int
    half_duplex: bool

    @staticmethod
    def of(
        ends: tuple[Whole, Whole],
        held: PortsHeld,
        shape: tuple[int, int],
        half_duplex: bool,
    ) -> PortNumbers:
        """Return the numbers.

        Parameters
        ----------
        ends
            Source and destination of each transfer.
        held
            Its switch and its ports there.
        shape
            Switches, and ports of a server on each (or more).
        """
        switches, k = shape
        out_port, in_port = (
            (server.astype(np.int64) * switches + held.switch) * k + port
            for server, port in zip(ends, (held.source_port, held.destination_port), strict=True)
        )
        if not half_duplex:
            in_port = in_port + int(max(out_port.max(initial=-1), in_port.max(initial=-1))) + 1
        return PortNumbers(out_port, in_port, half_duplex)

    def changed(self, start: Whole | NDArray[np.float64], repeats: bool) -> NDArray[np.bool_]:
        """Return which transfers change a circuit: one of the two ports held another one before.

        Where the iteration repeats, a port begins with its last circuit; else its first one stands
        before the iteration begins and is no change.
        """
        port, transfer, circuit = self.in_turn(start)
        changed = np.zeros(len(self.out_port), np.bool_)
        changed[transfer[1:][(port[1:] == port[:-1]) & (circuit[1:] != circuit[:-1])]] = True
        if repeats:
            first, last = self.ends_of_turns(port)
            changed[transfer[first[circuit[first] != circuit[last]]]] = True
        return changed

    @staticmethod
    def ends_of_turns(port: Int) -> tuple[Int, Int]:
        """Return where the rows of :meth:`in_turn` begin and end for each port."""
        cuts = np.flatnonzero(np.diff(port)) + 1
        return np.r_[0, cuts][: len(port)], np.r_[cuts, len(port)][: len(port)] - 1

    def in_turn(self, start: Whole | NDArray[np.float64]) -> tuple[Int, Int, Int]:
        """Return (port, transfer, circuit) port by port in the order of time; circuits are numbers, too.

        Two transfers of one port are on one circuit if their other ports are the same and they go
        the same way.
        """
        port = np.concatenate([self.out_port, self.in_port])
        way = 1 if self.half_duplex else 0
        circuit = np.concatenate([2 * self.in_port, 2 * self.out_port + way])
        transfer = np.tile(np.arange(len(self.out_port)), 2)
        order = np.lexsort((np.tile(start, 2), port))
        return port[order], transfer[order], circuit[order]


@dataclass(frozen=True)
class Booking(PortsHeld):
    """Transfers on switches and ports, in slots; one row a transfer (several where it moves)."""

    first_slot: Int
    end_slot: Int

    @staticmethod
    def at(problem: Problem, held: PortsHeld, start: Int) -> Booking:
        """Return the booking of transfers that each stay on their ports, from the start ticks of all tasks."""
        first = start[held.node] // problem.ticks_per_slot
        end = first + problem.duration[held.node] // problem.ticks_per_slot
        ports = held.switch, held.source_port, held.destination_port
        return Booking(held.node, *ports, first, end)


def per_slot(problem: Problem, start: Int) -> Booking:
    """Return circuits drawn slot by slot for given start times (balanced edge colouring, eqs 7, 9, 10).

    With shared circuits the edges are a pair's circuit, up while any of its transfers is active.
    """
    network = problem.switch_network
    carried = np.flatnonzero(problem.on_grid & (problem.duration > 0)).astype(np.int32)
    first = start[carried] // problem.ticks_per_slot
    end = first + problem.duration[carried] // problem.ticks_per_slot
    edge_first, edge_end = first, end
    edge_of: NDArray[np.intp] = np.arange(len(carried))
    x, y = network.source[carried], network.destination[carried]
    if network.shares:
        edge_first, edge_end, edge_of, example = _shared_runs(
            x.astype(np.int64) * network.servers + y, first, end
        )
        x, y = x[example], y[example]
    k = network.ports_on_switch
    # Only servers that talk count, however large the cluster.
    talking, ends = np.unique(np.concatenate([x, y]), return_inverse=True)
    edge, colour, since, until = colour_slots(
        ends.reshape(2, -1).astype(np.int32),
        edge_first,
        edge_end,
        len(talking),
        k * network.switches,
        k,
        network.circuits_per_switch,
    )
    if network.shares:
        rows, piece = _cut(edge_of, first, end, edge, since, until, len(edge_first))
        since, until = np.maximum(since[piece], first[rows]), np.minimum(until[piece], end[rows])
        colour = colour[piece]
    else:
        rows = edge.astype(np.intp)
    port = (colour % k).astype(np.int32)
    return Booking(carried[rows], (colour // k).astype(np.int32), port, port, since, until)


def _shared_runs(
    pair: Int, first: Int, end: Int
) -> tuple[Int, Int, NDArray[np.intp], NDArray[np.intp]]:
    """Merge overlapping transfers of a pair into runs: (first, end) of each run, run of each transfer, an example."""
    line = Line.of(pair, first, end)
    order, opens = line.order, line.start >= line.before
    example = order[opens]
    run_of = np.empty(len(order), np.intp)
    run_of[order] = np.cumsum(opens) - 1
    return first[example], np.maximum.reduceat(end[order], np.flatnonzero(opens)), run_of, example


def _cut(
    run_of: NDArray[np.intp], first: Int, end: Int, edge: Int, since: Int, until: Int, runs: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pair every transfer with the pieces of its run's circuit that it lives through."""
    pointer, order = grouped(edge, np.arange(len(edge)), runs)
    row = np.repeat(np.arange(len(run_of)), np.diff(pointer)[run_of])
    piece = order[entries_of(pointer, run_of)]
    lives = (since[piece] < end[row]) & (until[piece] > first[row])
    return row[lives], piece[lives]


def changed_rows(booking: Booking, network: SwitchNetwork) -> NDArray[np.bool_]:
    """Return which rows change a circuit (:meth:`PortNumbers.changed`)."""
    return ports_of_booking(booking, network).changed(booking.first_slot, network.repeats)


def ports_of_booking(booking: Booking, network: SwitchNetwork) -> PortNumbers:
    """Return the ports of each row of a booking as numbers."""
    ends = network.source[booking.node], network.destination[booking.node]
    shape = network.switches, network.ports_on_switch
    return PortNumbers.of(ends, booking, shape, network.half_duplex)


def to_circuits(problem: Problem, booking: Booking, reconfiguration_ms: float) -> Circuits:
    """Return the circuits of an execution, in ms, ordered by start, switch, source and port."""
    network = problem.switch_network
    source, destination = network.source[booking.node], network.destination[booking.node]
    order = np.lexsort((booking.source_port, source, booking.switch, booking.first_slot))
    changed = changed_rows(booking, network)[order]
    slot_ms = problem.tick_ms * problem.ticks_per_slot
    start = np.round(booking.first_slot[order] * slot_ms, 9)
    return Circuits(
        switch=booking.switch[order],
        source=source[order],
        destination=destination[order],
        source_port=booking.source_port[order],
        destination_port=booking.destination_port[order],
        setup_ms=np.where(changed, np.round(start - reconfiguration_ms, 9), start),
        start_ms=start,
        end_ms=np.round(booking.end_slot[order] * slot_ms, 9),
        node=booking.node[order],
        changed=changed,
    )


# -- schedules on real ports ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Solution:
    """Start ticks, with the ports of each transfer where the problem counts set-ups."""

    start: Int
    ports: Int32 | None = None


def with_set_ups(problem: Problem, dark_slots: int) -> Problem:
    """Return the problem whose transfers hold real ports, dark for so many slots before a change of circuit."""
    return replace(problem, network=replace(problem.switch_network, dark_slots=dark_slots))


def slots_to_wait(problem: Problem, booking: Booking, last_end: int, dark_slots: int) -> int:
    """Return how many slots an iteration must begin later, so that ports come back in time for the next one.

    A port whose last circuit is not its first is dark in between. Where a switch may be full (eq. 7),
    no set-up begins in the iteration before.
    """
    net = problem.switch_network
    if not net.repeats:
        return 0
    port, row, circuit = ports_of_booking(booking, net).in_turn(booking.first_slot)
    first, last = PortNumbers.ends_of_turns(port)
    moves = circuit[first] != circuit[last]
    begin, end = booking.first_slot[row[first[moves]]], booking.end_slot[row[last[moves]]]
    wait = int((end + dark_slots - begin).max(initial=0)) - last_end // problem.ticks_per_slot
    early = dark_slots - int(begin.min(initial=dark_slots))
    return max(0, wait, early if net.switches_may_fill else 0)


def held_back(problem: Problem, solution: Solution) -> Solution:
    """Return a solution that begins so late that its ports come back in time for the next iteration."""
    net = problem.network
    if net is None or net.dark_slots is None or solution.ports is None:
        return solution
    last = int((solution.start + problem.duration).max(initial=0))
    wait = slots_to_wait(problem, booking_of(problem, solution), last, net.dark_slots)
    return replace(solution, start=solution.start + wait * problem.ticks_per_slot)


def carried_tasks(problem: Problem) -> Int32:
    """Return the transfers that hold ports: those that take time."""
    return np.flatnonzero(problem.on_grid & (problem.duration > 0)).astype(np.int32)


def ports_of(problem: Problem, booking: Booking) -> Int32:
    """Return the ports that a booking gives each transfer."""
    ports = np.full((3, problem.n), NOT_CARRIED, np.int32)
    ports[:, booking.node] = booking.switch, booking.source_port, booking.destination_port
    return ports


def booking_of(problem: Problem, solution: Solution) -> Booking:
    """Return the booking of a solution with ports."""
    assert solution.ports is not None
    node = carried_tasks(problem)
    return Booking.at(problem, PortsHeld(node, *solution.ports[:, node]), solution.start)


def solution_violation(problem: Problem, solution: Solution) -> str | None:
    """Return the first rule that a solution breaks, in words, or None.

    The rules of the reduced problem, and, where the problem counts set-ups, those of ports: one
    circuit at a time, dark before a circuit that it did not hold, and eq. 7 with set-ups included.
    """
    wrong = violation(problem, solution.start)
    if wrong is not None or problem.dark_ticks is None:
        return wrong
    ports, net = solution.ports, problem.switch_network
    if ports is None or ports.shape != (3, problem.n) or ports.dtype.kind not in "iu":
        return "a schedule with set-ups needs a switch and two ports for every transfer"
    node = carried_tasks(problem)
    limits = np.array([[net.switches], [net.ports_on_switch], [net.ports_on_switch]])
    outside = ((ports[:, node] < 0) | (ports[:, node] >= limits)).any(axis=0)
    if outside.any():
        return f"transfer {problem.task_names[int(node[outside][0])]} has no such port"
    return _port_violation(problem, solution, booking_of(problem, solution))


def _port_violation(problem: Problem, solution: Solution, booking: Booking) -> str | None:
    net, dark = problem.switch_network, problem.dark_ticks or 0
    start, duration = solution.start, problem.duration
    port, row, circuit = ports_of_booking(booking, net).in_turn(start[booking.node])
    task = booking.node[row]
    gap = np.where(circuit[1:] == circuit[:-1], 0, dark)
    early = (port[1:] == port[:-1]) & (start[task[1:]] < (start + duration)[task[:-1]] + gap)
    first, last = PortNumbers.ends_of_turns(port)
    back = (
        start[task[first]] + int((start + duration).max(initial=0)) - (start + duration)[task[last]]
    )
    late = net.repeats & (circuit[first] != circuit[last]) & (back < dark)
    if late.any():
        name = problem.task_names[int(task[last[late]][0])]
        return f"the port that transfer {name} holds last does not come back in time for the next iteration"
    if early.any():
        at = int(np.flatnonzero(early)[0])
        before, after = (problem.task_names[int(t)] for t in task[at : at + 2])
        return f"transfer {after} starts before its port is free of {before} and set up"
    return _switch_violation(problem, solution, booking)


def _switch_violation(problem: Problem, solution: Solution, booking: Booking) -> str | None:
    """Return which switch carries too many circuits (eq. 7), a circuit that changes from its set-up on."""
    net, dark = problem.switch_network, problem.dark_ticks or 0
    if not net.switches_may_fill:
        return None
    opened = solution.start[booking.node] - np.where(changed_rows(booking, net), dark, 0)
    closed = solution.start[booking.node] + problem.duration[booking.node]
    room, each = np.full(net.switches, net.circuits_per_switch), np.ones(len(opened), np.int64)
    over = first_overfull(booking.switch.astype(np.int64), opened, closed, each, room)
    if over is None:
        return None
    return f"more than {net.circuits_per_switch} circuits on switch {over[0]}"
