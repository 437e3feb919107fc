"""One stage of one pod group in compiled code: demand, rings (Algorithm 3), links (Algorithm 2).

Everything is in the push orientation; pull is its transpose, with equal duration.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NO_POD = -1


class GroupLoad(NamedTuple):
    """The jobs of one pod group, in the order of their indices.

    Attributes
    ----------
    units, into
        ``[job, pod]`` parallel units, and what of a pod's push each pod gets: of a parameter server 1 in
        its own, of an all-to-all its units, of a ring 0.
    volume_gbit
        Of one unit, or of one ordered pair of units (all-to-all).
    arc_gbit
        What each arc of a ring carries; 0 for what is no ring.
    local_gbit
        ``[job, pod]`` between servers and top-of-rack switch (eq. 5).
    ring
        ``[job, pod]`` a ring given from outside, ending in ``NO_POD``; the first entry is
        ``NO_POD`` where Algorithm 3 decides.
    """

    units: FloatArray
    into: FloatArray
    volume_gbit: FloatArray
    arc_gbit: FloatArray
    local_gbit: FloatArray
    ring: IntArray


class Fabric(NamedTuple):
    """Optical ports of a pod, speed of a link, speed between servers and top-of-rack switch (Gbit/s)."""

    ports: int
    port_gbps: float
    tor_gbps: float


@compiled
def prune(arcs: BoolArray) -> None:
    """Delete arcs until nobody has two in or two out (Algorithm 3, lines 4-12).

    Node by node, arcs in before arcs out; the one to the neighbour of highest degree goes, the
    lowest index among equals.
    """
    m = len(arcs)
    into = np.zeros(m, np.int64)
    out = np.zeros(m, np.int64)
    for a in range(m):
        for b in range(m):
            if arcs[a, b]:
                out[a] += 1
                into[b] += 1
    for n in range(m):
        _prune_arcs(arcs, out, into, n)
        _prune_arcs(arcs.T, into, out, n)


@compiled
def _prune_arcs(arcs: BoolArray, out: IntArray, into: IntArray, n: int) -> None:
    """Delete arcs into a node until there is one at most; ``out`` and ``into`` count those of each node."""
    while into[n] > 1:
        worst = -1
        for a in range(len(arcs)):
            if arcs[a, n] and (worst < 0 or out[a] > out[worst]):
                worst = a
        arcs[worst, n] = False
        into[n] -= 1
        out[worst] -= 1


@compiled
def joined(arcs: BoolArray) -> IntArray:
    """Return one lap through all nodes: cycles are cut before their lowest node, paths follow by first node (lines 14-15)."""
    m = len(arcs)
    after = np.full(m, -1, np.int64)
    before = np.full(m, -1, np.int64)
    for a in range(m):
        for b in range(m):
            if arcs[a, b]:
                after[a] = b
                before[b] = a
    placed = np.zeros(m, np.bool_)
    lap = np.empty(m, np.int64)
    k = 0
    for a in range(m):
        first = a
        while before[first] >= 0 and before[first] != a:
            first = before[first]
        if placed[a] or (first != a and before[first] < 0):
            continue  # on a path that begins elsewhere
        b = a
        while b >= 0 and not placed[b]:
            placed[b] = True
            lap[k] = b
            k += 1
            b = after[b]
    return lap


@compiled
def ring_of(demand: FloatArray, members: IntArray) -> IntArray:
    """Return a ring through ``members`` (ascending) that reuses pairs with demand (Algorithm 3)."""
    m = len(members)
    arcs = np.zeros((m, m), np.bool_)
    for a in range(m):
        for b in range(m):
            arcs[a, b] = demand[members[a], members[b]] > 0.0
    prune(arcs)
    lap: IntArray = members[joined(arcs)]
    return lap


@compiled
def add_ring(load: GroupLoad, n: int, demand: FloatArray) -> IntArray:
    """Choose the ring of a job (or take the one given), add its demand, and return it (empty within one pod)."""
    pods = len(demand)
    members = np.empty(pods, np.int64)
    m = 0
    if load.ring[n, 0] != NO_POD:
        while m < pods and load.ring[n, m] != NO_POD:
            members[m] = load.ring[n, m]
            m += 1
        lap = members[:m]
    else:
        for i in range(pods):
            if load.units[n, i] > 0.0:
                members[m] = i
                m += 1
        lap = members[:m] if m < 2 else ring_of(demand, members[:m])
    if m < 2:
        return members[:0]
    for k in range(m):
        demand[lap[k], lap[(k + 1) % m]] += load.arc_gbit[n]
    return lap


@compiled
def worst_of_row(
    demand: FloatArray, links: IntArray, port_gbps: float, i: int
) -> tuple[float, int]:
    """Return the longest time of a pair i -> j in seconds, and its j."""
    longest, at = 0.0, -1
    for j in range(len(demand)):
        if links[i, j] > 0:
            seconds = demand[i, j] / (port_gbps * links[i, j])
            if seconds > longest:
                longest, at = seconds, j
    return longest, at


@compiled
def _leave_spare_ports(demand: FloatArray, links: IntArray, link_gbit: float) -> None:
    """Take back links without which a stage takes no longer; ``link_gbit``: what one carries in that time.

    Algorithm 2 lays them wherever ports are left. Then equal demands have unequal links, and circuits
    change where they could stay.
    """
    for i in range(len(demand)):
        for j in range(len(demand)):
            if links[i, j] > 1:
                needed = math.ceil(demand[i, j] / link_gbit * (1.0 - 1e-12))
                links[i, j] = max(1, min(links[i, j], needed))


@compiled
def allocate(
    demand: FloatArray, tor_s: float, fabric: Fabric, both_ways: bool, links: IntArray
) -> float:
    """Give every pair with demand a link, then the slowest pair another while that helps (Algorithm 2, lines 9-17).

    Fills ``links`` and returns the time of the stage, or infinity where the ports do not even
    suffice for one link each. ``both_ways`` lays i -> j and j -> i together, for a symmetric demand
    and one topology.
    """
    pods = len(demand)
    free = np.full(pods, fabric.ports, np.int64)
    for i in range(pods):
        for j in range(pods):
            links[i, j] = 1 if demand[i, j] > 0.0 else 0
            free[i] -= links[i, j]
            free[j] -= links[i, j]
    if free.min() < 0:
        return np.inf
    row_s = np.empty(pods)
    row_at = np.empty(pods, np.int64)
    for i in range(pods):
        row_s[i], row_at[i] = worst_of_row(demand, links, fabric.port_gbps, i)
    cost = 2 if both_ways else 1
    while True:
        i = int(row_s.argmax())
        j = row_at[i]
        if tor_s >= row_s[i] or free[i] < cost or free[j] < cost:
            time_s = max(tor_s, float(row_s[i]))
            _leave_spare_ports(demand, links, fabric.port_gbps * time_s)
            return time_s
        links[i, j] += 1
        free[i] -= cost
        free[j] -= cost
        row_s[i], row_at[i] = worst_of_row(demand, links, fabric.port_gbps, i)
        if both_ways:
            links[j, i] += 1
            row_s[j], row_at[j] = worst_of_row(demand, links, fabric.port_gbps, j)


@compiled
def stage_demand(
    load: GroupLoad, chosen: BoolArray, demand: FloatArray, rings: IntArray
) -> FloatArray:
    """Fill demand and rings of the chosen jobs; return what each pod's servers exchange with their switch, in Gbit.

    Parameter servers and all-to-alls come first, then rings by index, each seeing the pairs of
    those before.
    """
    jobs, pods = load.units.shape
    demand[:, :] = 0.0
    local = np.zeros(pods)
    for n in range(jobs):
        if chosen[n]:
            for i in range(pods):
                local[i] += load.local_gbit[n, i]
                for j in range(pods):
                    if i != j and load.into[n, j] > 0.0:
                        demand[i, j] += load.units[n, i] * load.into[n, j] * load.volume_gbit[n]
    for n in range(jobs):
        rings[n, :] = NO_POD
        if chosen[n] and load.arc_gbit[n] > 0.0:
            lap = add_ring(load, n, demand)
            rings[n, : len(lap)] = lap
    return local


@compiled
def stage_s(
    load: GroupLoad,
    chosen: BoolArray,
    fabric: Fabric,
    demand: FloatArray,
    links: IntArray,
    rings: IntArray,
) -> float:
    """Return the communication time of the chosen jobs in seconds (infinity: too few ports); fill demand, links, rings."""
    local = stage_demand(load, chosen, demand, rings)
    return allocate(demand, local.max() / fabric.tor_gbps, fabric, False, links)
