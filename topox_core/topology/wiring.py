"""Which optical switch each fixed circuit passes: circuits spread over planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.model.execution import Layout
from topox_core.model.transfer_graph import IntArray


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
        with one port a server and switch plane r is switch r.
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

    def ends_of(self, circuits: list[int]) -> tuple[IntArray, IntArray]:
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
    """Spread circuits over as many planes as the busiest server has ports.

    That many always do (Koenig: a bipartite multigraph is coloured with as many colours as its
    degree). Each circuit takes the first plane free at both ends, so a ring laid whole lies on one
    plane; where none is, an alternating chain of two planes is turned over.
    """
    ends = np.array([(a, b) for a, b, _ in circuits], np.int32).reshape(-1, 2)
    planes = (
        int(max(np.bincount(ends[:, 0]).max(), np.bincount(ends[:, 1]).max())) if len(ends) else 0
    )
    colouring = _Colouring(ends.tolist(), int(ends.max(initial=-1)) + 1)
    for k in range(len(circuits)):
        colouring.add(k, planes)
    return SwitchWiring(
        ends[:, 0].copy(),
        ends[:, 1].copy(),
        np.array([ring for *_, ring in circuits], np.bool_),
        np.array(colouring.plane, np.int32),
    )


def wiring_of(layout: Layout) -> SwitchWiring:
    """Return a wiring of a layout that came without one; no circuit counts as laid for a ring."""
    singles = [
        (a, b, False)
        for a, b, count in zip(*(ends.tolist() for ends in layout.links), strict=True)
        for _ in range(count)
    ]
    return wired(singles)


class _Colouring:
    """Planes so far; for each server the planes in use, as bits, out and in apart."""

    def __init__(self, ends: list[list[int]], servers: int) -> None:
        self.ends = ends
        self.plane = [-1] * len(ends)
        self.on: tuple[dict[tuple[int, int], int], ...] = (
            {},
            {},
        )  # (server, plane) -> circuit, out and in
        self.busy = ([0] * servers, [0] * servers)

    def add(self, k: int, planes: int) -> None:
        """Give circuit k the first plane free at both ends, making one free if there is none."""
        a, b = self.ends[k]
        both = _first_free(self.busy[0][a] | self.busy[1][b])
        if both >= planes:
            both = _first_free(self.busy[0][a])
            self._turn_over(b, both, _first_free(self.busy[1][b]))
        self._put(k, both)

    def _put(self, k: int, plane: int) -> None:
        self.plane[k] = plane
        for side, server in enumerate(self.ends[k]):
            self.on[side][server, plane] = k
            self.busy[side][server] |= 1 << plane

    def _take(self, k: int) -> int:
        plane = self.plane[k]
        for side, server in enumerate(self.ends[k]):
            del self.on[side][server, plane]
            self.busy[side][server] ^= 1 << plane
        return plane

    def _turn_over(self, server: int, p: int, q: int) -> None:
        """Swap planes p and q along the chain that enters ``server`` on p, which frees p there.

        The chain enters receivers on p and leaves senders on q; the new sender has p free, so it is
        never reached.
        """
        chain: list[int] = []
        at, side, plane = server, 1, p
        while (k := self.on[side].get((at, plane))) is not None:
            chain.append(k)
            at = self.ends[k][1 - side]
            side, plane = 1 - side, p + q - plane
        for k, plane in [(k, self._take(k)) for k in chain]:
            self._put(k, p + q - plane)


def _first_free(busy: int) -> int:
    """Return the position of the lowest bit that is not set."""
    return (~busy & (busy + 1)).bit_length() - 1
