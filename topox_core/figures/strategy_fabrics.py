"""Strategies on fabrics: on each fabric data parallel, and the strategy found for it, with their bounds."""

from __future__ import annotations

import plotly.graph_objects as go

from topox_core.fabrics.registry import FABRICS
from topox_core.figures.palette import Theme
from topox_core.figures.template import (
    UNFADED,
    frame,
    line,
    margins,
    note,
    opaque,
    row_axis,
    sideways_bars,
    time_axis,
)
from topox_core.strategy.fabric_table import StrategyTable, TableRow
from topox_core.text.numbers import time

UPPER, LOWER, THICK = -0.2, 0.2, 0.34


def strategies_on_fabrics(table: StrategyTable, theme: Theme) -> go.Figure:
    """Return two bars a fabric: data parallel above, the strategy found for the fabric below."""
    shown = [name for name in table.fabrics if name in table.start.outcomes]
    pairs = [(k, name, table.start, table.best(name)) for k, name in enumerate(shown)]
    times_ms = [row.outcomes[name].iteration_ms for _, name, *rows in pairs for row in rows]
    limit = max(times_ms, default=1.0) * 1.18 or 1.0
    figure = go.Figure()
    figure.add_trace(
        _bars("data parallel", [(k + UPPER, name, row) for k, name, row, _ in pairs], theme.line)
    )
    colours = [theme.fabric_colour(name) for name in shown]
    own = [(k + LOWER, name, row) for k, name, _, row in pairs]
    figure.add_trace(_bars("found for the fabric", own, colours))
    both = [
        (k + at, row.outcomes[name])
        for k, name, *rows in pairs
        for at, row in zip((UPPER, LOWER), rows, strict=True)
    ]
    figure.add_scatter(
        x=[one.bound_ms for _, one in both],
        y=[at for at, _ in both],
        mode="markers",
        name="lower bound",
        showlegend=True,
        marker=opaque(15 * theme.scale, symbol="line-ns", line=line(theme.ink, 2.2)),
        customdata=[[f"{one.bound_ms:.6g}", one.bound_by] for _, one in both],
        hovertemplate="no less than %{customdata[0]} ms<br>%{customdata[1]}<extra></extra>",
    )
    totals = [
        note(
            time(one.iteration_ms),
            one.iteration_ms,
            at,
            12 * theme.scale,
            theme.ink,
            xanchor="left",
            xshift=8,
        )
        for at, one in both
    ]
    return frame(
        figure,
        theme,
        (46 * len(shown) + 78) * theme.scale,
        showlegend=True,
        annotations=totals,
        margin=margins(124 * theme.scale, 8, 34 * theme.scale, 30),
        xaxis=time_axis(theme, limit, grid=True),
        yaxis=row_axis(theme, [FABRICS[name] for name in shown]),
    )


def _bars(name: str, rows: list[tuple[float, str, TableRow]], colour: str | list[str]) -> go.Bar:
    times_ms = [row.outcomes[fabric].iteration_ms for _, fabric, row in rows]
    return sideways_bars(
        None,
        times_ms,
        [at for at, *_ in rows],
        name,
        {"color": colour},
        width=THICK,
        **UNFADED,
        customdata=[
            [FABRICS[fabric], f"{one:.6g}"]
            for (_, fabric, _), one in zip(rows, times_ms, strict=True)
        ],
        hovertemplate=f"<b>%{{customdata[0]}}</b><br>{name}: %{{customdata[1]}} ms<extra></extra>",
    )
