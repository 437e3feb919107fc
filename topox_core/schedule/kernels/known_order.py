"""Orders of a plan at every device, port and place on a switch, and the earliest starts that keep them.

Where the iteration repeats, the first user of a port or a place follows its last user in the
iteration before: ``AROUND - node`` stands for that node there.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.problem import Int, Int32

Float = NDArray[np.float64]
NOBODY, AROUND = -1, -2
OUT, IN, PLACE, DEVICE = range(4)  # rows of ``Orders.before``; of them may go around:
CIRCUIT = 3  # the first so many


class Orders(NamedTuple):
    """Who comes before whom: a linear extension of all orders, and each node's predecessor in each (-1: none).

    ``before`` has a row for the out-port, the in-port, the place on a switch and the device; all but
    the last may go :data:`AROUND` the clock. ``changed`` says that one of a transfer's two ports held
    another circuit before.
    """

    sequence: Int32
    before: Int32
    changed: NDArray[np.bool_]


class Holders(NamedTuple):
    """What each node holds while it runs, -1 for nothing: a device, an out-port and an in-port, a switch.

    Half-duplex ports have one number for both ways.
    """

    device: Int32
    port: Int32
    switch: Int32


class Places(NamedTuple):
    """Circuits that a switch carries at once (eq. 7), 0 where it cannot bind; planned slots, dark ones of a change."""

    switches: int
    limit: int
    dark: int
    first: Int
    end: Int


@compiled
def nobody_before(sequence: Int32) -> Orders:
    """Return the orders of nodes that hold nothing."""
    n = len(sequence)
    return Orders(sequence, np.full((4, n), NOBODY, np.int32), np.zeros(n, np.bool_))


@compiled
def orders_of(sequence: Int32, holders: Holders, places: Places) -> Orders:
    """Return the orders of a plan whose nodes run in ``sequence`` (a node of no length holds nothing)."""
    orders = nobody_before(sequence)
    last_device = np.full(holders.device.max() + 1 if len(sequence) else 0, NOBODY, np.int32)
    last_port = np.full(holders.port.max() + 1 if len(sequence) else 0, NOBODY, np.int32)
    for j in sequence:
        d = holders.device[j]
        if d >= 0:
            orders.before[DEVICE, j] = last_device[d]
            last_device[d] = j
        for side in (OUT, IN):
            port = holders.port[side, j]
            if port >= 0:
                known = orders.before[side, j] = last_port[port]
                if known >= 0 and _differ(holders, known, j):
                    orders.changed[j] = True
                last_port[port] = j
    if places.limit > 0:
        _order_on_switches(orders, holders, places)
    return orders


@compiled
def _differ(holders: Holders, i: int, j: int) -> bool:
    """Return whether two transfers need different circuits."""
    port = holders.port
    return bool(port[OUT, i] != port[OUT, j] or port[IN, i] != port[IN, j])


@compiled
def _order_on_switches(orders: Orders, holders: Holders, places: Places) -> None:
    """Fill the order of places: by set-up, each circuit takes the place left last among those free by then.

    If none is free (a plan that keeps eq. 7 has always one), it waits for the place freed first.
    """
    free = np.zeros(places.switches * places.limit, np.int64)
    last = np.full(places.switches * places.limit, -1, np.int32)
    setup = places.first - places.dark * orders.changed
    by_setup = np.argsort(setup[orders.sequence], kind="mergesort")
    for i in range(len(by_setup)):
        j = orders.sequence[by_setup[i]]
        switch = holders.switch[j]
        if switch < 0:
            continue
        base = switch * places.limit
        best, soonest = -1, base
        for p in range(base, base + places.limit):
            if free[p] <= setup[j] and (best < 0 or free[p] > free[best]):
                best = p
            if free[p] < free[soonest]:
                soonest = p
        if best < 0:
            best = soonest
        orders.before[PLACE, j] = last[best]
        free[best], last[best] = places.end[j], j


@compiled
def around(orders: Orders, holders: Holders) -> Orders:
    """Return the orders of an iteration that repeats: who is first at a port or place follows who is last there.

    A place that changes hands between two iterations goes to whoever takes it first in the next one.
    """
    n, before = len(orders.sequence), orders.before.copy()
    last = np.full(holders.port.max() + 1 if n else 0, NOBODY, np.int32)
    chain, last_of_chain = np.arange(n), np.arange(n)
    for j in orders.sequence:
        if holders.port[OUT, j] >= 0:
            last[holders.port[OUT, j]], last[holders.port[IN, j]] = j, j
            if before[PLACE, j] >= 0:
                chain[j] = chain[before[PLACE, j]]
            last_of_chain[chain[j]] = j
    changed = np.zeros(n, np.bool_)
    for j in range(n):
        if holders.port[OUT, j] < 0:
            continue
        for side in (OUT, IN):
            known = before[side, j]
            if known < 0:
                known = last[holders.port[side, j]]
                before[side, j] = AROUND - known
            if _differ(holders, known, j):
                changed[j] = True
        if before[PLACE, j] < 0 and last_of_chain[chain[j]] != j:
            before[PLACE, j] = AROUND - last_of_chain[chain[j]]
    return Orders(orders.sequence, before, changed)


@compiled
def _end_before(start: Float, length: Float, ended: Float, node: int, latest: float) -> float:
    """Return the later of a time and a node's end, in this iteration or the one before."""
    if node == NOBODY:
        return latest
    end: float = start[node] + length[node] if node >= 0 else ended[AROUND - node]
    return max(latest, end)


@compiled
def in_known_order(
    pred_ptr: Int32,
    pred_idx: Int32,
    length: Float,
    orders: Orders,
    dark: float,
    slot: float,
    on_grid: NDArray[np.bool_],
    ended: Float,
) -> Float:
    """Return the earliest starts under which everyone keeps ports, device and turn, each circuit requested beforehand.

    A port that must change does so from the end of its last use on: the transfer starts when it is
    ready, but not before that end plus ``dark``. If only one of its two ports changes circuit, the
    other one was left before that port's last use, or never used, so that one delay after the later
    end is the delay of each port alone. With a ``slot`` above 0 tasks on the grid start on a
    multiple of it. Times are whole ticks then, held as floats, which are exact up to 2**53.
    ``ended`` is when each node ended in the iteration before, on this one's clock.
    """
    start = np.zeros(len(length))
    for j in orders.sequence:
        t = _end_before(start, length, ended, orders.before[DEVICE, j], 0.0)
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            t = max(t, start[pred_idx[e]] + length[pred_idx[e]])
        idle = -np.inf
        for k in range(CIRCUIT):
            idle = _end_before(start, length, ended, orders.before[k, j], idle)
        t = max(t, idle + (dark if orders.changed[j] else 0.0))
        if slot > 0 and on_grid[j]:
            # Less than rounding adds to a multiple; whole ticks below 1e12 stay as they are.
            t = np.ceil(t / slot * (1.0 - 1e-12)) * slot
        start[j] = t
    return start
