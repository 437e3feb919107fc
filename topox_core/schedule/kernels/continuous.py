"""Serial schedule generation that books real ports: a transfer stays on one switch, a changed port is dark.

Ports are numbered out-ports first: ``(server * switches + switch) * k + port``; in-ports follow
(full duplex) or are the same ports (half duplex, one way at a time). Each port keeps its bookings
sorted by start: first slot, end slot, and the circuit it holds (the port at the other end, and
which way). Between bookings of different circuits lie at least ``dark`` slots. What a port holds
when the iteration begins is what the one before has left there; if that is nothing, its first
circuit stands already.
"""

from typing import NamedTuple

import numpy as np

from topox_core.compiled import compiled
from topox_core.schedule.kernels.serial import (
    CIRCUIT,
    END,
    FAR,
    FIRST,
    NOTHING,
    TASK,
    earliest_on_port,
    ended_by,
    hold_device,
    insert,
    ready_at,
)
from topox_core.schedule.kernels.tasks import Tasks
from topox_core.schedule.problem import Int, Int32


class Before(NamedTuple):
    """What each port holds when the iteration begins, and since which slot, which is not above 0.

    ``repeats`` says that it is to hold that again at the end. A port that holds nothing is free
    since slot -1.
    """

    held: Int
    free: Int
    repeats: bool


@compiled
def nothing_before(ports: int, repeats: bool) -> Before:
    """Return ports that hold nothing."""
    return Before(np.full(ports, NOTHING), np.full(ports, -1), repeats)


@compiled
def held_before(
    booked: Int, base: int, count: int, start: int, begins: tuple[int, int]
) -> tuple[int, int]:
    """Return (circuit, end slot) of a port's last booking that ends by ``start``, or what it held at first."""
    ended = ended_by(booked, base, count, start)
    if ended == 0:
        return begins
    return booked[CIRCUIT, base + ended - 1], booked[END, base + ended - 1]


@compiled
def room_on_switch(
    carried: np.ndarray, switch: int, start: int, slots: int, dark: int, limit: int
) -> int:
    """Return ``start`` if eq. 7 leaves room for one more circuit from its set-up on, else the next slot to try."""
    if start + slots > carried.shape[1]:
        return start  # past the horizon: the caller asks for a longer one
    u = start + slots - 1
    while u >= max(0, start - dark):
        if carried[switch, u] >= limit:
            return u + 1 + dark
        u -= 1
    return start


class Ports(NamedTuple):
    """The ports of a network; the ends of transfers in the numbering of the talking servers.

    ``port_ptr`` says where a port's bookings begin; ``limit`` circuits a switch carries at once
    (eq. 7), dark ones included, 0 where it cannot bind.
    """

    source: Int32
    destination: Int32
    switches: int
    k: int
    half: bool
    port_ptr: Int
    in_base: int
    dark: int
    limit: int


@compiled
def choose_ports(
    transfer: int,
    start: int,
    slots: int,
    ports: Ports,
    before: Before,
    booked: Int,
    count: Int32,
    carried: Int32,
) -> tuple[int, int, int, int]:
    """Return (slot, switch, out-port, in-port) of the earliest start of a transfer from slot ``start`` on.

    Ties go to ports that hold this very circuit already, then to the tightest fit. ``count`` says
    how many bookings a port has; ``carried`` how many circuits a switch carries in each slot.
    """
    x, y = ports.source[transfer], ports.destination[transfer]
    k, dark, limit, base = ports.k, ports.dark, ports.limit, ports.port_ptr
    best, best_switch, best_out, best_in = FAR, -1, -1, -1
    best_change, best_idle = 3, FAR
    way = 1 if ports.half else 0
    for r in range(ports.switches):
        fresh_out = False
        for a in range(k):
            out_port = (x * ports.switches + r) * k + a
            at_out = base[out_port]
            of_out = before.held[out_port], before.free[out_port]
            if (
                count[out_port] == 0 and of_out[0] == NOTHING
            ):  # unused ports are all alike: one of them is enough
                if fresh_out:
                    continue
                fresh_out = True
            elif best < FAR:
                alone = earliest_on_port(
                    booked, at_out, count[out_port], start, slots, NOTHING, 0, of_out
                )
                if alone > best:
                    continue
            fresh_in = False
            for b in range(k):
                in_port = ports.in_base + (y * ports.switches + r) * k + b
                at_in = base[in_port]
                of_in = before.held[in_port], before.free[in_port]
                if count[in_port] == 0 and of_in[0] == NOTHING:
                    if fresh_in:
                        continue
                    fresh_in = True
                held_out, held_in = 2 * in_port, 2 * out_port + way
                s = start
                while True:
                    known = s
                    s = earliest_on_port(
                        booked, at_out, count[out_port], s, slots, held_out, dark, of_out
                    )
                    s = earliest_on_port(
                        booked, at_in, count[in_port], s, slots, held_in, dark, of_in
                    )
                    if limit > 0:
                        s = room_on_switch(carried, r, s, slots, dark, limit)
                    if s == known or s > best:
                        break
                if s > best:
                    continue
                was_out, free_out = held_before(booked, at_out, count[out_port], s, of_out)
                was_in, free_in = held_before(booked, at_in, count[in_port], s, of_in)
                change = 2
                if was_out == held_out and was_in == held_in:
                    change = 0
                elif was_out < 0 and was_in < 0:
                    change = 1
                idle = 2 * s - free_out - free_in
                if s < best or change < best_change or (change == best_change and idle < best_idle):
                    best, best_switch, best_out, best_in = s, r, out_port, in_port
                    best_change, best_idle = change, idle
    return best, best_switch, best_out, best_in


