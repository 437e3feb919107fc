"""Circuits that stand together on one switch, for how long, and the plan of all switches that they make up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.model.transfer_graph import FloatArray

Pair = tuple[int, int]  # an input and an output of a switch
# Below this share of the largest entry a difference is what rounding leaves.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Configuration:
    """A matching of inputs to outputs, ascending, and for how long it stands in ms."""

    circuits: tuple[Pair, ...]
    weight_ms: float

    def split(self, tau_ms: float) -> tuple[Configuration, Configuration] | None:
        """Return what stays and what goes when ``tau_ms`` are given away; None where nothing stays or goes."""
        if not 0 < tau_ms < self.weight_ms:
            return None
        return (
            Configuration(self.circuits, self.weight_ms - tau_ms),
            Configuration(self.circuits, tau_ms),
        )

    def joined(self, other: Configuration) -> Configuration:
        """Return one configuration of the same circuits that stands as long as both."""
        return Configuration(self.circuits, self.weight_ms + other.weight_ms)


@dataclass(frozen=True)
class DemandPlan:
    """Configurations of every switch in their order, each set up before it sends.

    Attributes
    ----------
    demand_ms
        Square matrix: time on one port from an input to an output.
    delay_ms
        Of every set-up; the first of a switch is free if ``first_free``.
    method
        How the plan came about, in words.
    """

    demand_ms: FloatArray
    delay_ms: float
    first_free: bool
    switches: tuple[tuple[Configuration, ...], ...]
    method: str

    @cached_property
    def starts_ms(self) -> tuple[tuple[float, ...], ...]:
        """When each configuration begins to send, per switch."""
        rows = []
        for configurations in self.switches:
            clock_ms, starts = -self.delay_ms if self.first_free else 0.0, []
            for one in configurations:
                clock_ms += self.delay_ms
                starts.append(clock_ms)
                clock_ms += one.weight_ms
            rows.append(tuple(starts))
        return tuple(rows)

    @cached_property
    def makespan_ms(self) -> float:
        """End of the last configuration."""
        return max(
            (
                starts[-1] + configurations[-1].weight_ms
                for starts, configurations in zip(self.starts_ms, self.switches, strict=True)
                if configurations
            ),
            default=0.0,
        )

    @property
    def configurations(self) -> int:
        """How many configurations all switches have."""
        return sum(map(len, self.switches))


def matching_of(column_of: NDArray[np.int32]) -> tuple[Pair, ...]:
    """Return the pairs of a matching given as each row's column, -1 for a row without one."""
    return tuple((i, j) for i, j in enumerate(column_of.tolist()) if j >= 0)
