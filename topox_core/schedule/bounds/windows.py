"""Time windows of tasks (earliest and latest starts), on both clocks."""

import math
from dataclasses import dataclass, replace

import numpy as np

from topox_core.model.arrays.passes import heads, tails
from topox_core.schedule.problem import Int, Problem


@dataclass(frozen=True)
class Windows:
    """Earliest and latest start tick of every task, and the clock (in ticks) its start lies on."""

    earliest: Int
    latest: Int
    clock: Int


def clocks(problem: Problem) -> Int:
    """Return the clock in ticks that each task may keep to without loss.

    Transfers keep slots. So may a task that holds no device, lasts whole slots and follows only
    tasks on slots (a barrier between collectives): moving it left to the last end before it costs
    nobody anything.
    """
    slot = problem.ticks_per_slot
    on = problem.on_grid.tolist()
    ptr, idx = problem.pred_ptr.tolist(), problem.pred_idx.tolist()
    free = ((problem.device < 0) | (problem.duration == 0)) & (problem.duration % slot == 0)
    for j, may in zip(problem.order.tolist(), free[problem.order].tolist(), strict=True):
        if may and not on[j]:
            on[j] = all(on[i] for i in idx[ptr[j] : ptr[j + 1]])
    return np.where(np.array(on, np.bool_), slot, 1).astype(np.int64)


def step_of(problem: Problem, clock: Int) -> int:
    """Return the ticks between two makespans that can occur: slots if every last task keeps to them."""
    last = clock[np.diff(problem.succ_ptr) == 0]
    return int(last.min()) if len(last) else 1


def windows(problem: Problem, horizon: int, known: tuple[Int, Int] | None = None) -> Windows:
    """Return windows from a critical-path pass each way, every task ending by ``horizon`` ticks.

    They keep to heads and tails in ticks that are ``known``, too.
    """
    p, clock = problem, clocks(problem)
    earliest = heads(p.order, p.pred_ptr, p.pred_idx, p.duration, clock)
    tail = tails(p.order, p.succ_ptr, p.succ_idx, p.duration, clock, horizon)
    latest = (horizon - tail - p.duration) // clock * clock
    if known is not None:
        head, tail = known
        earliest = np.maximum(earliest, -(-head // clock) * clock)
        latest = np.minimum(latest, (horizon - tail - p.duration) // clock * clock)
    return Windows(earliest, latest, clock)


def critical_path(problem: Problem) -> int:
    """Return the length of the longest chain in ticks, transfers waiting for slot boundaries."""
    if problem.n == 0:
        return 0
    return int((windows(problem, 0).earliest + problem.duration).max())


def coarsened(problem: Problem) -> Problem:
    """Return the same problem on the coarsest clock that loses nothing.

    With all durations and the slot multiples of g, left-justified schedules sit on multiples of g;
    where a slot is no more than a tick of a clock with set-ups, with all durations and the delay.
    """
    unit = problem.ticks_per_slot
    if unit == 1 and problem.dark_ticks is not None:
        unit = problem.dark_ticks
    g = math.gcd(unit, *np.unique(problem.duration).tolist())
    if g <= 1:
        return problem
    coarse = replace(problem, duration=problem.duration // g, tick_ms=problem.tick_ms * g)
    if problem.ticks_per_slot > 1:
        return replace(coarse, ticks_per_slot=problem.ticks_per_slot // g)
    return replace(coarse, network=replace(problem.switch_network, dark_slots=unit // g))
