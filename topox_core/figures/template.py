"""The quiet frame that every chart shares: margins, type, axes."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from topox_core.figures.palette import Theme

FONT = "Source Sans, Source Sans Pro, sans-serif"
# The Gantt chart, its overview, the port use and the time-window slider share these, so that their
# axes align.
LANE_LEFT, LANE_RIGHT = 58, 10


def axis(
    theme: Theme, scale: float, *, grid: bool = False, title: str = "", **changes: Any
) -> dict[str, Any]:
    """Return an axis: ticks outside, no zero line, a grid only where values are read."""
    base: dict[str, Any] = {
        "showgrid": grid,
        "gridcolor": theme.grid,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": theme.line,
        "linecolor": theme.line,
        "showline": False,
        "fixedrange": True,
        "automargin": False,
        "tickfont": {"size": 11 * scale, "color": theme.muted},
        "title": {
            "text": title,
            "font": {"size": 11.5 * scale, "color": theme.muted},
            "standoff": 4,
        }
        if title
        else None,
    }
    return {**base, **changes}


def frame(
    figure: go.Figure, theme: Theme, height: float, scale: float = 1.0, **changes: Any
) -> go.Figure:
    """Lay the frame round a figure: transparent paper, small margins, horizontal legend, no mode bar."""
    base: dict[str, Any] = {
        "height": round(height),
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8, "pad": 0},
        "autosize": True,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12 * scale, "color": theme.ink},
        "legend": {
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1,
            "xanchor": "left",
            "x": 0,
            "itemclick": False,
            "itemdoubleclick": False,
            "font": {"size": 12 * scale, "color": theme.ink},
            "bgcolor": "rgba(0,0,0,0)",
        },
        "barmode": "overlay",
        "bargap": 0,
        "dragmode": False,
        "hovermode": "closest",
        "showlegend": False,
        "hoverlabel": {
            "bgcolor": theme.panel,
            "bordercolor": theme.line,
            "align": "left",
            "font": {"family": FONT, "size": 12 * scale, "color": theme.ink},
        },
        "separators": ".,",
    }
    figure.update_layout({**base, **changes}, overwrite=True)
    return figure


def standalone(figure: go.Figure, theme: Theme) -> bytes:
    """Return a figure as one HTML file that opens without a network connection."""
    copy = go.Figure(figure)
    copy.update_layout(paper_bgcolor=theme.page, plot_bgcolor=theme.page)
    text: str = copy.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False})
    return text.encode()
