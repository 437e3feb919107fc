"""Rings of one stage that know the load: compiled moves of single pods along a ring."""

import numpy as np

from topox_core.compiled import compiled
from topox_core.tdm.kernels.stage import (
    NO_POD,
    BoolArray,
    Fabric,
    FloatArray,
    GroupLoad,
    IntArray,
    allocate,
    stage_s,
)

# What rounding may leave, of all that rings carry; and what a stage has to gain, or it counts as
# equally long.
ROUNDING = 1e-12
SHORTER = 1 - 1e-9
# Times that all rings, and all changes of one ring, are gone through at most.
SWEEPS = 4


@compiled
def _lay(demand: FloatArray, lap: IntArray, many: int, gbit: float, rest_gbit: float) -> None:
    """Add a ring's arcs, or with negative ``gbit`` take them away; what rounding leaves of those, up to a rest, needs no link."""
    for k in range(many):
        i, j = lap[k], lap[(k + 1) % many]
        demand[i, j] += gbit
        if demand[i, j] <= rest_gbit:
            demand[i, j] = 0.0


@compiled
def _better_lap(
    demand: FloatArray,
    lap: IntArray,
    many: int,
    gbit: float,
    switch_s: float,
    fabric: Fabric,
    links: IntArray,
    rest_gbit: float,
) -> tuple[float, int]:
    """Change one ring, which is not part of ``demand``, while that helps; return the stage's time and its pairs of pods.

    One pod takes another's place, or moves along the ring. A stage is better if it is shorter, or
    equally long with fewer pairs to link.
    """
    trial = np.empty(many, np.int64)
    best, pairs = np.inf, 0
    for turn in range(SWEEPS + 1):
        improved = False
        for a in range(1, many):
            for b in range(1, many):
                for swap in range(2):
                    as_it_is = turn == 0 and a == 1 and b == 1 and swap == 0
                    if not as_it_is and (a == b or (swap == 1 and a > b)):
                        continue
                    trial[:] = lap[:many]
                    if swap == 1:
                        trial[a], trial[b] = trial[b], trial[a]
                    else:
                        moved = trial[a]
                        for k in range(a, b):
                            trial[k] = trial[k + 1]
                        for k in range(a, b, -1):
                            trial[k] = trial[k - 1]
                        trial[b] = moved
                    _lay(demand, trial, many, gbit, rest_gbit)
                    length = allocate(demand, switch_s, fabric, False, links)
                    linked = (demand > 0.0).sum()
                    _lay(demand, trial, many, -gbit, rest_gbit)
                    if as_it_is or length < best * SHORTER or (length <= best and linked < pairs):
                        best, pairs, improved = length, linked, True
                        lap[:many] = trial
        if not improved:
            break
    return best, pairs


@compiled
def better_rings(load: GroupLoad, chosen: BoolArray, fabric: Fabric) -> tuple[float, IntArray]:
    """Return a stage's time with rings that know the load, and the rings; never longer than with Algorithm 3's.

    Two starts: Algorithm 3's rings, and no rings at all; in the second one rings are laid one by
    one, the heaviest first. Then each ring in turn is changed while that helps.
    """
    jobs, pods = load.units.shape
    links, rings = np.empty((pods, pods), np.int64), np.empty((jobs, pods), np.int64)
    demand = np.empty((pods, pods))
    shortest = stage_s(load, chosen, fabric, demand, links, rings)
    kept = rings.copy()
    switch_s = 0.0
    for i in range(pods):
        switch_s = max(switch_s, (load.local_gbit[:, i] * chosen).sum() / fabric.tor_gbps)
    many = np.zeros(jobs, np.int64)
    for n in range(jobs):
        if chosen[n] and load.arc_gbit[n] > 0.0:
            many[n] = (rings[n] != NO_POD).sum()
    order = np.argsort(-load.arc_gbit)
    rest_gbit = ROUNDING * (load.arc_gbit * chosen).sum()
    for anew in range(2):
        if anew == 1:
            for n in range(jobs):
                if many[n] > 2:
                    _lay(demand, rings[n], many[n], -load.arc_gbit[n], rest_gbit)
                    rings[n, : many[n]] = np.sort(rings[n, : many[n]])
        best, pairs = np.inf, 0
        for sweep in range(SWEEPS):
            before, before_pairs = best, pairs
            for n in order:
                if many[n] > 2:
                    if anew == 0 or sweep > 0:
                        _lay(demand, rings[n], many[n], -load.arc_gbit[n], rest_gbit)
                    best, pairs = _better_lap(
                        demand,
                        rings[n],
                        many[n],
                        load.arc_gbit[n],
                        switch_s,
                        fabric,
                        links,
                        rest_gbit,
                    )
                    _lay(demand, rings[n], many[n], load.arc_gbit[n], rest_gbit)
            if sweep > 0 and best >= before * SHORTER and pairs >= before_pairs:
                break
        if best < shortest:
            shortest = best
            kept[:, :] = rings
    return shortest, kept
