"""List scheduling: several priority rules, serial and parallel generation, forward-backward improvement; also on real ports.

On real ports circuits are continuous and pay their reconfiguration delay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from topox_core.errors import refuse_if
from topox_core.model.arrays.csr import pointer_of, ranks, row_of_entry, row_pointer
from topox_core.model.arrays.passes import heads, tails
from topox_core.schedule.circuits.held_ports import (
    Booking,
    Solution,
    booking_of,
    changed_rows,
    slots_to_wait,
)
from topox_core.schedule.kernels.continuous import (
    Before,
    Ports,
    nothing_before,
    serial_on_ports,
)
from topox_core.schedule.kernels.parallel import parallel
from topox_core.schedule.kernels.serial import serial
from topox_core.schedule.kernels.tasks import Tasks, by_rank, turned
from topox_core.schedule.problem import Int, Int32, Problem, SwitchNetwork
from topox_core.schedule.rcpsp.feasibility import impossible
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
# Passes over one sequence, each from the circuits that the last one left. On 60 random graphs three
# were 0.06 % shorter than one on slots and 0.4 % on continuous time (geometric means).
PASSES = 3
MAX_BOOKINGS = 50_000_000  # transfers x ports that each might use


@dataclass(frozen=True)
class SchedulePlan:
    """A schedule that can be carried out: start ticks, circuits, and how many circuits change.

    ``before`` is what its ports held when it began, where its generation knew.
    """

    start: Int
    makespan: int
    booking: Booking | None
    changes: int
    source: TraceSource
    before: Before | None = None

    @staticmethod
    def without_circuits(start: Int, makespan: int, source: TraceSource) -> SchedulePlan:
        """Return a schedule of the reduced problem, for which no circuits were looked for."""
        return SchedulePlan(start, makespan, None, 0, source)

    @staticmethod
    def on_circuits(
        problem: Problem, start: Int, booking: Booking, source: TraceSource
    ) -> SchedulePlan:
        """Return a schedule on the circuits that a booking gives it."""
        makespan = int((start + problem.duration).max(initial=0))
        changes = int(changed_rows(booking, problem.switch_network).sum())
        return SchedulePlan(start, makespan, booking, changes, source)

    @property
    def cost(self) -> tuple[int, int]:
        """What is minimised: the makespan, then the number of circuit changes."""
        return self.makespan, self.changes


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
        refuse_if((reason is not None, f"no schedule exists: {reason}"))
        p = problem
        order = p.order
        head = heads(order, p.pred_ptr, p.pred_idx, p.duration, p.slot_clock)
        tail = tails(order, p.succ_ptr, p.succ_idx, p.duration)
        pairs = int(p.pair.max(initial=-1)) + 1
        task, row, amount = p.uses
        tasks = Tasks(
            p.pred_ptr,
            p.pred_idx,
            p.succ_ptr,
            p.succ_idx,
            p.duration,
            p.on_grid,
            p.ticks_per_slot,
            pointer_of(task, p.n),
            row,
            amount.astype(np.int32),
            p.rooms.astype(np.int32),
            pointer_of(p.device[p.device >= 0], p.devices),
            p.pair,
            pairs,
            pairs == 0 and bool((p.demand_amount == 1).all()),
        )
        return Generator(
            p, order, head, tail, tasks, turned(tasks), 2 * (bound // p.ticks_per_slot) + 64
        )

    @cached_property
    def place(self) -> Int32:
        """Every task's place in the topological order."""
        return ranks(self.order)

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
        behind = np.bincount(row_of_entry(p.succ_ptr), p.duration[p.succ_idx], p.n)
        key = {
            "LST": latest,
            "LFT": -self.tail,
            "SLK": latest - self.head,
            "GRPW": -(p.duration + behind.astype(np.int64)),
            "MIS": -np.diff(p.succ_ptr).astype(np.int64),
            "EST": self.head,
        }[name]
        return ranked(key, latest)


def ranked(key: Int, tie: Int | None = None) -> Int32:
    """Return the place of every task when sorted by ``key``, then ``tie``, then number."""
    order = np.argsort(key, kind="stable") if tie is None else np.lexsort((tie, key))
    return ranks(order)


def candidates(generator: Generator, enough: int) -> Iterator[SchedulePlan]:
    """Yield an improved schedule for every rule, parallel then serial.

    Neither scheme dominates: parallel is better on pipelines, serial on irregular graphs.
    """
    for name in RULES:
        rank = generator.rule(name)
        for scheme, (start, makespan) in (
            ("parallel", parallel(rank, generator.tasks)),
            ("serial", generator.serially(rank)),
        ):
            start, makespan = generator.improved(start, makespan, enough)
            source = TraceSource("rules", f"{scheme} {name}")
            yield SchedulePlan.without_circuits(start, makespan, source)


def serial_schedule(problem: Problem) -> Int:
    """Return a feasible schedule: tasks by latest start, each as early as its device and resources allow.

    A plain starting point for an engine that was given none (the rules find better ones). Raises as
    :meth:`Generator.of`.
    """
    generator = Generator.of(problem, 0)
    start, _ = generator.serially(ranked(-(generator.tail + problem.duration)))
    return start


