"""Who follows whom on every port and device of a schedule with set-ups, and what stays so while some tasks are free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.schedule.bounds.set_up_bounds import sides_of
from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.problem import Problem

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Side:
    """Tasks of one side of a server, or of a device, in the order of time, and the peer of each transfer."""

    tasks: tuple[int, ...]
    peers: tuple[int, ...]
    device: bool


@dataclass(frozen=True)
class Follows:
    """``second`` starts no sooner than ``apart`` ticks after ``first`` has ended, or the other way round if ``either``.

    ``on_one_switch``: that holds only where both are on one switch.
    """

    first: int
    second: int
    apart: int
    either: bool
    on_one_switch: bool


def sides_in_turn(problem: Problem, solution: Solution) -> list[Side]:
    """Return the sides of servers and the devices that have several tasks; a server has one port on each switch."""
    found, sides = [], sides_of(problem)
    for rows in np.split(np.arange(len(sides.task)), sides.ptr[1:-1]):
        rows = rows[np.argsort(solution.start[sides.task[rows]], kind="stable")]
        found.append(
            Side(tuple(sides.task[rows].tolist()), tuple(sides.peer[rows].tolist()), False)
        )
    for device in range(problem.devices):
        held = np.flatnonzero((problem.device == device) & (problem.duration > 0))
        held = held[np.argsort(solution.start[held], kind="stable")]
        found.append(Side(tuple(held.tolist()), (0,) * len(held), True))
    return [one for one in found if len(one.tasks) > 1]


def kept_apart(
    problem: Problem, sides: list[Side], solution: Solution, free: Bools, given: Windows
) -> Iterator[Follows]:
    """Yield what keeps ports and devices if free tasks may change places and switches, and the others neither.

    Set-ups keep the triangle inequality: of tasks that keep their order on a switch neighbours are
    enough. Pairs that their windows keep apart are left out.
    """
    assert solution.ports is not None
    dark, lasts = problem.dark_ticks or 0, problem.duration.tolist()
    low, high = given.earliest.tolist(), given.latest.tolist()
    may_move, switch = free.tolist(), solution.ports[0].tolist()
    for side in sides:
        peer = dict(zip(side.tasks, side.peers, strict=True))
        seen: list[int] = []
        last: dict[int, int] = {}  # by switch the last task that keeps its turn
        for j in side.tasks:
            if may_move[j]:
                continue
            place = 0 if side.device else switch[j]
            if place in last:
                i = last[place]
                yield Follows(i, j, 0 if peer[i] == peer[j] else dark, False, False)
            last[place] = j
            seen.append(j)
        for f in side.tasks:
            if not may_move[f]:
                continue
            for g in seen:
                apart = 0 if peer[f] == peer[g] else dark
                may_follow = high[f] >= low[g] + lasts[g] + apart
                may_lead = high[g] >= low[f] + lasts[f] + apart
                always = (
                    low[f] >= high[g] + lasts[g] + apart or low[g] >= high[f] + lasts[f] + apart
                )
                if not always:
                    first, second = (g, f) if may_follow else (f, g)
                    yield Follows(first, second, apart, may_follow and may_lead, not side.device)
            seen.append(f)
