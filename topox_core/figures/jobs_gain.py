"""Where sharing in time gains: the reduction of a round over the ratio of communicating to computing, set of jobs by set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.template import DOTS, axis, frame, line, margins, note

# Of the values that a point's colour and shape tell, smallest first; more of them begin again.
MARKS = (
    ("#88CCEE", "circle"),
    ("#44AA99", "square"),
    ("#B8A13A", "diamond"),
    ("#CC6677", "triangle-up"),
    ("#AA4499", "star"),
    ("#8A8F98", "x"),
)
LEFT, GAP = 52, 0.03
TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)


@dataclass(frozen=True)
class GainPoint:
    """One set of jobs under one algorithm.

    Attributes
    ----------
    ratio
        C/T: communicating to computing without time division.
    reduction
        How much shorter the round is than without time division, 0 to 1.
    value
        What colour and shape tell: number of jobs, or context length.
    words
        For the hover: which set of jobs it is.
    """

    ratio: float
    reduction: float
    value: float
    words: str


def overlap_alone(ratio: float) -> float:
    """Return the reduction if communicating and computing overlap whole and take as long as before: min(C, T) / (C + T)."""
    return min(ratio, 1.0) / (1.0 + ratio)


def gain_map(
    points: Mapping[str, Sequence[GainPoint]],
    titles: Mapping[str, str],
    value_words: Mapping[float, str],
    theme: Theme,
) -> go.Figure:
    """Return a panel an algorithm with a mark for every set of jobs, on one logarithmic C/T axis.

    Parameters
    ----------
    points
        By algorithm; those without a ratio above 0 must be left out.
    value_words
        Of each value that colour and shape tell, in words for the legend.
    """
    figure = go.Figure()
    names = list(points)
    width = (1.0 - GAP * (len(names) - 1)) / max(1, len(names))
    values = sorted({point.value for of in points.values() for point in of})
    ratios = [point.ratio for of in points.values() for point in of] or [1.0]
    low, high = np.log10(min(*ratios, 0.8)) - 0.08, np.log10(max(*ratios, 1.25)) + 0.08
    curve = np.logspace(low, high, 90)
    top = max([0.55, *(point.reduction for of in points.values() for point in of)])
    bottom = min([0.0, *(point.reduction for of in points.values() for point in of)])
    layout = {}
    notes = []
    for k, name in enumerate(names):
        number = "" if k == 0 else str(k + 1)
        figure.add_scatter(
            x=curve,
            y=[100 * overlap_alone(r) for r in curve.tolist()],
            xaxis=f"x{number}",
            yaxis=f"y{number}",
            mode="lines",
            line=line(theme.muted, 1.5, DOTS),
            name="overlap alone",
            showlegend=k == 0,
            hoverinfo="skip",
        )
        for at, value in enumerate(values):
            colour, symbol = MARKS[at % len(MARKS)]
            mine = [point for point in points[name] if point.value == value]
            figure.add_scatter(
                x=[point.ratio for point in mine],
                y=[100 * point.reduction for point in mine],
                xaxis=f"x{number}",
                yaxis=f"y{number}",
                mode="markers",
                name=value_words[value],
                legendgroup=value_words[value],
                showlegend=k == 0,
                marker={
                    "size": 8.5,
                    "color": colour,
                    "symbol": symbol,
                    "opacity": 0.9,
                    "line": line(theme.page, 0.75),
                },
                customdata=[point.words for point in mine],
                hovertemplate="<b>"
                + titles[name]
                + "</b><br>%{customdata}<br>C/T %{x:.3~g}, %{y:.3~g} % shorter"
                "<extra></extra>",
            )
        left = k * (width + GAP)
        layout[f"xaxis{number}"] = axis(
            theme,
            grid=True,
            type="log",
            range=[low, high],
            domain=[left, left + width],
            anchor=f"y{number}",
            tickvals=TICKS,
            ticktext=[f"{tick:g}" for tick in TICKS],
            title="communicating / computing (log)",
        )
        layout[f"yaxis{number}"] = axis(
            theme,
            grid=True,
            range=[100 * bottom - 4, 100 * top + 6],
            nticks=7,
            ticksuffix=" %",
            anchor=f"x{number}",
            showticklabels=k == 0,
            ticks="outside" if k == 0 else "",
            title="shorter than without" if k == 0 else "",
        )
        corner = {"xref": f"x{number} domain", "yref": f"y{number} domain", "xshift": 6}
        corner |= {"xanchor": "left", "yanchor": "top"}
        notes.append(note(f"<b>{titles[name]}</b>", 0, 1, 12 * theme.scale, theme.ink, **corner))
    return frame(
        figure,
        theme,
        320 * theme.scale,
        showlegend=True,
        annotations=notes,
        margin=margins(LEFT * theme.scale, 8, 32 * theme.scale, 42),
        **layout,
    )
