"""List scheduling: several priority rules, serial and parallel generation, forward-backward improvement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topox_core.errors import InputError
from topox_core.model.csr import grouped, pointer_of, row_of_entry
from topox_core.model.passes import heads, tails
from topox_core.schedule.feasibility import impossible
from topox_core.schedule.kernels.loads import successor_work
from topox_core.schedule.kernels.parallel import parallel
from topox_core.schedule.kernels.serial import serial
from topox_core.schedule.kernels.tasks import Rows, Tasks, by_rank, turned
from topox_core.schedule.problem import Int, Int32, Problem
from topox_core.schedule.source import TraceSource

IMPROVEMENT_ROUNDS = 8
RULES = {
    "LST": "latest start time",
    "LFT": "latest finish time",
    "SLK": "least slack",
    "GRPW": "greatest rank positional weight",
    "MIS": "most immediate successors",
    "EST": "earliest start time",
}


@dataclass(frozen=True)
class Listed:
    """A schedule that a rule made: start ticks, makespan, and where it came from in words."""

    start: Int
    makespan: int
    source: TraceSource


@dataclass(frozen=True)
class Generator:
    """The schedule generation schemes of one problem, forwards and backwards, with what they share."""

    problem: Problem
    order: Int32
    head: Int
    tail: Int
    tasks: Tasks
    back: Tasks
    horizon_slots: int

    @staticmethod
    def of(problem: Problem, bound: int) -> Generator:
        """Prepare a problem; ``bound`` (ticks) sizes the first horizon, which grows if it must.

        Raises
        ------
        InputError
            If a task needs more of a resource than there is: no horizon would suffice.
        """
        reason = impossible(problem)
        if reason is not None:
            raise InputError(f"no schedule exists: {reason}")
        p = problem
        order = p.order
        head = heads(order, p.pred_ptr, p.pred_idx, p.duration, p.slot_clock)
        tail = tails(order, p.succ_ptr, p.succ_idx, p.duration)
        device_ptr = pointer_of(p.device[p.device >= 0], p.devices)
        pairs = int(p.pair.max(initial=-1)) + 1
        plain = pairs == 0 and bool((p.demand_amount == 1).all())
        tasks = Tasks(
            p.pred_ptr,
            p.pred_idx,
            p.succ_ptr,
            p.succ_idx,
            p.duration,
            p.on_grid,
            p.ticks_per_slot,
            p.device,
            device_ptr,
            p.demand_ptr,
            p.demand_resource,
            p.demand_amount,
            p.capacity,
            p.pair,
            pairs,
            plain,
            plain and p.ticks_per_slot == 1,
            _rows(p),
        )
        return Generator(
            p, order, head, tail, tasks, turned(tasks), 2 * (bound // p.ticks_per_slot) + 64
        )

    @cached_property
    def place(self) -> Int32:
        """Every task's place in the topological order."""
        place = np.empty(len(self.order), np.int32)
        place[self.order] = np.arange(len(self.order), dtype=np.int32)
        return place

    def with_heads_and_tails(self, head: Int, tail: Int) -> Generator:
        """Return the generator with other heads and tails; of tasks that tie, the one with the longest tail goes first.

        ``tail`` must be no shorter than that of a successor.
        """
        order = np.lexsort((self.place, -tail)).astype(np.int32)
        return replace(self, head=head, tail=tail, order=order)

    def serially(self, rank: Int32, backwards: bool = False) -> tuple[Int, int]:
        """Return (start, makespan) of the serial scheme; backwards, times count from the end."""
        tasks = self.back if backwards else self.tasks
        return self.in_sequence(
            by_rank(rank, tasks.pred_ptr, tasks.succ_ptr, tasks.succ_idx), backwards
        )

    def in_sequence(self, sequence: Int32, backwards: bool = False) -> tuple[Int, int]:
        """Return (start, makespan) of the serial scheme for a sequence that keeps the precedence."""
        horizon = self.horizon_slots
        while True:
            start, makespan = serial(sequence, self.back if backwards else self.tasks, horizon)
            if makespan >= 0:
                return start, makespan
            horizon *= 2

    def in_parallel(self, rank: Int32) -> tuple[Int, int]:
        """Return (start, makespan) of the parallel scheme."""
        return parallel(rank, self.tasks)

    def improved(
        self, start: Int, makespan: int, enough: int, rounds: int = IMPROVEMENT_ROUNDS
    ) -> tuple[Int, int]:
        """Return the schedule after forward-backward improvement (Tormos and Lova 2001) until it stalls.

        Backwards by latest finish, then forwards by the right-justified starts. Never worse.
        """
        duration = self.problem.duration
        for _ in range(rounds):
            if makespan <= enough:
                break
            behind, length = self.serially(ranked(-(start + duration)), backwards=True)
            ahead, shorter = self.serially(ranked(length - behind - duration))
            if shorter >= makespan:
                if shorter == makespan:
                    start = ahead
                break
            start, makespan = ahead, shorter
        return start, makespan

    def rule(self, name: str) -> Int32:
        """Return the tasks' ranks by a priority rule of :data:`RULES`, ties by least latest start."""
        p = self.problem
        latest = -(self.tail + p.duration)
        key = {
            "LST": latest,
            "LFT": -self.tail,
            "SLK": latest - self.head,
            "GRPW": -successor_work(self.order, p.succ_ptr, p.succ_idx, p.duration),
            "MIS": -np.diff(p.succ_ptr).astype(np.int64),
            "EST": self.head,
        }[name]
        return ranked(key, latest)


def _rows(problem: Problem) -> Rows:
    """Return the rows that tasks hold, devices behind the ports."""
    p, ports = problem, len(problem.capacity)
    works = p.device >= 0
    owner = np.concatenate((row_of_entry(p.demand_ptr), np.flatnonzero(works)))
    row = np.concatenate((p.demand_resource, p.device[works] + ports))
    ptr, held = grouped(owner.astype(np.int32), row.astype(np.int32), p.n)
    return Rows(ptr, held, np.concatenate((p.capacity, np.ones(p.devices))).astype(np.int32))


def ranked(key: Int, tie: Int | None = None) -> Int32:
    """Return the place of every task when sorted by ``key``, then ``tie``, then number."""
    order = np.argsort(key, kind="stable") if tie is None else np.lexsort((tie, key))
    rank = np.empty(len(key), np.int32)
    rank[order] = np.arange(len(key), dtype=np.int32)
    return rank


def candidates(generator: Generator, enough: int) -> Iterator[Listed]:
    """Yield an improved schedule for every rule, parallel then serial.

    Neither scheme dominates: parallel is better on pipelines, serial on irregular graphs.
    """
    for name in RULES:
        rank = generator.rule(name)
        for scheme, (start, makespan) in (
            ("parallel", generator.in_parallel(rank)),
            ("serial", generator.serially(rank)),
        ):
            start, makespan = generator.improved(start, makespan, enough)
            yield Listed(start, makespan, TraceSource("rules", f"{scheme} {name}"))


def serial_schedule(problem: Problem) -> Int:
    """Return a feasible schedule: tasks by latest start, each as early as its device and resources allow.

    A plain starting point for an engine that was given none (the rules find better ones). Raises as
    :meth:`Generator.of`.
    """
    generator = Generator.of(problem, 0)
    start, _ = generator.serially(ranked(-(generator.tail + problem.duration)))
    return start
