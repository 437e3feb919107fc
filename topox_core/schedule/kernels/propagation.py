"""Constraint propagation on start windows: precedence, time tables, energy, and shaving of starts.

A window is [earliest, latest] in ticks; every rule only removes starts that no schedule within the
windows can have, so that an empty window proves that there is none (destructive bounds: Klein &
Scholl 1999; energetic reasoning: Erschler & Lopez 1990; shaving: Martin & Shmoys 1996).
"""

from typing import NamedTuple

import numpy as np

from topox_core.compiled import compiled
from topox_core.schedule.kernels.tasks import Flags, Precedence
from topox_core.schedule.problem import Int, Int32


class Constraints(NamedTuple):
    """Everything that windows are narrowed by, ports first, then devices.

    Attributes
    ----------
    edges
        The precedence.
    task_ptr, task, demand
        The tasks on each resource in compressed rows, and how much of it each of them uses.
    capacity, unit
        Of each resource: how much there is, and the ticks of a moment (a slot for ports).
    use_ptr, use_resource
        The resources of each task in compressed rows.
    """

    edges: Precedence
    task_ptr: Int32
    task: Int32
    demand: Int
    capacity: Int
    unit: Int
    use_ptr: Int32
    use_resource: Int32


class Room(NamedTuple):
    """What propagation works in, and how far it goes.

    Attributes
    ----------
    profile
        An entry a tick up to the horizon and one more.
    dirty
        Which resources have tasks whose windows changed.
    energy_tasks
        Resources with more tasks are spared energetic reasoning.
    """

    profile: Int
    dirty: Flags
    energy_tasks: int


@compiled
def mark(j: int, dirty: Flags, use_ptr: Int32, use_resource: Int32) -> None:
    """Note that the window of task j changed, for the resources that it uses."""
    for e in range(use_ptr[j], use_ptr[j + 1]):
        dirty[use_resource[e]] = True


