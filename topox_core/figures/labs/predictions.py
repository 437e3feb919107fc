"""Predictions: how far off they are, by kind; iterations against measured ones; what a class said, the truth only if it is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.template import (
    DOTS,
    Look,
    axis,
    frame,
    legend_square,
    line,
    log_axis,
    margins,
    note,
    outside,
    row_axis,
    sideways_bars,
    spread_band,
    upright,
)
from topox_core.papers import accuracy
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import seconds, short
from topox_core.training.measured.validation import Compared

BAND = 0.1
Kind = Literal["calibration", "test", "table"]
# Rows that numbers were fitted to are hollow; a printed table of another machine has squares.
SYMBOLS: dict[Kind, str] = {"calibration": "circle-open", "test": "circle", "table": "square"}


@dataclass(frozen=True)
class MeasuredSet:
    """Rows of one source, under the name that the legend gives it."""

    name: str
    kind: Kind
    rows: Sequence[Compared]


def predicted_against_measured(sets: Sequence[MeasuredSet], theme: Theme) -> go.Figure:
    """Return the scatter, both axes in s and logarithmic; colour by model size, symbol by source."""
    times = [
        time_ms / 1e3
        for one in sets
        for row in one.rows
        for time_ms in (row.measured.measured_ms, row.predicted_ms)
    ]
    low, high = min(times) / 1.25, max(times) * 1.25
    models = sorted({row.measured.model for one in sets for row in one.rows}, key=float)
    equal = go.Scatter(
        x=[low, high],
        y=[low, high],
        mode="lines",
        line=line(theme.muted, 1),
        hoverinfo="skip",
        showlegend=False,
    )
    layers = [
        spread_band(
            [low, high],
            [low * (1 - BAND), high * (1 - BAND)],
            [low * (1 + BAND), high * (1 + BAND)],
            theme.band,
        ),
        equal,
    ]
    colours = {model: theme.switch_colour(place) for place, model in enumerate(models)}
    of_model = [
        (one, model, [row for row in one.rows if row.measured.model == model])
        for one in sets
        for model in models
    ]
    layers += [
        go.Scatter(
            x=[row.measured.measured_ms / 1e3 for row in rows],
            y=[row.predicted_ms / 1e3 for row in rows],
            mode="markers",
            name=f"{model} B, {escape_untrusted(one.name, 'figure')}",
            marker={
                "symbol": SYMBOLS[one.kind],
                "size": 8 * theme.scale,
                "color": colours[model],
                "line": line(colours[model], 1.6),
            },
            customdata=[
                [
                    row.measured.job.plan.words,
                    seconds(row.measured.measured_ms / 1e3),
                    seconds(row.predicted_ms / 1e3),
                    f"{short(row.error * 100)} %",
                ]
                for row in rows
            ],
            hovertemplate="%{customdata[0]}<br>measured %{customdata[1]}, predicted %{customdata[2]}"
            "<br>error %{customdata[3]}<extra></extra>",
        )
        for one, model, rows in of_model
        if rows
    ]
    log = partial(log_axis, theme, low, high, "{:g}".format, grid=True)
    return frame(
        layers,
        theme,
        430 * theme.scale,
        showlegend=True,
        margin=margins(54 * theme.scale, 12, 44 * theme.scale, 46 * theme.scale),
        xaxis=log(title="measured iteration, s (log)"),
        yaxis=log(title="predicted iteration, s (log)"),
    )


HEIGHT = 172
# Of a row of options, in px; more options than five share the height of five.
ROW, MAX_ROWS_PX, ROWS_EXTRA = 36, 150, 34
TICK = "✓"
# An interval, and how many answers are in it; the first and the last hold the tails.
Interval = tuple[float, float, int]


def numbers_histogram(
    intervals: Sequence[Interval],
    theme: Theme,
    *,
    unit: str,
    ends: tuple[str, str],
    truth: float | None = None,
    truth_words: str = "",
) -> go.Figure:
    """Return a histogram of numbers.

    Parameters
    ----------
    unit
        Title of the axis: a unit, or what the numbers are divided by.
    ends
        What the first and the last interval say besides: or less, or more.
    truth
        Drawn as a line with ``truth_words``; None before the reveal.
    """
    low, high = intervals[0][0], intervals[-1][1]
    widest = max(high - low, 1e-9)
    most = max(count for _, _, count in intervals)
    return frame(
        [
            go.Bar(
                x=[(a + b) / 2 for a, b, _ in intervals],
                y=[count for _, _, count in intervals],
                width=[max(b - a, widest / 12) * 0.96 for a, b, _ in intervals],
                marker={"color": theme.primary},
                **outside([str(count) if count else "" for _, _, count in intervals], theme, 13),
                hoverinfo="skip",
            )
        ],
        theme,
        HEIGHT * theme.scale,
        _truth(truth, truth_words, theme),
        margin=margins(16, 16, 34 * theme.scale, 44 * theme.scale),
        xaxis=_number_axis(theme, intervals, unit, ends, truth),
        yaxis=axis(theme, visible=False, range=[0, max(most, 1) * 1.16]),
    )


def _number_axis(
    theme: Theme,
    intervals: Sequence[Interval],
    unit: str,
    ends: tuple[str, str],
    truth: float | None,
) -> Look:
    """Return an axis whose ticks are the edges between intervals; the tails are named at its ends."""
    low, high = intervals[0][0], intervals[-1][1]
    edges = [a for a, _, _ in intervals[1:]]
    ticks = {at: short(at) for at in edges[:: max(1, -(-len(edges) // 5))]}
    if len(intervals) > 1:
        ticks |= {
            edges[0]: f"{short(edges[0])}<br>{ends[0]}",
            edges[-1]: f"{short(edges[-1])}<br>{ends[1]}",
        }
        # Without ticks too near to the named ends.
        ticks = {
            at: words
            for at, words in ticks.items()
            if at in (edges[0], edges[-1]) or min(at - edges[0], edges[-1] - at) >= (high - low) / 7
        }
    else:
        ticks = {(low + high) / 2: short((low + high) / 2)}
    points = [low, high, *([truth] if truth is not None else [])]
    room = max(max(points) - min(points), 1e-9) * 0.06
    return axis(
        theme,
        title=unit,
        range=[min(points) - room, max(points) + room],
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
    )


def numbers_as_dots(
    values: Sequence[float],
    theme: Theme,
    *,
    unit: str,
    truth: float | None = None,
    truth_words: str = "",
) -> go.Figure:
    """Return a few numbers as dots, equal ones over each other; parameters as :func:`numbers_histogram`."""
    heights = [values[: k + 1].count(value) for k, value in enumerate(values)]
    points = [*values, *([truth] if truth is not None else [])] or [0.0, 1.0]
    room = max(max(points) - min(points), abs(points[0]) * 0.1, 1e-9) * 0.15
    return frame(
        [
            go.Scatter(
                x=list(values),
                y=heights,
                mode="markers",
                marker={"size": 18 * theme.scale, "color": theme.primary, "opacity": 1},
                hoverinfo="skip",
            )
        ],
        theme,
        HEIGHT * theme.scale * 0.72,
        _truth(truth, truth_words, theme),
        margin=margins(16, 16, 34 * theme.scale, 44 * theme.scale),
        xaxis=axis(theme, title=unit, range=[min(points) - room, max(points) + room], nticks=7),
        yaxis=axis(theme, visible=False, range=[0.3, max([*heights, 2]) + 0.7]),
    )


def _truth(truth: float | None, words: str, theme: Theme) -> list[Look]:
    """Return the true number as a line with its words, nothing before the reveal."""
    if truth is None:
        return []
    return [
        upright(truth, line(theme.ink, 3, DOTS)),
        note(
            f"{TICK} {words}", truth, 1, 14 * theme.scale, theme.ink, yref="paper", yanchor="bottom"
        ),
    ]


def options_chosen(
    options: Sequence[tuple[str, int]],
    theme: Theme,
    *,
    names: tuple[str, str] = ("", ""),
    again: Sequence[int] | None = None,
    right: Sequence[int] = (),
) -> go.Figure:
    """Return how many chose each option, as bars from 0.

    Parameters
    ----------
    names
        Of the first and of the second vote, for the legend.
    again
        Counts of a second vote, under those of the first.
    right
        Places of the true options; empty before the reveal.
    """
    counts = [count for _, count in options]
    labels = [f"{TICK} {words}" if at in right else words for at, (words, _) in enumerate(options)]
    outline = [3 if at in right else 0 for at in range(len(options))]
    half = again is not None
    votes = [(0.0, counts, theme.primary, names[0])]
    if again is not None:
        votes = [(-0.2, counts, theme.line, names[0]), (0.2, [*again], theme.primary, names[1])]
    layers = [
        layer
        for shift, values, colour, name in votes
        for layer in (
            sideways_bars(
                None,
                values,
                [at + shift for at in range(len(options))],
                name,
                {"color": colour, "line": {"color": theme.ink, "width": outline}},
                width=0.36 if half else 0.62,
                **outside([str(value) for value in values], theme, 13),
                hoverinfo="skip",
                showlegend=False,
            ),
            legend_square(name, colour, 12 * theme.scale) if half else None,
        )
    ]
    return frame(
        layers,
        theme,
        (min(ROW * len(options), MAX_ROWS_PX) + ROWS_EXTRA) * theme.scale,
        margin=margins(
            min(8.0 * max(len(words) for words in labels), 300) * theme.scale,
            40 * theme.scale,
            24 * theme.scale,
            8,
        ),
        xaxis=axis(theme, visible=False, range=[0, 1.08 * max([*counts, *(again or ()), 1])]),
        yaxis=row_axis(theme, labels, 14),
        showlegend=half,
    )


# -- predictions of every kind --------------------------------------------------------------------

# What is nearer stands at the left end: digits of printed numbers end there.
NEAREST, FURTHEST = 1e-5, 10.0
ROW_PX, AXIS_PX = 46, 56
AT_LEFT: Look = {"xref": "paper", "xanchor": "left", "yanchor": "middle", "showarrow": False}
MARKED = (0.01, 0.1)


def names_of(kinds: Sequence[accuracy.Kind]) -> list[str]:
    """Return what the rows of the figure are called."""
    return [f"{one.title}, {one.against}" for one in kinds]


def error_dots(kinds: Sequence[accuracy.Kind], theme: Theme) -> go.Figure:
    """Return a row for each kind: its comparisons as dots, their median as a bar; what a test holds as one hollow dot."""
    layers = []
    for at, kind in enumerate(kinds):
        errors = [abs(one.error) for one in kind.comparisons] or [kind.most]
        words = [
            f"{escape_untrusted(one.subject, 'figure')}: {one.error:+.2%}"
            for one in kind.comparisons
        ] or [f"{kind.count} answers, none further off"]
        layers.append(
            go.Scatter(
                x=[min(max(one, NEAREST), FURTHEST) for one in errors],
                y=[at] * len(errors),
                mode="markers",
                marker={
                    "symbol": "circle" if kind.comparisons else "circle-open",
                    "size": 8 * theme.scale,
                    "color": theme.primary,
                    "opacity": 0.45 if kind.comparisons else 1.0,
                },
                hovertext=words,
                hoverinfo="text",
                showlegend=False,
            )
        )
        median = kind.share(50)
        if median is not None:
            layers.append(
                go.Scatter(
                    x=[max(median, NEAREST)],
                    y=[at],
                    mode="markers",
                    marker={
                        "symbol": "line-ns",
                        "size": 18 * theme.scale,
                        "line": line(theme.ink, 2),
                    },
                    hovertext=f"median {median:.2%}",
                    hoverinfo="text",
                    showlegend=False,
                )
            )
    names = [
        # Above its row: beside it a narrow window would have no room for the dots.
        note(escape_untrusted(name, "figure"), 0, at - 0.44, 12, theme.ink, **AT_LEFT)
        for at, name in enumerate(names_of(kinds))
    ]
    return frame(
        layers,
        theme,
        (ROW_PX * len(kinds) + AXIS_PX) * theme.scale,
        [*names, *(upright(one, line(theme.line, 1, "dot")) for one in MARKED)],
        margin=margins(10, 16, 8, 44 * theme.scale),
        xaxis=log_axis(
            theme,
            NEAREST,
            FURTHEST,
            lambda share: f"{100 * share:g} %",
            0.02,
            title="error, without its sign (log)",
        ),
        yaxis=axis(theme, range=[len(kinds) - 0.6, -0.75], visible=False),
    )
