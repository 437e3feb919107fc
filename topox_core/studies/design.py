"""Which points of its axes a study computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError, errors_at, printable, shown, unknown
from topox_core.io.ranges import is_whole
from topox_core.studies.axes import Axis
from topox_core.studies.keys import Value

MAX_POINTS = 100_000
KINDS: Mapping[str, tuple[str, ...]] = {
    "grid": (),
    "random": ("points", "seed"),
    "latin": ("points", "seed"),
    "listed": ("points",),
    "one_at_a_time": (),
}
KIND_WORDS = {
    "grid": "every combination",
    "random": "drawn at random",
    "latin": "Latin hypercube",
    "listed": "listed points",
    "one_at_a_time": "one axis at a time",
}

# One value an axis; None leaves an axis at its base.
Point = tuple["Value | None", ...]


@dataclass(frozen=True)
class Design:
    """How points are chosen.

    Attributes
    ----------
    kind
        ``grid`` (every combination, the last axis fastest), ``random``, ``latin`` (Latin
        hypercube: every axis is cut into as many strata as there are points, and each is used
        once), ``listed``, or ``one_at_a_time`` (the base, then every value of each axis with all
        others at their base: a tornado).
    count, seed
        Of drawn designs.
    listed
        The points of a listed one, in the axes' order.
    """

    kind: str = "grid"
    count: int = 0
    seed: int = 0
    listed: tuple[Point, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """Return it as the file has it."""
        if self.kind == "listed":
            return {"kind": self.kind, "points": [list(point) for point in self.listed]}
        if self.kind in ("random", "latin"):
            return {"kind": self.kind, "points": self.count, "seed": self.seed}
        return {"kind": self.kind}

    def size(self, axes: Sequence[Axis]) -> int:
        """Return how many points there are."""
        if self.kind == "grid":
            return prod(len(axis.values) for axis in axes)
        if self.kind == "one_at_a_time":
            return 1 + sum(len(axis.values) for axis in axes)
        return len(self.listed) if self.kind == "listed" else self.count

    def size_words(self, axes: Sequence[Axis]) -> str:
        """Return how the number of points comes about: ``40 x 4 x 3``."""
        if self.kind == "grid":
            return " x ".join(f"{len(axis.values):,}" for axis in axes)
        return KIND_WORDS[self.kind]

    def points(self, axes: Sequence[Axis]) -> tuple[Point, ...]:
        """Return the points, in their order; equal ones stay."""
        if self.kind == "grid":
            return tuple(product(*(axis.values for axis in axes)))
        if self.kind == "listed":
            return self.listed
        if self.kind == "one_at_a_time":
            base: list[Value | None] = [None] * len(axes)
            return (
                tuple(base),
                *(
                    (*base[:k], value, *base[k + 1 :])
                    for k, axis in enumerate(axes)
                    for value in axis.values
                ),
            )
        draw = latin_hypercube if self.kind == "latin" else _uniform
        shares = draw(self.count, len(axes), self.seed)
        return tuple(
            tuple(axis.at(float(share)) for axis, share in zip(axes, row, strict=True))
            for row in shares
        )


def latin_hypercube(points: int, axes: int, seed: int) -> NDArray[np.float64]:
    """Return a Latin hypercube: shares (points, axes), one in each of ``points`` strata of every axis."""
    draws = np.random.Generator(np.random.PCG64(seed))
    strata = np.stack([draws.permutation(points) for _ in range(axes)], 1)
    return np.minimum((strata + draws.random((points, axes))) / points, np.nextafter(1.0, 0.0))


def _uniform(points: int, axes: int, seed: int) -> NDArray[np.float64]:
    return np.random.Generator(np.random.PCG64(seed)).random((points, axes))


def design_of(entry: object, axes: Sequence[Axis]) -> Design:
    """Return a study's design; the number of points is checked, none is made.

    Raises
    ------
    InputError
        If it is none, or has too many points; the field is named.
    """
    if not isinstance(entry, dict):
        raise InputError(f"must be an object in braces (got {shown(entry)})", field="design")
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        problem = unknown(kind, KINDS, "kind") if "kind" in entry else "is missing"
        raise InputError(problem, field="design.kind")
    for key in entry:
        if key not in ("kind", *KINDS[kind]):
            problem = unknown(key, ("kind", *KINDS[kind]))
            raise InputError(problem, field=f"design.{printable(key)}")
    if kind == "listed":
        design = Design(kind, listed=_listed(entry.get("points"), axes))
    elif kind in ("random", "latin"):
        for key, least, most in (("points", 1, 10**12), ("seed", 0, 2**63 - 1)):
            if not is_whole(entry.get(key, 0 if key == "seed" else None), least, most):
                problem = (
                    f"must be a whole number of at least {least} (got {shown(entry.get(key))})"
                )
                raise InputError(problem, field=f"design.{key}")
        design = Design(kind, entry["points"], entry.get("seed", 0))
    else:
        design = Design(kind)
    size = design.size(axes)
    if size > MAX_POINTS:
        words = design.size_words(axes)
        raise InputError(f"has {size:,} points (limit {MAX_POINTS:,}): {words}", field="design")
    return design


def _listed(given: object, axes: Sequence[Axis]) -> tuple[Point, ...]:
    if not isinstance(given, list) or not given:
        problem = f"must be a list of points in brackets (got {shown(given)})"
        raise InputError(problem, field="design.points")
    if len(given) > MAX_POINTS:
        raise InputError(f"has {len(given):,} points (limit {MAX_POINTS:,})", field="design.points")
    points = []
    for number, entry in enumerate(given, 1):
        place = f"design.points {number}"
        if not isinstance(entry, list) or len(entry) != len(axes):
            problem = f"must be a list of {len(axes)} values, one an axis (got {shown(entry)})"
            raise InputError(problem, field=place)
        with errors_at(field=place):
            points.append(
                tuple(
                    None if value is None else axis.key.value(value)
                    for axis, value in zip(axes, entry, strict=True)
                )
            )
    return tuple(points)
