"""Theirs against ours: a published number and the one computed here, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, frame
from topox_core.papers.card import VERDICTS, Row
from topox_core.text.numbers import NBSP, short

ROW_PX = 29


def paired(
    rows: Sequence[Row], theme: Theme, logarithmic: bool = False, scale: float = 1.0
) -> go.Figure:
    """Return paired dots: theirs hollow, ours filled, the bound a tick, the verdict in sign and words at the right.

    Parameters
    ----------
    rows
        Of one series and one unit, in reading order from the top.
    logarithmic
        Whether the numbers span decades; the axis title says so.
    """
    place = list(range(len(rows)))
    figure = go.Figure()
    gaps_x: list[float | None] = []
    gaps_y: list[float | None] = []
    for y, row in zip(place, rows, strict=True):
        if row.theirs is not None:
            gaps_x += [row.theirs, row.ours, None]
            gaps_y += [y, y, None]
    figure.add_trace(
        go.Scatter(
            x=gaps_x,
            y=gaps_y,
            mode="lines",
            line={"color": theme.line, "width": 3},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    bounded = [(y, row) for y, row in zip(place, rows, strict=True) if row.bound is not None]
    if bounded:
        figure.add_trace(
            _dots(
                bounded,
                [row.bound or 0.0 for _, row in bounded],
                "lower bound",
                {
                    "symbol": "line-ns",
                    "size": 15 * scale,
                    "line": {"color": theme.muted, "width": 2},
                },
            )
        )
    printed = [(y, row) for y, row in zip(place, rows, strict=True) if row.theirs is not None]
    figure.add_trace(
        _dots(
            printed,
            [row.theirs or 0.0 for _, row in printed],
            "theirs (printed)",
            {
                "symbol": "diamond",
                "size": 10 * scale,
                "color": theme.page,
                "opacity": 1,
                "line": {"color": theme.ink, "width": 1.8},
            },
        )
    )
    figure.add_trace(
        _dots(
            list(zip(place, rows, strict=True)),
            [row.ours for row in rows],
            "ours (computed)",
            {"symbol": "circle", "size": 10 * scale, "color": theme.primary, "opacity": 1},
        )
    )
    return frame(
        figure,
        theme,
        (ROW_PX * len(rows) + 66) * scale,
        scale,
        showlegend=True,
        margin={"l": 200 * scale, "r": 118 * scale, "t": 26 * scale, "b": 40, "pad": 0},
        annotations=[_verdict(y, row, theme, scale) for y, row in zip(place, rows, strict=True)],
        xaxis=_values(rows, theme, logarithmic, scale),
        yaxis=axis(
            theme,
            scale,
            range=[len(rows) - 0.4, -0.6],
            tickvals=place,
            ticks="",
            ticktext=[
                f"{row.item}{NBSP * 2}{row.about}" if row.about else row.item for row in rows
            ],
        ),
    )


def _dots(
    rows: Sequence[tuple[int, Row]], values: Sequence[float], name: str, marker: dict[str, object]
) -> go.Scatter:
    return go.Scatter(
        x=list(values),
        y=[y for y, _ in rows],
        mode="markers",
        name=name,
        marker=marker,
        cliponaxis=False,
        customdata=[
            [f"{value:.6g} {row.unit}", row.item]
            for (_, row), value in zip(rows, values, strict=True)
        ],
        hovertemplate=f"{name}, %{{customdata[1]}}: %{{customdata[0]}}<extra></extra>",
    )


def _values(
    rows: Sequence[Row], theme: Theme, logarithmic: bool, scale: float
) -> dict[str, object]:
    unit = rows[0].unit if rows else ""
    known = [
        value
        for row in rows
        for value in (row.theirs, row.ours, row.bound)
        if value is not None and value > 0
    ]
    least, most = min(known, default=1.0), max(known, default=1.0)
    if not logarithmic:
        return axis(theme, scale, grid=True, title=unit, range=[0, 1.06 * most], tickformat=",~g")
    low, high = math.log10(least), math.log10(most)
    pad = 0.06 * max(high - low, 0.1)
    ticks = [
        step * 10.0**decade
        for decade in range(math.floor(low), math.ceil(high) + 1)
        for step in (1, 2, 5)
    ]
    return axis(
        theme,
        scale,
        grid=True,
        title=f"{unit}, logarithmic",
        type="log",
        range=[low - pad, high + pad],
        tickvals=ticks,
        ticktext=[f"{tick:,g}" for tick in ticks],
    )


def _verdict(y: int, row: Row, theme: Theme, scale: float) -> dict[str, object]:
    sign, words = VERDICTS[row.verdict]
    colour = {"match": theme.good, "trend": theme.ink, "differs": theme.bad}[row.verdict]
    off = "" if row.deviation is None else f"{NBSP}{_signed(row.deviation)}"
    return {
        "x": 1,
        "xref": "paper",
        "y": y,
        "xanchor": "left",
        "xshift": 8,
        "showarrow": False,
        "align": "left",
        "text": f"<b>{sign}</b>{NBSP}{words}{off}",
        "font": {"size": 12 * scale, "color": colour},
    }


def _signed(share: float) -> str:
    percent = 100 * share
    if abs(percent) < 0.05:
        return f"0{NBSP}%"
    return f"{'+' if percent > 0 else '−'}{short(float(f'{abs(percent):.2g}'))}{NBSP}%"
