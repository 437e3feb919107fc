"""What a rank sends on its rail and the windows between: the pattern strip, the distribution, the break-down by traffic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import VERMILION, Theme, parallelism_colour, parallelism_word
from topox_core.figures.template import axis, frame, round_step
from topox_core.rails.iteration import Window
from topox_core.rails.windows import Stretch
from topox_core.text.numbers import count, percent, plural, short, time

MIB = 2.0**20
EPS_MS = 1e-9
# Of the strip's width: a window wider than this carries its length.
LABELLED = 0.026
# Of the strip's width: traffic is drawn at least this wide, about three pixels.
THINNEST = 0.003
MOST_ROWS = 9
LEGEND_PX = 1010  # of a laptop's page: a longer legend takes a second row
# Parallelisms that share a colour: the first of a chart is plain, the others are striped.
_STRIPES = ("", "-", "x")


@dataclass(frozen=True)
class TrafficClass:
    """Windows by the traffic that follows them: the operation that begins it and its bytes."""

    words: str
    parallelism: str
    size_bytes: float
    windows: tuple[Window, ...]

    @property
    def mean_ms(self) -> float:
        """Mean length; overlaps count as 0."""
        return float(np.mean([max(0.0, one.length_ms) for one in self.windows]))


def share_longer(windows: Sequence[Window], dark_ms: float) -> float:
    """Return the share of windows in which a change of ``dark_ms`` can hide (0 to 1)."""
    return sum(hides(one, dark_ms) for one in windows) / len(windows) if windows else 0.0


def hides(window: Window, dark_ms: float) -> bool:
    """Return whether a change of ``dark_ms`` fits into a window."""
    return window.length_ms >= dark_ms - EPS_MS


def traffic_between(windows: Sequence[Window], until_ms: float) -> tuple[Stretch, ...]:
    """Return the traffic between the windows of a list whose times are known: from each window's end to the next's begin."""
    ordered = sorted(windows, key=lambda one: one.begin_ms)
    found = []
    begin, operation, size = 0.0, "", 0.0
    for one in ordered:
        found.append(
            Stretch(
                one.rank, one.rail, one.before, operation, begin, max(begin, one.begin_ms), 1, size
            )
        )
        begin, operation, size = (
            max(begin, one.begin_ms + one.length_ms),
            one.operation,
            one.size_bytes,
        )
    if ordered:
        last = ordered[-1]
        found.append(
            Stretch(
                last.rank, last.rail, last.after, operation, begin, max(begin, until_ms), 1, size
            )
        )
    return tuple(found)


def strip(
    phases: Sequence[Stretch],
    windows: Sequence[Window],
    dark_ms: float,
    view: tuple[float, float],
    theme: Theme,
    scale: float = 1.0,
) -> go.Figure:
    """Return the communication pattern of one rank: traffic as bars, windows as outlines with their length, short ones marked.

    Parameters
    ----------
    dark_ms
        How long a changed circuit carries nothing: a window shorter than this cannot hide a change.
    view
        The stretch of time in view, in ms.
    """
    figure = go.Figure(_outlines(windows, view, theme, scale))
    for bars in _traffic(phases, view, theme):
        figure.add_trace(bars)
    _mark(
        figure,
        [w for w in windows if w.length_ms > 0 and not hides(w, dark_ms)],
        view,
        "triangle-up",
        f"shorter than {time(dark_ms)}",
        VERMILION,
        scale,
    )
    _mark(
        figure,
        [w for w in windows if w.length_ms <= 0],
        view,
        "x-thin",
        "no window: 0 or an overlap",
        VERMILION,
        scale,
    )
    more = 20 if sum(44 + 6.4 * len(trace.name) for trace in figure.data) > LEGEND_PX else 0
    return frame(
        figure,
        theme,
        (112 + more) * scale,
        scale,
        showlegend=True,
        bargap=0,
        margin={"l": 16, "r": 18, "t": (30 + more) * scale, "b": 26, "pad": 0},
        xaxis=_time_from(theme, scale, view),
        yaxis=axis(theme, scale, range=[-0.42, 1.02], tickvals=[], ticks=""),
    )


def _outlines(
    windows: Sequence[Window], view: tuple[float, float], theme: Theme, scale: float
) -> go.Bar:
    low, high = view
    here = [
        w
        for w in windows
        if w.length_ms > 0 and w.begin_ms + w.length_ms >= low and w.begin_ms <= high
    ]
    begins = [max(low, w.begin_ms) for w in here]
    widths = [min(high, w.begin_ms + w.length_ms) - b for w, b in zip(here, begins, strict=True)]
    return go.Bar(
        orientation="h",
        base=begins,
        x=widths,
        y=[0.5] * len(here),
        width=1,
        name="window",
        showlegend=True,
        legendrank=2000,
        marker={"color": "rgba(0,0,0,0)", "line": {"color": theme.muted, "width": 1}},
        text=[
            _length(w) if x >= LABELLED * (high - low) else ""
            for w, x in zip(here, widths, strict=True)
        ],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        cliponaxis=True,
        textfont={"size": 11.5 * scale, "color": theme.ink},
        customdata=[
            [
                time(w.length_ms),
                parallelism_word(w.before),
                parallelism_word(w.after),
                w.operation.replace("_", " "),
                mib(w.size_bytes),
            ]
            for w in here
        ],
        hovertemplate="<b>window of %{customdata[0]}</b><br>%{customdata[1]} → %{customdata[2]}<br>then %{customdata[3]}, "
        "%{customdata[4]}<extra></extra>",
    )


def parallelism_look(uses: Sequence[str], theme: Theme) -> dict[str, dict[str, Any]]:
    """Return the marker of each parallelism's bars: its colour, and stripes where another one of the chart has that colour."""
    seen: Counter[str] = Counter()
    looks: dict[str, dict[str, Any]] = {}
    for use in sorted(set(uses), key=lambda use: (use != "fsdp", use)):
        colour = parallelism_colour(use)
        stripes = _STRIPES[min(seen[colour], len(_STRIPES) - 1)]
        seen[colour] += 1
        looks[use] = {"color": colour, "line": {"width": 0}}
        if stripes:
            looks[use]["pattern"] = {
                "shape": stripes,
                "size": 4,
                "solidity": 0.4,
                "bgcolor": colour,
                "fgcolor": theme.page,
            }
    return looks


