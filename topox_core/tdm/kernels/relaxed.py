"""Least communication time of every set of jobs over every choice of rings.

Volumes are in seconds of one link. A ring sends its volume once from each of its pods and once to
each, whichever way it goes, and over one pair each time. At every pod, way out and way in, links
are therefore counted twice over: all links carry all that passes; and each pair that talks anyway
has links for its own, to which a ring of m link times adds at least floor(m) wherever it goes, and
one ring what it adds to the pair where it adds least.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING = 1e-9


class Demand(NamedTuple):
    """What jobs (first index) of one pod group need, in seconds of one link.

    Attributes
    ----------
    pair
        ``[job, i, j]`` without rings.
    arc
        What each arc of a job's ring carries; 0 for what is no ring.
    on
        ``[job, pod]`` the pods of the ring.
    local
        ``[job, pod]`` in seconds of the top-of-rack switch.
    """

    pair: Floats
    arc: Floats
    on: NDArray[np.bool_]
    local: Floats


@compiled
def one_way(out: Floats, rings: Ints, demand: Demand, pod: int, within: float) -> tuple[int, float]:
    """Return the links that leave a pod at least within a time, and the next longer time that needs fewer.

    ``out`` is what other traffic sends from pod to pod; transposed, links that reach the pod are counted.
    """
    pods = len(out)
    links, total, step = 0, 0.0, np.inf
    for other in range(pods):
        seconds = out[pod, other]
        if seconds > 0.0:
            count = math.ceil(seconds / within - ROUNDING)
            total += seconds
            links += count
            if count > 1:
                step = min(step, seconds / (count - 1))
    floors = 0
    for n in rings:
        if demand.on[n, pod]:
            count = math.floor(demand.arc[n] / within - ROUNDING)
            total += demand.arc[n]
            floors += count
            if count > 0:
                step = min(step, demand.arc[n] / count)
    most, following = links + floors, step
    for n in rings:
        if demand.on[n, pod]:
            least, nearest = 1 << 30, step
            for other in range(pods):
                if other != pod and demand.on[n, other]:
                    seconds = out[pod, other]
                    own = math.ceil(seconds / within - ROUNDING) if seconds > 0.0 else 0
                    count = math.ceil((seconds + demand.arc[n]) / within - ROUNDING)
                    least = min(least, count - own)
                    if count > 1:
                        nearest = min(nearest, (seconds + demand.arc[n]) / (count - 1))
            need = links + floors - math.floor(demand.arc[n] / within - ROUNDING) + least
            if need > most:
                most, following = need, nearest
            elif need == most:
                following = max(following, nearest)
    together = math.ceil(total / within - ROUNDING) if total > 0.0 else 0
    if together >= most and together > 0:
        last = total / (together - 1) if together > 1 else np.inf
        following = last if together > most else max(following, last)
        most = together
    return most, following


@compiled
def least_s(
    pair: Floats, local: Floats, rings: Ints, demand: Demand, ports: int, at_least: float
) -> float:
    """Return a time that no rings and links undercut; infinity where pairs outnumber ports.

    ``pair`` and ``local`` are added up over some jobs, ``rings`` those of them that have one.
    """
    back = np.ascontiguousarray(pair.T)
    within = max(at_least, local.max())
    for i in range(len(local)):
        carried = pair[i].sum() + back[i].sum()
        for n in rings:
            if demand.on[n, i]:
                carried += 2.0 * demand.arc[n]
        within = max(within, carried / ports)
    if within <= 0.0:
        return 0.0
    for i in range(len(local)):
        while within < np.inf:
            out, out_step = one_way(pair, rings, demand, i, within)
            into, into_step = one_way(back, rings, demand, i, within)
            if out + into <= ports:
                break
            within = max(min(out_step, into_step), within * (1.0 + 1e-12))
    return float(within)


@compiled
def least_stages(demand: Demand, ports: int) -> Floats:
    """Return for every set of jobs (bit n: the n-th) a time that its push takes at least, infinite where ports are too few."""
    jobs, pods = demand.on.shape
    seconds, rings = np.zeros(1 << jobs), np.empty(jobs, np.int64)
    pair, local = np.empty((pods, pods)), np.empty(pods)
    for subset in range(1, 1 << jobs):
        pair[:], local[:] = 0.0, 0.0
        count, at_least = 0, 0.0
        for n in range(jobs):
            if subset >> n & 1:
                pair += demand.pair[n]
                local += demand.local[n]
                # More jobs take no less.
                at_least = max(at_least, seconds[subset ^ 1 << n])
                if demand.arc[n] > 0.0:
                    rings[count] = n
                    count += 1
        seconds[subset] = least_s(pair, local, rings[:count], demand, ports, at_least)
    return seconds
