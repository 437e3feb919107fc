"""What one rank sends on its rail: traffic as bars, its windows, their lengths and how many a stage has."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import VERMILION, Theme, parallelism_colour, parallelism_word
from topox_core.figures.template import (
    CLEAR,
    DOTS,
    INSIDE,
    Look,
    axis,
    box,
    clock,
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
    sideways_bars,
    upright,
)
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.iteration import Window
from topox_core.rails.window_lengths import (
    TrafficClass,
    cdf as distribution,
    hides,
    mib,
    share_hiding,
)
from topox_core.rails.windows import Phase
from topox_core.text.numbers import count, percent, plural, short, time

# Of the strip's width: a window wider than this carries its length.
LABELLED = 0.026
# Of the strip's width: traffic is drawn at least this wide, about three pixels.
THINNEST = 0.003
LEGEND_PX = 1010  # of a laptop's page: a longer legend takes a second row
# Parallelisms that share a colour: the first of a chart is plain, the others are striped.
_STRIPES = ("", "-", "x")


def strip(
    phases: Sequence[Phase],
    windows: Sequence[Window],
    dark_ms: float,
    view: tuple[float, float],
    theme: Theme,
    legend: bool = True,
) -> go.Figure:
    """Return one rank's communication pattern: traffic, outlined windows, short ones marked.

    Parameters
    ----------
    dark_ms
        How long a changed circuit carries nothing: a window shorter than this cannot hide a change.
    view
        The stretch of time in view, in ms.
    legend
        Without one, :func:`strip_legend` says what to write beside the figure.
    """
    too_short = [one for one in windows if one.length_ms > 0 and not hides(one, dark_ms)]
    layers = [
        _outlines(windows, view, theme),
        *_traffic(phases, view, theme),
        *_marks(too_short, view, "triangle-up", 0, f"shorter than {time(dark_ms)}", theme.scale),
        *_marks(
            [one for one in windows if one.length_ms <= 0],
            view,
            "x-thin",
            2,
            "no window: 0 or an overlap",
            theme.scale,
        ),
    ]
    ticks, words = clock(*view)
    long = sum(44 + 6.4 * len(trace.name) for trace in layers) > LEGEND_PX
    above = (30 + 20 * long) * legend
    return frame(
        layers,
        theme,
        (82 + above) * theme.scale,
        showlegend=legend,
        bargap=0,
        margin=margins(16, 18, above * theme.scale, 26),
        xaxis=axis(theme, range=list(view), tickvals=ticks, ticktext=words),
        yaxis=axis(theme, range=[-0.42, 1.02], tickvals=[], ticks=""),
    )


def strip_legend(figure: go.Figure, theme: Theme) -> list[tuple[str, str]]:
    """Return what the signs of a strip mean, each as CSS draws it: for a legend beside the figure, which wraps on a phone."""
    return [(_as_css(trace, theme), trace.name) for trace in figure.data]


def _as_css(trace: Any, theme: Theme) -> str:
    colour = trace.marker.color
    if trace.type == "scatter":
        if trace.marker.symbol == "triangle-up":
            return f"{colour};clip-path:polygon(50% 0,100% 100%,0 100%)"
        strokes = (
            f"linear-gradient({turn}deg,transparent 43%,{colour} 43% 57%,transparent 57%)"
            for turn in (45, -45)
        )
        return ",".join(strokes)
    if trace.marker.pattern.shape:
        return f"repeating-linear-gradient({colour} 0 2px,{theme.page} 2px 4px)"
    if colour == CLEAR:
        return f"{theme.page};border:1px solid {theme.muted}"
    return str(colour)


def _outlines(windows: Sequence[Window], view: tuple[float, float], theme: Theme) -> go.Bar:
    low, high = view
    here = [
        one
        for one in windows
        if one.length_ms > 0 and one.begin_ms + one.length_ms >= low and one.begin_ms <= high
    ]
    begins = [max(low, one.begin_ms) for one in here]
    widths = [
        min(high, one.begin_ms + one.length_ms) - begin
        for one, begin in zip(here, begins, strict=True)
    ]
    return sideways_bars(
        begins,
        widths,
        [0.5] * len(here),
        "window",
        {"color": CLEAR, "line": line(theme.muted, 1)},
        width=1,
        legendrank=2000,
        text=[
            _length(one) if width >= LABELLED * (high - low) else ""
            for one, width in zip(here, widths, strict=True)
        ],
        **INSIDE,
        cliponaxis=True,
        textfont={"size": 11.5 * theme.scale, "color": theme.ink},
        customdata=[
            [*_facts(one), one.operation.replace("_", " "), mib(one.size_bytes)] for one in here
        ],
        hovertemplate="<b>window of %{customdata[0]}</b><br>%{customdata[1]} → %{customdata[2]}<br>then %{customdata[3]}, "
        "%{customdata[4]}<extra></extra>",
    )


def _facts(window: Window) -> list[str]:
    return [time(window.length_ms), parallelism_word(window.before), parallelism_word(window.after)]


def parallelism_markers(parallelisms: Sequence[str], theme: Theme) -> dict[str, Look]:
    """Return the marker of each parallelism: its colour, striped where another one has it."""
    seen: Counter[str] = Counter()
    markers: dict[str, Look] = {}
    for name in sorted(set(parallelisms), key=lambda name: (name != "fsdp", name)):
        colour = parallelism_colour(name)
        stripes = _STRIPES[min(seen[colour], len(_STRIPES) - 1)]
        seen[colour] += 1
        markers[name] = {"color": colour, "line": {"width": 0}}
        if stripes:
            markers[name]["pattern"] = {
                "shape": stripes,
                "size": 4,
                "solidity": 0.4,
                "bgcolor": colour,
                "fgcolor": theme.page,
            }
    return markers


def _traffic(phases: Sequence[Phase], view: tuple[float, float], theme: Theme) -> list[go.Bar]:
    """Return a trace of bars a parallelism, none too thin to be seen, over the windows beside."""
    low, high = view
    least = THINNEST * (high - low)
    traces = []
    markers = parallelism_markers([one.parallelism for one in phases], theme)
    for name in dict.fromkeys(one.parallelism for one in phases):
        shown = [
            s for s in phases if s.parallelism == name and s.end_ms >= low and s.begin_ms <= high
        ]
        begins = [max(low, s.begin_ms) for s in shown]
        widths = [max(least, min(high, s.end_ms) - b) for s, b in zip(shown, begins, strict=True)]
        traces.append(
            sideways_bars(
                [min(b, high - w) for b, w in zip(begins, widths, strict=True)],
                widths,
                [0.5] * len(shown),
                parallelism_word(name),
                markers[name],
                width=1,
                customdata=[
                    [
                        parallelism_word(s.parallelism),
                        time(s.begin_ms),
                        time(s.end_ms - s.begin_ms),
                        plural(s.communications, "communication"),
                        s.operation.replace("_", " "),
                        mib(s.size_bytes),
                    ]
                    for s in shown
                ],
                hovertemplate="<b>%{customdata[0]}</b> for %{customdata[2]} from %{customdata[1]}<br>%{customdata[3]}, first "
                "%{customdata[4]}; %{customdata[5]}<extra></extra>",
            )
        )
    return [one for one in traces if one.x]


def _marks(
    windows: list[Window],
    view: tuple[float, float],
    symbol: str,
    line_px: float,
    words: str,
    scale: float,
) -> list[go.Scatter]:
    """Return a mark below each window that begins in view, as one trace, if there is any."""
    shown = [one for one in windows if view[0] <= one.begin_ms <= view[1]]
    if not shown:
        return []
    return [
        go.Scatter(
            x=[min(one.begin_ms + max(0.0, one.length_ms) / 2, view[1]) for one in shown],
            y=[-0.22] * len(shown),
            mode="markers",
            name=words,
            showlegend=True,
            marker={
                "symbol": symbol,
                "size": 9 * scale,
                "color": VERMILION,
                "opacity": 1,
                "line": line(VERMILION, line_px),
            },
            cliponaxis=False,
            customdata=[_facts(one) for one in shown],
            hovertemplate="<b>%{customdata[0]}</b>: "
            + words
            + "<br>%{customdata[1]} → %{customdata[2]}<extra></extra>",
        )
    ]


def _length(window: Window) -> str:
    """Return a window's length as short as it can be written into it."""
    length_ms = window.length_ms
    return f"{short(length_ms / 1000)} s" if length_ms >= 1000 else short(length_ms)


TOO_SHORT = "rgba(213,94,0,0.09)"


def cdf(windows: Sequence[Window], threshold_ms: float, theme: Theme) -> go.Figure:
    """Return the distribution of the windows' lengths, with the threshold and the share below it.

    The axis is logarithmic and holds the threshold; overlaps (negative windows) lie at its left end,
    where they count as too short.
    """
    low, high, ticks, words = log_length_axis([w.length_ms for w in windows], threshold_ms)
    at = min(max(threshold_ms, low), high)
    too_short = percent(1 - share_hiding(windows, threshold_ms))
    right = math.log10(at / low) < 0.55 * math.log10(high / low)
    side = {"xanchor": "left", "xshift": 8} if right else {"xanchor": "right", "xshift": -8}
    return frame(
        [_distribution(windows, (low, high), line(theme.primary, 2.4), "")],
        theme,
        262 * theme.scale,
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
        ],
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
    """Return each class's windows as dots (logarithmic), their mean, and the threshold."""
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
        [upright(min(max(threshold_ms, low), high), line(VERMILION, 2))],
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
