"""A bound from mean times: what ports and devices must carry between one task and the next, averaged over all of them.

A server's port that carries work W after task a, on c circuits, is W / 2c later than the end of a
on average over that work, and as much earlier than task b that waits for it. So everybody's
exchange with everybody takes at least the mean load of a server's ports, whichever server comes
first in it; the bounds on single ports know only that the first ones may. Start times and the
makespan are the variables of a linear programme that holds all of these and the precedence (Queyranne
1993; Goemans, Queyranne, Schulz, Skutella and Wang 2002).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from topox_core.model.csr import entries_of, row_of_entry, row_pointer
from topox_core.schedule.bounds.ancestor_bounds import uses_of
from topox_core.schedule.bounds.linear_bound import rising_bounds
from topox_core.schedule.kernels.ancestors import Uses
from topox_core.schedule.kernels.primal_dual import Float, LinearProgram
from topox_core.schedule.problem import Int, Int32, Problem

MEAN_TIMES_BY = "mean load of ports and devices between tasks that wait for each other"
# The rows pay where so much of what takes time shares what it waits for, and what waits for it.
SHARING = 0.5
# A bound this little above a whole number is that number.
TOLERANCE = 1e-6

Rows = tuple[Float, Int, Int, Float]  # least sum and number of entries by row; column, value


def mean_time_bounds(
    problem: Problem, head: Int, tail: Int, bound: int, makespan: int, step: int
) -> Iterator[int]:
    """Yield lower bounds on the makespan in ticks, rising (``makespan``: no shorter schedule exists).

    Parameters
    ----------
    head, tail
        Valid heads and tails in ticks.
    bound, makespan
        What is known, in ticks: every schedule looked at is at least so long, and shorter.
    step
        Ticks between makespans that can occur.
    """
    limit = makespan - step
    given = mean_time_programme(problem, head, tail, bound, limit)
    if given is None:
        yield makespan
        return
    for fraction in rising_bounds(given):
        slots = math.ceil(fraction * limit / step - TOLERANCE) * step
        yield min(makespan, max(bound, slots))


def mean_time_programme(
    problem: Problem, head: Int, tail: Int, bound: int, limit: int
) -> LinearProgram | None:
    """Return the programme of schedules that end by ``limit``, times as fractions of it; None if there are none.

    Columns are the tasks' starts and, last, the makespan, which is minimised.
    """
    p, n = problem, problem.n
    latest = limit - tail - p.duration
    if limit <= 0 or bound > limit or (head > latest).any():
        return None
    uses = uses_of(p)
    parts = [
        _precedence(p, tail),
        _loads(p, uses, p.succ_ptr, p.succ_idx, 1),
        _loads(p, uses, p.pred_ptr, p.pred_idx, -1),
    ]
    least, count, column, value = (np.concatenate(of) for of in zip(*parts, strict=True))
    unit = float(limit)
    return LinearProgram(
        np.append(np.zeros(n), 1.0),
        np.append(head, bound) / unit,
        np.append(latest, limit) / unit,
        least / unit,
        row_pointer(count),
        column.astype(np.int32),
        value,
    )


def shares_its_waits(problem: Problem) -> bool:
    """Whether most tasks wait together with others of their port or device, and are waited for together.

    That is so in exchanges of everybody with everybody, and seldom elsewhere; where it is not,
    mean times say no more than single ports do.
    """
    p, uses = problem, uses_of(problem)
    counted = max(1, int(np.count_nonzero(np.diff(uses.ptr))))
    for ptr, idx, way in ((p.succ_ptr, p.succ_idx, 1), (p.pred_ptr, p.pred_idx, -1)):
        _, _, column, value = _loads(p, uses, ptr, idx, way)
        if len(np.unique(column[value * way > 0])) < SHARING * counted:
            return False
    return True


def _precedence(problem: Problem, tail: Int) -> Rows:
    """Return the rows of all waits, and of all tails that are longer than those of the successors."""
    p, n = problem, problem.n
    before, after = p.pred_idx.astype(np.int64), row_of_entry(p.pred_ptr)
    implied = np.full(n, -1, np.int64)
    np.maximum.at(implied, before, (tail + p.duration)[after])
    last = np.flatnonzero(tail > implied)
    later = np.concatenate([after, np.full(len(last), n)])
    earlier = np.concatenate([before, last])
    rows = len(later)
    return (
        np.concatenate([p.duration[before], (p.duration + tail)[last]]).astype(np.float64),
        np.full(rows, 2),
        np.stack([later, earlier], axis=1).ravel(),
        np.tile([1.0, -1.0], rows),
    )


def _loads(problem: Problem, uses: Uses, ptr: Int32, idx: Int32, way: int) -> Rows:
    """Return the mean-time row of every task's successors (``way`` 1) or predecessors (-1) on every port and device.

    Only rows that say more than the precedence of each of their tasks.
    """
    p, resources = problem, len(uses.capacity)
    uses_each = np.diff(uses.ptr)[idx]
    anchor, task = np.repeat(row_of_entry(ptr), uses_each), np.repeat(idx, uses_each)
    entry = entries_of(uses.ptr, idx)
    _, group, first = _numbered(anchor * resources + uses.resource[entry])
    work, half = uses.work[entry].astype(np.float64), p.duration[task] / 2
    total = np.bincount(group, work, len(first))
    resource = uses.resource[entry][first]
    unit = np.where(resource < len(p.capacity), p.ticks_per_slot, 1)
    after = _mean_after(total / unit, uses.capacity[resource], unit)
    alone = np.bincount(group, work * half, len(first))
    kept = after > alone * (1 + 1e-12)
    inside = np.flatnonzero(kept[group])
    inside = inside[np.argsort(group[inside], kind="stable")]
    counted = np.bincount(group[inside], minlength=len(first))[kept]
    # Each row has the anchor's start first, then those of its tasks, whose weights sum to 1.
    at = row_pointer(counted + 1)
    column, value = np.empty(at[-1], np.int64), np.empty(at[-1])
    others = np.ones(at[-1], np.bool_)
    others[at[:-1]] = False
    column[~others], value[~others] = anchor[first][kept], -way
    column[others], value[others] = task[inside], way * (work / total[group])[inside]
    ahead = p.duration[anchor[first]] if way > 0 else 0
    least = (after - way * alone) / total + ahead
    return least[kept], counted + 1, column, value


def _numbered(key: Int) -> tuple[Int, Int, Int]:
    """Return the different keys, which of them each one is, and where each first is."""
    unique, first, number = np.unique(key, return_index=True, return_inverse=True)
    return unique, number.reshape(-1), first


def _mean_after(cells: Float, capacity: Int, unit: Int) -> Float:
    """Return the least sum of work times mean time after the anchor: full slots, then what is left over (ticks squared)."""
    full = np.floor(cells / capacity)
    left = cells - full * capacity
    least: Float = (capacity * full**2 / 2 + left * (full + 0.5)) * unit**2
    return least
