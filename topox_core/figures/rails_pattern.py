"""What one rank sends on its rail: traffic as bars, windows as outlines, short ones marked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import VERMILION, Theme, parallelism_colour, parallelism_word
from topox_core.figures.template import (
    CLEAR,
    INSIDE,
    axis,
    frame,
    line,
    margins,
    round_step,
    sideways_bars,
)
from topox_core.rails.iteration import Window
from topox_core.rails.window_lengths import hides, mib
from topox_core.rails.windows import Phase
from topox_core.text.numbers import plural, short, time

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
) -> go.Figure:
    """Return one rank's communication pattern: traffic, outlined windows, short ones marked.

    Parameters
    ----------
    dark_ms
        How long a changed circuit carries nothing: a window shorter than this cannot hide a change.
    view
        The stretch of time in view, in ms.
    """
    short_windows = [one for one in windows if one.length_ms > 0 and not hides(one, dark_ms)]
    overlaps = [one for one in windows if one.length_ms <= 0]
    figure = go.Figure(
        [
            _outlines(windows, view, theme),
            *_traffic(phases, view, theme),
            *_marks(
                short_windows, view, "triangle-up", 0, f"shorter than {time(dark_ms)}", theme.scale
            ),
            *_marks(overlaps, view, "x-thin", 2, "no window: 0 or an overlap", theme.scale),
        ]
    )
    more = 20 if sum(44 + 6.4 * len(trace.name) for trace in figure.data) > LEGEND_PX else 0
    return frame(
        figure,
        theme,
        (112 + more) * theme.scale,
        showlegend=True,
        bargap=0,
        margin=margins(16, 18, (30 + more) * theme.scale, 26),
        xaxis=_time_from(theme, view),
        yaxis=axis(theme, range=[-0.42, 1.02], tickvals=[], ticks=""),
    )


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


def parallelism_markers(parallelisms: Sequence[str], theme: Theme) -> dict[str, dict[str, Any]]:
    """Return the marker of each parallelism: its colour, striped where another one has it."""
    seen: Counter[str] = Counter()
    markers: dict[str, dict[str, Any]] = {}
    for name in sorted(set(parallelisms), key=lambda name: (name != "fsdp", name)):
        colour = parallelism_colour(name)
        stripes = _STRIPES[min(seen[colour], len(_STRIPES) - 1)]
        seen[colour] += 1
        markers[name] = {"color": colour, "line": {"width": 0}}
        if stripes:
            shape = {"shape": stripes, "size": 4, "solidity": 0.4}
            markers[name]["pattern"] = {**shape, "bgcolor": colour, "fgcolor": theme.page}
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
        if not shown:
            continue
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
    return traces


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
    style = {"symbol": symbol, "size": 9 * scale, "color": VERMILION, "opacity": 1}
    return [
        go.Scatter(
            x=[min(one.begin_ms + max(0.0, one.length_ms) / 2, view[1]) for one in shown],
            y=[-0.22] * len(shown),
            mode="markers",
            name=words,
            showlegend=True,
            marker={**style, "line": line(VERMILION, line_px)},
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


def _time_from(theme: Theme, view: tuple[float, float]) -> dict[str, object]:
    """Return a time axis that need not begin at 0."""
    low, high = view
    step = round_step((high - low) / 8)
    ticks = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step
    unit, name = (1000.0, "s") if high >= 2000 else (1.0, "ms")
    words = [f"{t / unit:,g} {name}" for t in ticks]
    return axis(theme, range=[low, high], tickvals=ticks.tolist(), ticktext=words)
