"""Shortest routes over circuits for every pair that talks, as lists of links."""

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled, compiled_in_place
from topox_core.model.transfer_graph import IntArray

PATHS = 2
UNKNOWN = -2


@compiled_in_place
def hops_to(
    destination: int,
    in_ptr: NDArray[np.int64],
    in_from: NDArray[np.int64],
    hops: IntArray,
    queue: IntArray,
) -> None:
    """Write the hops from every server to ``destination``, -1 where no path leads."""
    hops[:] = -1
    hops[destination] = 0
    queue[0] = destination
    first, last = 0, 1
    while first < last:
        b = queue[first]
        first += 1
        for e in range(in_ptr[b], in_ptr[b + 1]):
            a = in_from[e]
            if hops[a] < 0:
                hops[a] = hops[b] + 1
                queue[last] = a
                last += 1


@compiled_in_place
def next_hop(a: int, after: int, number: IntArray, hops: IntArray) -> int:
    """Return the first neighbour of ``a`` one hop nearer, by stride and beyond stride ``after``; -1 if none."""
    n = len(hops)
    for stride in range(after + 1, n):
        b = (a + stride) % n
        if number[a, b] >= 0 and hops[b] == hops[a] - 1:
            return b
    return -1


@compiled
def shortest_routes(
    circuits: NDArray[np.int32], source: IntArray, destination: IntArray
) -> tuple[bool, IntArray, IntArray, IntArray]:
    """Return up to two shortest paths of every pair, in the order of :class:`~topox_core.topology.routing.RoutedNetwork`.

    Parameters
    ----------
    circuits
        Matrix servers x servers of parallel circuits; links are numbered row by row.
    source, destination
        The pairs.

    Returns
    -------
    Whether every pair has a path, and in compressed rows the paths of pairs and the links of paths.
    """
    n, pairs = len(circuits), len(source)
    number = np.full((n, n), -1, np.int32)
    begins, ends = np.nonzero(circuits)
    for link in range(len(begins)):
        number[begins[link], ends[link]] = link
    into, in_from = np.nonzero(circuits.T)
    in_ptr = np.searchsorted(into, np.arange(n + 1))
    hops_of = np.full((n, n), UNKNOWN, np.int32)  # of every destination
    queue, stops = np.zeros(n, np.int32), np.zeros(n + 1, np.int32)
    room = 0
    for i in range(pairs):
        hops = hops_of[destination[i]]
        if hops[0] == UNKNOWN:
            hops_to(destination[i], in_ptr, in_from, hops, queue)
        if hops[source[i]] < 0:
            return False, queue[:1], queue[:1], queue[:0]
        room += PATHS * hops[source[i]]
    pair_ptr, path_ptr = np.zeros(pairs + 1, np.int32), np.zeros(PATHS * pairs + 1, np.int32)
    path_link = np.zeros(room, np.int32)
    paths, used = 0, 0
    for i in range(pairs):
        hops = hops_of[destination[i]]
        h = hops[source[i]]
        stops[0], from_hop = source[i], 0
        for path in range(PATHS):
            if path > 0:
                # The next path in the same order leaves this one as late as it can.
                from_hop, other = h, -1
                while other < 0 and from_hop > 0:
                    from_hop -= 1
                    here = stops[from_hop]
                    other = next_hop(here, (stops[from_hop + 1] - here) % n, number, hops)
                if other < 0:
                    break
                from_hop += 1
                stops[from_hop] = other
            for k in range(from_hop, h):
                stops[k + 1] = next_hop(stops[k], 0, number, hops)
            for k in range(h):
                path_link[used] = number[stops[k], stops[k + 1]]
                used += 1
            paths += 1
            path_ptr[paths] = used
            if h <= 1:
                break
        pair_ptr[i + 1] = paths
    return True, pair_ptr, path_ptr[: paths + 1], path_link[:used]
