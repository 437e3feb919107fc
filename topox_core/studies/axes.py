"""The axes of a study, each a key with the values that it takes, and which of their points are computed."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import (
    InputError,
    check_known,
    errors_at,
    errors_in_file,
    printable,
    refuse_if,
    shown,
    unknown,
)
from topox_core.io.limits import is_whole
from topox_core.schema.fields import setting
from topox_core.schema.records import from_values
from topox_core.studies.keys import SEED, Key, Value

MAX_VALUES = 100_000
FORMS = ("values", "range", "log", "replicates")
MAX_POINTS = 100_000
_Finite = Annotated[float, setting(ge=-1e300, le=1e300)]
_Count = Annotated[int, setting(ge=1, le=MAX_VALUES)]
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


@dataclass(frozen=True)
class _Span:
    """From where to where an axis goes, in steps or at so many points, as a file has it."""

    low: Annotated[_Finite, setting(key="from")]
    high: Annotated[_Finite, setting(key="to")]
    step: Annotated[float, setting(gt=0)] | None = None
    points: _Count | None = None

    def numbers(self, form: str) -> list[float]:
        """Return the numbers of a ``range``, or on a ``log`` axis; raises InputError."""
        low, high, log = self.low, self.high, form == "log"
        both = self.points is not None and self.step is not None
        refuse_if(
            (
                log and low <= 0,
                f"must be greater than 0 on a logarithmic axis (got {low:g})",
                "log.from",
            ),
            (low > high, f"is empty: from {low:g} to {high:g}", form),
            (both, "must have either a step or points", form),
            (log and self.points is None, "is missing", "log.points"),
        )
        if self.points is not None:
            spread = (np.geomspace if log else np.linspace)(low, high, self.points)
            return [float(f"{value:.12g}") for value in spread]
        step = 1.0 if self.step is None else self.step
        values = (high - low) / step + 1e-9 + 1  # a step that is small enough makes infinitely many
        words = f"{math.floor(values):,}" if values < MAX_VALUES**2 else "too many"
        refuse_if(
            (values >= MAX_VALUES + 1, f"has {words} values (limit {MAX_VALUES:,})"), field=form
        )
        return [float(f"{low + k * step:.12g}") for k in range(math.floor(values))]


@dataclass(frozen=True)
class _Entry:
    """An axis as a file has it."""

    key: str
    values: Annotated[tuple[Any, ...], setting(max_length=MAX_VALUES)] | None = None
    range: _Span | None = None
    log: _Span | None = None
    replicates: _Count | None = None


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
    found = from_values(_Entry, entry, "", item)
    if found.key not in keys:
        raise InputError(unknown_key(found.key, keys, "axis"), item=item, field="key")
    forms = [form for form in FORMS if getattr(found, form) is not None]
    refuse_if((len(forms) != 1, f"must have one of {', '.join(FORMS)}"), item=item)
    form, key = forms[0], keys[found.key]
    with errors_in_file(item=item):
        values = _values(form, getattr(found, form), key, subject_digest)
    return Axis(key, values, form, cast("dict[str, Any]", entry)[form])


def _values(form: str, given: Any, key: Key, subject_digest: str) -> tuple[Value, ...]:
    seeds, words = form == "replicates", form != "values" and not key.numeric
    refuse_if(
        (seeds and key.name != SEED, f"is for the axis {SEED}"),
        (words, f"must be a list of values: {key.name} is no number"),
        field=form,
    )
    if seeds:
        # The same for every point, so that differences can be taken seed by seed.
        return tuple(replicate_seed(subject_digest, k) for k in range(given))
    listed = given if form == "values" else given.numbers(form)
    if form != "values" and key.kind == "whole":
        listed = [float(math.floor(number)) for number in listed]
    with errors_at(field=form):
        values = tuple(key.value(one) for one in listed)
        times = Counter((type(value), value) for value in values)
        if form == "values" and len(times) < len(values):
            raise InputError(f"holds {shown(times.most_common(1)[0][0][1])} twice")
        refuse_if((not values, "is empty"))
    return tuple(value for _, value in times)


def unknown_key(name: object, keys: Mapping[str, Key], what: str) -> str:
    """Say that no such key can vary: the nearest one, or which begin alike."""
    if name is None:
        return "is missing"
    near = unknown(name, keys, what)
    if "did you mean" in near:
        return f"unknown {what} {shown(name)} (did you mean {near.split(chr(39))[1]}?)"
    starts = sorted({key.partition(".")[0] for key in keys})
    return f"unknown {what} {shown(name)} (this subject has keys of {', '.join(starts)})"


def replicate_seed(subject_digest: str, k: int) -> int:
    """Return the seed of a replicate, drawn from what the subject is."""
    drawn = hashlib.sha256(f"{subject_digest} seed {k}".encode()).digest()[:4]
    return int.from_bytes(drawn, "big") >> 1


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
        points = [list(point) for point in self.listed] if self.listed else self.count
        values = {"points": points, "seed": self.seed}
        return {"kind": self.kind, **{key: values[key] for key in KINDS[self.kind].keys}}

    def size(self, axes: Sequence[Axis]) -> int:
        """Return how many points there are."""
        return KINDS[self.kind].size(self, axes)

    def size_words(self, axes: Sequence[Axis]) -> str:
        """Return how the number of points comes about: ``40 x 4 x 3``."""
        if self.kind == "grid":
            return " x ".join(f"{len(axis.values):,}" for axis in axes)
        return KINDS[self.kind].words

    def too_large(self, axes: Sequence[Axis], most: int = MAX_POINTS) -> tuple[bool, str, str]:
        """Return the rule that it has no more points than there may be."""
        size = self.size(axes)
        problem = f"has {size:,} points (limit {most:,}): {self.size_words(axes)}"
        return size > most, problem, "design"

    def points(self, axes: Sequence[Axis]) -> tuple[Point, ...]:
        """Return the points, in their order; equal ones stay."""
        return KINDS[self.kind].points(self, axes)


def _one_at_a_time(_: Design, axes: Sequence[Axis]) -> tuple[Point, ...]:
    base: Point = (None,) * len(axes)
    each = ((k, value) for k, axis in enumerate(axes) for value in axis.values)
    return (base, *((*base[:k], value, *base[k + 1 :]) for k, value in each))


def _drawn(one: Design, axes: Sequence[Axis]) -> tuple[Point, ...]:
    draw = latin_hypercube if one.kind == "latin" else _uniform
    rows = draw(one.count, len(axes), one.seed)
    return tuple(
        tuple(axis.at(float(share)) for axis, share in zip(axes, row, strict=True)) for row in rows
    )


@dataclass(frozen=True)
class DesignKind:
    """How a kind of design chooses points: in words, its keys in a file, how many there are, and which."""

    words: str
    keys: tuple[str, ...]
    size: Callable[[Design, Sequence[Axis]], int]
    points: Callable[[Design, Sequence[Axis]], tuple[Point, ...]]


KINDS: Mapping[str, DesignKind] = {
    "grid": DesignKind(
        "every combination",
        (),
        lambda _, axes: prod(len(axis.values) for axis in axes),
        lambda _, axes: tuple(product(*(axis.values for axis in axes))),
    ),
    "random": DesignKind("drawn at random", ("points", "seed"), lambda one, _: one.count, _drawn),
    "latin": DesignKind("Latin hypercube", ("points", "seed"), lambda one, _: one.count, _drawn),
    "listed": DesignKind(
        "listed points", ("points",), lambda one, _: len(one.listed), lambda one, _: one.listed
    ),
    "one_at_a_time": DesignKind(
        "one axis at a time",
        (),
        lambda _, axes: 1 + sum(len(axis.values) for axis in axes),
        _one_at_a_time,
    ),
}
KIND_WORDS = {name: one.words for name, one in KINDS.items()}


def latin_hypercube(points: int, axes: int, seed: int) -> NDArray[np.float64]:
    """Return a Latin hypercube: shares (points, axes), one in each of ``points`` strata of every axis."""
    draws = np.random.Generator(np.random.PCG64(seed))
    strata = np.stack([draws.permutation(points) for _ in range(axes)], 1)
    return np.minimum((strata + draws.random((points, axes))) / points, np.nextafter(1.0, 0.0))


def _uniform(points: int, axes: int, seed: int) -> NDArray[np.float64]:
    return np.random.Generator(np.random.PCG64(seed)).random((points, axes))


def design_of(entry: Any, axes: Sequence[Axis]) -> Design:
    """Return a study's design; the number of points is checked, none is made.

    Raises
    ------
    InputError
        If it is none, or has too many points; the field is named.
    """
    refuse_if(
        (not isinstance(entry, dict), f"must be an object in braces (got {shown(entry)})"),
        field="design",
    )
    refuse_if(("kind" not in entry, "is missing"), field="design.kind")
    kind = entry["kind"]
    check_known(kind, KINDS, "kind", field="design.kind")
    for key in entry:
        check_known(key, ("kind", *KINDS[kind].keys), field=f"design.{printable(key)}")
    if kind == "listed":
        design = Design(kind, listed=_listed_points(entry.get("points"), axes))
    elif kind in ("random", "latin"):
        count, seed = entry.get("points"), entry.get("seed", 0)
        at_least = "must be a whole number of at least"
        refuse_if(
            (not is_whole(count, 1, 10**12), f"{at_least} 1 (got {shown(count)})", "design.points"),
            (not is_whole(seed, 0, 2**63 - 1), f"{at_least} 0 (got {shown(seed)})", "design.seed"),
        )
        design = Design(kind, entry["points"], seed)
    else:
        design = Design(kind)
    refuse_if(design.too_large(axes))
    return design


def _listed_points(given: Any, axes: Sequence[Axis]) -> tuple[Point, ...]:
    entries = given if isinstance(given, list) else []
    count = len(entries)
    refuse_if(
        (not count, f"must be a list of points in brackets (got {shown(given)})"),
        (count > MAX_POINTS, f"has {count:,} points (limit {MAX_POINTS:,})"),
        field="design.points",
    )
    points = []
    for number, entry in enumerate(entries, 1):
        place = f"design.points {number}"
        with errors_at(field=place):
            refuse_if(
                (
                    not isinstance(entry, list) or len(entry) != len(axes),
                    f"must be a list of {len(axes)} values, one an axis (got {shown(entry)})",
                )
            )
            points.append(
                tuple(
                    None if value is None else axis.key.value(value)
                    for axis, value in zip(axes, entry, strict=True)
                )
            )
    return tuple(points)
