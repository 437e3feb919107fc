"""What several seeds of one setting say together: their mean, the least and the most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SeedPoint:
    """A measure at one place along the axis, over the seeds that are there.

    Attributes
    ----------
    at
        Position of the value on the axis.
    runs
        What a click is given.
    """

    at: int
    mean: float
    least: float
    most: float
    seeds: int
    runs: object = None


@dataclass(frozen=True)
class SeedLine:
    """One line: its words, the fabric whose look it has (or none), its points along the axis."""

    name: str
    points: tuple[SeedPoint, ...]
    fabric: str = ""


def seed_lines_of(
    rows: Sequence[tuple[str, int, float, object]], fabrics: Mapping[str, str] | None = None
) -> tuple[SeedLine, ...]:
    """Return rows of (line, position along the axis, value, run) as lines over their seeds, in the order they came.

    Parameters
    ----------
    fabrics
        By the line's name the fabric whose look it has.
    """
    lines: dict[str, dict[int, list[tuple[float, object]]]] = {}
    for name, at, value, run in rows:
        lines.setdefault(name, {}).setdefault(at, []).append((value, run))
    return tuple(
        SeedLine(
            name,
            tuple(
                SeedPoint(
                    at,
                    math.fsum(value for value, _ in seeds) / len(seeds),
                    min(value for value, _ in seeds),
                    max(value for value, _ in seeds),
                    len(seeds),
                    [run for _, run in seeds],
                )
                for at, seeds in sorted(points.items())
            ),
            (fabrics or {}).get(name, ""),
        )
        for name, points in lines.items()
    )
