"""Circuits dealt out greedily to a matrix of bytes, directed, one at a time."""

import heapq
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from topox_core.topology.routing import RoutedNetwork

Circuits = NDArray[np.int32]
# Strides of rings that are tried, of servers in a circle.
MAX_STRIDES = 128


def greedy_circuits(
    bytes_between: NDArray[np.float64], ports: int, laid: Circuits | None = None
) -> Circuits:
    """Return circuits, each to the pair with most bytes a circuit it would then have, while both ends have ports.

    Parameters
    ----------
    bytes_between
        Matrix servers x servers; ties go to the lower source, then the lower destination.
    ports
        Of every server, each way.
    laid
        Circuits that are there already, if any.
    """
    n = len(bytes_between)
    circuits = np.zeros((n, n), np.int32) if laid is None else laid.copy()
    out, into = (ports - circuits.sum(axis=1)).tolist(), (ports - circuits.sum(axis=0)).tolist()
    waiting = [
        (-float(bytes_between[a, b]) / (int(circuits[a, b]) + 1), int(a), int(b))
        for a, b in zip(*np.nonzero(bytes_between), strict=True)
        if a != b
    ]
    heapq.heapify(waiting)
    while waiting:
        _, a, b = heapq.heappop(waiting)
        if not (out[a] and into[b]):
            continue
        circuits[a, b] += 1
        out[a] -= 1
        into[b] -= 1
        heapq.heappush(waiting, (-float(bytes_between[a, b]) / (int(circuits[a, b]) + 1), a, b))
    return circuits


def chordal_rings(bytes_between: NDArray[np.float64], ports: int) -> Circuits:
    """Return rings through all servers that talk, one for each port, that take bytes over few circuits.

    The first leads to the next server. The stride of each further ring is the one that leaves the
    fewest bytes times circuits crossed, where the bytes between two servers count by how far apart
    they stand; of many servers a part of the strides is tried.
    """
    circuits = np.zeros(bytes_between.shape, np.int32)
    talking = np.flatnonzero(bytes_between.any(axis=0) | bytes_between.any(axis=1))
    m = len(talking)
    if m < 2:
        return circuits
    place = np.arange(m)
    apart = (place[None, :] - place[:, None]) % m
    wanted: NDArray[np.float64] = np.zeros(m)
    np.add.at(wanted, apart, bytes_between[np.ix_(talking, talking)])
    strides = [1]
    while len(strides) < ports:
        more = range(1, m, 1 + m // MAX_STRIDES)
        strides.append(min(more, key=lambda one: _crossed(wanted, [*strides, one])))
    for stride in strides:
        circuits[talking, np.roll(talking, -stride)] += 1
    return circuits


def _crossed(wanted: NDArray[np.float64], strides: list[int]) -> float:
    """Return bytes times circuits crossed, where ``wanted[k]`` bytes go k servers further over rings of these strides."""
    reached = np.zeros(len(wanted), np.bool_)
    reached[0] = True
    crossed = 0.0
    while not reached.all():
        crossed += float(wanted[~reached].sum())
        reached = np.logical_or.reduce([reached, *(np.roll(reached, one) for one in strides)])
    return crossed


def minimax_circuits(bytes_between: NDArray[np.float64], ports: int) -> Circuits:
    """Return circuits that keep the most bytes per circuit as few as ports allow, without forwarding.

    The fewest is found by bisection to a part in 10^9: circuits of a pair are its bytes over it,
    rounded up. Ports left over are dealt greedily. No circuits at all where a server talks to more
    peers than it has ports.
    """
    wanted = np.where(np.eye(len(bytes_between), dtype=bool), 0.0, bytes_between)
    busiest = float(max(wanted.sum(axis=0).max(initial=0.0), wanted.sum(axis=1).max(initial=0.0)))
    low, high = busiest / ports / 2, busiest
    if busiest <= 0 or not _fit(_circuits_for(wanted, high), ports):
        return np.zeros(wanted.shape, np.int32)
    while high - low > 1e-9 * busiest:
        middle = (low + high) / 2
        low, high = (low, middle) if _fit(_circuits_for(wanted, middle), ports) else (middle, high)
    return greedy_circuits(wanted, ports, _circuits_for(wanted, high))


def _circuits_for(wanted: NDArray[np.float64], most_bytes: float) -> Circuits:
    return np.ceil(wanted / most_bytes * (1 - 1e-12)).astype(np.int32)


def _fit(circuits: Circuits, ports: int) -> bool:
    return bool(circuits.sum(axis=0).max() <= ports and circuits.sum(axis=1).max() <= ports)


def with_kept(circuits: Circuits, before: Circuits, ports: int) -> Circuits:
    """Return the circuits and, on ports that they leave over, those of ``before`` that still fit."""
    kept = circuits.copy()
    out, into = ports - kept.sum(axis=1), ports - kept.sum(axis=0)
    for a, b in zip(*np.nonzero(before > kept), strict=True):
        more = int(min(before[a, b] - kept[a, b], out[a], into[b]))
        kept[a, b] += more
        out[a] -= more
        into[b] -= more
    return kept


def repaired(
    circuits: Circuits,
    pairs: Iterable[tuple[int, int]],
    bytes_between: NDArray[np.float64],
    ports: int,
) -> Circuits:
    """Return the circuits, with a ring through all servers that talk if one cannot reach whom it talks to.

    Where a server has no port left for the ring, the circuit of its that carries least gives way.
    """
    talking = sorted(pairs)
    network = RoutedNetwork(circuits)
    if all(network.connected(a, b) for a, b in talking):
        return circuits
    ring = sorted({server for pair in talking for server in pair})
    mended = circuits.copy()
    hops = list(zip(ring, ring[1:] + ring[:1], strict=True))
    held = np.zeros_like(mended)
    for a, b in hops:
        held[a, b] = min(1, mended[a, b])
    for a, b in hops:
        if held[a, b]:
            continue
        for full, line, free in (
            (mended[a].sum() >= ports, np.s_[a, :], mended[a] - held[a]),
            (mended[:, b].sum() >= ports, np.s_[:, b], mended[:, b] - held[:, b]),
        ):
            if full:
                load = np.where(free > 0, bytes_between[line] / np.maximum(mended[line], 1), np.inf)
                mended[line][int(np.argmin(load))] -= 1
        mended[a, b] += 1
        held[a, b] = 1
    return mended
