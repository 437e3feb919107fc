"""How a search for a grouping went, and what sharing in time gains: over many seeds, and over how much jobs communicate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from topox_core.figures.builders import Point, chart, curve, dots
from topox_core.figures.palette import Theme, faded
from topox_core.figures.template import (
    DOTS,
    Figure,
    Layer,
    Look,
    axis,
    frame,
    kept_apart,
    level,
    line,
    log_axis,
    margins,
    note,
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
) -> Figure:
    """Return a panel an algorithm with a mark for every set of jobs, on one logarithmic C/T axis.

    Parameters
    ----------
    points
        By algorithm; those without a ratio above 0 must be left out.
    value_words
        Of each value that colour and shape tell, in words for the legend.
    """
    width = (1.0 - GAP * (len(points) - 1)) / max(1, len(points))
    every = [point for of in points.values() for point in of]
    ratios = [point.ratio for point in every] or [1.0]
    low, high = min(*ratios, 0.8) / 1.2, max(*ratios, 1.25) * 1.2
    # Communicating and computing overlap whole and take as long as before: min(C, T) / (C + T) less.
    overlap = [
        Point(r, 100 * min(r, 1.0) / (1.0 + r)) for r in np.geomspace(low, high, 90).tolist()
    ]
    looks = dict(zip(sorted({point.value for point in every}), cycle(MARKS), strict=False))
    layers: list[Layer] = []
    layout = {}
    notes = []
    for k, (name, of) in enumerate(points.items()):
        number = "" if k == 0 else str(k + 1)
        on: Look = {"xaxis": f"x{number}", "yaxis": f"y{number}", "showlegend": k == 0}
        layers.append(curve("overlap alone", overlap, line(theme.muted, 1.5, DOTS), theme, **on))
        layers += [
            dots(
                value_words[value],
                [
                    Point(
                        one.ratio,
                        100 * one.reduction,
                        f"<b>{titles[name]}</b><br>{one.words}<br>C/T {one.ratio:.3g}, "
                        f"{100 * one.reduction:.3g} % shorter",
                    )
                    for one in of
                    if one.value == value
                ],
                {
                    "size": 8.5 * theme.scale,
                    "color": colour,
                    "symbol": symbol,
                    "opacity": 0.9,
                    "line": line(theme.page, 0.75),
                },
                theme,
                legendgroup=value_words[value],
                **on,
            )
            for value, (colour, symbol) in looks.items()
        ]
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
        reductions = [100 * one.reduction for one in every]
        layout[f"yaxis{number}"] = axis(
            theme,
            grid=True,
            range=[min([0.0, *reductions]) - 4, max([55.0, *reductions]) + 6],
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
) -> Figure:
    """Return the round against the steps of a search, with levels to compare it with as lines across.

    Parameters
    ----------
    levels
        Words, seconds and dash of each line.
    by_step
        Steps along the axis (moves taken); else wall time, with the bound as it rose.
    """
    measured = [(point, point.round_s) for point in trace if point.round_s is not None]
    ascending = sorted(levels, key=lambda one: one[1])
    longest_s = max([*(round_s for _, round_s in measured), *(s for _, s, _ in levels)], default=1)
    factor, unit = (1.0, "s") if longest_s >= 1 else (1000.0, "ms")
    rounds, bounds = [], []
    for point, round_s in measured:
        moved = f"{point.step} moves" if by_step else f"{point.elapsed_s:.3g} s"
        x, y = point.step if by_step else point.elapsed_s, factor * round_s
        rounds.append(Point(x, y, f"after {moved}: {y:.6g} {unit}"))
    for point in () if by_step else trace:
        y, after = factor * point.bound_s, f"after {point.elapsed_s:.3g} s"
        bounds.append(Point(point.elapsed_s, y, f"nothing below {y:.6g} {unit} {after}"))
    end = max([*(one.x for one in (*rounds, *bounds)), 1.0 if by_step else 1e-3])
    heights = [factor * value for _, value, _ in ascending]
    values = [*(one.y for one in (*rounds, *bounds)), *heights] or [1.0]
    low, high, spread = roomy(values, 0.14, 0.14, 0.04)
    at_right: Look = {"xref": "paper", "xanchor": "left", "xshift": 4, "align": "left"}
    marks: list[Look] = []
    for (words, value, dash), at in zip(ascending, kept_apart(heights, 0.18 * spread), strict=True):
        marks += [
            level(factor * value, line(theme.muted, 1.5, dash)) | {"layer": "below"},
            note(f"{words}<br>{lasting(value)}", 1, at, 11 * theme.scale, theme.ink, **at_right),
        ]
    whole: Look = {"range": [0, end * 1.02], "ticksuffix": " s", "nticks": 6}
    if by_step:
        whole = {"range": [-0.02 * end, end * 1.02], "dtick": max(1, round(end / 8))}
        whole["title"] = "moves taken"
    return chart(
        [
            curve("bound", bounds, line(theme.ink, 2, DOTS), theme, steps=True, until=end),
            curve(
                "best",
                rounds,
                line(theme.primary, 2.5),
                theme,
                mark="circle" if by_step and len(rounds) <= 80 else "",
                size=6,
                steps=True,
                until=end,
            ),
        ],
        theme,
        250,
        axis(theme, tickformat=",~g", **whole),
        axis(theme, grid=True, range=[low, high], nticks=6, tickformat=",~g", title=unit),
        marks,
        room={"right": 104},
    )


def gains(
    values: Mapping[str, Mapping[float, Sequence[float]]],
    titles: Mapping[str, str],
    title: str,
    theme: Theme,
    here: float | None = None,
) -> Figure:
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
    percents = {
        name: {place: 100 * np.array(of[place]) for place in places if of.get(place)}
        for name, of in values.items()
    }
    means = {
        name: {place: float(np.mean(seeds)) for place, seeds in of.items()}
        for name, of in percents.items()
    }
    layers: list[Layer] = []
    for k, (name, of) in enumerate(percents.items()):
        colour, dash = LINES.get(name, OTHERS[k % len(OTHERS)])
        colour = theme.primary if colour == "#0072B2" else colour
        shift = 0.1 + 0.06 * k  # beside the mean, so that its number can be read
        seeds = [
            Point(at[place] + shift, value, f"{titles[name]}, seed {seed}: {value:.3g} %")
            for place, every in of.items()
            for seed, value in enumerate(every.tolist())
        ]
        labels = {place: _label(means, name, place) for place in of}
        low, high = ([float(np.quantile(one, q)) for one in of.values()] for q in (0.25, 0.75))
        middle = [
            Point(
                at[place],
                means[name][place],
                f"<b>{titles[name]}</b>: mean {means[name][place]:.3g} % of {len(of[place])} seeds"
                f"<br>middle half {a:.3g} to {b:.3g} %",
                labels[place][0],
            )
            for place, a, b in zip(of, low, high, strict=True)
        ]
        style, where = line(colour, 2.6, dash), [where for _, where in labels.values()]
        layers += [
            spread_band([one.x for one in middle], low, high, faded(colour, 0.14)),
            dots(
                titles[name],
                seeds,
                {"size": 4.5 * theme.scale, "color": colour, "opacity": 0.65},
                theme,
                showlegend=False,
            ),
            curve(titles[name], middle, style, theme, mark="circle", size=8, textposition=where),
        ]
    every = [v for of in percents.values() for one in of.values() for v in one.tolist()]
    return chart(
        layers,
        theme,
        300,
        axis(
            theme,
            range=[-0.4, max(1, len(places)) - 0.6],
            tickvals=list(range(len(places))),
            ticktext=[in_1024s(place) for place in places],
            title=title,
        ),
        axis(
            theme,
            grid=True,
            range=[min([0.0, *every]) - 5, max([0.1, *every]) * 1.12 + 2],
            ticksuffix=" %",
            nticks=6,
            title="round shorter by",
        ),
        [
            upright(at[place], line(theme.line, 1.5, DOTS)) | {"layer": "below"}
            for place in places
            if place == here
        ],
        legend=True,
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
