"""Rising lower bounds on a linear programme, each of them proved by multipliers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from topox_core.schedule.kernels.primal_dual import (
    Float,
    Iterate,
    LinearProgram,
    proved,
    take_steps,
)

STEPS = 100  # between two looks at what the multipliers prove
RESTART = 0.3  # of all steps so far: after so many the average is the new point
PRIMAL_WEIGHT = 0.1  # to begin with, where times are fractions of the horizon
ROUNDING = 1e-12  # of the sum of all terms' sizes, far above what rounding can add up to


def rising_bounds(given: LinearProgram) -> Iterator[float]:
    """Yield the best bound proved so far, every :data:`STEPS` steps, without end.

    From restart to restart the method goes on from the average of its points and balances primal
    against dual step lengths (Applegate et al., NeurIPS 2021).
    """
    row = np.repeat(np.arange(len(given.least_row)), np.diff(given.row_ptr))
    size = np.abs(given.value)
    step = 1.0 / np.maximum(np.bincount(given.column, size, len(given.cost)), 1e-9)
    row_step = 1.0 / np.maximum(np.bincount(row, size, len(given.least_row)), 1e-9)
    at = Iterate(
        given.least.copy(),
        np.zeros(len(row_step)),
        np.zeros(len(step)),
        np.zeros(len(row_step)),
    )
    begin_x, begin_multiplier = at.x.copy(), at.multiplier.copy()
    best, weight, steps, since = -np.inf, PRIMAL_WEIGHT, 0, 0
    while True:
        take_steps(given, at, step, row_step, weight, STEPS)
        steps, since = steps + STEPS, since + STEPS
        here, average = _bound(given, at.multiplier), _bound(given, at.multiplier_sum / since)
        best = max(best, here, average)
        yield best
        if since < max(2 * STEPS, RESTART * steps):
            continue
        if average > here:
            at.x[:], at.multiplier[:] = at.x_sum / since, at.multiplier_sum / since
        moved = float(np.sqrt(((at.x - begin_x) ** 2 / step).sum()))
        paid = float(np.sqrt(((at.multiplier - begin_multiplier) ** 2 / row_step).sum()))
        if moved > 0 and paid > 0:
            weight = float(np.sqrt(paid / moved * weight))
        begin_x, begin_multiplier = at.x.copy(), at.multiplier.copy()
        at.x_sum[:], at.multiplier_sum[:], since = 0.0, 0.0, 0


def _bound(given: LinearProgram, multiplier: Float) -> float:
    value, size = proved(given, multiplier)
    return value - ROUNDING * size
