"""The search as it ran, and the iteration time under other delays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from topox_core.figures.numbers import short, time
from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, frame
from topox_core.schedule.result import StoryLine


def search(story: Sequence[StoryLine], until_s: float, theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return incumbent against bound over wall time; the optimum lies between the lines."""
    times = [line.elapsed_s for line in story]
    bounds = [line.bound_ms for line in story]
    found = [line for line in story if line.incumbent_ms is not None]
    end = max([until_s, *times, 1e-3])
    figure = go.Figure()
    if story:
        figure.add_trace(go.Scatter(
            x=[*times, end], y=[*bounds, bounds[-1]], mode="lines", line={"shape": "hv", "width": 2, "dash": "2px,3px",
                                                                         "color": theme.ink},
            name="bound", hovertemplate="bound %{y:.6~g} ms after %{x:.3~g} s<extra></extra>"))
    if found:
        best = [float(line.incumbent_ms or 0.0) for line in found]
        # Where the incumbent starts later than the bound, the band between them starts there too.
        figure.add_trace(go.Scatter(
            x=[*(line.elapsed_s for line in found), end], y=[*best, best[-1]], mode="lines", fill="tonexty" if story else None,
            fillcolor="rgba(86,180,233,0.18)", line={"shape": "hv", "width": 2.5, "color": theme.primary}, name="best found",
            hovertemplate="best %{y:.6~g} ms after %{x:.3~g} s<extra></extra>"))
    labels = []
    if story:
        low, high = min(bounds), max([*bounds, *(float(line.incumbent_ms or 0.0) for line in found)])
        spread = max(high - low, 0.02 * high, 1e-9)
        labels.append(_label(end, bounds[-1], f"bound {time(bounds[-1])}", theme.ink, "top", scale))
        if found:
            labels.append(_label(end, best[-1], f"best found {time(best[-1])}", theme.primary, "bottom", scale))
        y_range = [low - 0.25 * spread, high + 0.25 * spread]
    else:
        y_range = [0, 1]
    return frame(figure, theme, 170 * scale, scale, annotations=labels, margin={"l": 44, "r": 8, "t": 8, "b": 30, "pad": 0},
                 xaxis=axis(theme, scale, range=[0, end], ticksuffix=" s", nticks=5, tickformat=",~g"),
                 yaxis=axis(theme, scale, grid=True, range=y_range, nticks=4, tickformat=",~g"))


def _label(x: float, y: float, text: str, colour: str, anchor: str, scale: float) -> dict[str, object]:
    return {"x": x, "y": y, "text": text, "xanchor": "right", "yanchor": anchor, "showarrow": False,
            "font": {"size": 12 * scale, "color": colour}}


def delays(delay_ms: Sequence[float], makespan_ms: Sequence[float | None], bound_ms: float | None, now: float, theme: Theme,
           scale: float = 1.0) -> go.Figure:
    """Return the iteration time (log) for a few delays, equally spaced, with today's delay marked and the bound dotted."""
    known = [(i, delay, value) for i, (delay, value) in enumerate(zip(delay_ms, makespan_ms, strict=True)) if value is not None]
    at = [i for i, _, _ in known]
    values = [value for _, _, value in known]
    here = [delay == now for _, delay, _ in known]
    figure = go.Figure(go.Scatter(
        x=at, y=values, mode="lines+markers+text", line={"color": theme.line, "width": 2}, opacity=1,
        marker={"size": [11 if h else 8 for h in here], "opacity": 1,
                "color": [theme.primary if h else theme.muted for h in here]},
        text=[f"<b>{short(v)}</b>" if h else short(v) for v, h in zip(values, here, strict=True)], textposition="top center",
        textfont={"size": 11.5 * scale, "color": theme.ink}, cliponaxis=False,
        customdata=[[f"{delay:g}", f"{value:.6g}"] for _, delay, value in known],
        hovertemplate="delay %{customdata[0]} ms: %{customdata[1]} ms<extra></extra>"))
    shapes = []
    floor = [*values]
    if bound_ms:
        shapes.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": bound_ms, "y1": bound_ms,
                       "line": {"color": theme.ink, "width": 1.5, "dash": "2px,3px"}})
        floor.append(bound_ms)
    low, high = min(floor, default=1.0), max(values, default=1.0)
    span = max(math.log10(high / low) if low > 0 else 1.0, 0.05)
    return frame(
        figure, theme, 170 * scale, scale, shapes=shapes, margin={"l": 12, "r": 16, "t": 12, "b": 40, "pad": 0},
        xaxis=axis(theme, scale, range=[-0.4, len(delay_ms) - 0.6], tickvals=list(range(len(delay_ms))),
                   ticktext=[f"{d:g}" for d in delay_ms], ticks="", title="reconfiguration delay, ms"),
        yaxis=axis(theme, scale, type="log", visible=False,
                   range=[math.log10(low) - 0.12 * span, math.log10(high) + 0.3 * span] if low > 0 else None))
