"""The one door to all algorithms."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from topox_core.errors import InputError
from topox_core.runs.stopping import Stop, never
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.algorithms.extended import ignore
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import OnMoment, Round, TdmSettings

# What each setting may be, both ends in.
LIMITS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "time_limit_s": (0.0, 86_400.0),
    "starts": (0, 10_000),
    "steps": (0, 100_000_000),
}


def solve(
    jobs: Jobs, settings: TdmSettings, stop: Stop = never, on_moment: OnMoment = ignore
) -> Round:
    """Return the round of one algorithm.

    Parameters
    ----------
    stop
        Asked now and then; once it is true the best round so far is returned.
    on_moment
        Told of every better round and bound.

    Raises
    ------
    InputError
        If there is no such algorithm, a setting is out of range, a limit of the algorithm is
        passed, or ports are too few for the pairs that must talk.
    """
    check(settings)
    began = time.perf_counter()
    found = ALGORITHMS[settings.algorithm].run(jobs, settings, stop, on_moment)
    return replace(found, wall_s=time.perf_counter() - began)


def check(settings: TdmSettings) -> None:
    """Raise an :class:`InputError` that names the setting if one is out of range."""
    if settings.algorithm not in ALGORITHMS:
        raise InputError(
            f"must be one of {', '.join(ALGORITHMS)} (got {settings.algorithm!r})",
            file="settings",
            field="algorithm",
        )
    for field, (least, most) in LIMITS.items():
        value = getattr(settings, field)
        if not (math.isfinite(value) and least <= value <= most):
            raise InputError(
                f"must be from {least:,} to {most:,} (got {value:,})", file="settings", field=field
            )