@compiled
def precedence(
    earliest: Int, latest: Int, edges: Precedence, dirty: Flags, use_ptr: Int32, use_resource: Int32
) -> bool:
    """Push earliest starts forwards and latest starts backwards along the precedence; False if a window is empty."""
    order, duration, clock = edges.order, edges.duration, edges.clock
    for i in range(len(order)):
        j = order[i]
        t = earliest[j]
        for e in range(edges.pred_ptr[j], edges.pred_ptr[j + 1]):
            p = edges.pred_idx[e]
            t = max(t, earliest[p] + duration[p])
        if t > earliest[j]:
            earliest[j] = -(-t // clock[j]) * clock[j]
            mark(j, dirty, use_ptr, use_resource)
        if earliest[j] > latest[j]:
            return False
    for i in range(len(order) - 1, -1, -1):
        j = order[i]
        for e in range(edges.pred_ptr[j], edges.pred_ptr[j + 1]):
            p = edges.pred_idx[e]
            t = latest[j] - duration[p]
            if t < latest[p]:
                latest[p] = t // clock[p] * clock[p]
                mark(p, dirty, use_ptr, use_resource)
                if earliest[p] > latest[p]:
                    return False
    return True


@compiled
def blocked_at(
    start: int,
    length: int,
    demand: int,
    capacity: int,
    profile: Int,
    own_from: int,
    own_until: int,
    last: bool,
) -> int:
    """Return -1 if a task fits at ``start`` beside the profile, else the last moment (or the first) at which it does not."""
    for k in range(length):
        t = start + length - 1 - k if last else start + k
        if not own_from <= t < own_until and profile[t] + demand > capacity:
            return t
    return -1


@compiled
def time_table(
    r: int, earliest: Int, latest: Int, given: Constraints, profile: Int, dirty: Flags
) -> bool:
    """Move starts past moments that other tasks certainly fill; False if resource ``r`` overflows or a window empties."""
    duration, clock = given.edges.duration, given.edges.clock
    tasks = given.task[given.task_ptr[r] : given.task_ptr[r + 1]]
    demand = given.demand[given.task_ptr[r] : given.task_ptr[r + 1]]
    capacity, unit = given.capacity[r], given.unit[r]
    profile[:] = 0
    for i in range(len(tasks)):
        j = tasks[i]
        if latest[j] < earliest[j] + duration[j]:
            profile[latest[j] // unit] += demand[i]
            profile[(earliest[j] + duration[j]) // unit] -= demand[i]
    level = 0
    for t in range(len(profile)):
        level += profile[t]
        profile[t] = level
        if level > capacity:
            return False
    for i in range(len(tasks)):
        j = tasks[i]
        first, last, length = earliest[j], latest[j], duration[j] // unit
        if first == last:
            continue
        own_from, own_until = last // unit, first // unit + length
        while earliest[j] <= latest[j]:
            at = earliest[j] // unit
            blocked = blocked_at(
                at, length, demand[i], capacity, profile, own_from, own_until, True
            )
            if blocked < 0:
                break
            earliest[j] = -(-(blocked + 1) * unit // clock[j]) * clock[j]
        while earliest[j] <= latest[j]:
            at = latest[j] // unit
            blocked = blocked_at(
                at, length, demand[i], capacity, profile, own_from, own_until, False
            )
            if blocked < 0:
                break
            latest[j] = (blocked - length) * unit // clock[j] * clock[j]
        if earliest[j] > latest[j]:
            return False
        if earliest[j] != first or latest[j] != last:
            mark(j, dirty, given.use_ptr, given.use_resource)
    return True


@compiled
def work_between(a: int, b: int, start: int, length: int) -> int:
    """Return how long a task of ``length`` that starts at ``start`` runs within [a, b)."""
    return max(0, min(min(b - a, length), min(start + length - a, b - start)))


@compiled
def settle(order: Int, value: Int, count: int) -> None:
    """Sort the first ``count`` entries of ``order`` by value; quick where they nearly are."""
    for i in range(1, count):
        at, place = order[i], i
        while place > 0 and value[order[place - 1]] > value[at]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = at


@compiled
def energy(r: int, earliest: Int, latest: Int, given: Constraints, dirty: Flags) -> bool:
    """Compare the work that must fall between two moments with the room on ``r`` there; False if it does not fit.

    From a moment on, the work of a task that must fall before another one grows by its demand from
    some moment to some other, so that all second moments at which room may be least are seen in one
    sweep (the ends of these stretches: Derrien & Petit 2014).
    """
    duration, clock = given.edges.duration, given.edges.clock
    tasks = given.task[given.task_ptr[r] : given.task_ptr[r + 1]]
    demand = given.demand[given.task_ptr[r] : given.task_ptr[r + 1]]
    capacity, unit = given.capacity[r], given.unit[r]
    k = len(tasks)
    first, last, length = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    biggest, most = 0, 0
    for i in range(k):
        j = tasks[i]
        first[i], last[i], length[i] = earliest[j] // unit, latest[j] // unit, duration[j] // unit
        biggest, most = max(biggest, demand[i] * length[i]), max(most, demand[i])
    moments = np.sort(np.concatenate((first, last)))
    by_start = np.argsort(last)
    by_end = by_start.copy()
    begin, end = last.copy(), last.copy()
    left = k
    for number in range(len(moments)):
        a = moments[number]
        if number > 0 and a == moments[number - 1]:
            continue
        left = 0
        for place in range(len(by_start)):
            i = by_start[place]
            if first[i] + length[i] > a:
                by_start[left] = i
                left += 1
        by_start = by_start[:left]
        left = 0
        for place in range(len(by_end)):
            i = by_end[place]
            must = min(length[i], first[i] + length[i] - a)
            if must > 0:
                begin[i] = max(a, last[i])
                end[i] = begin[i] + must
                by_end[left] = i
                left += 1
        by_end = by_end[:left]
        settle(by_end, end, left)
        done, rate, now, started = 0, 0, a, 0
        for place in range(left):
            b = end[by_end[place]]
            while started < left and begin[by_start[started]] < b:
                i = by_start[started]
                done += rate * (begin[i] - now)
                now = begin[i]
                rate += demand[i]
                started += 1
            done += rate * (b - now)
            now = b
            rate -= demand[by_end[place]]
            if place + 1 < left and end[by_end[place + 1]] == b:
                continue
            slack = capacity * (b - a) - done
            if slack < 0:
                return False
            if slack >= min(biggest, most * (b - a)):
                continue
            for i in range(k):
                if slack >= demand[i] * min(length[i], b - a):
                    continue
                early, late = (
                    work_between(a, b, first[i], length[i]),
                    work_between(a, b, last[i], length[i]),
                )
                room = slack // demand[i] + min(early, late)
                j = tasks[i]
                if early > room and (b - room) * unit > earliest[j]:
                    earliest[j] = -(-(b - room) * unit // clock[j]) * clock[j]
                    mark(j, dirty, given.use_ptr, given.use_resource)
                if late > room and (a + room - length[i]) * unit < latest[j]:
                    latest[j] = (a + room - length[i]) * unit // clock[j] * clock[j]
                    mark(j, dirty, given.use_ptr, given.use_resource)
                if earliest[j] > latest[j]:
                    return False
    return True


@compiled
def propagate(earliest: Int, latest: Int, given: Constraints, room: Room) -> bool:
    """Apply all rules until nothing changes; False proves that no schedule lies within the windows."""
    profile, dirty, energy_tasks = room
    tight = dirty.copy()  # resources whose energy is looked at once the quick rules change nothing
    while True:
        again = True
        while again:
            if not precedence(
                earliest, latest, given.edges, dirty, given.use_ptr, given.use_resource
            ):
                return False
            again = False
            for r in range(len(given.capacity)):
                if not dirty[r]:
                    continue
                dirty[r], tight[r], again = False, True, True
                moments = (len(profile) - 2) // given.unit[r] + 2
                if not time_table(r, earliest, latest, given, profile[:moments], dirty):
                    return False
        for r in range(len(given.capacity)):
            few = given.task_ptr[r + 1] - given.task_ptr[r] <= energy_tasks
            if tight[r] and few and not energy(r, earliest, latest, given, dirty):
                return False
            tight[r] = False
        if not dirty.any():
            return True


@compiled
def propagate_from(j: int, earliest: Int, latest: Int, given: Constraints, room: Room) -> bool:
    """Propagate what a change of task j's window alone brings."""
    room.dirty[:] = False
    mark(j, room.dirty, given.use_ptr, given.use_resource)
    return propagate(earliest, latest, given, room)


@compiled
def shave(j: int, earliest: Int, latest: Int, given: Constraints, room: Room) -> int:
    """Try the first and the last starts of task j; those that propagation refutes leave the window.

    Returns -1 if that refutes all of them, 1 if the window shrank, else 0. The stretch that is
    tried doubles as long as it is refuted.
    """
    step = given.edges.clock[j]
    shrank = 0
    for late in range(2):
        stretch = 0
        while earliest[j] < latest[j]:
            first, last = earliest.copy(), latest.copy()
            stretch = min(stretch, (latest[j] - earliest[j]) // step - 1)
            if late:
                first[j] = latest[j] - stretch * step
            else:
                last[j] = earliest[j] + stretch * step
            if propagate_from(j, first, last, given, room):
                if stretch == 0:
                    break
                stretch = 0
                continue
            shrank = 1
            if late:
                latest[j] -= (stretch + 1) * step
            else:
                earliest[j] += (stretch + 1) * step
            if not propagate_from(j, earliest, latest, given, room):
                return -1
            stretch = 2 * stretch + 1
    return shrank
