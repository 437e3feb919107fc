"""The step formulation: z[j, k] = "task j has started by k", inside time windows only.

Columns exist for earliest <= k < latest on each task's own clock (slots for transfers, ticks for
compute): before its window z is 0, from its latest start on it is 1. Written so, a precedence row
has two entries and the linear relaxation is as strong as the disaggregated time-indexed model
(Pritsker, Watters & Wolfe 1969; Christofides, Alvarez-Valdes & Tamarit 1987).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.model.csr import pointer_of, ranges, row_of_entry, row_pointer
from topox_core.schedule.bounds.windows import Windows, step_of
from topox_core.schedule.engines.mip import Mip
from topox_core.schedule.problem import Int, Problem


def ragged(first: Int, count: Int) -> tuple[Int, Int]:
    """Return (owner, value): for each owner i the values first[i], first[i] + 1, ..., count[i] of them."""
    count = np.maximum(count, 0)
    return np.repeat(np.arange(len(count), dtype=np.int64), count), ranges(first, count)


# Row, column and value of each entry, and what fixed ones add to each row.
Entries = tuple[Int, Int, NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Rows:
    """A block of rows ``sum(value * column) <= upper``; entries in any order."""

    row: Int
    column: Int
    value: NDArray[np.float64]
    upper: NDArray[np.float64]


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
        return np.append(
            self.windows.earliest // self.clock[:-1], -(-self.bound // int(self.clock[-1]))
        )

    @cached_property
    def highest(self) -> Int:
        """Last index of each window."""
        return np.append(
            self.windows.latest // self.clock[:-1], self.horizon // int(self.clock[-1])
        )

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

    @cached_property
    def empty(self) -> bool:
        """Whether some window is empty: nothing ends by the horizon."""
        return bool((self.width < 0).any())

    def build(self) -> Mip:
        """Return the model; its objective is the makespan in steps."""
        columns = int(self.width.sum())
        shared, blocks = self._resource_blocks(columns)
        blocks = [self._monotone(), self._precedence(), self._devices(), *blocks]
        total = columns + shared
        cost = np.zeros(total)
        cost[self.first_column[-1] : columns] = -1.0
        integer = np.ones(total, np.bool_)
        integer[columns:] = False
        return _assembled(blocks, cost, integer, float(self.highest[-1]))

    # -- rows ------------------------------------------------------------------------------------------

    def _literals(
        self, row: Int, task: Int, k: Int, value: float | NDArray[np.float64], rows: int
    ) -> Entries:
        """Return entries of value * z[task, k], and what fixed ones (k past the window) add to each row."""
        weight = np.broadcast_to(np.asarray(value, np.float64), row.shape)
        lowest, highest = self.lowest[task], self.highest[task]
        open_ = (k >= lowest) & (k < highest)
        done = k >= highest
        constant = np.bincount(row[done], weights=weight[done], minlength=rows).astype(np.float64)
        return row[open_], (self.first_column[task] + k - lowest)[open_], weight[open_], constant

    def _monotone(self) -> Rows:
        """z[j, k] <= z[j, k + 1]: what has started stays started."""
        owner, k = ragged(self.lowest, self.width - 1)
        row, rows = np.arange(len(owner), dtype=np.int64), len(owner)
        now, later = (
            self._literals(row, owner, k + ahead, sign, rows)
            for ahead, sign in ((0, 1.0), (1, -1.0))
        )
        return _joined([now, later], np.zeros(rows))

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
        row, rows = np.arange(len(i), dtype=np.int64), len(i)
        left = self._literals(row, j, k, 1.0, rows)
        right = self._literals(row, i, index, -1.0, rows)
        return _joined([left, right], np.zeros(rows))

    def _devices(self) -> Rows:
        """At most one task at a time holds a device: a row a tick where at least two windows overlap."""
        p = self.problem
        held = np.flatnonzero((p.device >= 0) & (p.duration > 0))
        earliest = self.lowest[held] * self.clock[held]
        latest = self.highest[held] * self.clock[held]
        owner, tick = ragged(earliest, latest + p.duration[held] - earliest)
        task = held[owner]
        key = p.device[task] * np.int64(self.horizon + 1) + tick
        startable = tick <= latest[owner]
        row, keep, rows = _numbered(key, startable, np.ones(len(key)), np.ones(len(key)))
        return _joined(self._activity(row, task[keep], tick[keep], 1.0, rows), np.ones(rows))

    def _activity(
        self, row: Int, task: Int, tick: Int, value: float | NDArray[np.float64], rows: int
    ) -> list[Entries]:
        """Return entries of value * [task active at tick], which is z[t] - z[t - p]."""
        clock = self.clock[task]
        return [
            self._literals(row, task, tick // clock, value, rows),
            self._literals(row, task, (tick - self.problem.duration[task]) // clock, -value, rows),
        ]

    def _resource_blocks(self, columns: int) -> tuple[int, list[Rows]]:
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
        pair_key = np.where(p.pair[task] >= 0, p.pair[task] * slots + k, -1)
        known, position, members = np.unique(pair_key, return_inverse=True, return_counts=True)
        joint = (members[position] >= 2) & (pair_key >= 0)
        together = np.flatnonzero((members >= 2) & (known >= 0))
        w_of = np.full(len(known), -1, np.int64)
        w_of[together] = np.arange(len(together))
        w = w_of[position]
        first_of_pair = np.zeros(len(task), np.bool_)
        first_of_pair[np.unique(np.where(joint, pair_key, -1), return_index=True)[1]] = True
        carrier = np.flatnonzero(~joint | first_of_pair)
        blocks = [
            self._capacity(task[carrier], k[carrier], np.where(joint, w, -1)[carrier], columns)
        ]
        if len(together):
            blocks.append(self._pair_rows(task[joint], k[joint], w[joint] + columns))
        return len(together), blocks

    def _pair_rows(self, task: Int, k: Int, column: Int) -> Rows:
        """[transfer active in slot] <= w[pair, slot]."""
        row, rows = np.arange(len(task), dtype=np.int64), len(task)
        active = self._activity(row, task, k * self.problem.ticks_per_slot, 1.0, rows)
        pair = (row, column, -np.ones(rows), np.zeros(rows))
        return _joined([*active, pair], np.zeros(rows))

    def _capacity(self, task: Int, k: Int, w: Int, columns: int) -> Rows:
        """Sum of demands of what is active in a slot <= capacity; w >= 0 names the column that stands for a pair."""
        p = self.problem
        owner, entry = ragged(
            p.demand_ptr[task].astype(np.int64), np.diff(p.demand_ptr)[task].astype(np.int64)
        )
        resource = p.demand_resource[entry].astype(np.int64)
        amount = p.demand_amount[entry].astype(np.float64)
        key = resource * np.int64(self.horizon // p.ticks_per_slot + 1) + k[owner]
        startable = ((k <= self.highest[task]) | (w >= 0))[owner]
        row, keep, rows = _numbered(key, startable, amount, p.capacity[resource].astype(np.float64))
        upper = np.zeros(rows)
        upper[row] = p.capacity[resource[keep]]
        owner, amount = owner[keep], amount[keep]
        alone = w[owner] < 0
        own = self._activity(
            row[alone], task[owner[alone]], k[owner[alone]] * p.ticks_per_slot, amount[alone], rows
        )
        pair = (row[~alone], w[owner[~alone]] + columns, amount[~alone], np.zeros(rows))
        return _joined([*own, pair], upper)

    # -- schedules -------------------------------------------------------------------------------------

    def start(self, values: NDArray[np.float64]) -> Int:
        """Return the start ticks that a solution says: one step past each task's last z = 0."""
        owner, _ = ragged(self.lowest, self.width)
        not_yet = (values[: len(owner)] < 0.5).astype(np.float64)
        waited = np.bincount(owner, weights=not_yet, minlength=len(self.width)).astype(np.int64)
        return ((self.lowest + waited) * self.clock)[:-1]


