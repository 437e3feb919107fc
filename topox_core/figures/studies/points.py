"""Every point of a study: a line across parallel axes, and its place beside the front of two measures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.builders import Point, chart, dots, front_line
from topox_core.figures.palette import Theme
from topox_core.figures.studies.axes import (
    BELOW_LEFT,
    MeasureWords,
    is_logarithmic,
    measure_axis,
    place_on,
    point_labels,
)
from topox_core.figures.template import (
    Look,
    frame,
    log_ticks,
    margins,
    opaque,
)
from topox_core.studies.slices import CloudRows
from topox_core.text.numbers import short

# More lines take a browser without a graphics card more than two seconds and show no more.
MAX_LINES = 1_000
MAX_TICKS = 8


@dataclass(frozen=True)
class Upright:
    """One upright axis: its words and a value a run.

    Attributes
    ----------
    names
        How values are written that are no numbers on a scale: a value is the position of its name.
    """

    title: str
    values: tuple[float | None, ...]
    names: tuple[str, ...] = ()

    @property
    def logarithmic(self) -> bool:
        """Whether its numbers are drawn on a logarithmic scale."""
        return not self.names and is_logarithmic([v for v in self.values if v is not None])

    def places(self) -> NDArray[np.float64]:
        """Return where each run crosses it; NaN where it has no value."""
        return np.array([np.nan if v is None else self.place(v) for v in self.values], np.float64)

    def place(self, value: float) -> float:
        """Return where a number stands on it."""
        return math.log10(value) if self.logarithmic else float(value)


def inside(axes: Sequence[Upright], ranges: Mapping[int, tuple[float, float]]) -> NDArray[np.bool_]:
    """Return which runs lie within the ranges that are set, by axis; a run without the value does not.

    A range is given in values; on an axis of names in their positions.
    """
    within = np.ones(len(axes[0].values) if axes else 0, bool)
    for number, (low, high) in ranges.items():
        values = np.array([np.nan if v is None else v for v in axes[number].values], np.float64)
        # A slider's ends are rounded where they are written: the run at the end is still in. NaN
        # lies in no range.
        room = 1e-9 * max(abs(low), abs(high))
        within &= (values >= low - room) & (values <= high + room)
    return within


def drawn_rows(axes: Sequence[Upright], most: int = MAX_LINES) -> NDArray[np.int64]:
    """Return which runs are drawn: those with a value on every axis, evenly thinned to ``most``."""
    places = [one.places() for one in axes] or [np.zeros(0)]
    return thinned(np.flatnonzero(np.isfinite(places).all(axis=0)), most)


def thinned(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return no more than so many of some rows, evenly from the first to the last."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]


def parallel_axes(
    axes: Sequence[Upright],
    ranges: Mapping[int, tuple[float, float]],
    theme: Theme,
) -> go.Figure:
    """Return the runs as lines through the axes; faint outside a range; the last axis gives the colour, low in the accent.

    Parameters
    ----------
    ranges
        By axis, as :func:`inside` takes them.
    """
    rows = drawn_rows(axes)
    by = axes[-1].places()[rows] if axes else np.zeros(0)
    low, high = ("#3D2F8F", "#E0CF93") if theme.name == "light" else ("#A79FF2", "#5C5330")
    return frame(
        [
            go.Parcoords(
                dimensions=[
                    _dimension(one, ranges.get(number), rows) for number, one in enumerate(axes)
                ],
                line={
                    "color": by.tolist(),
                    "colorscale": [[0, low], [1, high]],
                    "showscale": False,
                },
                unselected={"line": {"color": theme.line, "opacity": 0.12}},
                labelfont={"size": 11.5 * theme.scale, "color": theme.ink},
                tickfont={"size": 10.5 * theme.scale, "color": theme.muted},
                rangefont={"size": 10 * theme.scale, "color": theme.muted},
            )
        ],
        theme,
        400 * theme.scale,
        margin=margins(64, 56, 48, 22),
    )


def _dimension(one: Upright, kept: tuple[float, float] | None, rows: NDArray[np.int64]) -> Look:
    """Return one axis as plotly draws it."""
    places = one.places()[rows]
    # Half the bytes, and more digits than a screen has pixels.
    dimension: Look = {"label": one.title, "values": places.astype(np.float32)}
    if one.names:
        every = max(1, math.ceil(len(one.names) / (2 * MAX_TICKS)))
        dimension |= {
            "range": [-0.3, len(one.names) - 0.7],
            "tickvals": list(range(0, len(one.names), every)),
            "ticktext": list(one.names[::every]),
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


# As many as SVG draws in a moment; of more, those that others beat are thinned evenly.
MAX_POINTS = 5_000
MAX_NAMED = 8
HEIGHT = 420


@dataclass(frozen=True)
class Cloud:
    """Runs by two measures, how these are written, and what is said of each run.

    Attributes
    ----------
    names
        Of each run, for the label of a point on the front.
    other
        What a hover says of each run besides, such as its power.
    """

    across: MeasureWords
    up: MeasureWords
    found: CloudRows
    names: tuple[str, ...]
    other: tuple[str, ...] = ()


def drawn_points(cloud: Cloud, most: int = MAX_POINTS) -> NDArray[np.int64]:
    """Return which runs are drawn: all on the front, and of the others as many as there is room for, evenly."""
    front = np.array(cloud.found.on_front, bool)
    others = thinned(np.flatnonzero(~front), max(0, most - int(front.sum())))
    return np.sort(np.concatenate([np.flatnonzero(front), others]))


def pareto_front(
    cloud: Cloud,
    theme: Theme,
    best: int | None = None,
) -> go.Figure:
    """Return the cloud: dominated runs faint, the front as a step line with names, one run marked as the best.

    The first entry of a point's customdata is its run. Points are SVG: a page without a graphics
    card draws them sooner than WebGL's.
    """
    shown = drawn_points(cloud).tolist()
    front = [k for k in shown if cloud.found.on_front[k]]
    x_axis = measure_axis(theme, cloud.across, cloud.found.x, 0.1)
    y_axis = measure_axis(theme, cloud.up, cloud.found.y, 0.1)
    accent = theme.fabric_colour("scheduled")
    sizes = [(13 if k == best else 8) * theme.scale for k in front]
    outline = {"width": [2 if k == best else 0 for k in front], "color": theme.ink}
    return chart(
        [
            front_line(
                "",
                [Point(cloud.found.x[k], cloud.found.y[k]) for k in cloud.found.steps],
                accent,
                theme,
            ),
            _points(
                cloud,
                [k for k in shown if not cloud.found.on_front[k]],
                "worse in both than another",
                {"size": 5.5 * theme.scale, "color": theme.line, "opacity": 0.75},
                theme,
            ),
            _points(cloud, front, "best trade-offs", opaque(sizes, accent, line=outline), theme),
        ],
        theme,
        HEIGHT,
        x_axis,
        y_axis,
        _labels(cloud, front, best, (x_axis, y_axis), theme),
        legend=True,
        room={"top": 44, "right": 14},
    )


def _points(
    cloud: Cloud, rows: Sequence[int], name: str, marker: Look, theme: Theme
) -> go.Scatter | None:
    selected, unselected = ({"marker": {"opacity": one}} for one in (1, marker["opacity"]))
    return dots(
        name,
        [
            Point(
                cloud.found.x[k],
                cloud.found.y[k],
                f"<b>{cloud.names[k]}</b><br>{cloud.up.words(cloud.found.y[k])}, "
                f"{cloud.across.words(cloud.found.x[k])}<br>{cloud.other[k] if cloud.other else ''}",
                key=cloud.found.rows[k].run,
            )
            for k in rows
        ],
        marker,
        theme,
        selected=selected,
        unselected=unselected,
    )


def _labels(
    cloud: Cloud,
    front: Sequence[int],
    best: int | None,
    axes: tuple[Look, Look],
    theme: Theme,
) -> list[Look]:
    """Return names beside points of the front, the best one's in bold; below and left of a front nothing stands."""
    first = [best] if best is not None and best in front else []
    named = [
        k
        for k in (*first, *(k for k in (cloud.found.steps or front) if k != best))
        if cloud.names[k]
    ]
    labels = [
        (
            f"<b>{cloud.names[k]}</b>" if k == best else cloud.names[k],
            place_on(axes[0], cloud.found.x[k]),
            place_on(axes[1], cloud.found.y[k]),
            (False,),
        )
        for k in named
    ]
    return point_labels(labels, axes, theme, BELOW_LEFT)[:MAX_NAMED]
