"""List scheduling on real ports: continuous circuits with their reconfiguration delay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topox_core.errors import InputError
from topox_core.schedule.circuits import Booking, changed_rows
from topox_core.schedule.kernels.continuous import serial_on_ports
from topox_core.schedule.list_scheduler import IMPROVEMENT_ROUNDS, Generator, ranked
from topox_core.schedule.problem import Int, Int32, Network

MAX_BOOKINGS = 50_000_000  # transfers x ports that each might use


def _refuse_many_ports(bookings: int) -> None:
    if bookings > MAX_BOOKINGS:
        raise InputError(f"continuous circuits would need {bookings:,} bookings of ports (limit {MAX_BOOKINGS:,}): choose fewer "
                         "ports or per-slot circuits", file="cluster", field="ports_per_server")


@dataclass(frozen=True)
class Booked:
    """A schedule whose transfers hold ports: start ticks, makespan, circuits, and how many of them changed."""

    start: Int
    makespan: int
    booking: Booking
    changes: int
    source: str

    @property
    def cost(self) -> tuple[int, int]:
        """What is minimised: the makespan, then the number of circuit changes."""
        return self.makespan, self.changes


@dataclass(frozen=True)
class PortGenerator:
    """Serial generation on the ports of a network; wraps the plain generator's preparations."""

    generator: Generator
    network: Network
    source: Int32
    destination: Int32
    ports_on_switch: int
    port_ptr: Int
    in_base: int
    dark_slots: int
    circuit_limit: int

    @staticmethod
    def of(generator: Generator, dark_slots: int) -> PortGenerator:
        """Prepare the ports: each server's ports on every switch, both ways or shared by both (half duplex)."""
        problem = generator.problem
        network = problem.network
        if network is None:
            raise ValueError("a plain RCPSP has no ports")
        carried = np.flatnonzero(problem.on_grid & (problem.duration > 0))
        # Only servers that talk have ports here, and no more of them than a server has transfers.
        talking, ends = np.unique(np.concatenate([network.source[carried], network.destination[carried]]), return_inverse=True)
        source, destination = np.zeros(problem.n, np.int32), np.zeros(problem.n, np.int32)
        source[carried], destination[carried] = ends[:len(carried)], ends[len(carried):]
        outs = np.bincount(source[carried], minlength=len(talking))
        ins = np.bincount(destination[carried], minlength=len(talking))
        k = min(network.ports_on_switch, max(1, int((outs + ins).max(initial=0))))
        per_server = network.switches * k
        _refuse_many_ports(int((outs + ins).sum()) * per_server)
        room = np.repeat(outs + ins, per_server) if network.half_duplex else np.concatenate(
            [np.repeat(outs, per_server), np.repeat(ins, per_server)])
        pointer = np.zeros(len(room) + 1, np.int64)
        np.cumsum(room, out=pointer[1:])
        in_base = 0 if network.half_duplex else len(talking) * per_server
        most = network.servers * network.ports_on_switch // (2 if network.half_duplex else 1)
        limit = network.circuits_per_switch if network.circuits_per_switch < most else 0
        return PortGenerator(generator, network, source, destination, k, pointer, in_base, dark_slots, limit)

    def serially(self, rank: Int32, source: str, backwards: bool = False) -> Booked:
        """Return the serial schedule by ``rank``; backwards, times count from the end."""
        p, g, net = self.generator.problem, self.generator, self.network
        pred_ptr, pred_idx, succ_ptr, succ_idx = p.pred_ptr, p.pred_idx, p.succ_ptr, p.succ_idx
        ends = (self.source, self.destination)
        if backwards:
            pred_ptr, pred_idx, succ_ptr, succ_idx = succ_ptr, succ_idx, pred_ptr, pred_idx
        horizon = g.horizon_slots + 4 * self.dark_slots
        while True:
            start, makespan, switch, out_port, in_port = serial_on_ports(
                rank, pred_ptr, pred_idx, succ_ptr, succ_idx, p.duration, p.on_grid, p.ticks_per_slot, p.device, g.device_ptr,
                *ends, net.switches, self.ports_on_switch, net.half_duplex, self.port_ptr, len(self.port_ptr) - 1, self.in_base,
                self.dark_slots, self.circuit_limit, horizon)
            if makespan >= 0:
                break
            horizon *= 2
        booking = self._booking(start, switch, out_port, in_port)
        changes = 0 if backwards else int(changed_rows(booking, net).sum())
        return Booked(start, makespan, booking, changes, source)

    def _booking(self, start: Int, switch: Int32, out_port: Int32, in_port: Int32) -> Booking:
        p, k = self.generator.problem, self.ports_on_switch
        node = np.flatnonzero(switch >= 0).astype(np.int32)
        first = start[node] // p.ticks_per_slot
        return Booking(node, switch[node], out_port[node] % k, (in_port[node] - self.in_base) % k, first,
                       first + p.duration[node] // p.ticks_per_slot)

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

