"""Shortest routes over circuits for every pair that talks, as lists of links."""

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled, compiled_in_place
from topox_core.model.transfer_graph import IntArray

PATHS = 2


@compiled_in_place
def hops_to(
    destination: int, in_ptr: IntArray, in_from: IntArray, hops: IntArray, queue: IntArray
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
    circuits: NDArray[np.int32], source: IntArray, destination: IntArray, by_destination: IntArray
) -> tuple[bool, IntArray, IntArray, IntArray]:
    """Return up to two shortest paths of every pair, in the order of :class:`~topox_core.topology.routing.RoutedNetwork`.

    Parameters
    ----------
    circuits
        Matrix servers x servers of parallel circuits; links are numbered row by row.
    source, destination
        The pairs.
    by_destination
        The pairs' numbers, sorted by destination.

    Returns
    -------
    Whether every pair has a path, and in compressed rows the paths of pairs and the links of paths.
    """
    n, pairs = len(circuits), len(source)
    number = np.full((n, n), -1, np.int32)
    in_ptr = np.zeros(n + 1, np.int32)
    links = 0
    for a in range(n):
        for b in range(n):
            if circuits[a, b] > 0:
                number[a, b] = links
                links += 1
                in_ptr[b + 1] += 1
    for b in range(n):
        in_ptr[b + 1] += in_ptr[b]
    in_from = np.zeros(links, np.int32)
    filled = in_ptr[:-1].copy()
    for a in range(n):
        for b in range(n):
            if number[a, b] >= 0:
                in_from[filled[b]] = a
                filled[b] += 1
    # Both paths of a pair are written into one row of a table, by destination; then in pair order.
    hops, queue, stops = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n + 1, np.int32)
    count, length = np.zeros(pairs, np.int32), np.zeros(pairs, np.int32)
    first_at = np.zeros(pairs, np.int64)
    held = np.zeros(max(16, 4 * pairs), np.int32)
    used, at = 0, -1
    for i in range(pairs):
        pair = by_destination[i]
        a, d = source[pair], destination[pair]
        if d != at:
            hops_to(d, in_ptr, in_from, hops, queue)
            at = d
        h = hops[a]
        if h < 0:
            return False, in_ptr[:1], in_ptr[:1], in_from[:0]
        length[pair] = h
        first_at[pair] = used
        while used + PATHS * h > len(held):
            held = np.concatenate((held, np.zeros(len(held), np.int32)))
        stops[0] = a
        from_hop = 0
        for path in range(PATHS):
            if path > 0:
                # The next path in the same order leaves this one as late as it can.
                from_hop = h - 1
                while from_hop >= 0:
                    here = stops[from_hop]
                    was = (stops[from_hop + 1] - here) % n
                    other = next_hop(here, was, number, hops)
                    if other >= 0:
                        stops[from_hop + 1] = other
                        from_hop += 1
                        break
                    from_hop -= 1
                if from_hop < 0:
                    break
            for k in range(from_hop, h):
                stops[k + 1] = next_hop(stops[k], 0, number, hops)
            for k in range(h):
                held[used] = number[stops[k], stops[k + 1]]
                used += 1
            count[pair] += 1
            if h <= 1:
                break
    pair_ptr = np.zeros(pairs + 1, np.int32)
    for pair in range(pairs):
        pair_ptr[pair + 1] = pair_ptr[pair] + count[pair]
    path_ptr = np.zeros(pair_ptr[pairs] + 1, np.int32)
    path_link = np.zeros(used, np.int32)
    written = 0
    for pair in range(pairs):
        for path in range(count[pair]):
            for k in range(length[pair]):
                path_link[written] = held[first_at[pair] + path * length[pair] + k]
                written += 1
            path_ptr[pair_ptr[pair] + path + 1] = written
    return True, pair_ptr, path_ptr, path_link
