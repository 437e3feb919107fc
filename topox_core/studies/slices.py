"""The table of a study, a row per point in the order of the design, and the study seen along some of its axes.

Along axes: a measure, or how it compares with another fabric's, at chosen values of the rest.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.fabrics.comparison.compare import fastest_of
from topox_core.io.assertions import failures
from topox_core.model.transfer_graph import FloatArray
from topox_core.runs.identity import code_version
from topox_core.studies.axes import Point
from topox_core.studies.keys import (
    COUNTED,
    LABEL,
    MEASURES,
    SEED,
    Value,
    axis_words,
    named_value,
    value_label,
)
from topox_core.studies.study_run import PointRow, StudyResult
from topox_core.text.numbers import uncapitalised

FABRIC_KEY = "fabric"
BASE: Value = ""  # stands for the subject's own value, where an axis is at its base


@dataclass(frozen=True)
class Slice:
    """Which rows of a study are looked at.

    Attributes
    ----------
    measure
        What is looked at.
    at
        By key of an axis, the one value that rows have there.
    against
        A fabric: the measure is then divided by that of this fabric at the same values otherwise,
        seed by seed.
    """

    measure: str
    at: Mapping[str, Value]
    against: str = ""


@dataclass(frozen=True)
class Cell:
    """What is known of one place: the mean over its rows, how many have a value, and their runs.

    Attributes
    ----------
    mean
        None where no row has a value yet, or can have one.
    failed
        Whether all of its rows are there and none has a value.
    message
        Why not, of the first row that failed.
    """

    mean: float | None
    least: float | None
    most: float | None
    values: int
    runs: tuple[int, ...]
    failed: bool
    message: str = ""


def keys_of(result: StudyResult) -> tuple[str, ...]:
    """Return the keys of the axes, in order."""
    return tuple(axis.key.name for axis in result.study.axes)


def place(row: PointRow, keys: Sequence[str], key: str) -> Value:
    """Return a row's value on an axis; :data:`BASE` where the axis is at its base."""
    value = row.point[keys.index(key)]
    return BASE if value is None else value


def without(point: Point, k: int) -> Point:
    """Return a point with its k-th axis at the base."""
    return (*point[:k], None, *point[k + 1 :])


def cells(result: StudyResult, of: Slice, across: str, up: str) -> dict[tuple[Value, Value], Cell]:
    """Return the cells of a map over two axes: means over the seeds and whatever else is not fixed."""
    keys = keys_of(result)
    k = keys.index(FABRIC_KEY) if of.against else 0
    # Of the fabric compared with, by the values of all other axes.
    others = {
        without(row.point, k): row.measure(of.measure)
        for row in result.rows
        if of.against and row.point[k] == of.against
    }
    found: dict[tuple[Value, Value], list[tuple[PointRow, float | None]]] = {}
    for row in result.rows:
        if all(place(row, keys, key) == value for key, value in of.at.items() if key in keys):
            value = row.measure(of.measure)
            if of.against and value is not None:
                other = others.get(without(row.point, k))
                value = value / other if other else None
            at = place(row, keys, across), place(row, keys, up)
            found.setdefault(at, []).append((row, value))
    return {at: _cell(rows) for at, rows in found.items()}


def _cell(rows: Sequence[tuple[PointRow, float | None]]) -> Cell:
    values = [value for _, value in rows if value is not None]
    runs = tuple(row.run for row, _ in rows if row.run is not None)
    failed = not values and all(row.done for row, _ in rows)
    message = next((row.message for row, _ in rows if row.failed), "")
    if not values:
        return Cell(None, None, None, 0, runs, failed, message)
    mean = math.fsum(values) / len(values)
    return Cell(mean, min(values), max(values), len(values), runs, False, message)


