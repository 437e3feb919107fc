"""Which switch carries which configuration: the longest first, then evened out by moving and splitting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]  # an input and an output of a switch
# Below this share of the largest entry a difference is what rounding leaves.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Configuration:
    """A matching of inputs to outputs, ascending, and for how long it stands in ms.

    Two of equal circuits need no set-up between them; a part of one may go to another switch.
    """

    circuits: tuple[Pair, ...]
    weight_ms: float

    def split(self, tau_ms: float) -> tuple[Self, Self] | None:
        """Return what stays and what goes when about ``tau_ms`` are given away; None where nothing stays or goes."""
        if not 0 < tau_ms < self.weight_ms:
            return None
        stays, goes = (replace(self, weight_ms=ms) for ms in (self.weight_ms - tau_ms, tau_ms))
        return stays, goes

    def joined(self, other: Self) -> Self:
        """Return one configuration for both, whose circuits are equal."""
        return replace(self, weight_ms=self.weight_ms + other.weight_ms)


@dataclass(frozen=True)
class DemandPlan:
    """Configurations of every switch in their order, each set up before it sends.

    Attributes
    ----------
    delay_ms
        Of every set-up; the first of a switch is free if ``first_free``.
    method
        How the plan came about, in words.
    """

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


# Changes that even out the switches, for each configuration.
MAX_CHANGES = 64
GAIN = 1e-9  # as a share of the longest switch: less is no gain


One = TypeVar("One", bound=Configuration)
# How long the longer of two switches then takes in ms, and what the longest and the shortest become.
_Change = tuple[float, list[One], list[One]]


@dataclass(frozen=True)
class SwitchTimes:
    """How long a switch takes: its configurations and a delay for each, the first one free if so asked."""

    delay_ms: float
    first_free: bool

    def load_ms(self, configurations: Sequence[Configuration]) -> float:
        """Return when the last of its configurations ends."""
        paid = len(configurations) - (1 if self.first_free and configurations else 0)
        return sum(one.weight_ms for one in configurations) + paid * self.delay_ms


def assigned(configurations: Iterable[One], switches: int, times: SwitchTimes) -> list[list[One]]:
    """Return the configurations of each switch: the longest first, each to the switch with the least load (Graham)."""
    carried: list[list[One]] = [[] for _ in range(switches)]
    load_ms = [0.0] * switches
    for one in sorted(configurations, key=lambda one: -one.weight_ms):
        switch = min(range(switches), key=lambda r: load_ms[r])
        carried[switch].append(one)
        load_ms[switch] += one.weight_ms + times.delay_ms
    return carried


def equalised(
    carried: list[list[One]],
    times: SwitchTimes,
    exchanges: bool = False,
    most: int | None = None,
) -> list[list[One]]:
    """Return the same with the longest switch relieved by the shortest one, again and again until nothing helps.

    Of the longest switch a configuration moves whole, or half of what the two differ by moves in a
    part of one (after Spectra, arXiv 2603.07373); with ``exchanges`` two may also change places.
    Each step takes the change with the smallest new maximum of the two.

    Parameters
    ----------
    most
        Changes at most; by default :data:`MAX_CHANGES` for each configuration.
    """
    carried = [list(mine) for mine in carried]
    if len(carried) < 2:
        return carried
    limit = MAX_CHANGES * (1 + sum(map(len, carried))) if most is None else most
    load_ms = [times.load_ms(mine) for mine in carried]
    for _ in range(limit):
        high = max(range(len(carried)), key=lambda r: load_ms[r])
        low = min(range(len(carried)), key=lambda r: load_ms[r])
        changes = _changes(carried[high], carried[low], times, exchanges)
        after_ms, long, short = min(
            changes, key=lambda change: change[0], default=(math.inf, [], [])
        )
        if after_ms >= load_ms[high] * (1 - GAIN):
            break
        carried[high], carried[low] = long, short
        load_ms[high], load_ms[low] = times.load_ms(long), times.load_ms(short)
    return carried


def _changes(
    long: list[One], short: list[One], times: SwitchTimes, exchanges: bool
) -> Iterator[_Change[One]]:
    """Yield what could be done about a long switch and a short one."""
    differ_ms = times.load_ms(long) - times.load_ms(short)
    standing = {one.circuits: k for k, one in enumerate(short)}
    for k, one in enumerate(long):
        rest = [*long[:k], *long[k + 1 :]]
        same = standing.get(one.circuits)
        yield _change(rest, _with(short, one, same), times)
        extra_ms = 0.0 if same is not None or (times.first_free and not short) else times.delay_ms
        parts = one.split((differ_ms - extra_ms) / 2)
        if parts is not None:
            stays, goes = parts
            yield _change([*long[:k], stays, *long[k + 1 :]], _with(short, goes, same), times)
        if exchanges:
            for m, other in enumerate(short):
                if other.weight_ms < one.weight_ms:
                    yield _change(
                        [*long[:k], other, *long[k + 1 :]],
                        [*short[:m], one, *short[m + 1 :]],
                        times,
                    )


def _change(long: list[One], short: list[One], times: SwitchTimes) -> _Change[One]:
    return max(times.load_ms(long), times.load_ms(short)), long, short


def _with(short: list[One], one: One, same: int | None) -> list[One]:
    """Return a switch's configurations with one more, joined with the one of equal circuits."""
    if same is None:
        return [*short, one]
    return [*short[:same], short[same].joined(one), *short[same + 1 :]]
