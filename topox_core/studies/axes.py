"""The axes of a study, each a key with the values that it takes, and which of their points are computed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError, check_known, errors_at, printable, shown, unknown
from topox_core.io.ranges import check_whole, is_number, is_whole
from topox_core.studies.keys import SEED, Key, Value

MAX_VALUES = 100_000
FORMS = ("values", "range", "log", "replicates")
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
class Axis:
    """One key of a study and its values.

    Attributes
    ----------
    key
        What varies.
    values
        In the order given; ascending where a range gave them.
    form
        How the file gives them: ``values``, ``range``, ``log`` or ``replicates``.
    given
        What the file has there.
    """

    key: Key
    values: tuple[Value, ...]
    form: str = "values"
    given: Any = None

    @property
    def continuous(self) -> bool:
        """Whether a drawn design may take any number between the ends, not only the values listed."""
        return self.form == "log" or (self.form == "range" and "points" in self.given)

    def at(self, share: float) -> Value:
        """Return the value at a share (0 to below 1) of the axis, as drawn designs take it."""
        if not self.continuous:
            return self.values[int(share * len(self.values))]
        low, high = float(self.given["from"]), float(self.given["to"])
        value = low * (high / low) ** share if self.form == "log" else low + (high - low) * share
        return math.floor(value) if self.key.kind == "whole" else value

    def as_record(self) -> dict[str, Any]:
        """Return it as the file has it."""
        given = list(self.values) if self.form == "values" else self.given
        return {"key": self.key.name, self.form: given}


def axis_of(entry: object, number: int, keys: Mapping[str, Key], subject_digest: str) -> Axis:
    """Return one entry of a study's list of axes.

    Parameters
    ----------
    number
        Of the entry, from 1.
    keys
        What the subject may vary.
    subject_digest
        What the seeds of ``replicates`` hang on.

    Raises
    ------
    InputError
        If it is none; item and field are named.
    """
    item = f"axis {number}"
    if not isinstance(entry, dict):
        raise InputError(f"must be an object in braces (got {shown(entry)})", item=item)
    name = entry.get("key")
    if not isinstance(name, str) or name not in keys:
        raise InputError(unknown_key(name, keys, "axis"), item=item, field="key")
    forms = [form for form in FORMS if form in entry]
    for other in entry:
        check_known(other, ("key", *FORMS), item=item, field=printable(other))
    if len(forms) != 1:
        raise InputError(f"must have one of {', '.join(FORMS)}", item=item)
    form, key = forms[0], keys[name]
    given = entry[form]
    if form == "values":
        values = _listed(given, key, item)
    elif form == "replicates":
        values = _replicates(given, key, item, subject_digest)
    else:
        values = _ranged(form, given, key, item)
    return Axis(key, values, form, given)


def unknown_key(name: object, keys: Mapping[str, Key], what: str) -> str:
    """Say that no such key can vary: the nearest one, or which begin alike."""
    if name is None:
        return "is missing"
    near = unknown(name, keys, what)
    if "did you mean" in near:
        return f"unknown {what} {shown(name)} (did you mean {near.split(chr(39))[1]}?)"
    starts = sorted({key.partition(".")[0] for key in keys})
    return f"unknown {what} {shown(name)} (this subject has keys of {', '.join(starts)})"


def _listed(given: object, key: Key, item: str) -> tuple[Value, ...]:
    if not isinstance(given, list):
        problem = f"must be a list in brackets (got {shown(given)})"
        raise InputError(problem, item=item, field="values")
    if not given:
        raise InputError("is empty", item=item, field="values")
    if len(given) > MAX_VALUES:
        problem = f"has {len(given):,} values (limit {MAX_VALUES:,})"
        raise InputError(problem, item=item, field="values")
    values = tuple(_value(one, key, item, "values") for one in given)
    seen: set[tuple[type, Value]] = set()
    for value in values:
        if (type(value), value) in seen:
            raise InputError(f"holds {shown(value)} twice", item=item, field="values")
        seen.add((type(value), value))
    return values


def _value(given: object, key: Key, item: str, field: str) -> Value:
    with errors_at(item=item, field=field):
        return key.value(given)


def _replicates(given: object, key: Key, item: str, subject_digest: str) -> tuple[Value, ...]:
    """Return seeds that are the same for every point, so that differences can be taken seed by seed."""
    if key.name != SEED:
        raise InputError(f"is for the axis {SEED}", item=item, field="replicates")
    check_whole(given, 1, MAX_VALUES, item=item, field="replicates")
    assert isinstance(given, int)
    return tuple(replicate_seed(subject_digest, k) for k in range(given))


def replicate_seed(subject_digest: str, k: int) -> int:
    """Return the seed of a replicate, drawn from what the subject is."""
    drawn = hashlib.sha256(f"{subject_digest} seed {k}".encode()).digest()[:4]
    return int.from_bytes(drawn, "big") >> 1


def _ranged(form: str, given: object, key: Key, item: str) -> tuple[Value, ...]:
    if not key.numeric:
        problem = f"must be a list of values: {key.name} is no number"
        raise InputError(problem, item=item, field=form)
    if not isinstance(given, dict):
        problem = f"must be an object in braces (got {shown(given)})"
        raise InputError(problem, item=item, field=form)
    needed = ("from", "to")
    for name in given:
        if name not in (*needed, "step", "points"):
            known = (*needed, "points") if form == "log" else (*needed, "step", "points")
            raise InputError(unknown(name, known), item=item, field=f"{form}.{printable(name)}")
    for name in needed:
        if name not in given:
            raise InputError("is missing", item=item, field=f"{form}.{name}")
        if not is_number(given[name], -1e300):
            problem = f"must be a finite number (got {shown(given[name])})"
            raise InputError(problem, item=item, field=f"{form}.{name}")
    low, high = float(given["from"]), float(given["to"])
    if form == "log" and low <= 0:
        problem = f"must be greater than 0 on a logarithmic axis (got {low:g})"
        raise InputError(problem, item=item, field="log.from")
    if low > high:
        raise InputError(f"is empty: from {low:g} to {high:g}", item=item, field=form)
    numbers = _numbers(form, given, low, high, item)
    if key.kind == "whole":
        numbers = [float(math.floor(number)) for number in numbers]
    return tuple(dict.fromkeys(_value(number, key, item, form) for number in numbers))


def _numbers(
    form: str, given: Mapping[str, Any], low: float, high: float, item: str
) -> Sequence[float]:
    if form == "log" or "points" in given:
        if "step" in given:
            raise InputError("must have either a step or points", item=item, field=form)
        points = given.get("points")
        if not is_whole(points, 1, MAX_VALUES):
            words = shown(points) if "points" in given else "nothing"
            problem = f"must be a whole number from 1 to {MAX_VALUES:,} (got {words})"
            raise InputError(problem, item=item, field=f"{form}.points")
        assert isinstance(points, int)
        spread = (np.geomspace if form == "log" else np.linspace)(low, high, points)
        return [float(f"{value:.12g}") for value in spread]
    step = given.get("step", 1)
    if not is_number(step, 0.0, above=True):
        problem = f"must be a number above 0 (got {shown(step)})"
        raise InputError(problem, item=item, field="range.step")
    values = (high - low) / step + 1e-9 + 1  # a step that is small enough makes infinitely many
    if values >= MAX_VALUES + 1:
        words = f"{math.floor(values):,}" if values < MAX_VALUES**2 else "too many"
        problem = f"has {words} values (limit {MAX_VALUES:,})"
        raise InputError(problem, item=item, field="range")
    return [float(f"{low + k * step:.12g}") for k in range(math.floor(values))]


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
        check_known(key, ("kind", *KINDS[kind]), field=f"design.{printable(key)}")
    if kind == "listed":
        design = Design(kind, listed=_listed_points(entry.get("points"), axes))
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


def _listed_points(given: object, axes: Sequence[Axis]) -> tuple[Point, ...]:
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
