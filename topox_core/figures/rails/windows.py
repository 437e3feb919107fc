"""Windows of a rail: their lengths, by what follows and side by side, and how many a stage has."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import VERMILION, Theme, parallelism_colour, parallelism_word
from topox_core.figures.template import (
    DOTS,
    Look,
    axis,
    box,
    frame,
    hatched,
    level,
    line,
    log_axis,
    margins,
    name_px,
    note,
    opaque,
    outside,
    row_axis,
    upright,
)
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.iteration import Window
from topox_core.rails.window_lengths import (
    TrafficClass,
    cdf as distribution,
    mib,
    share_hiding,
)
from topox_core.text.numbers import count, percent, plural, time

TOO_SHORT = "rgba(213,94,0,0.09)"


def cdf(windows: Sequence[Window], threshold_ms: float, theme: Theme) -> go.Figure:
    """Return the distribution of the windows' lengths, with the threshold, where it is not 0, and the share below it.

    The axis is logarithmic and holds the threshold; overlaps (negative windows) lie at its left end,
    where they count as too short.
    """
    low, high, ticks, words = log_length_axis([w.length_ms for w in windows], threshold_ms)
    at = min(max(threshold_ms, low), high)
    too_short = percent(1 - share_hiding(windows, threshold_ms))
    right = math.log10(at / low) < 0.55 * math.log10(high / low)
    side = {"xanchor": "left", "xshift": 8} if right else {"xanchor": "right", "xshift": -8}
    marks = (
        [
            note(
                f"delay {time(threshold_ms)}<br><b>{too_short} shorter</b>",
                math.log10(at),
                1 if right else 0.04,
                12.5 * theme.scale,
                theme.ink,
                yref="paper",
                yanchor="top" if right else "bottom",
                align=side["xanchor"],
                **side,
            ),
            upright(at, line(VERMILION, 2)),
            box(low, at, 0, 1, yref="paper", layer="below", line={"width": 0}, fillcolor=TOO_SHORT),
        ]
        if threshold_ms > 0
        else []
    )
    return frame(
        [_distribution(windows, (low, high), line(theme.primary, 2.4), "")],
        theme,
        262 * theme.scale,
        marks,
        **share_by_length(low, high, ticks, words, theme),
    )


def _distribution(
    lengths: Sequence[float] | Sequence[Window], ends: tuple[float, float], style: Look, name: str
) -> go.Scatter:
    """Return the share of windows that are no longer than a length, over an axis between ``ends``."""
    low, high = ends
    ascending, shares = (values.tolist() for values in distribution(lengths))
    x = [low, *(min(max(v, low), high) for v in ascending), high]
    said = f"<b>{name}</b>: " if name else ""
    return go.Scatter(
        x=x,
        y=[0.0, *(100 * share for share in shares), 100.0],
        mode="lines",
        name=name or None,
        line={"shape": "hv", **style},
        customdata=[time(v) for v in x],
        hovertemplate=f"{said}%{{y:.1f}} % are no longer than %{{customdata}}<extra></extra>",
    )


def share_by_length(
    low: float, high: float, ticks: Sequence[float], words: Sequence[str], theme: Theme
) -> Look:
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
    """Return each class's windows as dots (logarithmic), their mean, and the threshold where it is not 0."""
    every = [one.length_ms for group in groups for one in group.windows]
    low, high, ticks, words = log_length_axis(every, threshold_ms)
    means = go.Scatter(
        x=[min(max(group.mean_idle_ms, low), high) for group in groups],
        y=list(range(len(groups))),
        mode="markers",
        name="mean",
        marker=opaque(22 * theme.scale, symbol="line-ns", line=line(theme.ink, 2.5)),
        customdata=[[time(group.mean_idle_ms), plural(group.count, "window")] for group in groups],
        hovertemplate="mean %{customdata[0]} of %{customdata[1]}<extra></extra>",
    )
    dots = [
        go.Scatter(
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
        for row, group in enumerate(groups)
    ]
    rows = [f"{traffic_words(group)}  ({count(group.count)})" for group in groups]
    return frame(
        [means, *dots],
        theme,
        (30 * max(2, len(groups)) + 56) * theme.scale,
        [upright(min(max(threshold_ms, low), high), line(VERMILION, 2))]
        if threshold_ms > 0
        else [],
        margin=margins(name_px(rows, theme, 16, 6.1, 10), 10, 8, 42),
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
    # Above the picture: beside its line it would stand in the bars' numbers.
    return frame(
        [
            go.Bar(
                x=stages,
                y=list(exact),
                width=0.7,
                marker={"color": theme.primary, "line": {"width": 0}},
                **outside([count(v) for v in exact] if len(exact) <= 24 else None, theme),
                customdata=[plural(v, "window") for v in exact],
                hovertemplate="stage %{x}: %{customdata}<extra></extra>",
            )
        ],
        theme,
        232 * theme.scale,
        [
            level(formula, line(theme.ink, 1.4, DOTS)),
            note(
                f"dotted: formula, reconstructed: {count(formula)}",
                1,
                1,
                11.5 * theme.scale,
                theme.ink,
                xref="paper",
                xanchor="right",
                yref="paper",
                yanchor="bottom",
            ),
        ],
        margin=margins(42 * theme.scale, 8, 22 * theme.scale, 42),
        xaxis=axis(
            theme,
            range=[-0.6, len(exact) - 0.4],
            tickvals=stages[:: max(1, len(exact) // 16)],
            title="pipeline stage",
        ),
        yaxis=axis(
            theme,
            grid=True,
            range=[0, 1.16 * max([*exact, formula, 1])],
            nticks=5,
            tickformat=",~g",
        ),
    )


# Of the runs in their order: which fabric's colour, and the dash.
_LOOKS = (
    ("scheduled", "solid"),
    ("reactive", "7px,5px"),
    ("fat_tree", "2px,3px"),
    ("provisioned", "9px,3px,2px,3px"),
)


def windows_side_by_side(runs: Sequence[tuple[str, FloatArray]], theme: Theme) -> go.Figure:
    """Return the distribution of the windows' lengths of each run (letter, lengths in ms), length logarithmic.

    A run without a window has no line.
    """
    there = [(letter, lengths) for letter, lengths in runs if len(lengths)]
    low, high, ticks, words = log_length_axis(
        [v for _, lengths in there for v in lengths.tolist()], 0.0
    )
    lines, marks = [], []
    for number, (letter, lengths) in enumerate(there):
        fabric, dash = _LOOKS[number % len(_LOOKS)]
        colour = theme.fabric_colour(fabric)
        lines.append(_distribution(lengths.tolist(), (low, high), line(colour, 2.2, dash), letter))
        half = float(np.median(lengths))
        at = min(max(half, low), high)
        words_of = f"half longer than {time(half)}" if half > 0 else "half of them overlap"
        # On the side that has more room, each at a height of its own.
        side = 1 if math.log10(at / low) < 0.45 * math.log10(high / low) else -1
        marks.append(
            note(
                f'<span style="color:{colour}"><b>{letter}</b></span>, {words_of}',
                math.log10(at),
                30 + 14 * number,
                11.5 * theme.scale,
                theme.ink,
                xanchor="left" if side > 0 else "right",
                xshift=10 * side,
            )
        )
    return frame(
        lines,
        theme,
        250 * theme.scale,
        marks,
        **share_by_length(low, high, ticks, words, theme),
    )


def by_length(windows: Sequence[Window], delay_ms: float | None, theme: Theme) -> go.Figure:
    """Return a bar a window, in the order of time: filled where a change of this delay fits, else hatched.

    Without a delay all are filled.
    """
    low, high = 1.0, max(window.length_ms for window in windows) * 2.5
    fitting = [k for k, one in enumerate(windows) if one.length_ms >= (delay_ms or 0.0)]
    others = [k for k in range(len(windows)) if k not in fitting]
    bars = [
        go.Bar(
            x=[windows[k].length_ms - low for k in rows],
            base=[low] * len(rows),
            y=rows,
            width=0.7,
            orientation="h",
            marker=marker,
            **outside([time(windows[k].length_ms) for k in rows], theme),
            hovertemplate="%{text}<extra></extra>",
        )
        for rows, marker in ((fitting, {"color": theme.primary}), (others, hatched(theme)))
    ]
    names = [f"{one.before} → {one.after}" if one.after else one.before for one in windows]
    marks: list[Look] = []
    if delay_ms is not None:
        words, at = f"delay {time(delay_ms)}", math.log10(delay_ms)
        marks = [
            upright(delay_ms, line(VERMILION, 2)),
            note(
                words,
                at,
                1,
                12 * theme.scale,
                theme.bad,
                yref="paper",
                yanchor="bottom",
                xanchor="left" if delay_ms < 2 else "center",
            ),
        ]
    return frame(
        bars,
        theme,
        232 * theme.scale,
        marks,
        margin=margins(78 * theme.scale, 14, 22, 26),
        xaxis=log_axis(theme, low, high, time),
        yaxis=row_axis(theme, names, 11.5),
    )
