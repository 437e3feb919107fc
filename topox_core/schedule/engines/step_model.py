"""The step formulation: z[j, k] = "task j has started by k", inside time windows only.

Columns exist for earliest <= k < latest on each task's own clock (slots for transfers, ticks for
compute): before its window z is 0, from its latest start on it is 1. Written so, a precedence row
has two entries and the linear relaxation is as strong as the disaggregated time-indexed model
(Pritsker, Watters & Wolfe 1969; Christofides, Alvarez-Valdes & Tamarit 1987).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.csr import entries_of, pointer_of, ranges, row_of_entry
from topox_core.schedule.bounds.windows import Windows, step_of
from topox_core.schedule.engines.mip import Mip
from topox_core.schedule.problem import Int, Problem

Floats = NDArray[np.float64]
# Row, column and value of each entry; of rows that are as few as their upper limits.
Entries = tuple[Int, Int, Floats]
Rows = tuple[Floats, list[Entries]]
FIXED = -1  # stands for the column of what has started before it is asked: it is 1


def ragged(first: Int, count: Int) -> tuple[Int, Int]:
    """Return (owner, value): for each owner i the values first[i], first[i] + 1, ..., count[i] of them."""
    count = np.maximum(count, 0)
    return np.repeat(np.arange(len(count), dtype=np.int64), count), ranges(first, count)


@dataclass(frozen=True)
class StepModel:
    """The model of one problem within windows; the makespan is a task of its own, number n, on [bound, horizon].

    Parameters
    ----------
    problem, windows
        The windows must be those of ``horizon``.
    bound, horizon
        Smallest and largest makespan of interest, in ticks.
    """

    problem: Problem
    windows: Windows
    bound: int
    horizon: int

    @cached_property
    def clock(self) -> Int:
        """Ticks per step of each task's clock; the makespan keeps slots if every last task does."""
        return np.append(self.windows.clock, step_of(self.problem, self.windows.clock))

    @cached_property
    def lowest(self) -> Int:
        """First index of each window (on the task's clock)."""
        return np.append(self.windows.earliest, self.bound) // self.clock

    @cached_property
    def highest(self) -> Int:
        """Last index of each window."""
        return np.append(self.windows.latest, self.horizon) // self.clock

    @cached_property
    def width(self) -> Int:
        """Columns of each task."""
        return self.highest - self.lowest

    @cached_property
    def first_column(self) -> Int:
        """Column of z[j, lowest[j]]."""
        return np.cumsum(self.width) - self.width

    @property
    def step(self) -> int:
        """Ticks between two makespans that can occur."""
        return int(self.clock[-1])

    def build(self) -> Mip:
        """Return the model; its objective is the makespan in steps."""
        columns = int(self.width.sum())
        shared, resources = self._resources(columns)
        blocks = [self._monotone(), self._precedence(), self._devices(), *resources]
        firsts = np.cumsum([0, *(len(upper) for upper, _ in blocks)])
        entries = [
            (first + row, column, value)
            for first, (_, parts) in zip(firsts, blocks, strict=False)
            for row, column, value in parts
        ]
        row, column, value = map(np.concatenate, zip(*entries, strict=True))
        fixed = column == FIXED
        upper = np.concatenate([upper for upper, _ in blocks])
        upper -= np.bincount(row[fixed], value[fixed], len(upper))
        order = np.flatnonzero(~fixed)
        order = order[np.argsort(row[order], kind="stable")]
        integer = np.arange(columns + shared) < columns
        cost = np.zeros(columns + shared)
        cost[self.first_column[-1] : columns] = -1.0
        return Mip(
            cost,
            np.zeros(len(cost)),
            np.ones(len(cost)),
            integer,
            np.full(len(upper), -np.inf),
            upper,
            pointer_of(row[order], len(upper)),
            column[order].astype(np.int32),
            value[order],
            float(self.highest[-1]),
        )

    # -- rows: sums that are at most their upper limits --------------------------------------------------

    def _started(self, row: Int, task: Int, k: Int, value: float | Floats) -> Entries:
        """Return entries of value * z[task, k]: none before its window, the fixed column past it."""
        place = k - self.lowest[task]
        column = np.where(place < self.width[task], self.first_column[task] + place, FIXED)
        begun = place >= 0
        weight = np.broadcast_to(np.asarray(value, np.float64), row.shape)
        return row[begun], column[begun], weight[begun]

    def _active(self, row: Int, task: Int, tick: Int, value: float | Floats) -> list[Entries]:
        """Return entries of value * [task active at tick], which is z[t] - z[t - p]."""
        clock, ended = self.clock[task], tick - self.problem.duration[task]
        return [
            self._started(row, task, tick // clock, value),
            self._started(row, task, ended // clock, -value),
        ]

    def _monotone(self) -> Rows:
        """z[j, k] <= z[j, k + 1]: what has started stays started."""
        owner, k = ragged(self.lowest, self.width - 1)
        row = np.arange(len(owner))
        now, later = self._started(row, owner, k, 1.0), self._started(row, owner, k + 1, -1.0)
        return np.zeros(len(row)), [now, later]

    def _precedence(self) -> Rows:
        """z[after, t] <= z[before, t - p] (eq. 5, disaggregated over time).

        Where the later task has the finer clock, only the last tick before the earlier one's index
        changes says anything: the rows of the other ticks follow from monotonicity.
        """
        p = self.problem
        last = np.flatnonzero(np.diff(p.succ_ptr) == 0)  # the makespan comes after these
        before = np.concatenate((p.pred_idx.astype(np.int64), last))
        after = np.concatenate((row_of_entry(p.pred_ptr), np.full(len(last), p.n, np.int64)))
        owner, k = ragged(self.lowest[after], self.width[after])
        i, j = before[owner], after[owner]
        lag = p.duration[i]
        index = (k * self.clock[j] - lag) // self.clock[i]
        ahead = ((k + 1) * self.clock[j] - lag) // self.clock[i]
        says = (index != ahead) & (index < self.highest[i])
        i, j, k, index = i[says], j[says], k[says], index[says]
        row = np.arange(len(i))
        return np.zeros(len(row)), [
            self._started(row, j, k, 1.0),
            self._started(row, i, index, -1.0),
        ]

    def _devices(self) -> Rows:
        """At most one task at a time holds a device: a row a tick where at least two windows overlap."""
        p = self.problem
        held = np.flatnonzero((p.device >= 0) & (p.duration > 0))
        earliest = self.lowest[held] * self.clock[held]
        latest = self.highest[held] * self.clock[held]
        owner, tick = ragged(earliest, latest + p.duration[held] - earliest)
        task = held[owner]
        key = p.device[task] * np.int64(self.horizon + 1) + tick
        one = np.ones(len(key))
        row, kept, upper = _numbered(key, tick <= latest[owner], one, one)
        return upper, self._active(row, task[kept], tick[kept], 1.0)

    def _resources(self, columns: int) -> tuple[int, list[Rows]]:
        """Capacity rows a slot (eqs 7-10 reduced), only where the tasks that may be active exceed the capacity.

        Where at least two transfers of a pair may share a circuit in a slot, a column w[pair, slot]
        at least as large as each of them stands for the pair (eq. 6 as printed). Returns the number
        of w and the rows.
        """
        p, slot = self.problem, self.problem.ticks_per_slot
        uses = np.flatnonzero((np.diff(p.demand_ptr) > 0) & (p.duration > 0))
        owner, k = ragged(self.lowest[uses], self.width[uses] + p.duration[uses] // slot)
        task = uses[owner]
        slots = np.int64(self.horizon // slot + 1)
        # One carrier a (task, slot), or a (pair, slot) where several of the pair's transfers may be
        # active.
        alone = -1 - np.arange(len(task))
        carrier = np.where(p.pair[task] >= 0, p.pair[task] * slots + k, alone)
        _, first, place, members = np.unique(
            carrier, return_index=True, return_inverse=True, return_counts=True
        )
        joint = members > 1
        w = np.where(joint, columns + np.cumsum(joint) - 1, -1)
        blocks = [self._capacity(task[first], k[first], w)]
        together = np.flatnonzero(joint[place])
        if len(together):  # [transfer active in slot] <= w[pair, slot]
            row = np.arange(len(together))
            active = self._active(row, task[together], k[together] * slot, 1.0)
            pair = (row, w[place[together]], -np.ones(len(row)))
            blocks.append((np.zeros(len(row)), [*active, pair]))
        return int(joint.sum()), blocks

    def _capacity(self, task: Int, k: Int, w: Int) -> Rows:
        """Sum of demands of what is active in a slot <= capacity; w >= 0 names the column that stands for a pair."""
        p = self.problem
        entry = entries_of(p.demand_ptr, task)
        owner = np.repeat(np.arange(len(task)), np.diff(p.demand_ptr)[task])
        resource = p.demand_resource[entry].astype(np.int64)
        amount = p.demand_amount[entry].astype(np.float64)
        key = resource * np.int64(self.horizon // p.ticks_per_slot + 1) + k[owner]
        startable = ((k <= self.highest[task]) | (w >= 0))[owner]
        row, kept, upper = _numbered(key, startable, amount, p.capacity[resource])
        owner, amount = owner[kept], amount[kept]
        own = w[owner] < 0
        tick = k * p.ticks_per_slot
        single = self._active(row[own], task[owner[own]], tick[owner[own]], amount[own])
        return upper, [*single, (row[~own], w[owner[~own]], amount[~own])]

    # -- schedules -------------------------------------------------------------------------------------

    def start(self, values: NDArray[np.float64]) -> Int:
        """Return the start ticks that a solution says: one step past each task's last z = 0."""
        owner, _ = ragged(self.lowest, self.width)
        not_yet = (values[: len(owner)] < 0.5).astype(np.float64)
        waited = np.bincount(owner, weights=not_yet, minlength=len(self.width)).astype(np.int64)
        return ((self.lowest + waited) * self.clock)[:-1]


def _numbered(
    key: Int, startable: NDArray[np.bool_], amount: Floats, capacity: NDArray[Any]
) -> tuple[Int, NDArray[np.bool_], Floats]:
    """Return (row of each kept entry, kept, capacity of each row): the keys, a resource at a moment each, that need a row.

    A row is needed where all that may be active exceeds the capacity, and some task may still start
    then (later moments repeat a subset of an earlier row).
    """
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    room = capacity[first].astype(np.float64)
    needed = (np.bincount(place, amount) > room) & (np.bincount(place, startable) > 0)
    kept = needed[place]
    number = np.cumsum(needed) - 1
    return number[place[kept]], kept, room[needed]
