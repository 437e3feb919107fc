"""Compute times scaled so that an undisturbed iteration lasts as long as a measured one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import Rail, RailIteration
from topox_core.rails.presets import Preset
from topox_core.rails.timing import durations_ms
from topox_core.training.iteration import scale_to

CLOSE = 1e-9


def calibrated(folded: RailIteration, scales: NDArray[np.bool_], preset: Preset) -> RailIteration:
    """Return the iteration with its passes scaled so that it lasts ``preset.iteration_ms``.

    The rail is the electrical one of the preset's NIC, as where iterations were measured. The
    iteration's length is a convex, piecewise linear function of the scale.

    Raises
    ------
    InputError
        If the communications alone last longer.
    """
    wanted = preset.iteration_ms or 0.0
    rail = Rail(nic_gbps=preset.nic_gbps, optical=False)
    lasting = durations_ms(folded, rail)

    def length_ms(factor: float) -> float:
        return Simulation(folded, rail, np.where(scales, lasting * factor, lasting)).undisturbed_ms

    low, least = 0.0, length_ms(0.0)
    if least >= wanted:
        raise InputError(
            f"must be more than the {least:,.6g} ms that everything but the passes' computing lasts "
            f"(got {wanted:g})",
            file=f"preset {preset.name}",
            field="iteration_ms",
        )
    high = wanted / float(lasting[scales].max())
    factor = scale_to(length_ms, wanted, (low, high), CLOSE)
    return replace(
        folded, duration_ms=np.where(scales, folded.duration_ms * factor, folded.duration_ms)
    )
