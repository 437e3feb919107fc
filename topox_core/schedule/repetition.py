"""The iteration that repeats: earliest starts under orders whose first users wait for the last ones of the iteration before.

One iteration after the other begins when the last task of the one before has ended (a barrier).
Start times are sums and maxima, so that they come back after a few iterations, all of them
shifted by one period; the period is the largest mean of a cycle of the orders (max-plus algebra:
Baccelli, Cohen, Olsder and Quadrat, *Synchronization and Linearity*, 1992, section 3.7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.model.transfer_graph import FloatArray, IntArray
from topox_core.schedule.kernels.known_order import AROUND, Orders, in_known_order

# Iterations that may pass before circuits come back; those that do not by then are held back. Of
# 2,000 random graphs of 25 tasks 1,954 took at most three, all but two at most 18.
MAX_ITERATIONS = 24
ALIKE = 1e-12  # relative: times that differ by less are added up in another order


def starts_in_order(
    pred_ptr: IntArray,
    pred_idx: IntArray,
    length: FloatArray,
    orders: Orders,
    dark: float,
    slot: float,
    on_grid: NDArray[np.bool_],
) -> FloatArray:
    """Return the earliest starts that keep all orders, of the repeated iteration where those go around the clock.

    Parameters are those of :func:`~topox_core.schedule.kernels.known_order.in_known_order`. The
    last end is the period, since the first users of ports that change wait at the beginning for
    what does not fit at the end.
    """

    def following(ended: FloatArray) -> FloatArray:
        return in_known_order(pred_ptr, pred_idx, length, orders, dark, slot, on_grid, ended)

    ended = np.full(len(length), -np.inf)
    start = following(ended)
    before = np.concatenate([orders.before_out, orders.before_in, orders.before_place])
    last = np.unique(AROUND - before[before <= AROUND])  # who is waited for around the clock
    if not len(last):
        return start
    begins, ends = [0.0], [ended[last]]
    for _ in range(MAX_ITERATIONS):
        period = float((start + length).max())
        begins.append(begins[-1] + period)
        ended = start + length - period
        ends.append(ended[last])
        late = [np.maximum(one, -dark) for one in ends]
        same = [np.allclose(late[-1], one, ALIKE, ALIKE * period) for one in late[:-1]]
        if same[-1]:
            return start
        if any(same):
            break
        start = following(ended)
    else:
        return _held_back(start, length, orders, dark, slot)
    # A cycle of several iterations: the latest of each end, less what has passed, repeats by itself.
    first = same.index(True)
    turns = len(ends) - 1 - first
    mean = (begins[-1] - begins[first]) / turns
    shift = [begins[first + k] - begins[first] - k * mean for k in range(turns)]
    ended[last] = np.max([ends[first + k] + shift[k] for k in range(turns)], axis=0) - max(shift)
    return _held_back(following(ended), length, orders, dark, slot)


def _held_back(
    start: FloatArray, length: FloatArray, orders: Orders, dark: float, slot: float
) -> FloatArray:
    """Return the starts shifted by what the first users of ports lack if each iteration is like this one."""
    end = start + length
    ended = end - end.max()
    lack = 0.0
    for before in (orders.before_out, orders.before_in, orders.before_place):
        first = np.flatnonzero(before <= AROUND)
        needed = ended[AROUND - before[first]] + np.where(orders.changed[first], dark, 0.0)
        lack = max(lack, float((needed - start[first]).max(initial=0.0)))
    if lack <= ALIKE * float(end.max()):
        return start
    return start + (np.ceil(lack / slot) * slot if slot > 0 else lack)
