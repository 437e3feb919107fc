"""Fixed circuits as a network: which optical switch each one passes, and the paths over them with their hops."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import networkx
import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.model.execution import Layout
from topox_core.model.transfer_graph import IntArray
from topox_core.schedule.circuits.standing import coloured
from topox_core.topology.kernels.routes import hops_to


@dataclass(frozen=True)
class SwitchWiring:
    """Single circuits, parallel ones one by one.

    Attributes
    ----------
    source, destination
        Ends of each circuit.
    for_rings
        True where the circuit was laid for an all-reduce ring, false for model-parallel traffic.
    plane
        Port number at both ends: a server has at most one circuit out and one in on each plane, so
        with one port per server and switch plane r is switch r.
    """

    source: IntArray
    destination: IntArray
    for_rings: NDArray[np.bool_]
    plane: IntArray

    def __len__(self) -> int:
        return len(self.source)

    def circuits(self, servers: int) -> NDArray[np.int32]:
        """Return the matrix of parallel circuits."""
        matrix = np.zeros((servers, servers), np.int32)
        np.add.at(matrix, (self.source, self.destination), 1)
        return matrix

    def ends_of(self, circuits: list[int] | NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Return the sources and the destinations of some circuits."""
        return self.source[circuits], self.destination[circuits]

    def with_ring(self, source: int, destination: int, plane: int) -> SwitchWiring:
        """Return the wiring with one more circuit, laid for a ring."""
        return SwitchWiring(
            np.append(self.source, np.int32(source)),
            np.append(self.destination, np.int32(destination)),
            np.append(self.for_rings, True),
            np.append(self.plane, np.int32(plane)),
        )

    def without(self, lost: NDArray[np.bool_]) -> SwitchWiring:
        """Return what is left when the marked circuits are gone; planes stay."""
        return SwitchWiring(
            self.source[~lost], self.destination[~lost], self.for_rings[~lost], self.plane[~lost]
        )


def wired(circuits: Sequence[tuple[int, int, bool]]) -> SwitchWiring:
    """Spread circuits over as many planes as the busiest server has ports, which always do (Koenig).

    Each takes the first plane free at both ends, so a ring laid whole lies on one plane.
    """
    source, destination = (
        np.array([(a, b) for a, b, _ in circuits], np.int32).reshape(-1, 2).T.copy()
    )
    planes = max(int(np.bincount(ends).max(initial=1)) for ends in (source, destination))
    rings = np.array([ring for *_, ring in circuits], np.bool_)
    return SwitchWiring(source, destination, rings, coloured(source, destination, planes, planes))


def wiring_of(layout: Layout) -> SwitchWiring:
    """Return a wiring of a layout that came without one; no circuit counts as laid for a ring."""
    singles = [
        (a, b, False)
        for a, b, count in zip(*(ends.tolist() for ends in layout.links), strict=True)
        for _ in range(count)
    ]
    return wired(singles)


def coin_sequences(
    members: int, coins: Sequence[int], rng: random.Random | None = None
) -> list[tuple[int, ...] | None]:
    """Return for every distance the fewest strides that add up to it modulo ``members``.

    Parameters
    ----------
    members
        Size of the ring, n.
    coins
        Selected strides; of rings laid in both directions also n - p.
    rng
        Breaks ties among last hops; None takes the first coin, so that every member routes alike.

    Returns
    -------
    list
        Hop sequences by distance, largest stride first; None where no strides lead.
    """
    usable = dict.fromkeys(coin % members for coin in coins if coin % members)
    strides = networkx.DiGraph()
    strides.add_node(0)
    strides.add_edges_from((at, (at + coin) % members) for at in range(members) for coin in usable)
    sequences: list[tuple[int, ...] | None] = [None] * members
    # The nearest first, so that the way to whoever is before is known already.
    for distance, before in networkx.predecessor(strides, 0).items():
        if not before:
            sequences[distance] = ()
            continue
        last = rng.choice(before) if rng else before[0]
        known = sequences[last]
        assert known is not None
        sequences[distance] = tuple(sorted((*known, (distance - last) % members), reverse=True))
    return sequences


