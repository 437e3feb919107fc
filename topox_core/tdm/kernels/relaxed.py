"""Least communication time of a set of jobs over every choice of rings, and the groupings that it allows.

Volumes are in seconds of one link. A ring sends its volume once from each of its pods and once to
each, whichever way it goes, and over one pair each time. At every pod, way out and way in, links
are therefore counted twice over: all links carry all that passes; and each pair that talks anyway
has links for its own, to which a ring of m link times adds at least floor(m) wherever it goes, and
one ring what it adds to the pair where it adds least.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING = 1e-9
EITHER = -1


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


class Loads(NamedTuple):
    """What some jobs need together, added up as :class:`Demand` has it, and their rings: the first ``rings`` of ``who``."""

    pair: Floats
    local: Floats
    who: Ints
    rings: Ints


@compiled
def nothing(jobs: int, pods: int) -> Loads:
    """Return the loads of no jobs, with room for ``jobs`` rings."""
    return Loads(
        np.zeros((pods, pods)), np.zeros(pods), np.zeros(jobs, np.int64), np.zeros(1, np.int64)
    )


@compiled
def add(loads: Loads, demand: Demand, n: int, sign: float) -> None:
    """Add a job, or with ``sign`` -1 take the last one back."""
    pods = len(loads.local)
    for i in range(pods):
        loads.local[i] += sign * demand.local[n, i]
        for j in range(pods):
            loads.pair[i, j] += sign * demand.pair[n, i, j]
    if demand.arc[n] > 0.0:
        if sign > 0.0:
            loads.who[loads.rings[0]] = n
            loads.rings[0] += 1
        else:
            loads.rings[0] -= 1


@compiled
def one_way(
    loads: Loads, demand: Demand, pod: int, outwards: bool, within: float
) -> tuple[int, float]:
    """Return the links that leave (or reach) a pod at least within a time, and the next longer time that needs fewer."""
    pods = len(loads.local)
    links, total, step = 0, 0.0, np.inf
    for other in range(pods):
        seconds = loads.pair[pod, other] if outwards else loads.pair[other, pod]
        if seconds > 0.0:
            count = math.ceil(seconds / within - ROUNDING)
            total += seconds
            links += count
            if count > 1:
                step = min(step, seconds / (count - 1))
    floors = 0
    for r in range(loads.rings[0]):
        n = loads.who[r]
        if demand.on[n, pod]:
            count = math.floor(demand.arc[n] / within - ROUNDING)
            total += demand.arc[n]
            floors += count
            if count > 0:
                step = min(step, demand.arc[n] / count)
    most, following = links + floors, step
    for r in range(loads.rings[0]):
        n = loads.who[r]
        if demand.on[n, pod]:
            least, nearest = 1 << 30, step
            for other in range(pods):
                if other != pod and demand.on[n, other]:
                    seconds = loads.pair[pod, other] if outwards else loads.pair[other, pod]
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
def least_s(loads: Loads, demand: Demand, ports: int, at_least: float, at_most: float) -> float:
    """Return a time that no rings and links undercut; infinity where pairs outnumber ports, or above ``at_most``."""
    within = at_least
    pods = len(loads.local)
    for i in range(pods):
        carried = 0.0
        for j in range(pods):
            carried += loads.pair[i, j] + loads.pair[j, i]
        for r in range(loads.rings[0]):
            if demand.on[loads.who[r], i]:
                carried += 2.0 * demand.arc[loads.who[r]]
        within = max(within, loads.local[i], carried / ports)
    if within <= 0.0:
        return 0.0
    for i in range(pods):
        while within <= at_most:
            out, out_step = one_way(loads, demand, i, True, within)
            into, into_step = one_way(loads, demand, i, False, within)
            if out + into <= ports:
                break
            step = min(out_step, into_step)
            if step == np.inf:
                return np.inf
            within = max(step, within * (1.0 + 1e-12))
    return within if within <= at_most else np.inf


class Box(NamedTuple):
    """Which pairs of times are of interest: each at most ``most``, both together less than ``below_s``."""

    most: Floats
    below_s: float


@compiled
def front(
    demand: Demand,
    ports: int,
    side: Ints,
    start: Floats,
    box: Box,
    slack_s: float,
    most_nodes: int,
    one_will_do: bool,
) -> tuple[Floats, bool]:
    """Return the pairs (time of group 0, time of group 1) that no division of the jobs undercuts by more than a slack.

    Parameters
    ----------
    side
        The group that each job is bound to, or ``EITHER``.
    start
        Pairs to begin with: what does not undercut them is of no interest. They are among the
        result.
    one_will_do
        Stop at the first division inside the box.

    Returns
    -------
    The pairs, and False if the search became longer than ``most_nodes``.
    """
    jobs, pods = demand.on.shape
    loads = (nothing(jobs, pods), nothing(jobs, pods))
    seconds = np.zeros((jobs + 1, 2))
    first = np.zeros(jobs + 1, np.int64)
    tried = np.zeros(jobs + 1, np.int64)
    side_at = np.zeros(jobs + 1, np.int64)
    child = np.zeros((jobs + 1, 2))
    found = len(start)
    points = np.empty((found + 64, 2))
    points[:found] = start
    depth = nodes = 0
    fresh = True
    while depth >= 0:
        if fresh:
            fresh = False
            nodes += 1
            a, b = seconds[depth, 0], seconds[depth, 1]
            beaten = a + b >= box.below_s
            for p in range(found):
                if points[p, 0] <= a + slack_s and points[p, 1] <= b + slack_s:
                    beaten = True
                    break
            if not beaten and depth == jobs:
                kept = 0
                for p in range(found):
                    if not (a <= points[p, 0] and b <= points[p, 1]):
                        points[kept, 0], points[kept, 1] = points[p, 0], points[p, 1]
                        kept += 1
                if kept == len(points):
                    longer = np.empty((2 * kept, 2))
                    longer[:kept] = points
                    points = longer
                points[kept, 0], points[kept, 1] = a, b
                found = kept + 1
                if one_will_do:
                    break
            if nodes > most_nodes:
                return points[:0], False
            tried[depth] = 2 if beaten or depth == jobs else 0
            if tried[depth] == 0:
                for k in range(2):
                    child[depth, k] = np.inf
                    if side[depth] == EITHER or side[depth] == k:
                        add(loads[k], demand, depth, 1.0)
                        child[depth, k] = least_s(
                            loads[k], demand, ports, seconds[depth, k], box.most[k]
                        )
                        add(loads[k], demand, depth, -1.0)
                # First where the job costs least: good divisions found early cut the rest short.
                first[depth] = (
                    0
                    if child[depth, 0] - seconds[depth, 0] <= child[depth, 1] - seconds[depth, 1]
                    else 1
                )
        if tried[depth] == 2:
            depth -= 1
            if depth >= 0:
                add(loads[side_at[depth]], demand, depth, -1.0)
            continue
        k = first[depth] if tried[depth] == 0 else 1 - first[depth]
        tried[depth] += 1
        if child[depth, k] < np.inf:
            add(loads[k], demand, depth, 1.0)
            side_at[depth] = k
            seconds[depth + 1, k] = child[depth, k]
            seconds[depth + 1, 1 - k] = seconds[depth, 1 - k]
            depth += 1
            fresh = True
    return points[:found][np.argsort(points[:found, 0])], True


@compiled
def within_reach(
    demand: Demand, ports: int, side: Ints, corners: Floats, most_nodes: int
) -> NDArray[np.bool_]:
    """Return which pairs of times some division keeps to; True also where a search became too long to say."""
    reached = np.ones(len(corners), np.bool_)
    for c in range(len(corners)):
        box = Box(corners[c] * (1.0 + ROUNDING), np.inf)
        points, done = front(demand, ports, side, corners[:0], box, 0.0, most_nodes, True)
        reached[c] = not done or len(points) > 0
    return reached


@compiled
def half_s(seconds: Floats, computing: Floats) -> float:
    """Return the least half round: windows one after the other, and the time that each group needs to compute."""
    half = 0.0
    for k in range(len(seconds)):
        half += seconds[k]
    for k in range(len(seconds)):
        half = max(half, seconds[k] + computing[k])
    return half


@compiled
def round_s(seconds: Floats, after_push: Floats, after_pull: Floats, windows: bool) -> float:
    """Return the round of groups with these communication and computing times: windows in half rounds, or four phases."""
    if windows:
        return half_s(seconds, after_push) + half_s(seconds, after_pull)
    first = max(seconds[0], after_pull[1]) + max(seconds[0], after_push[1])
    return float(first + max(seconds[1], after_pull[0]) + max(seconds[1], after_push[0]))


@compiled
def least_round_s(
    demand: Demand,
    after_push: Floats,
    after_pull: Floats,
    ports: int,
    groups: int,
    windows: bool,
    most_nodes: int,
) -> float:
    """Return a round that no division of one pod group's jobs undercuts: best first, so that what is open is a bound.

    Jobs should come heaviest first. Infinity where no division has ports enough.
    """
    jobs, pods = demand.on.shape
    dealt = np.empty((most_nodes + groups, jobs), np.int8)
    sizes = np.zeros(most_nodes + groups, np.int64)
    used = np.zeros(most_nodes + groups, np.int64)
    seconds = np.zeros((most_nodes + groups, groups))
    count = 1
    # Among equals the deepest first: it is the nearest to an answer.
    waiting = [(0.0, 0, 0)]
    computing = np.empty((2, groups))
    while waiting:
        value, _, node = heapq.heappop(waiting)
        n = sizes[node]
        if n == jobs or count > most_nodes - groups:
            return value
        for k in range(min(used[node] + 1, groups)):
            child = count
            dealt[child, :n] = dealt[node, :n]
            dealt[child, n] = k
            sizes[child], used[child] = n + 1, max(used[node], k + 1)
            seconds[child] = seconds[node]
            computing[:] = 0.0
            loads = nothing(n + 1, pods)
            for m in range(n + 1):
                at = dealt[child, m]
                computing[0, at] = max(computing[0, at], after_push[m])
                computing[1, at] = max(computing[1, at], after_pull[m])
                if at == k:
                    add(loads, demand, m, 1.0)
            seconds[child, k] = least_s(loads, demand, ports, seconds[node, k], np.inf)
            if seconds[child, k] < np.inf:
                least = round_s(seconds[child], computing[0], computing[1], windows)
                heapq.heappush(waiting, (max(value, least), -(n + 1), child))
                count += 1
    return np.inf
