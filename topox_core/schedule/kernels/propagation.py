"""Constraint propagation on start windows: precedence, time tables, energy, and shaving of starts.

A window is [earliest, latest] in ticks; every rule only removes starts that no schedule within the
windows can have, so that an empty window proves that there is none (destructive bounds: Klein &
Scholl 1999; energetic reasoning: Erschler & Lopez 1990; shaving: Martin & Shmoys 1996).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.problem import Int, Int32

Flags = NDArray[np.bool_]

# Energetic reasoning looks at every pair of moments and every task of a resource: cubic, so only up
# to so many tasks; up to the smaller number with more kinds of moments.
ENERGY_TASKS = 150
THOROUGH_TASKS = 40


@compiled
def mark(j: int, dirty: Flags, use_ptr: Int32, use_resource: Int32) -> None:
    """Note that the window of task j changed, for the resources that it uses."""
    for e in range(use_ptr[j], use_ptr[j + 1]):
        dirty[use_resource[e]] = True


@compiled
def precedence(
    earliest: Int,
    latest: Int,
    duration: Int,
    clock: Int,
    order: Int32,
    edge_ptr: Int32,
    edge_idx: Int32,
    dirty: Flags,
    use_ptr: Int32,
    use_resource: Int32,
) -> bool:
    """Push earliest starts forwards and latest starts backwards along the precedence; False if a window is empty.

    ``edge_ptr, edge_idx`` hold predecessors; both passes use them.
    """
    for i in range(len(order)):
        j = order[i]
        t = earliest[j]
        for e in range(edge_ptr[j], edge_ptr[j + 1]):
            p = edge_idx[e]
            t = max(t, earliest[p] + duration[p])
        if t > earliest[j]:
            earliest[j] = -(-t // clock[j]) * clock[j]
            mark(j, dirty, use_ptr, use_resource)
        if earliest[j] > latest[j]:
            return False
    for i in range(len(order) - 1, -1, -1):
        j = order[i]
        for e in range(edge_ptr[j], edge_ptr[j + 1]):
            p = edge_idx[e]
            t = latest[j] - duration[p]
            if t < latest[p]:
                latest[p] = t // clock[p] * clock[p]
                mark(p, dirty, use_ptr, use_resource)
                if earliest[p] > latest[p]:
                    return False
    return True


@compiled
def fits_from(
    start: int, length: int, demand: int, capacity: int, profile: Int, own_from: int, own_until: int
) -> int:
    """Return -1 if a task fits at ``start`` beside the profile, else the last moment at which it does not."""
    for t in range(start + length - 1, start - 1, -1):
        if not own_from <= t < own_until and profile[t] + demand > capacity:
            return t
    return -1


@compiled
def fits_until(
    start: int, length: int, demand: int, capacity: int, profile: Int, own_from: int, own_until: int
) -> int:
    """Return -1 if a task fits at ``start`` beside the profile, else the first moment at which it does not."""
    for t in range(start, start + length):
        if not own_from <= t < own_until and profile[t] + demand > capacity:
            return t
    return -1


@compiled
def time_table(
    tasks: Int32,
    demand: Int,
    capacity: int,
    unit: int,
    earliest: Int,
    latest: Int,
    duration: Int,
    clock: Int,
    profile: Int,
    dirty: Flags,
    use_ptr: Int32,
    use_resource: Int32,
) -> bool:
    """Move starts past moments that other tasks certainly fill; False if a resource overflows or a window empties."""
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
            blocked = fits_from(
                earliest[j] // unit, length, demand[i], capacity, profile, own_from, own_until
            )
            if blocked < 0:
                break
            earliest[j] = -(-(blocked + 1) * unit // clock[j]) * clock[j]
        while earliest[j] <= latest[j]:
            blocked = fits_until(
                latest[j] // unit, length, demand[i], capacity, profile, own_from, own_until
            )
            if blocked < 0:
                break
            latest[j] = (blocked - length) * unit // clock[j] * clock[j]
        if earliest[j] > latest[j]:
            return False
        if earliest[j] != first or latest[j] != last:
            mark(j, dirty, use_ptr, use_resource)
    return True


@compiled
def work_between(a: int, b: int, start: int, length: int) -> int:
    """Return how long a task of ``length`` that starts at ``start`` runs within [a, b)."""
    return max(0, min(min(b - a, length), min(start + length - a, b - start)))


@compiled
def energy(
    tasks: Int32,
    demand: Int,
    capacity: int,
    unit: int,
    earliest: Int,
    latest: Int,
    duration: Int,
    clock: Int,
    dirty: Flags,
    use_ptr: Int32,
    use_resource: Int32,
) -> bool:
    """Compare the work that must fall between two moments with the room there; False if it does not fit."""
    k = len(tasks)
    kinds = 2 if k <= THOROUGH_TASKS else 1
    first, last, length = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    biggest = 0
    for i in range(k):
        j = tasks[i]
        first[i], last[i], length[i] = earliest[j] // unit, latest[j] // unit, duration[j] // unit
        biggest = max(biggest, demand[i] * length[i])
    for opened in range(kinds * k):
        a = first[opened] if opened < k else last[opened - k]
        for closed in range(kinds * k):
            b = (
                last[closed] + length[closed]
                if closed < k
                else first[closed - k] + length[closed - k]
            )
            if b <= a:
                continue
            slack = capacity * (b - a)
            for i in range(k):
                must = min(
                    work_between(a, b, first[i], length[i]), work_between(a, b, last[i], length[i])
                )
                slack -= demand[i] * must
            if slack < 0:
                return False
            if slack >= biggest:
                continue
            for i in range(k):
                early, late = (
                    work_between(a, b, first[i], length[i]),
                    work_between(a, b, last[i], length[i]),
                )
                room = slack // demand[i] + min(early, late)
                j = tasks[i]
                if early > room and (b - room) * unit > earliest[j]:
                    earliest[j] = -(-(b - room) * unit // clock[j]) * clock[j]
                    mark(j, dirty, use_ptr, use_resource)
                if late > room and (a + room - length[i]) * unit < latest[j]:
                    latest[j] = (a + room - length[i]) * unit // clock[j] * clock[j]
                    mark(j, dirty, use_ptr, use_resource)
                if earliest[j] > latest[j]:
                    return False
    return True


@compiled
def propagate(
    earliest: Int,
    latest: Int,
    duration: Int,
    clock: Int,
    order: Int32,
    pred_ptr: Int32,
    pred_idx: Int32,
    task_ptr: Int32,
    task: Int32,
    demand: Int,
    capacity: Int,
    unit: Int,
    use_ptr: Int32,
    use_resource: Int32,
    profile: Int,
    dirty: Flags,
    horizon: int,
    with_energy: bool,
) -> bool:
    """Apply all rules until nothing changes; False proves that no schedule lies within the windows.

    ``dirty`` flags the resources to look at first; ``profile`` is room to work in.
    """
    again = True
    while again:
        if not precedence(
            earliest,
            latest,
            duration,
            clock,
            order,
            pred_ptr,
            pred_idx,
            dirty,
            use_ptr,
            use_resource,
        ):
            return False
        again = False
        for r in range(len(capacity)):
            if not dirty[r]:
                continue
            dirty[r] = False
            own = slice(task_ptr[r], task_ptr[r + 1])
            length = horizon // unit[r] + 2
            if not time_table(
                task[own],
                demand[own],
                capacity[r],
                unit[r],
                earliest,
                latest,
                duration,
                clock,
                profile[:length],
                dirty,
                use_ptr,
                use_resource,
            ):
                return False
            if (
                with_energy
                and task_ptr[r + 1] - task_ptr[r] <= ENERGY_TASKS
                and not energy(
                    task[own],
                    demand[own],
                    capacity[r],
                    unit[r],
                    earliest,
                    latest,
                    duration,
                    clock,
                    dirty,
                    use_ptr,
                    use_resource,
                )
            ):
                return False
            again = True
    return True


@compiled
def shave(
    j: int,
    earliest: Int,
    latest: Int,
    duration: Int,
    clock: Int,
    order: Int32,
    pred_ptr: Int32,
    pred_idx: Int32,
    task_ptr: Int32,
    task: Int32,
    demand: Int,
    capacity: Int,
    unit: Int,
    use_ptr: Int32,
    use_resource: Int32,
    profile: Int,
    dirty: Flags,
    horizon: int,
    with_energy: bool,
) -> int:
    """Try the first and the last starts of task j; those that propagation refutes leave the window.

    Returns -1 if that refutes all of them, 1 if the window shrank, else 0. The stretch that is
    tried doubles as long as it is refuted.
    """
    shrank = 0
    for late in range(2):
        stretch = 0
        while earliest[j] < latest[j]:
            trial_earliest, trial_latest = earliest.copy(), latest.copy()
            stretch = min(stretch, (latest[j] - earliest[j]) // clock[j] - 1)
            if late:
                trial_earliest[j] = latest[j] - stretch * clock[j]
            else:
                trial_latest[j] = earliest[j] + stretch * clock[j]
            dirty[:] = False
            mark(j, dirty, use_ptr, use_resource)
            if propagate(
                trial_earliest,
                trial_latest,
                duration,
                clock,
                order,
                pred_ptr,
                pred_idx,
                task_ptr,
                task,
                demand,
                capacity,
                unit,
                use_ptr,
                use_resource,
                profile,
                dirty,
                horizon,
                with_energy,
            ):
                if stretch == 0:
                    break
                stretch = 0
                continue
            shrank = 1
            if late:
                latest[j] -= (stretch + 1) * clock[j]
            else:
                earliest[j] += (stretch + 1) * clock[j]
            stretch = 2 * stretch + 1
            dirty[:] = False
            mark(j, dirty, use_ptr, use_resource)
            if not propagate(
                earliest,
                latest,
                duration,
                clock,
                order,
                pred_ptr,
                pred_idx,
                task_ptr,
                task,
                demand,
                capacity,
                unit,
                use_ptr,
                use_resource,
                profile,
                dirty,
                horizon,
                with_energy,
            ):
                return -1
    return shrank