def _traffic(phases: Sequence[Stretch], view: tuple[float, float], theme: Theme) -> list[go.Bar]:
    """Return a trace of bars a parallelism; a bar is never too thin to be seen, and lies over the windows beside it."""
    low, high = view
    least = THINNEST * (high - low)
    made = []
    looks = parallelism_look([one.parallelism for one in phases], theme)
    for use in dict.fromkeys(one.parallelism for one in phases):
        shown = [
            s for s in phases if s.parallelism == use and s.end_ms >= low and s.begin_ms <= high
        ]
        if not shown:
            continue
        begins = [max(low, s.begin_ms) for s in shown]
        widths = [max(least, min(high, s.end_ms) - b) for s, b in zip(shown, begins, strict=True)]
        made.append(
            go.Bar(
                orientation="h",
                base=[min(b, high - w) for b, w in zip(begins, widths, strict=True)],
                x=widths,
                y=[0.5] * len(shown),
                width=1,
                name=parallelism_word(use),
                showlegend=True,
                marker=looks[use],
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
    return made


def _mark(
    figure: go.Figure,
    windows: list[Window],
    view: tuple[float, float],
    symbol: str,
    words: str,
    colour: str,
    scale: float,
) -> None:
    shown = [w for w in windows if view[0] <= w.begin_ms <= view[1]]
    if not shown:
        return
    marker = {
        "symbol": symbol,
        "size": 9 * scale,
        "color": colour,
        "opacity": 1,
        "line": {"width": 2 if "thin" in symbol else 0, "color": colour},
    }
    figure.add_trace(
        go.Scatter(
            x=[min(w.begin_ms + max(0.0, w.length_ms) / 2, view[1]) for w in shown],
            y=[-0.22] * len(shown),
            mode="markers",
            name=words,
            showlegend=True,
            marker=marker,
            cliponaxis=False,
            customdata=[
                [time(w.length_ms), parallelism_word(w.before), parallelism_word(w.after)]
                for w in shown
            ],
            hovertemplate="<b>%{customdata[0]}</b>: "
            + words
            + "<br>%{customdata[1]} → %{customdata[2]}<extra></extra>",
        )
    )


def _length(window: Window) -> str:
    """Return a window's length as short as it can be written into it."""
    return (
        f"{short(window.length_ms / 1000)} s"
        if window.length_ms >= 1000
        else short(window.length_ms)
    )


def _time_from(theme: Theme, scale: float, view: tuple[float, float]) -> dict[str, object]:
    """Return a time axis that need not begin at 0."""
    low, high = view
    step = round_step((high - low) / 8)
    ticks = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step
    unit, name = (1000.0, "s") if high >= 2000 else (1.0, "ms")
    return axis(
        theme,
        scale,
        range=[low, high],
        tickvals=ticks.tolist(),
        ticktext=[f"{t / unit:,g} {name}" for t in ticks],
    )


def cdf(
    windows: Sequence[Window], threshold_ms: float, theme: Theme, scale: float = 1.0
) -> go.Figure:
    """Return how the windows' lengths are distributed, with the threshold as a line and the share below it written there.

    The axis is logarithmic; overlaps (negative windows) lie at its left end, where they count as
    too short.
    """
    lengths = sorted(one.length_ms for one in windows)
    low, high, ticks, words = _log_axis(lengths, threshold_ms)
    x = [low, *(min(max(v, low), high) for v in lengths), high]
    share = [0.0, *(100 * (k + 1) / len(lengths) for k in range(len(lengths))), 100.0]
    figure = go.Figure(
        go.Scatter(
            x=x,
            y=share,
            mode="lines",
            line={"shape": "hv", "width": 2.4, "color": theme.primary},
            customdata=[time(v) for v in x],
            hovertemplate="%{y:.1f} % are no longer than %{customdata}<extra></extra>",
        )
    )
    at = min(max(threshold_ms, low), high)
    too_short = 1 - share_longer(windows, threshold_ms)
    right = math.log10(at / low) < 0.55 * math.log10(high / low)
    shapes = [
        {
            "type": "line",
            "x0": at,
            "x1": at,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"color": VERMILION, "width": 2},
        },
        {
            "type": "rect",
            "x0": low,
            "x1": at,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "line": {"width": 0},
            "fillcolor": "rgba(213,94,0,0.09)",
        },
    ]
    note = {
        "x": math.log10(at),
        "y": 1 if right else 0.04,
        "yref": "paper",
        "yanchor": "top" if right else "bottom",
        "xanchor": "left" if right else "right",
        "xshift": 8 if right else -8,
        "showarrow": False,
        "align": "left" if right else "right",
        "font": {"size": 12.5 * scale, "color": theme.bad},
        "text": f"delay {time(threshold_ms)}<br><b>{percent(too_short)} too short</b>",
    }
    return frame(
        figure,
        theme,
        262 * scale,
        scale,
        shapes=shapes,
        annotations=[note],
        margin={"l": 46 * scale, "r": 18, "t": 8, "b": 42, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            grid=True,
            type="log",
            range=[math.log10(low), math.log10(high)],
            tickvals=ticks,
            ticktext=words,
            title="length of a window (log)",
        ),
        yaxis=axis(
            theme,
            scale,
            grid=True,
            range=[0, 102],
            tickvals=[0, 25, 50, 75, 100],
            ticktext=[f"{v} %" for v in (0, 25, 50, 75, 100)],
        ),
    )


def _log_axis(
    lengths: Sequence[float], threshold_ms: float
) -> tuple[float, float, list[float], list[str]]:
    """Return the ends, ticks and their words of a logarithmic axis: whole decades round the lengths and the threshold.

    Where windows overlap (a length of 0 or less), the axis begins half a decade earlier with a
    place for them.
    """
    positive = [v for v in lengths if v > 0]
    least, most = (min(positive), max(positive)) if positive else (1.0, 1.0)
    least = max(least, most * 1e-6)
    if threshold_ms > 0:
        least, most = (
            min(least, max(threshold_ms, least / 100)),
            max(most, min(threshold_ms, most * 100)),
        )
    first = math.floor(math.log10(least) + 1e-9)
    last = max(math.ceil(math.log10(most * 1.0001)), first + 1)
    ticks = [10.0**d for d in range(first, last + 1, 1 if last - first <= 6 else 2)]
    words = [time(t) for t in ticks]
    if len(positive) < len(lengths):
        return 10.0 ** (first - 0.6), 10.0**last, [10.0 ** (first - 0.6), *ticks], ["none", *words]
    return 10.0**first, 10.0**last, ticks, words


def mib(size_bytes: float) -> str:
    """Return bytes as the paper counts them: in MiB, 0 MiB for what is below a hundredth."""
    value = size_bytes / MIB
    if value >= 1024 * 10:
        return f"{short(value / 1024)} GiB"
    return (
        f"{value:,.0f} MiB"
        if value >= 100
        else f"{short(value)} MiB"
        if value >= 0.01
        else "< 0.01 MiB"
    )


def classes(windows: Sequence[Window]) -> tuple[TrafficClass, ...]:
    """Return the windows by the traffic after them, largest traffic first; beyond ``MOST_ROWS`` the rarest are one class."""
    found: dict[tuple[str, str, str], list[Window]] = {}
    for one in windows:
        found.setdefault((one.after, one.operation, f"{one.size_bytes:.2g}"), []).append(one)
    if len(found) > MOST_ROWS:
        often = Counter({key: len(members) for key, members in found.items()})
        kept = [key for key, _ in often.most_common(MOST_ROWS - 1)]
        rest = [one for key, members in found.items() if key not in kept for one in members]
        found = {key: found[key] for key in kept} | {(rest[0].after, "other traffic", ""): rest}
    made = []
    for (after, operation, _), members in found.items():
        mean = float(np.mean([one.size_bytes for one in members]))
        name = operation.replace("_", " ") or parallelism_word(after)
        made.append(
            TrafficClass(name if not mean else f"{name}, {mib(mean)}", after, mean, tuple(members))
        )
    return tuple(sorted(made, key=lambda one: -one.size_bytes))


def breakdown(
    groups: Sequence[TrafficClass], threshold_ms: float, theme: Theme, scale: float = 1.0
) -> go.Figure:
    """Return the windows of each class of traffic as dots on a logarithmic axis, their mean as a tick, and the threshold."""
    every = [one.length_ms for group in groups for one in group.windows]
    low, high, ticks, words = _log_axis(every, threshold_ms)
    figure = go.Figure(
        go.Scatter(
            x=[min(max(group.mean_ms, low), high) for group in groups],
            y=list(range(len(groups))),
            mode="markers",
            name="mean",
            marker={
                "symbol": "line-ns",
                "size": 22 * scale,
                "opacity": 1,
                "line": {"color": theme.ink, "width": 2.5},
            },
            customdata=[
                [time(group.mean_ms), plural(len(group.windows), "window")] for group in groups
            ],
            hovertemplate="mean %{customdata[0]} of %{customdata[1]}<extra></extra>",
        )
    )
    for row, group in enumerate(groups):
        colour = parallelism_colour(group.parallelism)
        figure.add_trace(
            go.Scatter(
                x=[min(max(one.length_ms, low), high) for one in group.windows],
                y=[row] * len(group.windows),
                mode="markers",
                name=parallelism_word(group.parallelism),
                marker={
                    "size": 10 * scale,
                    "opacity": 1,
                    "color": colour,
                    "line": {"color": theme.page, "width": 1},
                    "symbol": ["circle" if one.length_ms > 0 else "x" for one in group.windows],
                },
                customdata=[
                    [time(one.length_ms), parallelism_word(one.before), group.words]
                    for one in group.windows
                ],
                hovertemplate="<b>%{customdata[0]}</b> after %{customdata[1]}<br>before %{customdata[2]}<extra></extra>",
            )
        )
    at = min(max(threshold_ms, low), high)
    shapes = [
        {
            "type": "line",
            "x0": at,
            "x1": at,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"color": VERMILION, "width": 2},
        }
    ]
    rows = [f"{group.words}  ({count(len(group.windows))})" for group in groups]
    return frame(
        figure,
        theme,
        (30 * max(2, len(groups)) + 56) * scale,
        scale,
        shapes=shapes,
        margin={
            "l": (16 + 6.1 * max(map(len, rows), default=10)) * scale,
            "r": 10,
            "t": 8,
            "b": 42,
            "pad": 0,
        },
        xaxis=axis(
            theme,
            scale,
            grid=True,
            type="log",
            range=[math.log10(low) - 0.08, math.log10(high) + 0.05],
            tickvals=ticks,
            ticktext=words,
            title="length of the window before it (log)",
        ),
        yaxis=axis(
            theme,
            scale,
            range=[len(groups) - 0.4, -0.6],
            tickvals=list(range(len(groups))),
            ticks="",
            ticktext=rows,
            tickfont={"size": 11.5 * scale, "color": theme.ink},
        ),
    )
