"""Figures that only the tour has: servers around a switch, iteration over delay, windows by length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.fabrics.registry import ENTRIES
from topox_core.figures.circuits import SlotState
from topox_core.figures.palette import VERMILION, Theme
from topox_core.figures.template import (
    DOTS,
    axis,
    frame,
    hatched,
    line,
    log_ticks,
    margins,
    note,
    opaque,
    row_axis,
    upright,
)
from topox_core.model.execution import Execution
from topox_core.rails.iteration import Window
from topox_core.text.numbers import time

HEIGHT = 300
_BEND = 0.16  # how far a circuit keeps from the middle, so that opposite ones lie apart


def around_a_switch(execution: Execution, state: SlotState, theme: Theme) -> go.Figure:
    """Return the servers around one switch, and a line with an arrow for each circuit that carries data."""
    n, circuits = execution.cluster.servers, execution.circuits
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    x, y = np.cos(angle), np.sin(angle)
    figure = go.Figure()
    arrows = []
    colour = theme.switch_colour(0)
    for k in state.carrying.tolist():
        source, to = int(circuits.source[k]), int(circuits.destination[k])
        way = np.array([x[to] - x[source], y[to] - y[source]])
        side = np.array([-way[1], way[0]]) / np.hypot(*way) * _BEND
        at = np.linspace(0.14, 0.86, 25)
        start, end = np.array([x[source], y[source]]), np.array([x[to], y[to]])
        points = [(1 - t) ** 2 * start + 2 * t * (1 - t) * side + t**2 * end for t in at.tolist()]
        xs, ys = [float(p[0]) for p in points], [float(p[1]) for p in points]
        figure.add_scatter(x=xs, y=ys, mode="lines", line=line(colour, 3), hoverinfo="skip")
        arrows.append(_arrow((xs[-2], ys[-2]), (xs[-1], ys[-1]), colour))
    figure.add_scatter(
        x=x.tolist(),
        y=y.tolist(),
        mode="markers+text",
        marker=opaque(44 * theme.scale, theme.panel, symbol="square", line=line(theme.line, 1.5)),
        text=[f"<b>S{s}</b>" for s in range(n)],
        textfont={"size": 14 * theme.scale, "color": theme.ink},
        hoverinfo="skip",
    )
    switch = {
        "type": "rect",
        "x0": -0.42,
        "x1": 0.42,
        "y0": -0.42,
        "y1": 0.42,
        "layer": "below",
        "line": line(theme.muted, 1.5),
        "fillcolor": theme.cell,
    }
    span: dict[str, Any] = {"range": [-1.3, 1.3], "visible": False}
    return frame(
        figure,
        theme,
        HEIGHT * theme.scale,
        shapes=[switch],
        annotations=[
            *arrows,
            note(
                "optical switch",
                0.48,
                -0.42,
                11.5 * theme.scale,
                theme.muted,
                xanchor="left",
                yanchor="top",
            ),
        ],
        margin=margins(4, 4, 4, 4),
        xaxis=axis(theme, **span, scaleanchor="y", constrain="domain"),
        yaxis=axis(theme, **span, constrain="domain"),
    )


def _arrow(tail: tuple[float, float], head: tuple[float, float], colour: str) -> dict[str, Any]:
    refs = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
    ends = {"x": head[0], "y": head[1], "ax": tail[0], "ay": tail[1]}
    style = {"arrowhead": 2, "arrowsize": 1.1, "arrowwidth": 2.5, "arrowcolor": colour}
    return {**refs, **ends, **style, "showarrow": True, "text": ""}


def over_delay(
    delays_ms: Sequence[float],
    times_ms: Mapping[str, Sequence[float]],
    labels: Mapping[str, str],
    now_ms: float,
    theme: Theme,
    title: str = "reconfiguration delay, ms",
) -> go.Figure:
    """Return one line a fabric: iteration time over delay, both linear; today's delay is a dotted line.

    Parameters
    ----------
    times_ms
        By fabric; what follows a colon tells two lines of one fabric apart.
    now_ms
        One of ``delays_ms``.
    title
        Of the axis, where it is no delay that the lines go over.
    """
    figure = go.Figure()
    names = []
    for name, values in times_ms.items():
        fabric, _, variant = name.partition(":")
        colour = theme.fabric_colour(fabric)
        figure.add_scatter(
            x=list(delays_ms),
            y=list(values),
            mode="lines",
            line=line(
                colour,
                2 if variant else 3,
                DOTS if variant else ENTRIES[name].dash if name in ENTRIES else "solid",
            ),
            name=labels[name],
            hovertemplate=f"{labels[name]}<br>%{{x}}: %{{y:.4g}} ms<extra></extra>",
        )
        here = values[list(delays_ms).index(now_ms)]
        figure.add_scatter(
            x=[now_ms],
            y=[here],
            mode="markers",
            marker=opaque(10, colour, line=line(theme.page, 1.5)),
            hoverinfo="skip",
            showlegend=False,
        )
        names.append((values[-1], labels[name]))
    last = delays_ms[-1]
    ends = [
        note(
            words, last, y, 12 * theme.scale, theme.ink, xanchor="right", yanchor="bottom", yshift=3
        )
        for y, words in names
    ]
    highest = max(max(values) for values in times_ms.values())
    return frame(
        figure,
        theme,
        HEIGHT * theme.scale,
        shapes=[upright(now_ms, line(theme.ink, 1.5, DOTS))],
        annotations=ends,
        margin=margins(44, 12, 10, 42),
        xaxis=axis(theme, range=[0, last], title=title),
        yaxis=axis(theme, grid=True, range=[0, 1.12 * highest]),
    )


def by_length(windows: Sequence[Window], delay_ms: float | None, theme: Theme) -> go.Figure:
    """Return a bar a window, in the order of time: filled where a change of this delay fits, else hatched.

    Without a delay all are filled.
    """
    least_ms = delay_ms or 0.0
    low, high = 1.0, max(window.length_ms for window in windows) * 2.5
    figure = go.Figure()
    for fits in (True, False):
        rows = [k for k, one in enumerate(windows) if (one.length_ms >= least_ms) == fits]
        figure.add_bar(
            x=[windows[k].length_ms - low for k in rows],
            base=[low] * len(rows),
            y=rows,
            width=0.7,
            orientation="h",
            marker={"color": theme.primary} if fits else hatched(theme),
            text=[time(windows[k].length_ms) for k in rows],
            textposition="outside",
            cliponaxis=False,
            textfont={"size": 11.5 * theme.scale, "color": theme.ink},
            hovertemplate="%{text}<extra></extra>",
        )
    rows_of = [f"{one.before} → {one.after}" if one.after else one.before for one in windows]
    shapes, notes = [], []
    if delay_ms is not None:
        shapes = [upright(delay_ms, line(VERMILION, 2))]
        notes = [
            note(
                f"delay {time(delay_ms)}",
                math.log10(delay_ms),
                1,
                12 * theme.scale,
                theme.bad,
                yref="paper",
                yanchor="bottom",
                xanchor="left" if delay_ms < 2 else "center",
            )
        ]
    ticks = log_ticks(low, high)
    return frame(
        figure,
        theme,
        232 * theme.scale,
        shapes=shapes,
        annotations=notes,
        margin=margins(78 * theme.scale, 14, 22, 26),
        xaxis=axis(
            theme,
            type="log",
            range=[math.log10(low), math.log10(high)],
            tickvals=ticks,
            ticktext=[time(tick) for tick in ticks],
        ),
        yaxis=row_axis(theme, rows_of, 11.5),
    )
