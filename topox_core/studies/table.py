"""The table of a study: a row a point, in the order of the design, for pages, commands and files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topox_core.runs.identity import code_version
from topox_core.studies.keys import Value
from topox_core.studies.keys import MEASURES
from topox_core.studies.point_rows import PointRow
from topox_core.studies.study_run import StudyResult


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
            **{name: measure_of(row, name) for name in names},
            "status": row.status or "missing",
            "message": row.message,
            "run": row.run,
            "version": version_words(row),
        }
        for row in result.rows
    ]


def measure_of(row: PointRow, name: str) -> float | None:
    """Return a measure of a row; None where the point is missing or has none."""
    return None if row.measures is None else row.measures.get(name)


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
        if (value := measure_of(row, name)) is not None
    ]
    if not having:
        return None
    sign = -1.0 if MEASURES[name].better == "most" else 1.0
    return min(having, key=lambda one: (sign * one[0], one[1].number))[1]


def axis_values(result: StudyResult, key: str) -> tuple[Value, ...]:
    """Return the different values that points have on an axis: numbers ascending, words as given."""
    place = [axis.key.name for axis in result.study.axes].index(key)
    seen = dict.fromkeys(row.point[place] for row in result.rows)
    values = [value for value in seen if value is not None]
    if all(isinstance(value, int | float) for value in values):
        return tuple(sorted(values))
    return tuple(values)