def fastest_at(result: StudyResult) -> dict[Point, tuple[str, ...]]:
    """Return which fabrics are fastest in each setting (a point whose fabric is None) in which every fabric has its answer.

    The ideal switch, which nobody builds, does not take part.
    """
    keys = keys_of(result)
    k = keys.index(FABRIC_KEY)
    fabrics = {row.point[k] for row in result.rows} - {"ideal"}
    settings: dict[Point, dict[Value | None, float | None]] = {}
    for row in result.rows:
        if row.point[k] in fabrics and row.done:
            setting = settings.setdefault(without(row.point, k), {})
            setting[row.point[k]] = row.measure("iteration_ms")
    return {
        rest: fastest_of({str(f): v for f, v in values.items() if v is not None})
        for rest, values in settings.items()
        if set(values) == fabrics
    }


def wins(firsts: Iterable[tuple[str, ...]]) -> Counter[str]:
    """Return in how many settings each fabric is the only one that is fastest, by more than what counts as equal."""
    return Counter(first[0] for first in firsts if len(first) == 1)


# -- the Pareto front: the points that no other point beats in one measure without losing in another --

# A measure of some points; None where a point has no value of it.
Column = Sequence[float | None]


def front_of(columns: Sequence[Column], more_is_better: Sequence[bool] = ()) -> NDArray[np.bool_]:
    """Return of each point whether it is on the front over some measures, one column each.

    Equal points are all on it, or none is; a point without a value of a measure is not.

    Parameters
    ----------
    more_is_better
        Of each measure; by default less is better in all of them.
    """
    signs = [-1.0 if better else 1.0 for better in more_is_better or [False] * len(columns)]
    values = np.array(
        [
            [np.nan if value is None else sign * value for value in column]
            for sign, column in zip(signs, columns, strict=True)
        ],
        np.float64,
    ).T
    known = np.isfinite(values).all(axis=1)
    on = np.zeros(len(values), bool)
    on[known] = _least(values[known])
    return on


def _least(values: FloatArray) -> NDArray[np.bool_]:
    """Return which rows no other row is below in one column and above in none.

    In order of the first column, then the next: no row can be beaten by one that comes later.
    """
    on = np.zeros(len(values), bool)
    kept = np.empty((0, values.shape[1]))
    for row in np.lexsort(values.T[::-1]):
        as_good = np.all(kept <= values[row], axis=1)
        if not np.any(as_good & np.any(kept < values[row], axis=1)):
            kept = np.vstack([kept, values[row]])
            on[row] = True
    return on


def steps_of(x: Column, y: Column, more_is_better: Sequence[bool] = ()) -> tuple[int, ...]:
    """Return the front of two measures as places, in order of the first; of equal points, one is enough for a line, the first."""
    front = front_of([x, y], more_is_better)
    first = {(x[k], y[k]): k for k in reversed(range(len(x))) if front[k]}
    return tuple(first[place] for place in sorted(first, key=lambda place: place[0] or 0.0))


