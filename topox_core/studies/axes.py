"""The axes of a study: a key with the values that it takes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topox_core.errors import InputError, errors_at, printable, shown, unknown
from topox_core.io.ranges import is_number, is_whole
from topox_core.studies.keys import SEED, Key, Value

MAX_VALUES = 100_000
FORMS = ("values", "range", "log", "replicates")


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
        if other not in ("key", *FORMS):
            raise InputError(unknown(other, ("key", *FORMS)), item=item, field=printable(other))
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
    if not is_whole(given, 1, MAX_VALUES):
        problem = f"must be a whole number from 1 to {MAX_VALUES:,} (got {shown(given)})"
        raise InputError(problem, item=item, field="replicates")
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