@compiled
def changes(base: Int, count: Int32, booked: Int, tasks: int, repeats: bool) -> int:
    """Return for how many of the ``tasks`` a circuit had to be set up: an end of theirs held another one before.

    Where the iteration repeats, the last circuit of a port is before its first; else that stands
    already.
    """
    changed = np.zeros(tasks, np.bool_)
    for p in range(len(count)):
        first, last = base[p], base[p] + count[p] - 1
        held = booked[CIRCUIT, last if repeats else first] if count[p] > 0 else NOTHING
        for i in range(first, last + 1):
            if booked[CIRCUIT, i] != held:
                changed[booked[TASK, i]] = True
            held = booked[CIRCUIT, i]
    return int(changed.sum())


@compiled
def serial_on_ports(
    sequence: Int32, tasks: Tasks, ports: Ports, before: Before, horizon: int
) -> tuple[Int, int, Int32, Int32, Int32, int, Before]:
    """Return (start ticks, makespan, switch, out-port, in-port, changes, what ports hold afterwards).

    Every transfer is on ports of its own. Where the iteration repeats, the makespan is the time to
    the next one, in which each port that ends with another circuit than it began with comes back.
    Makespan -1 if ``horizon`` slots do not suffice (used only where eq. 7 binds).
    """
    # Taken apart here once: handing so large a record on to a function for every task would cost
    # more than the work itself.
    duration, slot, on_grid = tasks.duration, tasks.slot, tasks.on_grid
    ptr, row, device_ptr = tasks.ptr, tasks.row, tasks.device_ptr
    pred_ptr, pred_idx = tasks.pred_ptr, tasks.pred_idx
    base, dark, limit = ports.port_ptr, ports.dark, ports.limit
    n, first_device = len(sequence), len(tasks.capacity) - len(device_ptr) + 1
    end = np.zeros(n, np.int64)
    switch_of = np.full(n, -1, np.int32)
    out_of, in_of = switch_of.copy(), switch_of.copy()
    on_device = np.zeros((4, device_ptr[-1]), np.int64)
    held = np.zeros(len(device_ptr) - 1, np.int32)
    booked = np.zeros((4, base[-1]), np.int64)
    count = np.zeros(len(base) - 1, np.int32)
    carried = np.zeros((ports.switches, horizon if limit > 0 else 0), np.int32)
    way = 1 if ports.half else 0
    makespan = 0
    for i in range(n):
        j = sequence[i]
        t = ready_at(j, end, pred_ptr, pred_idx)
        if on_grid[j]:
            s, slots = -(-t // slot), duration[j] // slot
            if slots > 0:
                s, r, a, b = choose_ports(j, s, slots, ports, before, booked, count, carried)
                if limit > 0:
                    if s + slots > horizon:
                        return end, -1, switch_of, out_of, in_of, 0, before
                    for u in range(max(0, s - dark), s + slots):
                        carried[r, u] += 1
                insert(booked, base[a], count[a], s, slots, 2 * b, j)
                count[a] += 1
                insert(booked, base[b], count[b], s, slots, 2 * a + way, j)
                count[b] += 1
                switch_of[j], out_of[j], in_of[j] = r, a, b
            t = s * slot
        elif duration[j] > 0 and ptr[j + 1] > ptr[j]:
            d = row[ptr[j]] - first_device
            t = hold_device(on_device, held, d, device_ptr[d], t, duration[j])
        end[j] = t + duration[j]
        makespan = max(makespan, end[j])
    start = end - duration
    changed = changes(base, count, booked, n, before.repeats)
    if not before.repeats:
        return start, makespan, switch_of, out_of, in_of, changed, before
    after = nothing_before(len(count), True)
    for p in range(len(count)):
        if count[p] > 0:
            last = base[p] + count[p] - 1
            after.held[p], after.free[p] = booked[CIRCUIT, last], booked[END, last]
            if booked[CIRCUIT, last] != booked[CIRCUIT, base[p]]:
                back = booked[END, last] + dark - booked[FIRST, base[p]]
                makespan = max(makespan, back * slot)
    after.free[:] -= np.where(count > 0, makespan // slot, 0)  # on the clock of the next iteration
    return start, makespan, switch_of, out_of, in_of, changed, after
