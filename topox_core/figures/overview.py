"""The whole iteration as one small image, with the window drawn on it."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.lanes import Bars, Lanes
from topox_core.figures.palette import DARK, LOOK_COLOURS, Theme, discrete_scale
from topox_core.figures.template import LANE_LEFT, LANE_RIGHT, axis, frame

COLUMNS = 900
MOST_ROWS = 104  # about as many as the picture has pixels: more would be dropped row by row


def paint(
    image: NDArray[np.uint8],
    row: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    colour: NDArray[np.uint8],
) -> None:
    """Paint intervals (columns ``start`` to ``end``, at least one wide) into rows of an image, without a Python loop."""
    columns = image.shape[1]
    start = np.clip(start, 0, columns - 1)
    length = np.maximum(np.clip(end, 0, columns) - start, 1)
    first = row * columns + start
    total = int(length.sum())
    offset = np.arange(total) - np.repeat(np.cumsum(length) - length, length)
    image.reshape(-1)[np.repeat(first, length) + offset] = np.repeat(colour, length)


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
        order = np.argsort((bars.look == DARK) == full, kind="stable")
        start = np.floor(bars.start_ms * per_ms + 1e-6).astype(np.int64)
        end = np.round(bars.end_ms * per_ms).astype(np.int64)
        paint(image, place[order], start[order], end[order], bars.look[order])
    return image, each


def overview(
    image: NDArray[np.uint8],
    each: int,
    lanes: Lanes,
    makespan_ms: float,
    window: tuple[float, float],
    theme: Theme,
    scale: float = 1.0,
) -> go.Figure:
    """Return the overview: everything outside the window is veiled, the servers in view are framed."""
    height, columns = image.shape
    colours = [theme.page, *(LOOK_COLOURS[look] for look in range(1, DARK + 1))]
    step = makespan_ms / columns if makespan_ms else 1.0
    figure = go.Figure(
        go.Heatmap(
            z=image,
            x0=step / 2,
            dx=step,
            y0=0,
            dy=1,
            colorscale=discrete_scale(colours),
            zmin=-0.5,
            zmax=DARK + 0.5,
            showscale=False,
            hoverinfo="skip",
            zsmooth=False,
        )
    )
    per_server = height / lanes.servers
    top, bottom = (
        lanes.first * per_server - 0.5,
        (lanes.last + 1) * per_server - (1.5 if each else 0.5),
    )
    veil = {
        "type": "rect",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "fillcolor": theme.veil,
        "line": {"width": 0},
    }
    outline = {
        "type": "rect",
        "x0": window[0],
        "x1": window[1],
        "y0": top,
        "y1": bottom,
        "line": {"color": theme.ink, "width": 1.5},
    }
    shapes = [
        {**veil, "x0": 0, "x1": window[0]},
        {**veil, "x0": window[1], "x1": makespan_ms},
        outline,
    ]
    pixels = float(np.clip(lanes.servers * 10, 78, 130)) * scale
    every = max(1, int(np.ceil(11 * lanes.servers / pixels)))
    named = np.arange(0, lanes.servers, every)
    return frame(
        figure,
        theme,
        pixels + 26,
        scale,
        shapes=shapes,
        margin={"l": LANE_LEFT, "r": LANE_RIGHT, "t": 2, "b": 24, "pad": 0},
        xaxis=axis(theme, scale, range=[0, makespan_ms or 1], nticks=10, tickformat=",~g"),
        yaxis=axis(
            theme,
            scale,
            range=[height - 0.5, -0.5],
            tickvals=(named + 0.5) * per_server - 1,
            ticktext=[f"S{s}" for s in named],
            ticks="",
            tickfont={"size": 10 * scale, "color": theme.muted},
        ),
    )