Path = tuple[int, ...]


@dataclass(frozen=True)
class Hops:
    """Hop counts over all ordered pairs of different servers that have a path.

    ``unreachable`` counts the pairs that have none; with no pair at all, diameter and mean are 0.
    """

    diameter: int
    mean: float
    unreachable: int


class RoutedNetwork:
    """Circuits as a directed graph; servers forward for each other.

    Parameters
    ----------
    circuits
        Matrix servers x servers of parallel circuits.
    """

    def __init__(self, circuits: NDArray[np.int32]) -> None:
        n = self.servers = len(circuits)
        self.out: list[list[int]] = [[] for _ in range(n)]
        source, destination = np.nonzero(circuits)
        # By stride, not by number: on rings all servers then take the same turns and load their
        # links alike.
        order = np.lexsort(((destination - source) % n, source))
        for a, b in zip(source[order].tolist(), destination[order].tolist(), strict=True):
            self.out[a].append(b)
        into, in_from = np.nonzero(circuits.T)
        self._into = np.searchsorted(into, np.arange(n + 1)), in_from.copy()
        self._hops_to: dict[int, list[int]] = {}

    def hops_to(self, destination: int) -> list[int]:
        """Return of every server the hops to ``destination``; -1 where no path leads."""
        if destination not in self._hops_to:
            self._hops_to[destination] = self._hops(destination).tolist()
        return self._hops_to[destination]

    def _hops(self, destination: int) -> IntArray:
        hops, queue = np.empty((2, self.servers), np.int32)
        at: Any = np.int32(destination)  # as other kernels call it, or it would be compiled again
        hops_to(at, *self._into, hops, queue)
        return hops

    def hop_matrix(self) -> NDArray[np.int32]:
        """Return the hops between all servers: 0 on the diagonal, -1 where no path leads."""
        return np.array([self._hops(b) for b in range(self.servers)]).T

    def connected(self, source: int, destination: int) -> bool:
        """Return whether any path leads from ``source`` to ``destination``."""
        return self.hops_to(destination)[source] >= 0

    def shortest_paths(self, source: int, destination: int, paths: int = 1) -> tuple[Path, ...]:
        """Return up to ``paths`` of the shortest paths.

        Raises
        ------
        InputError
            If no path leads from ``source`` to ``destination``; names both.
        """
        self._check_connected(source, destination)
        return tuple(islice(self._paths_of(source, destination), paths))

    def random_path(self, source: int, destination: int, rng: random.Random) -> Path:
        """Return one shortest path, ties broken at random (the released TopoOpt's routing)."""
        self._check_connected(source, destination)
        hops = self.hops_to(destination)
        path = [source]
        while path[-1] != destination:
            path.append(
                rng.choice([b for b in self.out[path[-1]] if hops[b] == hops[path[-1]] - 1])
            )
        return tuple(path)

    def _check_connected(self, source: int, destination: int) -> None:
        if not self.connected(source, destination):
            raise InputError(
                f"server {source} talks to server {destination}, but no circuits lead from one to the other",
                file="topology",
                field="circuits",
            )

    def _paths_of(self, source: int, destination: int) -> Iterator[Path]:
        """Yield every path of the fewest hops."""
        hops = self.hops_to(destination)
        waiting: list[Path] = [(source,)]
        while waiting:
            path = waiting.pop()
            if path[-1] == destination:
                yield path
                continue
            nearer = (b for b in reversed(self.out[path[-1]]) if hops[b] == hops[path[-1]] - 1)
            waiting += [(*path, b) for b in nearer]

    @cached_property
    def hops(self) -> Hops:
        """Hop counts over all ordered pairs."""
        matrix = self.hop_matrix()
        pairs, total = int(np.count_nonzero(matrix > 0)), int(np.maximum(matrix, 0).sum())
        unreachable = matrix.size - self.servers - pairs
        return Hops(int(matrix.max()), total / pairs if pairs else 0.0, unreachable)
