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


class Orders(NamedTuple):
    """Who comes before whom: a linear extension of all orders, and each node's predecessor in each (-1: none).

    ``before_out``, ``before_in`` and ``before_place`` may go :data:`AROUND` the clock. ``changed`` says
    that one of a transfer's two ports held another circuit before.
    """

    sequence: Int32
    before_device: Int32
    before_out: Int32
    before_in: Int32
    before_place: Int32
    changed: NDArray[np.bool_]


class Holders(NamedTuple):
    """What each node holds while it runs, -1 for nothing: a device, an out-port and an in-port, a switch.

    Half-duplex ports have one number for both ways.
    """

    device: Int32
    out_port: Int32
    in_port: Int32
    switch: Int32


class Places(NamedTuple):
    """Circuits that a switch carries at once (eq. 7), 0 where it cannot bind; planned slots, dark ones of a change."""

    switches: int
    limit: int
    dark: int
    first: Int
    end: Int


@compiled
def orders_of(sequence: Int32, holders: Holders, places: Places) -> Orders:
    """Return the orders of a plan whose nodes run in ``sequence`` (a node of no length holds nothing)."""
    n = len(sequence)
    nobody = np.full(n, -1, np.int32)
    orders = Orders(
        sequence, nobody, nobody.copy(), nobody.copy(), nobody.copy(), np.zeros(n, np.bool_)
    )
    last_device = np.full(holders.device.max() + 1 if n else 0, -1, np.int32)
    ports = max(holders.out_port.max(), holders.in_port.max()) + 1 if n else 0
    last_port = np.full(ports, -1, np.int32)
    for i in range(n):
        j = sequence[i]
        d, a, b = holders.device[j], holders.out_port[j], holders.in_port[j]
        if d >= 0:
            orders.before_device[j] = last_device[d]
            last_device[d] = j
        if a >= 0:
            for side in range(2):
                before = last_port[a if side == 0 else b]
                if side == 0:
                    orders.before_out[j] = before
                else:
                    orders.before_in[j] = before
                if before >= 0 and (holders.out_port[before] != a or holders.in_port[before] != b):
                    orders.changed[j] = True
            last_port[a], last_port[b] = j, j
    if places.limit > 0:
        _order_on_switches(orders, holders, places)
    return orders


@compiled
def _order_on_switches(orders: Orders, holders: Holders, places: Places) -> None:
    """Fill ``before_place``: by set-up, each circuit takes the place left last among those free by then.

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
        orders.before_place[j] = last[best]
        free[best], last[best] = places.end[j], j


@compiled
def around(orders: Orders, holders: Holders) -> Orders:
    """Return the orders of an iteration that repeats: who is first at a port or place follows who is last there.

    A place that changes hands between two iterations goes to whoever takes it first in the next one.
    """
    n = len(orders.sequence)
    before = (orders.before_out.copy(), orders.before_in.copy(), orders.before_place.copy())
    ports = max(holders.out_port.max(), holders.in_port.max()) + 1 if n else 0
    last, chain = np.full(ports, NOBODY, np.int32), np.arange(n)
    last_of_chain = np.arange(n)
    for i in range(n):
        j = orders.sequence[i]
        if holders.out_port[j] >= 0:
            last[holders.out_port[j]], last[holders.in_port[j]] = j, j
            if before[2][j] >= 0:
                chain[j] = chain[before[2][j]]
            last_of_chain[chain[j]] = j
    changed = np.zeros(n, np.bool_)
    for j in range(n):
        a, b = holders.out_port[j], holders.in_port[j]
        if a < 0:
            continue
        for side in range(2):
            known = before[side][j]
            if known < 0:
                known = last[a if side == 0 else b]
                before[side][j] = AROUND - known
            if holders.out_port[known] != a or holders.in_port[known] != b:
                changed[j] = True
        if before[2][j] < 0 and last_of_chain[chain[j]] != j:
            before[2][j] = AROUND - last_of_chain[chain[j]]
    return Orders(orders.sequence, orders.before_device, before[0], before[1], before[2], changed)


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
    for i in range(len(orders.sequence)):
        j = orders.sequence[i]
        t = _end_before(start, length, ended, orders.before_device[j], 0.0)
        for e in range(pred_ptr[j], pred_ptr[j + 1]):
            t = max(t, start[pred_idx[e]] + length[pred_idx[e]])
        idle = _end_before(start, length, ended, orders.before_out[j], -np.inf)
        idle = _end_before(start, length, ended, orders.before_in[j], idle)
        idle = _end_before(start, length, ended, orders.before_place[j], idle)
        t = max(t, idle + (dark if orders.changed[j] else 0.0))
        if slot > 0 and on_grid[j]:
            # Less than rounding adds to a multiple; whole ticks below 1e12 stay as they are.
            t = np.ceil(t / slot * (1.0 - 1e-12)) * slot
        start[j] = t
    return start
