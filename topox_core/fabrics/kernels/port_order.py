"""Starts when every port keeps a given order: devices and places on switches are first come, first served."""

from typing import NamedTuple

import numpy as np

from topox_core.compiled import compiled
from topox_core.fabrics.kernels.circuit_requests import place_on_switch
from topox_core.fabrics.kernels.state import earlier
from topox_core.model.heap import pop, push
from topox_core.model.transfer_graph import FloatArray, IntArray
from topox_core.schedule.kernels.known_order import Orders


class OrderedTasks(NamedTuple):
    """Of each task: predecessors, successors, time, and what it holds (-1: nothing): device, ports, switch."""

    pred_ptr: IntArray
    succ_ptr: IntArray
    succ_idx: IntArray
    length: FloatArray
    device: IntArray
    out_port: IntArray
    in_port: IntArray
    switch: IntArray


class _Waiting(NamedTuple):
    """Of each task: for how many others it waits, and until when."""

    others: IntArray
    ready: FloatArray


@compiled
def _next_users(tasks: OrderedTasks, orders: Orders) -> tuple[IntArray, IntArray]:
    """Return who comes next at the out-port and at the in-port of each transfer, -1 for nobody.

    A half-duplex port may be left as an out-port and taken as an in-port.
    """
    n = len(tasks.length)
    next_out, next_in = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for j in range(n):
        for side in range(2):
            before = orders.before_out[j] if side == 0 else orders.before_in[j]
            port = tasks.out_port[j] if side == 0 else tasks.in_port[j]
            if before >= 0:
                if tasks.out_port[before] == port:
                    next_out[before] = j
                else:
                    next_in[before] = j
    return next_out, next_in


@compiled
def _released(waiting: _Waiting, j: int, ready: float) -> bool:
    """Note that one of those that a task waits for is done by ``ready``; True if it was the last."""
    waiting.ready[j] = max(waiting.ready[j], ready)
    waiting.others[j] -= 1
    return bool(waiting.others[j] == 0)


@compiled
def with_port_orders(
    tasks: OrderedTasks, orders: Orders, switches: int, limit: int, dark: float
) -> tuple[FloatArray, Orders]:
    """Return the starts, and all orders: those of the ports as given, devices and places as they were served.

    A transfer may start once its predecessors have ended, and the last users of its two ports, with
    a set-up after the later of these if a port changes circuit. Tasks are taken by that time, then
    by position, so that each order that comes out runs along ``sequence``.
    """
    n, length, dark_of = len(tasks.length), tasks.length, dark * orders.changed
    start, sequence = np.zeros(n), np.empty(n, np.int32)
    before_device, before_place = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    next_out, next_in = _next_users(tasks, orders)
    waiting = _Waiting(np.diff(tasks.pred_ptr).astype(np.int32), np.zeros(n))
    last_device = np.full(tasks.device.max() + 1 if n else 0, -1, np.int32)
    place_free = np.zeros(switches * limit)
    place_last = np.full(switches * limit, -1, np.int32)
    stack, batch = np.empty(n, np.int32), np.empty(n, np.int32)
    keys, items = np.empty(n), np.empty(n, np.int32)
    heaped, stacked, done = 0, 0, 0
    for j in range(n):
        waiting.others[j] += int(orders.before_out[j] >= 0) + int(orders.before_in[j] >= 0)
        if waiting.others[j] == 0:
            stack[stacked] = j
            stacked += 1
    while True:
        size = 0
        while stacked > 0:  # a task of no length ends at once, everyone else waits for the choice
            stacked -= 1
            j = stack[stacked]
            if length[j] > 0:
                heaped = push(keys, items, 0, heaped, waiting.ready[j], j)
            else:
                batch[size] = j
                size += 1
                break
        if size == 0 and heaped > 0:
            now = keys[0]
            while heaped > 0 and not earlier(now, keys[0]):
                batch[size] = pop(keys, items, 0, heaped)
                heaped -= 1
                size += 1
            batch[:size] = np.sort(batch[:size])
        if size == 0:
            break
        for i in range(size):
            j = batch[i]
            time, d, r = waiting.ready[j], tasks.device[j], tasks.switch[j]
            if d >= 0:
                before = last_device[d]
                if before >= 0:
                    time = max(time, start[before] + length[before])
                before_device[j], last_device[d] = before, j
            if r >= 0 and limit > 0:
                turn = time - dark_of[j]
                place, turn = place_on_switch(place_free, r * limit, limit, turn)
                before_place[j], place_last[place] = place_last[place], j
                time = max(time, turn + dark_of[j])
                place_free[place] = time + length[j]
            start[j] = time
            sequence[done] = j
            done += 1
            end = time + length[j]
            for e in range(tasks.succ_ptr[j], tasks.succ_ptr[j + 1]):
                k = tasks.succ_idx[e]
                if _released(waiting, k, end):
                    stack[stacked] = k
                    stacked += 1
            for k in (next_out[j], next_in[j]):
                if k >= 0 and _released(waiting, k, end + dark_of[k]):
                    stack[stacked] = k
                    stacked += 1
    known = Orders(
        sequence, before_device, orders.before_out, orders.before_in, before_place, orders.changed
    )
    return start, known