@dataclass(frozen=True)
class PortGenerator:
    """Serial generation on the ports of a network; wraps the plain generator's preparations."""

    generator: Generator
    network: SwitchNetwork
    ports: Ports

    @staticmethod
    def of(generator: Generator, dark_slots: int, spare: int = 0) -> PortGenerator:
        """Prepare the ports: each server's ports on every switch, both ways or shared by both (half duplex).

        Of more ports than transfers so many are ``spare``.
        """
        problem = generator.problem
        network = problem.switch_network
        carried = np.flatnonzero(problem.on_grid & (problem.duration > 0))
        # Only servers that talk have ports here, and no more of them than a server has transfers.
        talking, ends = np.unique(
            np.concatenate([network.source[carried], network.destination[carried]]),
            return_inverse=True,
        )
        source, destination = np.zeros(problem.n, np.int32), np.zeros(problem.n, np.int32)
        source[carried], destination[carried] = ends[: len(carried)], ends[len(carried) :]
        outs = np.bincount(source[carried], minlength=len(talking))
        ins = np.bincount(destination[carried], minlength=len(talking))
        k = min(network.ports_on_switch, max(1, int((outs + ins).max(initial=0))) + spare)
        per_server = network.switches * k
        bookings = int((outs + ins).sum()) * per_server
        refuse_if(
            (
                bookings > MAX_BOOKINGS,
                f"continuous circuits would need {bookings:,} bookings of ports (limit {MAX_BOOKINGS:,}): choose fewer "
                "ports or per-slot circuits",
            ),
            file="cluster",
            field="ports_per_server",
        )
        room = (
            np.repeat(outs + ins, per_server)
            if network.half_duplex
            else np.concatenate([np.repeat(outs, per_server), np.repeat(ins, per_server)])
        )
        pointer = row_pointer(room, np.int64)
        in_base = 0 if network.half_duplex else len(talking) * per_server
        limit = network.circuits_per_switch if network.switches_may_fill else 0
        return PortGenerator(
            generator,
            network,
            Ports(
                source,
                destination,
                network.switches,
                k,
                network.half_duplex,
                pointer,
                in_base,
                dark_slots,
                limit,
            ),
        )

    def serially(self, rank: Int32, source: TraceSource, backwards: bool = False) -> SchedulePlan:
        """Return the serial schedule by ``rank``; backwards, times count from the end."""
        tasks = self.generator.back if backwards else self.generator.tasks
        return self.in_sequence(
            by_rank(rank, tasks.pred_ptr, tasks.succ_ptr, tasks.succ_idx), source, backwards
        )

    def in_sequence(
        self,
        sequence: Int32,
        source: TraceSource,
        backwards: bool = False,
        before: Before | None = None,
    ) -> SchedulePlan:
        """Return the serial schedule for a sequence that keeps the precedence.

        Where the iteration repeats, forwards, the best of a few passes, the first of which begins
        from ``before`` (by default from nothing).
        """
        repeats = self.network.repeats and not backwards
        if before is None:
            before = nothing_before(len(self.ports.port_ptr) - 1, repeats)
        best, before = self.one_pass(sequence, source, backwards, before)
        for _ in range(PASSES - 1):
            if not repeats or best.makespan <= self._last_end(best):
                break
            again, before = self.one_pass(sequence, source, backwards, before)
            best = min(best, again, key=lambda one: one.cost)
        return self.held_back(best) if repeats else best

    def one_pass(
        self, sequence: Int32, source: TraceSource, backwards: bool, before: Before
    ) -> tuple[SchedulePlan, Before]:
        """Return the serial schedule from what ports hold at first, and what they hold afterwards."""
        tasks = self.generator.back if backwards else self.generator.tasks
        horizon = self.generator.horizon_slots + 4 * self.ports.dark
        while True:
            start, makespan, switch, out_port, in_port, changed, after = serial_on_ports(
                sequence, tasks, self.ports, before, horizon
            )
            if makespan >= 0:
                held = np.stack(
                    [switch, out_port % self.ports.k, (in_port - self.ports.in_base) % self.ports.k]
                )
                booking = booking_of(self.generator.problem, Solution(start, held))
                plan = SchedulePlan(start, makespan, booking, changed, source, before)
                return plan, after
            horizon *= 2

    def _last_end(self, booked: SchedulePlan) -> int:
        return int((booked.start + self.generator.problem.duration).max(initial=0))

    def held_back(self, booked: SchedulePlan) -> SchedulePlan:
        """Return a schedule that begins with the time that ports need to come back, and ends with its last task."""
        problem, last, old = self.generator.problem, self._last_end(booked), booked.booking
        assert old is not None
        wait = slots_to_wait(problem, old, last, self.ports.dark)
        start = booked.start + wait * problem.ticks_per_slot
        makespan = last + wait * problem.ticks_per_slot
        booking = replace(old, first_slot=old.first_slot + wait, end_slot=old.end_slot + wait)
        return replace(booked, start=start, makespan=makespan, booking=booking)

    def improved(self, booked: SchedulePlan, enough: int) -> SchedulePlan:
        """Return the schedule after forward-backward improvement; never worse in makespan, then changes.

        Dark times break the usual guarantee, so a worse round is dropped.
        """
        duration = self.generator.problem.duration
        best = booked
        for _ in range(IMPROVEMENT_ROUNDS):
            if best.makespan <= enough:
                break
            behind = self.serially(ranked(-(best.start + duration)), best.source, backwards=True)
            ahead = self.serially(ranked(behind.makespan - behind.start - duration), best.source)
            if ahead.cost >= best.cost:
                break
            best = ahead
        return best
