"""All single flips of a pod group's grouping at once, and when circuits change between two groups."""

from __future__ import annotations

import numpy as np

from topox_core.compiled import compiled
from topox_core.tdm.kernels.stage import BoolArray, Fabric, FloatArray, GroupLoad, IntArray, stage_s

NOBODY_FLIPS = -1


@compiled
def turns(first: IntArray, second: IntArray) -> tuple[bool, bool]:
    """Say whether circuits change when the first group's stages begin, and when the second's do.

    ``first`` and ``second`` are the links of the two pushes. A stage without links leaves the
    circuits as they are. Push to pull of the other group and back are each other's transposes, so
    two answers cover four stages.
    """
    any_first, any_second = bool(first.any()), bool(second.any())
    # Before the first group's push stands the second's pull, or its own where the second has no
    # links.
    before = second.T if any_second else first.T
    to_first = any_first and not np.array_equal(first, before)
    to_second = any_second and not np.array_equal(second, first if any_first else second.T)
    return to_first, to_second


@compiled
def flips(
    load: GroupLoad, fabric: Fabric, in_second: BoolArray, candidates: IntArray
) -> tuple[FloatArray, BoolArray]:
    """Return both groups' communication times and :func:`turns` after each candidate alone has changed its group.

    ``NOBODY_FLIPS`` as a candidate asks for the grouping as it is.
    """
    jobs, pods = load.units.shape
    demand = np.empty((pods, pods))
    rings = np.empty((jobs, pods), np.int64)
    links = np.empty((2, pods, pods), np.int64)
    seconds = np.empty((len(candidates), 2))
    changes = np.empty((len(candidates), 2), np.bool_)
    second = in_second.copy()
    for at in range(len(candidates)):
        n = candidates[at]
        if n != NOBODY_FLIPS:
            second[n] = not second[n]
        seconds[at, 0] = stage_s(load, ~second, fabric, demand, links[0], rings)
        seconds[at, 1] = stage_s(load, second, fabric, demand, links[1], rings)
        changes[at, 0], changes[at, 1] = turns(links[0], links[1])
        if n != NOBODY_FLIPS:
            second[n] = not second[n]
    return seconds, changes
