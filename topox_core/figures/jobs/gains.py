"""How a search for a grouping went, and what sharing in time gains: over many seeds, and over how much jobs communicate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import Theme, faded
from topox_core.figures.template import (
    DOTS,
    Look,
    axis,
    frame,
    kept_apart,
    level,
    line,
    log_axis,
    margins,
    note,
    opaque,
    roomy,
    spread_band,
    upright,
)
from topox_core.tdm.model.jobs import RoundTracePoint
from topox_core.tdm.model.round_words import lasting
from topox_core.text.numbers import in_1024s

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
    names = list(points)
    width = (1.0 - GAP * (len(names) - 1)) / max(1, len(names))
    values = sorted({point.value for of in points.values() for point in of})
    ratios = [point.ratio for of in points.values() for point in of] or [1.0]
    low, high = min(*ratios, 0.8) / 1.2, max(*ratios, 1.25) * 1.2
    curve = np.geomspace(low, high, 90)
    reductions = [point.reduction for of in points.values() for point in of]
    layers: list[go.Scatter] = []
    layout = {}
    notes = []
    for k, name in enumerate(names):
        number = "" if k == 0 else str(k + 1)
        on = {"xaxis": f"x{number}", "yaxis": f"y{number}", "showlegend": k == 0}
        layers.append(
            go.Scatter(
                x=curve,
                # Communicating and computing overlap whole and take as long as before:
                # min(C, T) / (C + T) less.
                y=[100 * min(r, 1.0) / (1.0 + r) for r in curve.tolist()],
                mode="lines",
                line=line(theme.muted, 1.5, DOTS),
                name="overlap alone",
                hoverinfo="skip",
                **on,
            )
        )
        for value, (colour, symbol) in zip(values, cycle(MARKS), strict=False):
            mine = [point for point in points[name] if point.value == value]
            layers.append(
                go.Scatter(
                    x=[point.ratio for point in mine],
                    y=[100 * point.reduction for point in mine],
                    mode="markers",
                    name=value_words[value],
                    legendgroup=value_words[value],
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
                    **on,
                )
            )
        left = k * (width + GAP)
        layout[f"xaxis{number}"] = log_axis(
            theme,
            low,
            high,
            "{:g}".format,
            grid=True,
            domain=[left, left + width],
            anchor=f"y{number}",
            title="communicating / computing (log)",
        )
        layout[f"yaxis{number}"] = axis(
            theme,
            grid=True,
            range=[100 * min([0.0, *reductions]) - 4, 100 * max([0.55, *reductions]) + 6],
            nticks=7,
            ticksuffix=" %",
            anchor=f"x{number}",
            showticklabels=k == 0,
            ticks="outside" if k == 0 else "",
            title="round shorter by" if k == 0 else "",
        )
        notes.append(
            note(
                f"<b>{titles[name]}</b>",
                0,
                1,
                12 * theme.scale,
                theme.ink,
                xref=f"x{number} domain",
                yref=f"y{number} domain",
                xshift=6,
                xanchor="left",
                yanchor="top",
            )
        )
    return frame(
        layers,
        theme,
        320 * theme.scale,
        notes,
        showlegend=True,
        margin=margins(LEFT * theme.scale, 8, 32 * theme.scale, 42),
        **layout,
    )


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


def climb(
    trace: Sequence[RoundTracePoint],
    levels: Sequence[tuple[str, float, str]],
    theme: Theme,
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
    measured = [(point, point.round_s) for point in trace if point.round_s is not None]
    x: list[float] = [point.step if by_step else point.elapsed_s for point, _ in measured]
    longest_s = max(
        [*(round_s for _, round_s in measured), *(level_s for _, level_s, _ in levels)], default=1.0
    )
    factor, unit = (1.0, "s") if longest_s >= 1 else (1000.0, "ms")
    y = [factor * round_s for _, round_s in measured]
    times = [] if by_step else [point.elapsed_s for point in trace]
    bounds = [] if by_step else [factor * point.bound_s for point in trace]
    end = max([*x, *times, 1.0 if by_step else 1e-3])
    bound = go.Scatter(
        x=[*times, end],
        y=[*bounds, *bounds[-1:]],
        mode="lines",
        name="bound",
        line={"shape": "hv", **line(theme.ink, 2, DOTS)},
        hovertemplate=f"nothing below %{{y:.6~g}} {unit} after %{{x:.3~g}} s<extra></extra>",
    )
    rounds = go.Scatter(
        x=[*x, end],
        y=[*y, *y[-1:]],
        mode="lines" + ("+markers" if by_step and len(x) <= 80 else ""),
        name="best",
        line={"shape": "hv", **line(theme.primary, 2.5)},
        marker=opaque(6),
        hovertemplate=("after %{x} moves" if by_step else "after %{x:.3~g} s")
        + f": %{{y:.6~g}} {unit}<extra></extra>",
    )
    values = [*y, *(factor * value for _, value, _ in levels), *bounds] or [1.0]
    low, high, spread = roomy(values, 0.14, 0.14, 0.04)
    marks: list[Look] = []
    ascending = sorted(levels, key=lambda one: one[1])
    places = kept_apart([factor * value for _, value, _ in ascending], 0.18 * spread)
    for (words, value, dash), at in zip(ascending, places, strict=True):
        marks += [
            level(factor * value, line(theme.muted, 1.5, dash)) | {"layer": "below"},
            note(
                f"{words}<br>{lasting(value)}",
                1,
                at,
                11 * theme.scale,
                theme.ink,
                xref="paper",
                xanchor="left",
                xshift=4,
                align="left",
            ),
        ]
    whole: Look = {"ticksuffix": " s", "nticks": 6}
    if by_step:
        whole = {"dtick": max(1, round(end / 8)), "title": "moves taken"}
    return frame(
        [bound if bounds else None, rounds],
        theme,
        250 * theme.scale,
        marks,
        margin=margins(52 * theme.scale, 104 * theme.scale, 10, 42),
        xaxis=axis(
            theme, range=[0 if not by_step else -0.02 * end, end * 1.02], tickformat=",~g", **whole
        ),
        yaxis=axis(
            theme,
            grid=True,
            range=[low, high],
            nticks=6,
            tickformat=",~g",
            title=unit,
        ),
    )


def gains(
    values: Mapping[str, Mapping[float, Sequence[float]]],
    titles: Mapping[str, str],
    title: str,
    theme: Theme,
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
    means = {
        name: {place: 100 * float(np.mean(of[place])) for place in places if of.get(place)}
        for name, of in values.items()
    }
    layers: list[go.Scatter] = []
    for k, (name, of) in enumerate(values.items()):
        colour, dash = LINES.get(name, OTHERS[k % len(OTHERS)])
        colour = theme.primary if colour == "#0072B2" else colour
        known = [place for place in places if of.get(place)]
        x = [at[place] for place in known]
        labels = [_label(means, name, place) for place in known]
        low, high = (
            [100 * float(np.quantile(of[place], share)) for place in known]
            for share in (0.25, 0.75)
        )
        shift = 0.1 + 0.06 * k  # beside the mean, so that its number can be read
        dots = [
            (at[place] + shift, 100 * value, seed)
            for place in known
            for seed, value in enumerate(of[place])
        ]
        layers += [
            spread_band(x, low, high, faded(colour, 0.14)),
            go.Scatter(
                x=[d[0] for d in dots],
                y=[d[1] for d in dots],
                mode="markers",
                showlegend=False,
                name=titles[name],
                marker={"size": 4.5, "color": colour, "opacity": 0.65},
                customdata=[d[2] for d in dots],
                hovertemplate=titles[name] + ", seed %{customdata}: %{y:.3~g} %<extra></extra>",
            ),
            go.Scatter(
                x=x,
                y=list(means[name].values()),
                mode="lines+markers+text",
                name=titles[name],
                showlegend=True,
                line=line(colour, 2.6, dash),
                marker=opaque(8, colour),
                text=[text for text, _ in labels],
                textposition=[where for _, where in labels],
                cliponaxis=False,
                textfont={"size": 11.5 * theme.scale, "color": theme.ink},
                customdata=[
                    [len(of[place]), f"{a:.3g}", f"{b:.3g}"]
                    for place, a, b in zip(known, low, high, strict=True)
                ],
                hovertemplate="<b>"
                + titles[name]
                + "</b>: mean %{y:.3~g} % of %{customdata[0]} seeds<br>middle half "
                "%{customdata[1]} to %{customdata[2]} %<extra></extra>",
            ),
        ]
    every = [100 * value for of in values.values() for seeds in of.values() for value in seeds]
    marks = []
    if here in at:
        marks = [upright(at[here], line(theme.line, 1.5, DOTS)) | {"layer": "below"}]
    return frame(
        layers,
        theme,
        300 * theme.scale,
        marks,
        showlegend=True,
        margin=margins(52 * theme.scale, 12, 32 * theme.scale, 42),
        xaxis=axis(
            theme,
            range=[-0.4, max(1, len(places)) - 0.6],
            tickvals=list(range(len(places))),
            ticktext=[in_1024s(place) for place in places],
            title=title,
        ),
        yaxis=axis(
            theme,
            grid=True,
            range=[min([0.0, *every]) - 5, max([0.1, *every]) * 1.12 + 2],
            ticksuffix=" %",
            nticks=6,
            title="round shorter by",
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
