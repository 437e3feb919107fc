"""Predicted against measured iterations: one point a row, the line where both are equal, a band of 10 %."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, frame, line, log_ticks, margins
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import seconds, short
from topox_core.training.validation import Compared

HEIGHT = 430
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
    figure = go.Figure()
    times = [
        time_ms / 1e3
        for one in sets
        for row in one.rows
        for time_ms in (row.measured.measured_ms, row.predicted_ms)
    ]
    low, high = min(times) / 1.25, max(times) * 1.25
    hidden = {"hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(
        x=[low, high, high, low],
        y=[low * (1 + BAND), high * (1 + BAND), high * (1 - BAND), low * (1 - BAND)],
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=theme.band,
        **hidden,
    )
    figure.add_scatter(
        x=[low, high], y=[low, high], mode="lines", line=line(theme.muted, 1), **hidden
    )
    models = sorted({row.measured.model for one in sets for row in one.rows}, key=float)
    colours = {model: theme.switch_colour(place) for place, model in enumerate(models)}
    for one in sets:
        for model in models:
            rows = [row for row in one.rows if row.measured.model == model]
            if rows:
                figure.add_trace(_points(one, model, rows, colours[model], theme))
    ticks = log_ticks(low, high)
    span: dict[str, Any] = {
        "type": "log",
        "grid": True,
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
    }
    return frame(
        figure,
        theme,
        HEIGHT * theme.scale,
        showlegend=True,
        margin=margins(54 * theme.scale, 12, 44 * theme.scale, 46 * theme.scale),
        xaxis=axis(theme, title="measured iteration, s (log)", **span),
        yaxis=axis(theme, title="predicted iteration, s (log)", **span),
    )


def _points(
    one: MeasuredSet, model: str, rows: Sequence[Compared], colour: str, theme: Theme
) -> go.Scatter:
    return go.Scatter(
        x=[row.measured.measured_ms / 1e3 for row in rows],
        y=[row.predicted_ms / 1e3 for row in rows],
        mode="markers",
        name=f"{model} B, {escape_untrusted(one.name, 'figure')}",
        marker={
            "symbol": SYMBOLS[one.kind],
            "size": 8 * theme.scale,
            "color": colour,
            "line": line(colour, 1.6),
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
