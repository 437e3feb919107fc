"""A rail's windows: how long they are, by the traffic after them, and how many a stage has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from topox_core.figures.palette import VERMILION, Theme, parallelism_colour, parallelism_word
from topox_core.figures.template import (
    DOTS,
    axis,
    box,
    frame,
    level,
    line,
    margins,
    note,
    opaque,
    row_axis,
    upright,
)
from topox_core.rails.iteration import Window
from topox_core.rails.window_lengths import TrafficClass, mib, share_hiding
from topox_core.rails.window_lengths import cdf as distribution
from topox_core.text.numbers import count, percent, plural, time

TOO_SHORT = "rgba(213,94,0,0.09)"


def cdf(windows: Sequence[Window], threshold_ms: float, theme: Theme) -> go.Figure:
    """Return the distribution of the windows' lengths, with the threshold and the share below it.

    The axis is logarithmic and holds the threshold; overlaps (negative windows) lie at its left end,
    where they count as too short.
    """
    lengths, shares = (values.tolist() for values in distribution(windows))
    low, high, ticks, words = log_length_axis(lengths, threshold_ms)
    x = [low, *(min(max(v, low), high) for v in lengths), high]
    figure = go.Figure().add_scatter(
        x=x,
        y=[0.0, *(100 * share for share in shares), 100.0],
        mode="lines",
        line={"shape": "hv", "width": 2.4, "color": theme.primary},
        customdata=[time(v) for v in x],
        hovertemplate="%{y:.1f} % are no longer than %{customdata}<extra></extra>",
    )
    at = min(max(threshold_ms, low), high)
    too_short = 1 - share_hiding(windows, threshold_ms)
    right = math.log10(at / low) < 0.55 * math.log10(high / low)
    side = "left" if right else "right"
    shapes = [
        upright(at, line(VERMILION, 2)),
        box(low, at, 0, 1, yref="paper", layer="below", line={"width": 0}, fillcolor=TOO_SHORT),
    ]
    words_there = note(
        f"delay {time(threshold_ms)}<br><b>{percent(too_short)} too short</b>",
        math.log10(at),
        1 if right else 0.04,
        12.5 * theme.scale,
        theme.ink,
        yref="paper",
        yanchor="top" if right else "bottom",
        xanchor=side,
        xshift=8 if right else -8,
        align=side,
    )
    return frame(
        figure,
        theme,
        262 * theme.scale,
        shapes=shapes,
        annotations=[words_there],
        **share_by_length(low, high, ticks, words, theme),
    )


def share_by_length(
    low: float, high: float, ticks: Sequence[float], words: Sequence[str], theme: Theme
) -> dict[str, Any]:
    """Return margin and axes of a share of windows over their length, with the ends and ticks of :func:`log_length_axis`."""
    return {
        "margin": margins(46 * theme.scale, 18, 8, 42),
        "xaxis": axis(
            theme,
            grid=True,
            type="log",
            range=[math.log10(low), math.log10(high)],
            tickvals=ticks,
            ticktext=words,
            title="length of a window (log)",
        ),
        "yaxis": axis(
            theme,
            grid=True,
            range=[0, 102],
            tickvals=[0, 25, 50, 75, 100],
            ticktext=[f"{v} %" for v in (0, 25, 50, 75, 100)],
        ),
    }


def log_length_axis(
    lengths: Sequence[float], threshold_ms: float
) -> tuple[float, float, list[float], list[str]]:
    """Return ends, ticks and their words of a logarithmic axis of whole decades.

    Where windows overlap (a length of 0 or less), the axis begins half a decade earlier with a
    place for them.
    """
    positive = [v for v in lengths if v > 0]
    least, most = (min(positive), max(positive)) if positive else (1.0, 1.0)
    least = max(least, most * 1e-6)
    if threshold_ms > 0:
        least, most = min(least, threshold_ms), max(most, threshold_ms)
    first = math.floor(math.log10(least) + 1e-9)
    last = max(math.ceil(math.log10(most * 1.0001)), first + 1)
    ticks = [10.0**d for d in range(first, last + 1, 1 if last - first <= 6 else 2)]
    words = [time(t) for t in ticks]
    if len(positive) < len(lengths):
        return 10.0 ** (first - 0.6), 10.0**last, [10.0 ** (first - 0.6), *ticks], ["none", *words]
    return 10.0**first, 10.0**last, ticks, words


def traffic_words(group: TrafficClass) -> str:
    """Return a class of traffic in words: operation (else parallelism) and mean size."""
    name = group.name or parallelism_word(group.parallelism)
    return f"{name}, {mib(group.mean_bytes)}" if group.mean_bytes else name


def breakdown(groups: Sequence[TrafficClass], threshold_ms: float, theme: Theme) -> go.Figure:
    """Return each class's windows as dots (logarithmic), their mean, and the threshold."""
    every = [one.length_ms for group in groups for one in group.windows]
    low, high, ticks, words = log_length_axis(every, threshold_ms)
    figure = go.Figure().add_scatter(
        x=[min(max(group.mean_idle_ms, low), high) for group in groups],
        y=list(range(len(groups))),
        mode="markers",
        name="mean",
        marker=opaque(22 * theme.scale, symbol="line-ns", line=line(theme.ink, 2.5)),
        customdata=[[time(group.mean_idle_ms), plural(group.count, "window")] for group in groups],
        hovertemplate="mean %{customdata[0]} of %{customdata[1]}<extra></extra>",
    )
    for row, group in enumerate(groups):
        figure.add_scatter(
            x=[min(max(one.length_ms, low), high) for one in group.windows],
            y=[row] * group.count,
            mode="markers",
            name=parallelism_word(group.parallelism),
            marker=opaque(
                10 * theme.scale,
                parallelism_colour(group.parallelism),
                line=line(theme.page, 1),
                symbol=["circle" if one.length_ms > 0 else "x" for one in group.windows],
            ),
            customdata=[
                [time(one.length_ms), parallelism_word(one.before), traffic_words(group)]
                for one in group.windows
            ],
            hovertemplate="<b>%{customdata[0]}</b> after %{customdata[1]}<br>before %{customdata[2]}<extra></extra>",
        )
    rows = [f"{traffic_words(group)}  ({count(group.count)})" for group in groups]
    return frame(
        figure,
        theme,
        (30 * max(2, len(groups)) + 56) * theme.scale,
        shapes=[upright(min(max(threshold_ms, low), high), line(VERMILION, 2))],
        margin=margins((16 + 6.1 * max(map(len, rows), default=10)) * theme.scale, 10, 8, 42),
        xaxis=axis(
            theme,
            grid=True,
            type="log",
            range=[math.log10(low) - 0.08, math.log10(high) + 0.05],
            tickvals=ticks,
            ticktext=words,
            title="window length (log)",
        ),
        yaxis=row_axis(theme, rows, 11.5, range=[len(groups) - 0.4, -0.6]),
    )


