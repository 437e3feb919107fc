"""The one entry point to all algorithms."""

from __future__ import annotations

import math
from dataclasses import replace

from topox_core.errors import wrong_setting
from topox_core.io.ranges import check_one_of
from topox_core.runs.stopping import Stop, never
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import OnRoundTrace, Round, TdmSettings
from topox_core.tdm.search import Search

# Range of each setting, both ends in.
LIMITS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "time_limit_s": (0.0, 86_400.0),
    "starts": (0, 10_000),
    "steps": (0, 100_000_000),
}


def solve(
    jobs: Jobs, settings: TdmSettings, stop: Stop = never, on_trace: OnRoundTrace | None = None
) -> Round:
    """Return the round of the algorithm that the settings name.

    Parameters
    ----------
    stop
        Stop criterion; once it is true the best round so far is returned.
    on_trace
        Called with every better round and bound.

    Raises
    ------
    TooFewPortsError
        If ports are too few for the pairs that must talk.
    InputError
        If there is no such algorithm, a setting is out of range, or a limit of the algorithm is
        passed.
    """
    check(settings)
    search = Search(jobs, settings, stop, on_trace)
    answer = ALGORITHMS[settings.algorithm].run(search)
    return replace(answer, wall_s=search.elapsed_s)


def check(settings: TdmSettings) -> None:
    """Raise an :class:`InputError` that names the setting if one is out of range."""
    check_one_of(settings.algorithm, ALGORITHMS, file="settings", field="algorithm")
    for field, (least, most) in LIMITS.items():
        value = getattr(settings, field)
        if not (math.isfinite(value) and least <= value <= most):
            raise wrong_setting(field, f"must be from {least:,} to {most:,} (got {value:,})")
