"""A measure of a study along one axis: a line of means, with the least and the most of its seeds as a band."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from topox_core.fabrics.registry import ENTRIES
from topox_core.figures.palette import Theme, faded
from topox_core.figures.study_axes import MeasureWords, StudyAxis, measure_axis
from topox_core.figures.template import frame, line, margins, opaque
from topox_core.studies.seeds import SeedLine, SeedPoint

# For lines that are no fabrics: colour, dash and mark, so that none is told apart by colour alone.
_LOOKS = (
    ("#0072B2", "solid", "circle"),
    ("#E69F00", "6px,3px", "diamond"),
    ("#009E73", "2px,3px", "square"),
    ("#CC79A7", "9px,3px,2px,3px", "triangle-up"),
    ("#8A8F98", "longdash", "x"),
    ("#56B4E9", "dash", "cross"),
    ("#D55E00", "dot", "star"),
    ("#332288", "dashdot", "triangle-down"),
)
MOST_LINES = len(_LOOKS)


def seed_lines(
    lines: Sequence[SeedLine], along: StudyAxis, measure: MeasureWords, theme: Theme
) -> go.Figure:
    """Return the lines, each mean with a mark, and behind it the band from the least seed to the most."""
    places = along.places()
    values = [v for one in lines for p in one.points for v in (p.least, p.most)]
    value_axis = measure_axis(theme, measure, values)
    figure = go.Figure()
    for number, one in enumerate(lines):
        colour, dash, symbol = look_of(one, number, theme)
        points = sorted(one.points, key=lambda p: places[p.at])
        x = [places[p.at] for p in points]
        if any(p.most > p.least for p in points):
            figure.add_scatter(
                x=[*x, *reversed(x)],
                y=[*(p.most for p in points), *(p.least for p in reversed(points))],
                fill="toself",
                mode="lines",
                fillcolor=faded(colour, 0.16),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
            )
        figure.add_scatter(
            x=x,
            y=[p.mean for p in points],
            mode="lines+markers",
            name=one.name,
            showlegend=True,
            line=line(colour, 2.2, dash),
            marker=opaque(8, colour, symbol=symbol),
            customdata=[[p.runs, one.name, along.labels[p.at], _said(p, measure)] for p in points],
            hovertemplate="<b>%{customdata[1]}</b>, %{customdata[2]}<br>%{customdata[3]}<extra></extra>",
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
        )
    return frame(
        figure,
        theme,
        330 * theme.scale,
        showlegend=len(lines) > 1,
        margin=margins(
            _left_px(value_axis["ticktext"]) * theme.scale,
            12,
            (12 + 20 * math.ceil(len(lines) / 4) * (len(lines) > 1)) * theme.scale,
            44 * theme.scale,
        ),
        xaxis=along.drawn(theme),
        yaxis=value_axis,
    )


def look_of(one: SeedLine, number: int, theme: Theme) -> tuple[str, str, str]:
    """Return colour, dash and mark of a line: its fabric's, or the next of those for other lines."""
    if entry := ENTRIES.get(one.fabric):
        return theme.fabric_colour(one.fabric), entry.dash, entry.mark
    colour, dash, symbol = _LOOKS[number % MOST_LINES]
    if theme.name == "dark":
        colour = {"#0072B2": "#56B4E9", "#56B4E9": "#BFE3F8", "#332288": "#8F86E8"}.get(
            colour, colour
        )
    return colour, dash, symbol


def _left_px(ticks: Sequence[str]) -> float:
    return 30 + 6.4 * max((len(words) for words in ticks), default=0)


def _said(point: SeedPoint, measure: MeasureWords) -> str:
    words = measure.words(point.mean)
    if point.seeds < 2:
        return f"{measure.title} {words}"
    span = f"{measure.words(point.least)} to {measure.words(point.most)}"
    return f"{measure.title} {words}, the mean of {point.seeds} seeds<br>{span}"