def counts(exact: Sequence[int], formula: int, theme: Theme) -> go.Figure:
    """Return the windows of an iteration by stage, counted, with the formula's as a dotted line."""
    stages = list(range(len(exact)))
    top = max([*exact, formula, 1]) * 1.16
    figure = go.Figure().add_bar(
        x=stages,
        y=list(exact),
        width=0.7,
        marker={"color": theme.primary, "line": {"width": 0}},
        text=[count(v) for v in exact] if len(exact) <= 24 else None,
        textposition="outside",
        cliponaxis=False,
        textfont={"size": 11.5 * theme.scale, "color": theme.ink},
        customdata=[plural(v, "window") for v in exact],
        hovertemplate="stage %{x}: %{customdata}<extra></extra>",
    )
    # Above the picture: beside its line it would stand in the bars' numbers.
    above = {"xref": "paper", "xanchor": "right", "yref": "paper", "yanchor": "bottom"}
    words = f"dotted: formula, reconstructed: {count(formula)}"
    every = max(1, len(exact) // 16)
    return frame(
        figure,
        theme,
        232 * theme.scale,
        shapes=[level(formula, line(theme.ink, 1.4, DOTS))],
        annotations=[note(words, 1, 1, 11.5 * theme.scale, theme.ink, **above)],
        margin=margins(42 * theme.scale, 8, 22 * theme.scale, 42),
        xaxis=axis(
            theme, range=[-0.6, len(exact) - 0.4], tickvals=stages[::every], title="pipeline stage"
        ),
        yaxis=axis(theme, grid=True, range=[0, top], nticks=5, tickformat=",~g"),
    )
