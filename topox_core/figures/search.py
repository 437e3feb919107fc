"""The search as it ran, and the iteration time under other delays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.template import (
    DOTS,
    axis,
    frame,
    level,
    line,
    margins,
    named_axis,
    note,
    opaque,
)
from topox_core.schedule.result import TracePoint
from topox_core.schedule.source import Family
from topox_core.schedule.story import FAMILY_WORDS, Event, events_of
from topox_core.text.numbers import apart, short

GLYPHS: dict[Family, str] = {
    "rules": "●",
    "controllers": "⬟",
    "fixed": "✚",
    "search": "▲",
    "neighbourhoods": "◆",
    "exact": "■",
    "bounds": "▼",
}
SYMBOLS: dict[Family, str] = {
    "rules": "circle",
    "controllers": "pentagon",
    "fixed": "cross",
    "search": "triangle-up",
    "neighbourhoods": "diamond",
    "exact": "square",
    "bounds": "triangle-down",
}
LOG_ABOVE = 30.0  # from this ratio of last to first moment on, time is logarithmic
FIRST_S = 1e-3
MOST_MARKS = 60
HEIGHT, ROOM = 180, 0.12


def search(
    trace: Sequence[TracePoint], until_s: float, theme: Theme, height: float = HEIGHT
) -> go.Figure:
    """Return best schedule against bound over wall time, each step marked by its source.

    Time is logarithmic where it spans more than a factor of 30, since most solves do most of their
    work at once.
    """
    events = events_of(trace)
    end = max([until_s, *(point.elapsed_s for point in trace), FIRST_S])
    begin = max(FIRST_S, min((point.elapsed_s for point in trace), default=0.0))
    log = end / begin > LOG_ABOVE
    begin = begin if log else 0.0
    figure = go.Figure()
    falling, rising = [[e for e in events if e.moved == what] for what in ("schedule", "bound")]
    for name, steps in (("bound", rising), ("best found", falling)):
        if steps:
            best = steps is falling
            figure.add_scatter(
                x=[*(max(e.elapsed_s, begin) for e in steps), end],
                y=[*(e.value_ms for e in steps), steps[-1].value_ms],
                # Where the incumbent starts later than the bound, the band between them starts
                # there too.
                mode="lines",
                fill="tonexty" if best and rising else None,
                fillcolor="rgba(86,180,233,0.18)",
                name=name,
                line={
                    "shape": "hv",
                    **(line(theme.primary, 2.5) if best else line(theme.ink, 2, DOTS)),
                },
                hoverinfo="skip",
            )
    for family in families_of(events):
        figure.add_trace(_marks(family, [e for e in events if e.family == family], begin, theme))
    return frame(
        figure,
        theme,
        height * theme.scale,
        annotations=_ends(falling, rising, height, theme),
        margin=margins(46, 60 * theme.scale, 8, 30),
        xaxis=time_axis(begin, end, log, theme),
        yaxis=axis(
            theme, grid=True, range=_room([e.value_ms for e in events]), nticks=5, tickformat=",~g"
        ),
    )


def _marks(family: Family, events: Sequence[Event], begin: float, theme: Theme) -> go.Scatter:
    """Return the steps of one family: shape for the family, colour for schedule or bound."""
    few = list(events[:: -(-len(events) // MOST_MARKS)])
    few += [events[-1]] if few[-1] is not events[-1] else []
    return go.Scatter(
        x=[max(e.elapsed_s, begin) for e in few],
        y=[e.value_ms for e in few],
        mode="markers",
        opacity=1,
        name=FAMILY_WORDS[family],
        cliponaxis=False,
        marker=opaque(
            9,
            [theme.primary if e.moved == "schedule" else theme.ink for e in few],
            symbol=SYMBOLS[family],
            line=line(theme.page, 1),
        ),
        customdata=[[e.moved, e.source, f"{e.value_ms:.6g}", f"{e.elapsed_s:.3g}"] for e in few],
        hovertemplate="%{customdata[0]} %{customdata[2]} ms after %{customdata[3]} s<br>%{customdata[1]}<extra></extra>",
    )


def time_axis(begin: float, end: float, log: bool, theme: Theme, title: str = "") -> dict[str, Any]:
    """Return the axis of wall time, which says so when it is logarithmic."""
    if not log:
        plain: dict[str, Any] = {
            "range": [0, end * 1.02],
            "ticksuffix": " s",
            "nticks": 5,
            "tickformat": ",~g",
        }
        return axis(theme, title=title, **plain)
    low, high = math.log10(begin), math.log10(end)
    ticks = [10.0**k for k in range(math.ceil(low - 0.02), math.floor(high + 0.02) + 1)]
    return axis(
        theme,
        title=title,
        type="log",
        range=[low - 0.03 * (high - low), high + 0.03 * (high - low)],
        tickvals=ticks,
        ticktext=[f"{1000 * t:g} ms" if t < 0.1 else f"{t:g} s" for t in ticks],
    )


def families_of(events: Sequence[Event]) -> list[Family]:
    """Return the families that made a step, in the order of the legend."""
    return [family for family in SYMBOLS if any(e.family == family for e in events)]


def _room(values: Sequence[float]) -> list[float]:
    """Return a range with a little room above the highest and below the lowest value."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    spread = max(high - low, 0.02 * high, 1e-9)
    return [low - ROOM * spread, high + ROOM * spread]


