"""Large-neighbourhood search: exact solves of the middle of the best schedule, one after another along the iteration."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.model.csr import entries_of, grouped, pointer_of, row_of_entry, row_pointer
from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.propagation import Propagator
from topox_core.schedule.bounds.windows import Windows, clocks, step_of
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.best_known import BestKnown
from topox_core.schedule.engines.engine import News
from topox_core.schedule.generation.list_scheduler import Generator, ranked
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.source import TraceSource

FEWEST, MAX = 40, 1500  # free tasks


@dataclass(frozen=True)
class Neighbourhood:
    """A problem of the free tasks and of those fixed ones that get in their way, with windows that end by ``horizon``.

    ``tasks`` are their numbers in the whole problem, the first ``free`` of them free; ``rest`` are
    the places of all tasks where the free ones do not matter.
    """

    problem: Problem
    windows: Windows
    horizon: int
    tasks: Int
    free: int
    rest: Int

    def whole(self, start: Int) -> Int:
        """Return the schedule of the whole problem with the free tasks at ``start``."""
        placed = self.rest.copy()
        placed[self.tasks[: self.free]] = start[: self.free]
        return placed


@dataclass(frozen=True)
class Middle:
    """The best schedule seen from both ends."""

    problem: Problem
    clock: Int
    left: Int
    right: Int
    horizon: int

    @staticmethod
    def of(generator: Generator, clock: Int, start: Int, horizon: int) -> Middle:
        """Push a schedule to the right against ``horizon`` (ticks)."""
        problem = generator.problem
        behind, _ = generator.serially(ranked(-(start + problem.duration)), backwards=True)
        edge = horizon
        if problem.on_grid.any():
            edge = horizon // problem.ticks_per_slot * problem.ticks_per_slot
        return Middle(problem, clock, start, edge - behind - problem.duration, horizon)

    def between(self, first: int, last: int) -> Neighbourhood | None:
        """Return the neighbourhood of the tasks between two moments; None if some task's window is empty."""
        p = self.problem
        before = self.left + p.duration <= first
        after = ~before & (self.right >= last)
        rest = np.where(before, self.left, self.right)
        free = np.flatnonzero(~before & ~after)
        if not len(free):
            return None
        earliest, latest = self._windows(rest, before, after, free)
        if (earliest > latest).any():
            return None
        return self._reduced(rest, before | after, free, earliest, latest)

    def _windows(
        self, rest: Int, before: NDArray[np.bool_], after: NDArray[np.bool_], free: Int
    ) -> tuple[Int, Int]:
        """Return windows of the free tasks from the fixed ones around them (single steps; engines propagate the rest)."""
        p, clock = self.problem, self.clock
        earliest = np.zeros(p.n, np.int64)
        latest = self.horizon - p.duration
        entries = entries_of(p.pred_ptr, free)
        owner = np.repeat(free, np.diff(p.pred_ptr)[free])
        ends = np.where(
            before[p.pred_idx[entries]],
            rest[p.pred_idx[entries]] + p.duration[p.pred_idx[entries]],
            0,
        )
        np.maximum.at(earliest, owner, ends)
        entries = entries_of(p.succ_ptr, free)
        owner = np.repeat(free, np.diff(p.succ_ptr)[free])
        follower = p.succ_idx[entries]
        starts = np.where(after[follower], rest[follower], self.horizon) - p.duration[owner]
        np.minimum.at(latest, owner, starts)
        step = clock[free]
        return -(-earliest[free] // step) * step, latest[free] // step * step

    def _reduced(
        self, rest: Int, fixed: NDArray[np.bool_], free: Int, earliest: Int, latest: Int
    ) -> Neighbourhood:
        p = self.problem
        opened, closed = int(earliest.min()), int((latest + p.duration[free]).max())
        near = (
            fixed
            & (rest < closed)
            & (rest + p.duration > opened)
            & (p.duration > 0)
            & self._wanted(free)
        )
        blockers = np.flatnonzero(near)
        tasks = np.concatenate([free, blockers])
        number = np.full(p.n, -1, np.int64)
        number[tasks] = np.arange(len(tasks))
        entries = entries_of(p.pred_ptr, free)
        after = np.repeat(np.arange(len(free)), np.diff(p.pred_ptr)[free])
        before = number[p.pred_idx[entries]]
        inner = (before >= 0) & (before < len(free))
        after, before = after[inner], before[inner]
        succ_ptr, succ_idx = grouped(before, after.astype(np.int32), len(tasks))
        demand = entries_of(p.demand_ptr, tasks)
        problem = replace(
            p,
            duration=p.duration[tasks],
            on_grid=p.on_grid[tasks],
            device=p.device[tasks],
            demand_ptr=row_pointer(np.diff(p.demand_ptr)[tasks]),
            demand_resource=p.demand_resource[demand],
            demand_amount=p.demand_amount[demand],
            pair=p.pair[tasks],
            pred_ptr=pointer_of(after, len(tasks)),
            pred_idx=before.astype(np.int32),
            succ_ptr=succ_ptr,
            succ_idx=succ_idx,
            task_names=("",) * len(tasks),
            network=None,
        )
        windows = Windows(
            np.concatenate([earliest, rest[blockers]]),
            np.concatenate([latest, rest[blockers]]),
            self.clock[tasks],
        )
        return Neighbourhood(problem, windows, self.horizon, tasks, len(free), rest)

    def _wanted(self, free: Int) -> NDArray[np.bool_]:
        """Tell which tasks work on a device or port that a free task works on."""
        p = self.problem
        ports, devices = np.zeros(len(p.capacity), np.bool_), np.zeros(p.devices + 1, np.bool_)
        ports[p.demand_resource[entries_of(p.demand_ptr, free)]] = True
        devices[p.device[free]] = True
        devices[-1] = False
        owner = row_of_entry(p.demand_ptr)
        wanted = devices[p.device]
        wanted[owner[ports[p.demand_resource]]] = True
        return np.asarray(wanted)


SOLVE_S = 1.0
GROW, SHRINK = 1.1, 0.9

# Start ticks, or why there are none: proved that none exist, undecided in the time given, or too
# large to try.
Undecided = Literal["none", "undecided", "too large"]
SubSolve = Callable[[Problem, Windows, int, float, Stop], "Int | Undecided"]


class LargeNeighbourhoods:
    """A search that looks for schedules one step shorter than the best known, in windows whose size adapts.

    Parameters
    ----------
    solve, source
        What finds any schedule of a neighbourhood, and its name.
    free_tasks
        How many tasks are free in the first one; the number adapts.
    """

    def __init__(
        self, known: BestKnown, solve: SubSolve, source: TraceSource, free_tasks: int
    ) -> None:
        self._problem, self._known, self._solve, self._source = known.problem, known, solve, source
        self._wanted = float(free_tasks)
        self._generator = Generator.of(known.problem, max(1, known.bound))
        self._clock = clocks(known.problem)
        self._step = step_of(known.problem, self._clock)
        self._random = np.random.default_rng(known.limits.seed)

    def run(self, stop: Stop, news: News | None) -> None:
        """Search until the time is up, until told to stop or nothing is left to gain."""
        known = self._known
        while not stop() and known.left_s > 0 and not known.close_enough:
            known.take_news(news)
            found = self._tried(stop)
            if found is not None:
                end = int((found + self._problem.duration).max())
                better, _ = self._generator.improved(found, end, known.bound)
                known.offer(Solution(better), self._source)

    def _tried(self, stop: Stop) -> Int | None:
        """Solve one neighbourhood; adapt the size to how it ended."""
        known = self._known
        horizon = known.makespan - self._step
        chosen = self._chosen(
            Middle.of(self._generator, self._clock, known.solution.start, horizon)
        )
        if chosen is None:
            self._resize(GROW)
            return None
        began, seconds = time.monotonic(), min(SOLVE_S, max(0.0, known.left_s))
        found = self._searched(chosen, seconds, stop)
        if not isinstance(found, str):
            return chosen.whole(found)
        quick = found == "none" or (
            found == "undecided" and time.monotonic() - began < 0.3 * seconds
        )
        self._resize(GROW if quick else SHRINK)
        return None

    def _searched(self, chosen: Neighbourhood, seconds: float, stop: Stop) -> Int | Undecided:
        """Propagate, unless there are too many moments, then solve what is left."""
        given: Windows | None = chosen.windows
        propagator = Propagator(chosen.problem)
        if propagator.worthwhile(chosen.horizon):
            given = propagator.propagated(chosen.windows, chosen.horizon)
        if given is None:
            return "none"
        return self._solve(chosen.problem, given, chosen.horizon, seconds, stop)

    def _resize(self, factor: float) -> None:
        self._wanted = min(MAX, max(FEWEST, self._wanted * factor))

    def _chosen(self, middle: Middle) -> Neighbourhood | None:
        """Return a stretch that begins anywhere and has about as many free tasks as wanted."""
        ends = np.sort(middle.left + self._problem.duration)
        first = int(ends[self._random.integers(0, len(ends))])
        if self._random.random() < 0.5:
            first = int(self._random.integers(0, max(1, middle.horizon)))
        low, high = first, middle.horizon + 1
        early = middle.left + self._problem.duration <= first
        rights = np.sort(middle.right[~early])
        if not len(rights):
            return None
        # Free are those not early whose right-justified start lies before the end of the stretch.
        at = min(len(rights) - 1, math.ceil(self._wanted))
        last = min(high, max(low, int(rights[at]))) if at < len(rights) - 1 else high
        return middle.between(first, last)
