"""First come, first served on circuits that are switched on demand.

A request takes its place at both its ports the moment its transfer is ready. How long earlier
holders of those ports stay is known by then, so its turn is known as well, and one sweep in the
order of readiness decides everything. Where ports and who follows whom on them are given, a transfer
is ready once its ports are, and only devices and places on switches are first come, first served.

Ports are numbered ``(server * switches + switch) * k + port``, out-sides first, in-sides after them
(full duplex) or the same ports (half duplex, one way at a time).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled, compiled_in_place
from topox_core.fabrics.kernels.state import earlier
from topox_core.model.arrays.heap import pop, push
from topox_core.model.transfer_graph import FloatArray, IntArray
from topox_core.schedule.kernels.known_order import (
    DEVICE,
    IN,
    OUT,
    PLACE,
    Orders,
    nobody_before,
)

NEVER = -1e300  # a port that was not used yet
UP, FRESH, CHANGED = 0, 1, 2  # the very circuit stands; both ports unused; a port must change


class RequestTables(NamedTuple):
    """Ports and switches as numbers; ``limit`` circuits per switch at once (eq. 7), 0 where it cannot bind."""

    servers: int
    switches: int
    k: int
    half: bool
    limit: int


class RequestTasks(NamedTuple):
    """Of each task: successors, time, who carries it, and what it is carried by (a device, or a pair of servers).

    ``waits_for`` counts its predecessors, ``lag`` is how long after its end each successor may start at the
    soonest; ``carried`` transfers take circuits, others their ``device`` or -1. ``switch`` and ports are -1
    where they are chosen.
    """

    waits_for: IntArray
    succ_ptr: IntArray
    succ_idx: IntArray
    lag: FloatArray
    length: FloatArray
    carried: NDArray[np.bool_]
    device: IntArray
    devices: int
    source: IntArray
    destination: IntArray
    switch: IntArray
    out_port: IntArray
    in_port: IntArray


class Ports(NamedTuple):
    """Of each port: when its last holder leaves, what circuit it holds, and that last holder.

    A held circuit is 2 * the port at the other end, + 1 at the receiving end of a half-duplex
    circuit.
    """

    free: FloatArray
    held: NDArray[np.int64]
    last: IntArray
    place_free: FloatArray  # of each switch, ``limit`` places for a circuit
    place_last: IntArray


@compiled
def unused(wiring: RequestTables) -> Ports:
    """Return ports that nobody has held yet."""
    total = (1 if wiring.half else 2) * wiring.servers * wiring.switches * wiring.k
    return Ports(
        np.full(total, NEVER),
        np.full(total, -1, np.int64),
        np.full(total, -1, np.int32),
        np.zeros(wiring.switches * wiring.limit),
        np.full(wiring.switches * wiring.limit, -1, np.int32),
    )


@compiled
def passed_on(ports: Ports, period: float) -> Ports:
    """Return the ports as the next iteration finds them, which begins after a period."""
    free = np.where(ports.free == NEVER, NEVER, ports.free - period)
    nobody = np.full(len(free), -1, np.int32)
    place_free, places = ports.place_free - period, np.full(len(ports.place_free), -1, np.int32)
    return Ports(free, ports.held.copy(), nobody, place_free, places)


@compiled_in_place
def place_on_switch(free: FloatArray, base: int, limit: int, turn: float) -> tuple[int, float]:
    """Return (place, turn): of the places free by ``turn`` the one left last, else the first to be free."""
    best, soonest = -1, base
    for i in range(base, base + limit):
        if not earlier(turn, free[i]) and (best < 0 or free[i] > free[best]):
            best = i
        if free[i] < free[soonest]:
            soonest = i
    return (best, turn) if best >= 0 else (soonest, free[soonest])


@compiled_in_place
def first_free(free: FloatArray, base: int, k: int) -> int:
    """Return the port of ``k`` that is or will be free first, the lowest number among equals."""
    best = base
    for i in range(base + 1, base + k):
        if earlier(free[i], free[best]):
            best = i
    return best


@compiled_in_place
def choose(
    x: int, y: int, ready: float, wiring: RequestTables, ports: Ports
) -> tuple[float, int, int, int, int, int]:
    """Return (turn, state, switch, out-port, in-port, place) for a transfer x -> y that is ready.

    The earliest turn wins; then a circuit that stands, ports never used, ports that must change;
    then the ports idle longest; then the lowest number.
    """
    switches, k, limit = wiring.switches, wiring.k, wiring.limit
    in_base = 0 if wiring.half else wiring.servers * switches * k
    way = 1 if wiring.half else 0
    best_turn, best_state, best_idle = ready, CHANGED, ready
    best_switch, best_out, best_in, best_place = -1, -1, -1, -1
    for r in range(switches):
        out_base, into_base = (x * switches + r) * k, in_base + (y * switches + r) * k
        for a in range(out_base, out_base + k + 1):
            if a < out_base + k:  # does the circuit stand on this port?
                out_port, in_port = a, ports.held[a] // 2
                if ports.held[a] % 2 != 0 or in_port < into_base or in_port >= into_base + k:
                    continue
                if ports.held[in_port] != 2 * a + way:
                    continue
                state = UP
            else:
                out_port, in_port = (
                    first_free(ports.free, out_base, k),
                    first_free(ports.free, into_base, k),
                )
                fresh = ports.free[out_port] == NEVER and ports.free[in_port] == NEVER
                state = FRESH if fresh else CHANGED
            idle = max(ports.free[out_port], ports.free[in_port])
            turn, place = max(ready, idle), -1
            if limit > 0:
                place, turn = place_on_switch(ports.place_free, r * limit, limit, turn)
            if best_switch >= 0 and not earlier(turn, best_turn):
                if earlier(best_turn, turn) or state > best_state:
                    continue
                if state == best_state and not earlier(idle, best_idle):
                    continue
            best_turn, best_state, best_idle = turn, state, idle
            best_switch, best_out, best_in, best_place = r, out_port, in_port, place
    return best_turn, best_state, best_switch, best_out, best_in, best_place


class Requests(NamedTuple):
    """What was decided: times, ports, and who came before whom on every device, port and place."""

    start: FloatArray
    switch: IntArray
    out_port: IntArray
    in_port: IntArray
    orders: Orders


@compiled_in_place
def given_ports(
    tasks: RequestTasks, j: int, ready: float, dark: float, wiring: RequestTables, ports: Ports
) -> tuple[float, int, int]:
    """Return (start, state, place) of a transfer on given ports, which are its own and set up by ``ready``."""
    a, b, way = tasks.out_port[j], tasks.in_port[j], 1 if wiring.half else 0
    state = CHANGED
    if ports.held[a] < 0 and ports.held[b] < 0:
        state = FRESH
    elif ports.held[a] == 2 * b and ports.held[b] == 2 * a + way:
        state = UP
    if wiring.limit == 0:
        return ready, state, -1
    set_up, base = dark if state == CHANGED else 0.0, tasks.switch[j] * wiring.limit
    place, turn = place_on_switch(ports.place_free, base, wiring.limit, ready - set_up)
    return max(ready, turn + set_up), state, place


@compiled_in_place
def release(
    tasks: RequestTasks,
    j: int,
    end: float,
    ready: FloatArray,
    waiting: IntArray,
    keys: FloatArray,
    items: IntArray,
    heaped: int,
) -> int:
    """Put on the heap by readiness whoever waited last for a task that ends; return its size."""
    for e in range(tasks.succ_ptr[j], tasks.succ_ptr[j + 1]):
        s = tasks.succ_idx[e]
        ready[s] = max(ready[s], end + tasks.lag[e])
        waiting[s] -= 1
        if waiting[s] == 0:
            heaped = push(keys, items, 0, heaped, ready[s], s)
    return heaped


@compiled
def first_come_first_served(
    tasks: RequestTasks, wiring: RequestTables, dark: float, ports: Ports
) -> Requests:
    """Serve tasks by readiness, then position; a transfer starts ``dark`` after its turn if a port must change.

    ``ports`` are as the iteration finds them, and afterwards as it leaves them.
    """
    length, way = tasks.length, 1 if wiring.half else 0
    n = len(length)
    device_free, device_last = np.zeros(tasks.devices), np.full(tasks.devices, -1, np.int32)
    orders = nobody_before(np.empty(n, np.int32))
    requests = Requests(
        np.zeros(n),
        np.full(n, -1, np.int32),
        np.full(n, -1, np.int32),
        np.full(n, -1, np.int32),
        orders,
    )
    ready = np.zeros(n)
    waiting = tasks.waits_for.copy()
    keys, items, batch = np.empty(n), np.empty(n, np.int32), np.empty(n, np.int32)
    heaped, done = 0, 0
    for j in range(n):
        if waiting[j] == 0:
            heaped = push(keys, items, 0, heaped, 0.0, j)
    while heaped > 0:
        # Who is ready now: a task of no length ends at once, everyone else waits for the choice by
        # position.
        now, size = keys[0], 0
        while heaped > 0 and not earlier(now, keys[0]):
            j = pop(keys, items, 0, heaped)
            heaped -= 1
            if length[j] > 0:
                batch[size] = j
                size += 1
            else:
                requests.start[j], orders.sequence[done] = ready[j], j
                done += 1
                heaped = release(tasks, j, ready[j], ready, waiting, keys, items, heaped)
        batch[:size] = np.sort(batch[:size])
        for i in range(size):
            j = batch[i]
            start = ready[j]
            if tasks.carried[j]:
                switch, out_port, in_port = tasks.switch[j], tasks.out_port[j], tasks.in_port[j]
                if out_port >= 0:
                    start, state, place = given_ports(tasks, j, start, dark, wiring, ports)
                else:
                    start, state, switch, out_port, in_port, place = choose(
                        tasks.source[j], tasks.destination[j], start, wiring, ports
                    )
                    if state == CHANGED:
                        start += dark
                orders.changed[j] = state == CHANGED
                requests.switch[j], requests.out_port[j], requests.in_port[j] = (
                    switch,
                    out_port,
                    in_port,
                )
                orders.before[OUT, j] = ports.last[out_port]
                orders.before[IN, j] = ports.last[in_port]
                ports.free[out_port], ports.free[in_port] = start + length[j], start + length[j]
                ports.held[out_port], ports.held[in_port] = 2 * in_port, 2 * out_port + way
                ports.last[out_port], ports.last[in_port] = j, j
                if place >= 0:
                    orders.before[PLACE, j] = ports.place_last[place]
                    ports.place_free[place], ports.place_last[place] = start + length[j], j
            elif tasks.device[j] >= 0:
                d = tasks.device[j]
                start = max(start, device_free[d])
                orders.before[DEVICE, j] = device_last[d]
                device_free[d], device_last[d] = start + length[j], j
            requests.start[j], orders.sequence[done] = start, j
            done += 1
            end = start + length[j]
            heaped = release(tasks, j, end, ready, waiting, keys, items, heaped)
    return requests
