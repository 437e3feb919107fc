"""The whole iteration as one small image, with the window drawn on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.lanes import Bars, Lanes
from topox_core.figures.palette import CATEGORY_COLOURS, DARK, Theme
from topox_core.figures.template import (
    LANE_LEFT,
    LANE_RIGHT,
    axis,
    box,
    frame,
    line,
    margins,
    named_axis,
    time_image,
)
from topox_core.model.csr import ranges

COLUMNS = 900
MOST_ROWS = 104  # about as many as the picture has pixels: more would be dropped row by row


def paint(
    image: NDArray[np.uint8],
    row: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    colour: NDArray[np.uint8],
) -> None:
    """Paint intervals of columns, at least one wide, into rows of an image, all at once."""
    columns = image.shape[1]
    start = np.clip(start, 0, columns - 1)
    length = np.maximum(np.clip(end, 0, columns) - start, 1)
    first = row * columns + start
    image.reshape(-1)[ranges(first, length)] = np.repeat(colour, length)


def overview_image(
    bars: Bars, lanes: Lanes, makespan_ms: float, columns: int = COLUMNS
) -> tuple[NDArray[np.uint8], int]:
    """Return the image (0 idle, else what a bar means) and its rows a server, one of them a gap.

    Where a row for every lane would be too many, a server has one row for its devices and one for
    its ports; where that is too many, neighbouring servers share rows.
    """
    full = lanes.servers * (lanes.rows + 1) <= MOST_ROWS
    each = lanes.rows + 1 if full else 3
    row = bars.row if full else (bars.row >= lanes.devices).astype(np.int32)
    height = lanes.servers * each
    place = bars.server.astype(np.int64) * each + row
    if height > MOST_ROWS:
        place = place * MOST_ROWS // height
        each, height = 0, MOST_ROWS
    image = np.zeros((height, columns), np.uint8)
    if makespan_ms > 0 and len(bars):
        per_ms = columns / makespan_ms
        # Dark stretches on top, except where ports share a row: there they would hide the data
        # beside them.
        order = np.argsort((bars.category == DARK) == full, kind="stable")
        start = np.floor(bars.start_ms * per_ms + 1e-6).astype(np.int64)
        end = np.round(bars.end_ms * per_ms).astype(np.int64)
        paint(image, place[order], start[order], end[order], bars.category[order])
    return image, each


def overview(
    image: NDArray[np.uint8],
    each: int,
    lanes: Lanes,
    makespan_ms: float,
    window: tuple[float, float],
    theme: Theme,
) -> go.Figure:
    """Return the overview: what is outside the window is veiled, servers in view framed."""
    figure = go.Figure(overview_trace(image, makespan_ms, theme))
    per_server = len(image) / lanes.servers
    top, bottom = (
        lanes.first * per_server - 0.5,
        (lanes.last + 1) * per_server - (1.5 if each else 0.5),
    )
    veil = {"yref": "paper", "fillcolor": theme.veil, "line": {"width": 0}}
    shapes = [
        box(0, window[0], 0, 1, **veil),
        box(window[1], makespan_ms, 0, 1, **veil),
        box(*window, top, bottom, line=line(theme.ink, 1.5)),
    ]
    pixels = overview_height(lanes, theme)
    return frame(
        figure,
        theme,
        pixels + 26,
        shapes=shapes,
        margin=margins(LANE_LEFT, LANE_RIGHT, 2, 24),
        xaxis=axis(theme, range=[0, makespan_ms or 1], nticks=10, tickformat=",~g"),
        yaxis=server_axis(len(image), lanes, theme),
    )


def overview_trace(image: NDArray[np.uint8], makespan_ms: float, theme: Theme) -> go.Heatmap:
    """Return the image in the colours of what a bar means."""
    colours = [theme.page, *(CATEGORY_COLOURS[category] for category in range(1, DARK + 1))]
    return time_image(image, colours, makespan_ms, y0=0, dy=1, zsmooth=False)


def overview_height(lanes: Lanes, theme: Theme) -> float:
    """Return how high the image is drawn, in px."""
    return float(np.clip(lanes.servers * 10, 78, 130)) * theme.scale


def server_axis(rows: int, lanes: Lanes, theme: Theme) -> dict[str, Any]:
    """Return the axis that names the servers of an image of so many rows, as many as have room."""
    every = max(1, int(np.ceil(11 * lanes.servers / overview_height(lanes, theme))))
    named = np.arange(0, lanes.servers, every)
    return named_axis(
        theme,
        [f"S{s}" for s in named],
        (named + 0.5) * rows / lanes.servers - 1,
        10,
        range=[rows - 0.5, -0.5],
    )
