"""Parallel coordinates: every run of a study as one line through all its axes and measures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.palette import Theme
from topox_core.figures.study_axes import is_logarithmic
from topox_core.figures.template import frame, log_ticks, margins
from topox_core.text.numbers import short

# More lines take a browser without a graphics card more than two seconds and show no more.
MOST_LINES = 1_000
MOST_TICKS = 8
HEIGHT = 400


@dataclass(frozen=True)
class Upright:
    """One upright axis: its words and a value a run.

    Attributes
    ----------
    labels
        How values are written that are no numbers on a scale, by value; empty for numbers.
    """

    title: str
    values: tuple[Any, ...]
    labels: Mapping[Any, str] | None = None

    @property
    def logarithmic(self) -> bool:
        """Whether its numbers are drawn on a logarithmic scale."""
        return self.labels is None and is_logarithmic([v for v in self.values if v is not None])

    def places(self) -> NDArray[np.float64]:
        """Return where each run crosses it; NaN where it has no value."""
        if self.labels is not None:
            at = {value: k for k, value in enumerate(self.labels)}
            return np.array([at[value] for value in self.values], np.float64)
        return np.array([np.nan if v is None else self.place(v) for v in self.values], np.float64)

    def place(self, value: float) -> float:
        """Return where a number stands on it."""
        return math.log10(value) if self.logarithmic else float(value)


def inside(axes: Sequence[Upright], ranges: Mapping[int, tuple[float, float]]) -> NDArray[np.bool_]:
    """Return which runs lie within the ranges that are set, by axis; a run without the value does not.

    A range is given in values; on an axis of labels in their positions.
    """
    runs = len(axes[0].values) if axes else 0
    within = np.ones(runs, bool)
    for number, (low, high) in ranges.items():
        one = axes[number]
        if one.labels is not None:
            values = one.places()
        else:
            values = np.array([np.nan if v is None else v for v in one.values], np.float64)
        with np.errstate(invalid="ignore"):
            # A slider's ends are rounded where they are written: the run at the end is still in.
            room = 1e-9 * max(abs(low), abs(high))
            within &= (values >= low - room) & (values <= high + room)
    return within


def drawn_rows(axes: Sequence[Upright], most: int = MOST_LINES) -> NDArray[np.int64]:
    """Return which runs are drawn: those with a value on every axis, evenly thinned to ``most``."""
    complete = np.ones(len(axes[0].values) if axes else 0, bool)
    for one in axes:
        complete &= np.isfinite(one.places())
    rows = np.flatnonzero(complete)
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]


def parallel_axes(
    axes: Sequence[Upright],
    ranges: Mapping[int, tuple[float, float]],
    theme: Theme,
    colour_by: int = -1,
    most: int = MOST_LINES,
) -> go.Figure:
    """Return the runs as lines through the axes; what lies outside a range is faint.

    Parameters
    ----------
    ranges
        By axis, as :func:`inside` takes them.
    colour_by
        The axis whose value colours a line, from low (the accent) to high (pale).
    """
    rows = drawn_rows(axes, most)
    dimensions = [_dimension(one, ranges.get(number), rows) for number, one in enumerate(axes)]
    by = axes[colour_by].places()[rows] if axes else np.zeros(0)
    low, high = ("#3D2F8F", "#E0CF93") if theme.name == "light" else ("#A79FF2", "#5C5330")
    outside = {"color": theme.line, "opacity": 0.12}
    figure = go.Figure(
        go.Parcoords(
            dimensions=dimensions,
            line={"color": by.tolist(), "colorscale": [[0, low], [1, high]], "showscale": False},
            unselected={"line": outside},
            labelfont={"size": 11.5 * theme.scale, "color": theme.ink},
            tickfont={"size": 10.5 * theme.scale, "color": theme.muted},
            rangefont={"size": 10 * theme.scale, "color": theme.muted},
        )
    )
    return frame(figure, theme, HEIGHT * theme.scale, margin=margins(64, 56, 48, 22))


def _dimension(
    one: Upright, kept: tuple[float, float] | None, rows: NDArray[np.int64]
) -> dict[str, Any]:
    """Return one axis as plotly draws it."""
    places = one.places()[rows]
    # Half the bytes, and more digits than a screen has pixels.
    dimension: dict[str, Any] = {"label": one.title, "values": places.astype(np.float32)}
    if one.labels is not None:
        names = list(one.labels.values())
        every = max(1, math.ceil(len(names) / (2 * MOST_TICKS)))
        dimension |= {
            "range": [-0.3, len(names) - 0.7],
            "tickvals": list(range(0, len(names), every)),
            "ticktext": names[::every],
        }
        if kept is not None:
            dimension["constraintrange"] = [kept[0] - 0.25, kept[1] + 0.25]
        return dimension
    low, high = (float(places.min()), float(places.max())) if len(places) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    dimension["range"] = [low, high]
    if one.logarithmic:
        ticks = log_ticks(10**low, 10**high)
        dimension |= {
            "tickvals": [math.log10(t) for t in ticks],
            "ticktext": [short(t) for t in ticks],
        }
    if kept is not None:
        dimension["constraintrange"] = [
            one.place(v) if v > 0 or not one.logarithmic else low for v in kept
        ]
    return dimension
