"""Linear programmes by first-order steps: a primal-dual gradient method, and what any multipliers prove.

Programmes are: minimise cost x subject to rows x >= least_row and least <= x <= most (Chambolle & Pock
2011; steps by row and column as in Pock & Chambolle, ICCV 2011).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.schedule.problem import Int32

Float = NDArray[np.float64]


class LinearProgram(NamedTuple):
    """Rows in compressed form, each of them at least ``least_row``; every column lies within [least, most]."""

    cost: Float
    least: Float
    most: Float
    least_row: Float
    row_ptr: Int32
    column: Int32
    value: Float


class Iterate(NamedTuple):
    """A point, its multipliers, and the sums of both since the last restart."""

    x: Float
    multiplier: Float
    x_sum: Float
    multiplier_sum: Float


@compiled
def reduced_costs(given: LinearProgram, multiplier: Float, out: Float) -> None:
    """Write cost minus what the rows' multipliers pay for, by column."""
    out[:] = given.cost
    for r in range(len(given.least_row)):
        if multiplier[r] != 0.0:
            for e in range(given.row_ptr[r], given.row_ptr[r + 1]):
                out[given.column[e]] -= given.value[e] * multiplier[r]


@compiled
def take_steps(
    given: LinearProgram, at: Iterate, step: Float, row_step: Float, weight: float, steps: int
) -> None:
    """Take so many primal-dual steps in place; ``weight`` shifts step length from columns to rows."""
    slope, ahead = np.empty(len(at.x)), np.empty(len(at.x))
    for _ in range(steps):
        reduced_costs(given, at.multiplier, slope)
        for j in range(len(at.x)):
            moved = at.x[j] - step[j] / weight * slope[j]
            moved = min(max(moved, given.least[j]), given.most[j])
            ahead[j] = 2.0 * moved - at.x[j]
            at.x[j] = moved
        for r in range(len(at.multiplier)):
            missing = given.least_row[r]
            for e in range(given.row_ptr[r], given.row_ptr[r + 1]):
                missing -= given.value[e] * ahead[given.column[e]]
            at.multiplier[r] = max(0.0, at.multiplier[r] + weight * row_step[r] * missing)
        at.x_sum[:] += at.x
        at.multiplier_sum[:] += at.multiplier


@compiled
def proved(given: LinearProgram, multiplier: Float) -> tuple[float, float]:
    """Return what non-negative multipliers prove of the optimum, whether or not they are the best, and the sum of its terms' sizes.

    Columns within bounds make every choice valid (Neumaier & Shcherbina 2004).
    """
    slope, size = np.abs(given.cost), 0.0
    for r in range(len(given.least_row)):
        size += abs(given.least_row[r] * multiplier[r])
        for e in range(given.row_ptr[r], given.row_ptr[r + 1]):
            slope[given.column[e]] += abs(given.value[e] * multiplier[r])
    for j in range(len(slope)):
        size += slope[j] * max(abs(given.least[j]), abs(given.most[j]))
    reduced_costs(given, multiplier, slope)
    value = 0.0
    for r in range(len(given.least_row)):
        value += given.least_row[r] * multiplier[r]
    for j in range(len(slope)):
        value += slope[j] * (given.least[j] if slope[j] > 0.0 else given.most[j])
    return value, size