def _ends(
    falling: Sequence[Event], rising: Sequence[Event], height: float, theme: Theme
) -> list[dict[str, Any]]:
    """Return the values that the lines end at, beside their right ends and clear of each other."""
    values = [steps[-1].value_ms for steps in (falling, rising) if steps]
    words = apart(values)
    if not falling:
        return [
            _label(value, word, theme.ink, 0.0, theme.scale)
            for value, word in zip(values, words, strict=True)
        ]
    if len(values) == 1 or values[0] <= values[1]:
        return [
            _label(
                values[0],
                f"<b>{words[0]}</b>",
                theme.good if rising else theme.primary,
                0.0,
                theme.scale,
            )
        ]
    low, high = _room([e.value_ms for e in (*falling, *rising)])
    distance = (values[0] - values[1]) / (high - low) * (height - 38) * theme.scale
    push = max(0.0, (15 * theme.scale - distance) / 2)
    return [
        _label(values[0], f"<b>{words[0]}</b>", theme.primary, push, theme.scale),
        _label(values[1], words[1], theme.ink, -push, theme.scale),
    ]


def _label(y: float, text: str, colour: str, shift: float, scale: float) -> dict[str, Any]:
    place = {"xref": "paper", "xanchor": "left", "xshift": 5}
    return note(text, 1, y, 12 * scale, colour, yanchor="middle", yshift=shift, **place)


def delays(
    delay_ms: Sequence[float],
    makespan_ms: Sequence[float | None],
    bound_ms: float | None,
    now: float,
    theme: Theme,
) -> go.Figure:
    """Return the iteration time (log) for a few delays, today's marked, the bound dotted."""
    known = [
        (i, delay, value)
        for i, (delay, value) in enumerate(zip(delay_ms, makespan_ms, strict=True))
        if value is not None
    ]
    at = [i for i, _, _ in known]
    values = [value for _, _, value in known]
    here = [delay == now for _, delay, _ in known]
    figure = go.Figure().add_scatter(
        x=at,
        y=values,
        mode="lines+markers+text",
        line=line(theme.line, 2),
        opacity=1,
        marker=opaque(
            [11 if h else 8 for h in here], [theme.primary if h else theme.muted for h in here]
        ),
        text=[f"<b>{short(v)}</b>" if h else short(v) for v, h in zip(values, here, strict=True)],
        textposition="top center",
        textfont={"size": 11.5 * theme.scale, "color": theme.ink},
        cliponaxis=False,
        customdata=[[f"{delay:g}", f"{value:.6g}"] for _, delay, value in known],
        hovertemplate="delay %{customdata[0]} ms: %{customdata[1]} ms<extra></extra>",
    )
    shapes = []
    lowest = [*values]
    if bound_ms:
        shapes.append(level(bound_ms, line(theme.ink, 1.5, DOTS)))
        lowest.append(bound_ms)
    low, high = min(lowest, default=1.0), max(values, default=1.0)
    span = max(math.log10(high / low) if low > 0 else 1.0, 0.05)
    return frame(
        figure,
        theme,
        170 * theme.scale,
        shapes=shapes,
        margin=margins(12, 16, 12, 40),
        xaxis=named_axis(
            theme,
            [f"{d:g}" for d in delay_ms],
            range=[-0.4, len(delay_ms) - 0.6],
            title="reconfiguration delay, ms",
        ),
        yaxis=axis(
            theme,
            type="log",
            visible=False,
            range=[math.log10(low) - 0.12 * span, math.log10(high) + 0.3 * span]
            if low > 0
            else None,
        ),
    )
