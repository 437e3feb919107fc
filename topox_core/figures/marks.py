"""What charts draw besides their data: words, lines, boxes, hatches, images, keys of the legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import VERMILION, Theme, discrete_scale
from topox_core.model.transfer_graph import FloatArray

CLEAR = "rgba(0,0,0,0)"
DOTS = "2px,3px"
ARC_POINTS = 16
# Text inside a bar, upright and at its own size even where it is wider than the bar.
INSIDE: dict[str, Any] = {
    "textposition": "inside",
    "insidetextanchor": "middle",
    "constraintext": "none",
    "textangle": 0,
}
# Streamlit fades what is not selected; these keep every bar as it is.
UNFADED: dict[str, Any] = {
    "selected": {"marker": {"opacity": 1}},
    "unselected": {"marker": {"opacity": 1}},
}


def note(
    text: str, x: object, y: object, size: float, colour: str, **placement: Any
) -> dict[str, Any]:
    """Return an annotation without an arrow; ``placement`` are anchors, shifts and references."""
    font = {"size": size, "color": colour}
    return {"x": x, "y": y, "text": text, "showarrow": False, "font": font, **placement}


def line(colour: str, width: float, dash: str | None = None) -> dict[str, Any]:
    """Return the style of a line."""
    return {"color": colour, "width": width, **({"dash": dash} if dash else {})}


def opaque(size: object, colour: object = None, **style: Any) -> dict[str, Any]:
    """Return markers that nothing shines through, in the colour of their trace unless one is given."""
    own = {} if colour is None else {"color": colour}
    return {"size": size, "opacity": 1, **own, **style}


def box(x0: float, x1: float, y0: float, y1: float, **style: Any) -> dict[str, Any]:
    """Return a rectangle between two corners."""
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, **style}


def band(y0: float, y1: float, colour: str) -> dict[str, Any]:
    """Return a filled stripe across the whole chart, below its data."""
    fill = {"fillcolor": colour, "line": {"width": 0}}
    return box(0, 1, y0, y1, xref="paper", layer="below", **fill)


def upright(
    x: float, style: dict[str, Any], low: float = 0, high: float = 1, yref: str = "paper"
) -> dict[str, Any]:
    """Return a vertical line, by default from the bottom of the chart to its top."""
    ends = {"x0": x, "x1": x, "y0": low, "y1": high}
    return {"type": "line", "yref": yref, "line": style, **ends}


def level(y: float, style: dict[str, Any]) -> dict[str, Any]:
    """Return a horizontal line across the whole chart."""
    ends = {"x0": 0, "x1": 1, "y0": y, "y1": y}
    return {"type": "line", "xref": "paper", "line": style, **ends}


def hatch(
    theme: Theme, colour: str = VERMILION, size: float = 5, solidity: float = 0.45
) -> dict[str, Any]:
    """Return diagonal hatching on the page's colour; vermilion: a circuit being set up."""
    lines = {"shape": "/", "size": size, "solidity": solidity}
    return {**lines, "fgcolor": colour, "bgcolor": theme.page}


def hatched(
    theme: Theme, colour: str = VERMILION, size: float = 5, solidity: float = 0.45
) -> dict[str, Any]:
    """Return the marker of a hatched bar with an outline."""
    pattern = hatch(theme, colour, size, solidity)
    return {"color": CLEAR, "line": line(colour, 1), "pattern": pattern}


def image(z: object, colours: Sequence[str], **style: Any) -> go.Heatmap:
    """Return an image whose value k has the k-th colour; hover words only from ``style``."""
    plain: dict[str, Any] = {} if "hovertemplate" in style else {"hoverinfo": "skip"}
    span = {"zmin": -0.5, "zmax": len(colours) - 0.5, "showscale": False}
    return go.Heatmap(z=z, colorscale=discrete_scale(colours), **span, **{**plain, **style})


def time_image(z: Any, colours: Sequence[str], until_ms: float, **style: Any) -> go.Heatmap:
    """Return an image whose columns are equal parts of the time from 0 to ``until_ms``."""
    step = until_ms / z.shape[1] if until_ms else 1.0
    return image(z, colours, x0=step / 2, dx=step, **style)


def legend_square(name: str, colour: str, size: float = 13) -> go.Scatter:
    """Return an entry of the legend for a colour of an image."""
    marker = {"symbol": "square", "size": size, "color": colour}
    shown = {"mode": "markers", "showlegend": True, "hoverinfo": "skip"}
    return go.Scatter(x=[None], y=[None], name=name, marker=marker, **shown)


def sideways_bars(
    start: FloatArray | Sequence[float] | None,
    length: FloatArray | Sequence[float],
    rows: object,
    name: str,
    marker: dict[str, Any],
    **style: Any,
) -> go.Bar:
    """Return horizontal bars of one kind, named in the legend; from 0 without ``start``."""
    place = {"orientation": "h", "base": start, "x": length, "y": rows}
    return go.Bar(**place, **{"name": name, "showlegend": True, "marker": marker, **style})


def arc_points(
    start: FloatArray, end: FloatArray, bend: FloatArray | float, points: int = ARC_POINTS
) -> FloatArray:
    """Return points of curves that leave the straight line to its left, so that both ways are seen.

    Parameters
    ----------
    start, end
        Places, ``[..., 2]``.
    bend
        In its middle a curve is 0.8 of this beside the line; 0 is straight.

    Returns
    -------
    FloatArray
        ``[..., points, 2]``.
    """
    across = end - start
    length = np.maximum(np.hypot(across[..., 0], across[..., 1]), 1e-9)
    sideways = np.stack([-across[..., 1], across[..., 0]], axis=-1) / length[..., None]
    bulge = (start + end) / 2 + 1.6 * np.asarray(bend)[..., None] * sideways
    t = np.linspace(0.0, 1.0, points)[:, None]
    from_start, by_bulge, from_end = (one[..., None, :] for one in (start, bulge, end))
    curve: FloatArray = (1 - t) ** 2 * from_start + 2 * t * (1 - t) * by_bulge + t**2 * from_end
    return curve
