"""Schedules on real ports, whose circuits take time to set up: the ports of each transfer, and what checks them.

The ports of a schedule are an array of three rows over the tasks: switch, out-port and in-port,
ports numbered within (server, switch); -1 where a task is no transfer or takes no time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from topox_core.schedule.circuits.assignment import (
    Booking,
    PortNumbers,
    changed_rows,
    ports_of_booking,
    slots_between,
)
from topox_core.schedule.feasibility import violation
from topox_core.schedule.problem import Int, Int32, Problem

NOT_CARRIED = -1


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

    Where a switch may be full (eq. 7), no set-up begins in the iteration before.
    """
    net = problem.switch_network
    if not net.repeats:
        return 0
    between, first = slots_between(booking, net, dark_slots)
    wait = between - last_end // problem.ticks_per_slot
    return max(0, wait, -first if net.switches_may_fill else 0)


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
    switch, out_port, in_port = solution.ports[:, node]
    first = solution.start[node] // problem.ticks_per_slot
    end = first + problem.duration[node] // problem.ticks_per_slot
    return Booking(node, switch, out_port, in_port, first, end)


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
    change = np.repeat([1, -1], len(opened))
    which = np.concatenate([booking.switch, booking.switch])
    order = np.lexsort((change, np.concatenate([opened, closed]), which))
    over = np.flatnonzero(np.cumsum(change[order]) > net.circuits_per_switch)
    if not len(over):
        return None
    return f"more than {net.circuits_per_switch} circuits on switch {int(which[order[over[0]]])}"
