"""List scheduling on real ports: continuous circuits with their reconfiguration delay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topox_core.errors import InputError
from topox_core.model.csr import row_pointer
from topox_core.schedule.circuits.assignment import Booking
from topox_core.schedule.generation.list_scheduler import IMPROVEMENT_ROUNDS, Generator, ranked
from topox_core.schedule.kernels.continuous import Ports, serial_on_ports
from topox_core.schedule.kernels.tasks import by_rank
from topox_core.schedule.problem import Int, Int32, SwitchNetwork
from topox_core.schedule.source import TraceSource

MAX_BOOKINGS = 50_000_000  # transfers x ports that each might use


def _refuse_many_ports(bookings: int) -> None:
    if bookings > MAX_BOOKINGS:
        raise InputError(
            f"continuous circuits would need {bookings:,} bookings of ports (limit {MAX_BOOKINGS:,}): choose fewer "
            "ports or per-slot circuits",
            file="cluster",
            field="ports_per_server",
        )


@dataclass(frozen=True)
class Booked:
    """A schedule whose transfers hold ports: start ticks, makespan, circuits, and how many of them changed."""

    start: Int
    makespan: int
    booking: Booking
    changes: int
    source: TraceSource

    @property
    def cost(self) -> tuple[int, int]:
        """What is minimised: the makespan, then the number of circuit changes."""
        return self.makespan, self.changes


@dataclass(frozen=True)
class PortGenerator:
    """Serial generation on the ports of a network; wraps the plain generator's preparations."""

    generator: Generator
    network: SwitchNetwork
    ports: Ports

    @staticmethod
    def of(generator: Generator, dark_slots: int) -> PortGenerator:
        """Prepare the ports: each server's ports on every switch, both ways or shared by both (half duplex)."""
        problem = generator.problem
        network = problem.network
        if network is None:
            raise ValueError("a plain RCPSP has no ports")
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
        k = min(network.ports_on_switch, max(1, int((outs + ins).max(initial=0))))
        per_server = network.switches * k
        _refuse_many_ports(int((outs + ins).sum()) * per_server)
        room = (
            np.repeat(outs + ins, per_server)
            if network.half_duplex
            else np.concatenate([np.repeat(outs, per_server), np.repeat(ins, per_server)])
        )
        pointer = row_pointer(room, np.int64)
        in_base = 0 if network.half_duplex else len(talking) * per_server
        most = network.servers * network.ports_on_switch // (2 if network.half_duplex else 1)
        limit = network.circuits_per_switch if network.circuits_per_switch < most else 0
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

    def serially(self, rank: Int32, source: TraceSource, backwards: bool = False) -> Booked:
        """Return the serial schedule by ``rank``; backwards, times count from the end."""
        tasks = self.generator.back if backwards else self.generator.tasks
        return self.in_sequence(
            by_rank(rank, tasks.pred_ptr, tasks.succ_ptr, tasks.succ_idx), source, backwards
        )

    def in_sequence(self, sequence: Int32, source: TraceSource, backwards: bool = False) -> Booked:
        """Return the serial schedule for a sequence that keeps the precedence."""
        tasks = self.generator.back if backwards else self.generator.tasks
        horizon = self.generator.horizon_slots + 4 * self.ports.dark
        while True:
            start, makespan, switch, out_port, in_port, changed = serial_on_ports(
                sequence, tasks, self.ports, horizon
            )
            if makespan >= 0:
                return Booked(
                    start,
                    makespan,
                    self._booking(start, switch, out_port, in_port),
                    changed,
                    source,
                )
            horizon *= 2

    def _booking(self, start: Int, switch: Int32, out_port: Int32, in_port: Int32) -> Booking:
        p, k = self.generator.problem, self.ports.k
        node = np.flatnonzero(switch >= 0).astype(np.int32)
        first = start[node] // p.ticks_per_slot
        return Booking(
            node,
            switch[node],
            out_port[node] % k,
            (in_port[node] - self.ports.in_base) % k,
            first,
            first + p.duration[node] // p.ticks_per_slot,
        )

    def improved(self, booked: Booked, enough: int, rounds: int = IMPROVEMENT_ROUNDS) -> Booked:
        """Return the schedule after forward-backward improvement; never worse in makespan, then changes.

        Dark times break the usual guarantee, so a worse round is dropped.
        """
        duration = self.generator.problem.duration
        best = booked
        for _ in range(rounds):
            if best.makespan <= enough:
                break
            behind = self.serially(ranked(-(best.start + duration)), best.source, backwards=True)
            ahead = self.serially(ranked(behind.makespan - behind.start - duration), best.source)
            if ahead.cost >= best.cost:
                break
            best = ahead
        return best
