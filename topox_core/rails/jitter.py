"""Passes that take a little longer or shorter from iteration to iteration, as measured ones do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topox_core.errors import wrong_setting
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.iteration import COMPUTE, RailIteration

MOST = 1.0


def pass_factors(iteration: RailIteration, spread: float, seed: int) -> FloatArray:
    """Return of each node the factor on its computing time: one draw for each pass of each rank.

    Log-normal with mean 1 and standard deviation ``spread`` of the logarithm; communications have 1.
    The same seed gives the same factors.

    Raises
    ------
    InputError
        If ``spread`` is not from 0 to ``MOST``.
    """
    if not 0 <= spread <= MOST:
        raise wrong_setting("spread", f"must be from 0 to {MOST:g} (got {spread:g})")
    factors = np.ones(len(iteration))
    computes = np.flatnonzero(iteration.kind == COMPUTE)
    passes = np.stack((iteration.rank, iteration.work, iteration.microbatch))[:, computes]
    unique, of_node = np.unique(passes, axis=1, return_inverse=True)
    draws = np.random.default_rng(seed).standard_normal(unique.shape[1])
    factors[computes] = np.exp(spread * draws - spread**2 / 2)[of_node.ravel()]
    return factors


def jittered(iteration: RailIteration, spread: float, seed: int) -> RailIteration:
    """Return the iteration with every pass's computing times scaled by :func:`pass_factors`."""
    return replace(
        iteration, duration_ms=iteration.duration_ms * pass_factors(iteration, spread, seed)
    )