def _numbered(
    key: Int,
    startable: NDArray[np.bool_],
    amount: NDArray[np.float64],
    capacity: NDArray[np.float64],
) -> tuple[Int, NDArray[np.bool_], int]:
    """Return (row of each kept entry, kept, rows): the keys, a resource at a moment each, that need a row.

    A row is needed where all that may be active exceeds the capacity, and some task may still start
    then (later moments repeat a subset of an earlier row).
    """
    _, position = np.unique(key, return_inverse=True)
    load = np.bincount(position, weights=amount)
    room = np.zeros(len(load))
    room[position] = capacity
    opens = np.bincount(position, weights=startable) > 0
    needed = (load > room) & opens
    keep = needed[position]
    number = np.cumsum(needed) - 1
    return number[position[keep]], keep, int(needed.sum())


def _joined(parts: list[Entries], upper: NDArray[np.float64]) -> Rows:
    """Return the rows ``sum(entries) <= upper``, what is fixed taken off."""
    row, column, value = (np.concatenate([part[field] for part in parts]) for field in range(3))
    return Rows(
        row.astype(np.int64),
        column.astype(np.int64),
        value.astype(np.float64),
        upper - np.sum([part[3] for part in parts], axis=0),
    )


def _assembled(
    blocks: list[Rows], cost: NDArray[np.float64], integer: NDArray[np.bool_], offset: float
) -> Mip:
    shifts = row_pointer([len(block.upper) for block in blocks])
    row = np.concatenate([block.row + shift for block, shift in zip(blocks, shifts, strict=False)])
    order = np.argsort(row, kind="stable")
    rows = int(shifts[-1])
    return Mip(
        cost,
        np.zeros(len(cost)),
        np.ones(len(cost)),
        integer,
        np.full(rows, -np.inf),
        np.concatenate([block.upper for block in blocks]),
        pointer_of(row, rows),
        np.concatenate([block.column for block in blocks])[order].astype(np.int32),
        np.concatenate([block.value for block in blocks])[order],
        offset,
    )
