"""What is worth its price: every run of a study as a point, those that no other one beats as a step line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.palette import Theme
from topox_core.figures.study_axes import MeasureWords, measure_axis
from topox_core.figures.template import frame, line, margins, note, opaque

# As many as SVG draws in a moment; of more, those that others beat are thinned evenly.
MOST_POINTS = 5_000
MOST_NAMED = 8
HEIGHT = 420
PLOT_PX, LETTER_PX = 400.0, 6.4  # of the picture on a laptop, and of a letter of a name


@dataclass(frozen=True)
class Cloud:
    """Runs by two measures, and which of them no other run beats.

    Attributes
    ----------
    on_front
        In these two measures, or in these and a third.
    steps
        The front in these two measures, as positions in order along the first.
    names
        Of each run, for the label of a point on the front.
    runs
        What a click is given.
    other
        What a hover says of each run besides, such as its power.
    """

    across: MeasureWords
    up: MeasureWords
    x: tuple[float, ...]
    y: tuple[float, ...]
    on_front: tuple[bool, ...]
    steps: tuple[int, ...]
    names: tuple[str, ...]
    runs: tuple[object, ...]
    other: tuple[str, ...] = ()


@dataclass(frozen=True)
class Landmark:
    """Something to compare the runs with that is none of them, such as a fat-tree of the same cost."""

    name: str
    x: float
    y: float


def drawn_points(cloud: Cloud, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """Return which runs are drawn: all on the front, and of the others as many as there is room for, evenly."""
    front = np.array(cloud.on_front, bool)
    others = np.flatnonzero(~front)
    room = max(0, most - int(front.sum()))
    if len(others) > room:
        others = others[np.linspace(0, len(others) - 1, room).round().astype(np.int64)]
    return np.sort(np.concatenate([np.flatnonzero(front), others]))


def pareto_front(
    cloud: Cloud,
    theme: Theme,
    best: int | None = None,
    landmarks: Sequence[Landmark] = (),
    most: int = MOST_POINTS,
) -> go.Figure:
    """Return the cloud: dominated runs faint, the front as a step line with names, one run marked as the best.

    The first entry of a point's customdata is its run. Points are SVG: a page without a graphics
    card draws them sooner than WebGL's.
    """
    shown = drawn_points(cloud, most)
    front = [k for k in shown.tolist() if cloud.on_front[k]]
    beaten = [k for k in shown.tolist() if not cloud.on_front[k]]
    xs = [*cloud.x, *(one.x for one in landmarks)]
    ys = [*cloud.y, *(one.y for one in landmarks)]
    x_axis, y_axis = (
        measure_axis(theme, cloud.across, xs, 0.1),
        measure_axis(theme, cloud.up, ys, 0.1),
    )
    accent = theme.fabric_colour("scheduled")
    figure = go.Figure()
    if len(cloud.steps) > 1:
        figure.add_scatter(
            x=[cloud.x[k] for k in cloud.steps],
            y=[cloud.y[k] for k in cloud.steps],
            mode="lines",
            line={"shape": "hv", **line(accent, 1.8)},
            hoverinfo="skip",
            showlegend=False,
        )
    figure.add_trace(
        _points(
            cloud,
            beaten,
            "another one does better",
            {"size": 5.5 * theme.scale, "color": theme.line, "opacity": 0.75},
        )
    )
    figure.add_trace(
        _points(
            cloud,
            front,
            "nothing beats it",
            opaque(
                [(13 if k == best else 8) * theme.scale for k in front],
                accent,
                line={
                    "width": [2 if k == best else 0 for k in front],
                    "color": theme.ink,
                },
            ),
        )
    )
    if landmarks:
        figure.add_scatter(
            x=[one.x for one in landmarks],
            y=[one.y for one in landmarks],
            mode="markers",
            name="to compare with",
            showlegend=True,
            marker=opaque(10 * theme.scale, theme.ink, symbol="diamond"),
            customdata=[[None, one.name] for one in landmarks],
            hovertemplate="<b>%{customdata[1]}</b><extra></extra>",
        )
    marks = _labels(cloud, front, best, (x_axis, y_axis), theme)
    for one in landmarks:
        marks.append(
            note(
                one.name,
                _place(one.x, x_axis),
                _place(one.y, y_axis),
                11 * theme.scale,
                theme.ink,
                xanchor="left",
                xshift=9,
            )
        )
    longest = max((len(words) for words in y_axis["ticktext"]), default=0)
    return frame(
        figure,
        theme,
        HEIGHT * theme.scale,
        showlegend=True,
        annotations=marks,
        margin=margins((30 + 6.4 * longest) * theme.scale, 14, 44 * theme.scale, 44 * theme.scale),
        xaxis=x_axis,
        yaxis=y_axis,
    )


def _points(cloud: Cloud, rows: Sequence[int], name: str, marker: dict[str, Any]) -> go.Scatter:
    return go.Scatter(
        x=[cloud.x[k] for k in rows],
        y=[cloud.y[k] for k in rows],
        mode="markers",
        name=name,
        showlegend=True,
        marker=marker,
        customdata=[
            [
                cloud.runs[k],
                cloud.names[k],
                cloud.across.words(cloud.x[k]),
                cloud.up.words(cloud.y[k]),
                cloud.other[k] if cloud.other else "",
            ]
            for k in rows
        ],
        hovertemplate="<b>%{customdata[1]}</b><br>%{customdata[3]}, %{customdata[2]}"
        "<br>%{customdata[4]}<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": marker["opacity"]}},
    )


def _labels(
    cloud: Cloud,
    front: Sequence[int],
    best: int | None,
    axes: tuple[dict[str, Any], dict[str, Any]],
    theme: Theme,
) -> list[dict[str, Any]]:
    """Return names beside points of the front, the best one's in bold, as many as keep their distance."""
    x_axis, y_axis = axes
    width = x_axis["range"][1] - x_axis["range"][0]
    height = y_axis["range"][1] - y_axis["range"][0]
    first = [best] if best is not None and best in front else []
    kept: list[tuple[float, float, float]] = []
    marks: list[dict[str, Any]] = []
    for k in [*first, *(k for k in (cloud.steps or front) if k != best)]:
        if not cloud.names[k] or len(marks) == MOST_NAMED:
            continue
        x, y = _place(cloud.x[k], x_axis), _place(cloud.y[k], y_axis)
        # Below and left of a front nothing stands; only at the picture's edge there is no room.
        at_px = PLOT_PX * (x - x_axis["range"][0]) / width
        long_px = LETTER_PX * len(cloud.names[k])
        at_edge = at_px < long_px
        begin = at_px if at_edge else at_px - long_px
        # A line of type is about a twentieth of the picture high.
        if any(
            begin < end and begin + long_px > start and abs(y - b) < 0.055 * height
            for start, end, b in kept
        ):
            continue
        kept.append((begin, begin + long_px, y))
        words = f"<b>{cloud.names[k]}</b>" if k == best else cloud.names[k]
        side = {"xanchor": "left", "xshift": 4} if at_edge else {"xanchor": "right", "xshift": -5}
        marks.append(
            note(words, x, y, 11.5 * theme.scale, theme.ink, yanchor="top", yshift=-3, **side)
        )
    return marks


def _place(value: float, drawn: dict[str, Any]) -> float:
    """Return where a value's annotation stands: plotly wants the exponent on a logarithmic axis."""
    return math.log10(value) if drawn.get("type") == "log" else value
