"""Time windows of tasks (earliest and latest starts) and a plain first schedule, on both clocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topox_core.model.passes import heads, tails
from topox_core.schedule.kernels.propagation import precedence
from topox_core.schedule.kernels.tasks import Precedence
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


def windows(problem: Problem, horizon: int) -> Windows:
    """Return windows from a critical-path pass each way, every task ending by ``horizon`` ticks."""
    p, clock = problem, clocks(problem)
    earliest = heads(p.order, p.pred_ptr, p.pred_idx, p.duration, clock)
    tail = tails(p.order, p.succ_ptr, p.succ_idx, p.duration, clock, horizon)
    latest = (horizon - tail - p.duration) // clock * clock
    return Windows(earliest, latest, clock)


def consistent(problem: Problem, given: Windows) -> Windows | None:
    """Return windows in which every start has room for its predecessors and successors; None if one is empty."""
    p, clock = problem, given.clock
    earliest, latest = given.earliest.copy(), given.latest.copy()
    no_uses, dirty = np.zeros(p.n + 1, np.int32), np.zeros(0, np.bool_)
    edges = Precedence(p.order, p.pred_ptr, p.pred_idx, p.duration, clock)
    possible = precedence(earliest, latest, edges, dirty, no_uses, no_uses[:0])
    return Windows(earliest, latest, clock) if possible else None


def critical_path(problem: Problem) -> int:
    """Return the length of the longest chain in ticks, transfers waiting for slot boundaries."""
    if problem.n == 0:
        return 0
    return int((windows(problem, 0).earliest + problem.duration).max())


def coarsened(problem: Problem) -> tuple[Problem, int]:
    """Return the same problem on the coarsest clock that loses nothing, and its tick in old ticks.

    With all durations and the slot multiples of g, left-justified schedules sit on multiples of g;
    where a slot is no more than a tick of a clock with set-ups, with all durations and the delay.
    """
    net, unit = problem.network, problem.ticks_per_slot
    if unit == 1 and net is not None and net.dark_slots is not None:
        unit = net.dark_slots
    g = math.gcd(unit, *np.unique(problem.duration).tolist())
    if g <= 1:
        return problem, 1
    coarse = replace(problem, duration=problem.duration // g, tick_ms=problem.tick_ms * g)
    if problem.ticks_per_slot > 1:
        return replace(coarse, ticks_per_slot=problem.ticks_per_slot // g), g
    assert net is not None and net.dark_slots is not None
    return replace(coarse, network=replace(net, dark_slots=net.dark_slots // g)), g


def serial_schedule(problem: Problem) -> Int:
    """Return a feasible schedule: tasks by latest start, each as early as its device and resources allow.

    A plain starting point for an engine that was given none (the list engine finds better ones).
    Every transfer takes circuits of its own, which is feasible whether or not pairs may share.
    """
    order = problem.order.tolist()
    latest = windows(problem, 0).latest
    rank = {j: r for r, j in enumerate(order)}
    ready = sorted(range(problem.n), key=lambda j: (int(latest[j]), rank[j]))
    slot = problem.ticks_per_slot
    slots = int((-(-problem.duration // slot)).sum()) + problem.n + 1
    if slots * len(problem.capacity) > 20_000_000:
        return _one_after_another(problem, order)
    left = np.repeat(problem.capacity[:, None].astype(np.int64), slots, axis=1)
    busy: list[list[tuple[int, int]]] = [[] for _ in range(problem.devices)]
    start = np.zeros(problem.n, np.int64)
    for j in ready:
        before = problem.pred_idx[problem.pred_ptr[j] : problem.pred_ptr[j + 1]]
        at = int((start[before] + problem.duration[before]).max(initial=0))
        lasts = int(problem.duration[j])
        if problem.on_grid[j]:
            start[j] = _place_transfer(problem, left, j, -(-at // slot)) * slot
        elif problem.device[j] >= 0 and lasts > 0:
            start[j] = _place_compute(busy[problem.device[j]], at, lasts)
        else:
            start[j] = at
    return start


def _place_transfer(problem: Problem, left: NDArray[np.int64], j: int, first: int) -> int:
    """Return the first slot from which all demands fit, and take them."""
    entries = slice(int(problem.demand_ptr[j]), int(problem.demand_ptr[j + 1]))
    resource, amount = problem.demand_resource[entries], problem.demand_amount[entries]
    lasts = int(problem.duration[j]) // problem.ticks_per_slot
    while True:
        block = left[resource, first : first + lasts] < amount[:, None]
        full = np.flatnonzero(block.any(axis=0))
        if not len(full):
            left[resource, first : first + lasts] -= amount[:, None]
            return first
        first += int(full[-1]) + 1


def _place_compute(busy: list[tuple[int, int]], at: int, lasts: int) -> int:
    """Return the first gap of a device's sorted busy times, and take it."""
    place = len(busy)
    for gap, (opened, closed) in enumerate(busy):
        if at + lasts <= opened:
            place = gap
            break
        at = max(at, closed)
    busy.insert(place, (at, at + lasts))
    return at


def _one_after_another(problem: Problem, order: list[int]) -> Int:
    start = np.zeros(problem.n, np.int64)
    at = 0
    for j in order:
        if problem.on_grid[j]:
            at = -(-at // problem.ticks_per_slot) * problem.ticks_per_slot
        start[j] = at
        at += int(problem.duration[j])
    return start


def within(given: Windows, problem: Problem, head: Int, tail: Int, horizon: int) -> Windows:
    """Return windows that also keep to valid heads and tails (ticks) of schedules that end by the horizon."""
    earliest = np.maximum(given.earliest, -(-head // given.clock) * given.clock)
    latest = np.minimum(
        given.latest, (horizon - tail - problem.duration) // given.clock * given.clock
    )
    return Windows(earliest, latest, given.clock)
