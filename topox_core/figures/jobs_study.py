"""How a search for a grouping went, and what sharing gains over many seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.jobs import lasting
from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, frame
from topox_core.tdm.model.round import RoundTracePoint

# Algorithms of the study and of the comparison: colour and dash, so that neither must be told apart
# by colour alone.
LINES: Mapping[str, tuple[str, str]] = {
    "hill-climbing": ("#E69F00", "solid"),
    "best-grouping": ("#0072B2", "dash"),
    "all-train": ("#CC79A7", "dot"),
}
OTHERS = (("#009E73", "dashdot"), ("#8A8F98", "longdash"))
# In points of percent: closer than the first, one number does for two means; closer than the
# second, one goes under its mark.
SAME_MEAN, CLOSE_MEAN = 1.0, 8.0


def line_of(name: str, place: int, theme: Theme) -> tuple[str, str]:
    """Return colour and dash of an algorithm, by its name, or by its place where it has none of its own."""
    colour, dash = LINES.get(name, OTHERS[place % len(OTHERS)])
    return (theme.primary if colour == "#0072B2" else colour), dash


def climb(
    story: Sequence[RoundTracePoint],
    levels: Sequence[tuple[str, float, str]],
    theme: Theme,
    scale: float = 1.0,
    by_step: bool = True,
) -> go.Figure:
    """Return the round against the steps of a search, with levels to compare it with as lines across.

    Parameters
    ----------
    levels
        Words, seconds and dash of each line.
    by_step
        Steps along the axis (moves taken); else wall time, with the bound as it rose.
    """
    found = [moment for moment in story if moment.round_s is not None]
    x: list[float] = [moment.step if by_step else moment.elapsed_s for moment in found]
    y = [float(moment.round_s or 0.0) for moment in found]
    end = max(
        [*x, *([] if by_step else [moment.elapsed_s for moment in story]), 1.0 if by_step else 1e-3]
    )
    figure = go.Figure()
    if not by_step and story:
        figure.add_trace(
            go.Scatter(
                x=[*(m.elapsed_s for m in story), end],
                y=[*(m.bound_s for m in story), story[-1].bound_s],
                mode="lines",
                name="bound",
                line={"shape": "hv", "width": 2, "dash": "2px,3px", "color": theme.ink},
                hovertemplate="no round below %{y:.6~g} s after %{x:.3~g} s<extra></extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=[*x, end],
            y=[*y, *y[-1:]],
            mode="lines" + ("+markers" if by_step and len(x) <= 80 else ""),
            name="round",
            line={"shape": "hv", "width": 2.5, "color": theme.primary},
            marker={"size": 6, "opacity": 1},
            hovertemplate=("after %{x} moves" if by_step else "after %{x:.3~g} s")
            + ": %{y:.6~g} s<extra></extra>",
        )
    )
    values = [
        *y,
        *(value for _, value, _ in levels),
        *([] if by_step else [m.bound_s for m in story]),
    ] or [1.0]
    low, high = min(values), max(values)
    spread = max(high - low, 0.04 * high, 1e-9)
    shapes = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": value,
            "y1": value,
            "layer": "below",
            "line": {"color": theme.muted, "width": 1.5, "dash": dash},
        }
        for _, value, dash in levels
    ]
    notes: list[dict[str, Any]] = []
    at = -math.inf
    for words, value, _ in sorted(levels, key=lambda level: level[1]):
        at = max(value, at + 0.18 * spread)  # labels keep their distance, lines stay where they are
        notes.append(
            {
                "xref": "paper",
                "x": 1,
                "xanchor": "left",
                "xshift": 4,
                "y": at,
                "showarrow": False,
                "align": "left",
                "text": f"{words}<br>{lasting(value)}",
                "font": {"size": 11 * scale, "color": theme.ink},
            }
        )
    whole: dict[str, Any] = {"ticksuffix": " s", "nticks": 6}
    if by_step:
        whole = {"dtick": max(1, round(end / 8)), "title": "moves taken"}
    return frame(
        figure,
        theme,
        250 * scale,
        scale,
        shapes=shapes,
        annotations=notes,
        margin={"l": 52 * scale, "r": 104 * scale, "t": 10, "b": 42, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            range=[0 if not by_step else -0.02 * end, end * 1.02],
            tickformat=",~g",
            **whole,
        ),
        yaxis=axis(
            theme,
            scale,
            grid=True,
            range=[low - 0.14 * spread, high + 0.14 * spread],
            nticks=6,
            tickformat=",~g",
            title="round, s",
        ),
    )


def gains(
    values: Mapping[str, Mapping[float, Sequence[float]]],
    titles: Mapping[str, str],
    title: str,
    theme: Theme,
    scale: float = 1.0,
    here: float | None = None,
) -> go.Figure:
    """Return the reduction against non-TDM over jobs or context: a dot a seed, the mean as a line, its spread as a band.

    Parameters
    ----------
    values
        Of each algorithm, at each place along the axis, the reduction (0 to 1) seed by seed.
    title
        Of the axis.
    here
        The place that the page shows, marked by a line.
    """
    places = sorted({place for of in values.values() for place in of})
    at = {place: k for k, place in enumerate(places)}
    figure = go.Figure()
    lowest = 0.0
    highest = 0.1
    means = {
        name: {place: 100 * float(np.mean(of[place])) for place in places if of.get(place)}
        for name, of in values.items()
    }
    for k, (name, of) in enumerate(values.items()):
        colour, dash = line_of(name, k, theme)
        known = [place for place in places if of.get(place)]
        x = [at[place] for place in known]
        labels = [_label(means, name, place) for place in known]
        low = [float(np.quantile(of[place], 0.25)) for place in known]
        high = [float(np.quantile(of[place], 0.75)) for place in known]
        shift = 0.1 + 0.06 * k  # beside the mean, so that its number can be read
        figure.add_trace(
            go.Scatter(
                x=[*x, *x[::-1]],
                y=[*(100 * v for v in high), *(100 * v for v in low[::-1])],
                fill="toself",
                mode="lines",
                fillcolor=_pale(colour),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
            )
        )
        dots = [
            (at[place] + shift, 100 * value, seed)
            for place in known
            for seed, value in enumerate(of[place])
        ]
        figure.add_trace(
            go.Scatter(
                x=[d[0] for d in dots],
                y=[d[1] for d in dots],
                mode="markers",
                showlegend=False,
                name=titles[name],
                marker={"size": 4.5, "color": colour, "opacity": 0.65},
                customdata=[d[2] for d in dots],
                hovertemplate=titles[name] + ", seed %{customdata}: %{y:.3~g} %<extra></extra>",
            )
        )
        figure.add_trace(
            go.Scatter(
                x=x,
                y=list(means[name].values()),
                mode="lines+markers+text",
                name=titles[name],
                showlegend=True,
                line={"color": colour, "width": 2.6, "dash": dash},
                marker={"size": 8, "opacity": 1, "color": colour},
                text=[text for text, _ in labels],
                textposition=[where for _, where in labels],
                cliponaxis=False,
                textfont={"size": 11.5 * scale, "color": theme.ink},
                customdata=[
                    [len(of[place]), f"{100 * a:.3g}", f"{100 * b:.3g}"]
                    for place, a, b in zip(known, low, high, strict=True)
                ],
                hovertemplate="<b>"
                + titles[name]
                + "</b>: mean %{y:.3~g} % of %{customdata[0]} seeds<br>middle half "
                "%{customdata[1]} to %{customdata[2]} %<extra></extra>",
            )
        )
        lowest, highest = (
            min([lowest, *(d[1] for d in dots)]),
            max([highest, *(d[1] for d in dots)]),
        )
    shapes = (
        []
        if here is None or here not in at
        else [
            {
                "type": "line",
                "x0": at[here],
                "x1": at[here],
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "layer": "below",
                "line": {"color": theme.line, "width": 1.5, "dash": "2px,3px"},
            }
        ]
    )
    return frame(
        figure,
        theme,
        300 * scale,
        scale,
        showlegend=True,
        shapes=shapes,
        margin={"l": 52 * scale, "r": 12, "t": 32 * scale, "b": 42, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            range=[-0.4, max(1, len(places)) - 0.6],
            tickvals=list(range(len(places))),
            ticktext=[_short_count(place) for place in places],
            title=title,
        ),
        yaxis=axis(
            theme,
            scale,
            grid=True,
            range=[lowest - 5, highest * 1.12 + 2],
            ticksuffix=" %",
            nticks=6,
            title="shorter than without",
        ),
    )


def _label(means: Mapping[str, Mapping[float, float]], name: str, place: float) -> tuple[str, str]:
    """Return the number beside a mean and where it stands: under it if another one is just above, none if one says the same."""
    mine, names = means[name][place], list(means)
    others = [
        (names.index(other), of[place])
        for other, of in means.items()
        if other != name and place in of
    ]
    if any(rank < names.index(name) and abs(value - mine) < SAME_MEAN for rank, value in others):
        return "", "top center"
    below = any(SAME_MEAN <= value - mine < CLOSE_MEAN for _, value in others)
    return f"<b>{mine:.0f}</b>", "bottom center" if below else "top center"


def _short_count(value: float) -> str:
    return f"{value / 1024:g}k" if value >= 1024 and value % 1024 == 0 else f"{value:,g}"


def _pale(colour: str) -> str:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.14)"
