"""A static circuit layout: circuits between servers, and the routes over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.model.transfer_graph import IntArray


@dataclass(frozen=True)
class Layout:
    """Circuits fixed before the job.

    Attributes
    ----------
    circuits
        Matrix servers x servers: parallel circuits from source (row) to destination (column); they
        add up.
    routes
        For (source, destination) the servers a transfer passes, both ends included, one or more
        equal-share paths: ``routes[(a, b)] == ((a, c, b),)``. A pair that never talks may be
        absent.
    name
        How it was made, in words.
    """

    circuits: NDArray[np.int32]
    routes: dict[tuple[int, int], tuple[tuple[int, ...], ...]]
    name: str = ""

    @property
    def servers(self) -> int:
        """Number of servers."""
        return len(self.circuits)

    @cached_property
    def links(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return (source, destination, circuits) of every link, by source, then destination."""
        source, destination = np.nonzero(self.circuits)
        return (
            source.astype(np.int32),
            destination.astype(np.int32),
            self.circuits[source, destination].astype(np.int32),
        )