@dataclass(frozen=True)
class CloudRows:
    """Rows with a value in two measures (and a third), and which of them no other one beats.

    Attributes
    ----------
    steps
        The front in the first two measures alone, in order of the first, as positions.
    missing
        How many rows that are there have no value in one of them.
    """

    rows: tuple[PointRow, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    on_front: tuple[bool, ...]
    steps: tuple[int, ...]
    missing: int


def cloud(result: StudyResult, across: str, up: str, third: str = "") -> CloudRows:
    """Return all rows by two measures with their front; with a third measure the front is over all three."""
    names = [name for name in (across, up, third) if name]
    done = [row for row in result.rows if row.done]
    columns = [[row.measure(name) for row in done] for name in names]
    better = [MEASURES[name].better == "most" for name in names]
    on_front = front_of(columns, better)
    known = [k for k in range(len(done)) if all(column[k] is not None for column in columns)]
    x = [float(columns[0][k] or 0.0) for k in known]
    y = [float(columns[1][k] or 0.0) for k in known]
    return CloudRows(
        tuple(done[k] for k in known),
        tuple(x),
        tuple(y),
        tuple(bool(on_front[k]) for k in known),
        steps_of(x, y, better[:2]),
        len(done) - len(known),
    )


@dataclass(frozen=True)
class SeedLine:
    """One line: its words, what is known at the places along the axis that have a value, the fabric whose look it has (or none)."""

    name: str
    cells: Mapping[int, Cell]
    fabric: str = ""


THIS_VERSION, OTHER_VERSION = "this version", "another version"


def records(result: StudyResult, every_measure: bool = False) -> list[dict[str, Any]]:
    """Return flat rows: point, the axes' values, the measures asked for, state, run and version.

    Parameters
    ----------
    every_measure
        All that were kept instead of those that the study asks for.
    """
    axes = [axis.key.name for axis in result.study.axes]
    names = list(result.study.measures)
    if every_measure:
        known = {name for row in result.rows for name in row.measures or ()}
        names = [name for name in MEASURES if name in known]
    return [
        {
            "point": row.number,
            **dict(zip(axes, row.point, strict=True)),
            **{name: row.measure(name) for name in names},
            "status": row.status or "missing",
            "message": row.message,
            "run": row.run,
            "version": version_words(row),
        }
        for row in result.rows
    ]


def failed_assertions(result: StudyResult) -> list[str]:
    """Return a line for each assertion of the study that a computed point does not keep."""
    asserted = {one.measure for one in result.study.assertions}
    return [
        line
        for row in result.rows
        if row.status
        for line in failures(
            result.study.assertions,
            {name: row.measure(name) for name in asserted},
            f"point {row.number}: ",
        )
    ]


def in_unit(name: str, value: float | None) -> float | None:
    """Return a measure's value as its title counts it: a share in percent."""
    return 100.0 * value if value is not None and MEASURES[name].share else value


def version_words(row: PointRow) -> str:
    """Say whether this version of the code computed a row; empty where nothing is there."""
    if not row.version:
        return ""
    return THIS_VERSION if row.version == code_version() else OTHER_VERSION


def best(result: StudyResult, name: str, rows: Sequence[PointRow] | None = None) -> PointRow | None:
    """Return the row with the best value of a measure, the first of equal ones; None if none has it."""
    having = [
        (value, row)
        for row in (result.rows if rows is None else rows)
        if (value := row.measure(name)) is not None
    ]
    if not having:
        return None
    sign = -1.0 if MEASURES[name].better == "most" else 1.0
    return min(having, key=lambda one: (sign * one[0], one[1].number))[1]


def at_most(result: StudyResult, measure: str) -> tuple[str, dict[str, float]] | None:
    """Return means of a measure at the largest value of an axis of numbers, by the values of an axis of words.

    Returns
    -------
    tuple or None
        The largest value in words, and the means; None where a study, seeds and labels apart, has not just such two axes.
    """
    keys = [axis.key for axis in result.study.axes if axis.key.name not in (SEED, LABEL)]
    pair = sorted(keys, key=lambda key: not key.numeric)
    if len(pair) != 2 or not pair[0].numeric or pair[1].kind != "choice":
        return None
    number, word = pair
    largest = axis_values(result, number.name)[-1]
    where = named_value(number, largest)
    if number.name not in COUNTED:
        where = f"{uncapitalised(axis_words(number))} {value_label(number, largest)}"
    found = cells(result, Slice(measure, {number.name: largest}), word.name, word.name)
    means = {at: one.mean for (at, _), one in found.items() if one.mean is not None}
    return where, {value_label(word, at): mean for at, mean in means.items()}


def axis_values(result: StudyResult, key: str) -> tuple[Value, ...]:
    """Return the different values that points have on an axis: numbers ascending, words as given."""
    place = [axis.key.name for axis in result.study.axes].index(key)
    seen = dict.fromkeys(row.point[place] for row in result.rows)
    values = [value for value in seen if value is not None]
    if all(isinstance(value, int | float) for value in values):
        return tuple(sorted(values))
    return tuple(values)
