"""What every chart shares: margins, type and axes, and what it draws besides its data."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.palette import VERMILION, Theme
from topox_core.model.transfer_graph import FloatArray

Figure = go.Figure
# What a figure is made of; None for a layer that there is not.
Layer = go.Bar | go.Scatter | None
# Attributes of a trace, a mark, an axis or a note, as plotly takes them.
Look = dict[str, Any]
FONT = "Source Sans, Source Sans Pro, sans-serif"
# The Gantt chart, its overview, the port use and the time-window slider share these, so that their
# axes align.
LANE_LEFT, LANE_RIGHT = 58, 10
IN_SECONDS = 2_000.0  # an axis that ends beyond this many ms counts in s
HORIZONTAL_LEGEND: Look = {
    "orientation": "h",
    "x": 0,
    "itemclick": False,
    "itemdoubleclick": False,
}
LEGEND_BELOW: Look = {**HORIZONTAL_LEGEND, "y": 0, "yanchor": "top"}


def axis(theme: Theme, *, grid: bool = False, title: str = "", **changes: Any) -> Look:
    """Return an axis: ticks outside, no zero line, a grid only where values are read."""
    base: Look = {
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
        # To turn labels, or to hide some, plotly would measure each one, some 50 ms of a move.
        "tickangle": 0,
        "tickfont": {"size": 11 * theme.scale, "color": theme.muted},
        "title": {
            "text": title,
            "font": {"size": 11.5 * theme.scale, "color": theme.muted},
            "standoff": 4,
        }
        if title
        else None,
    }
    return {**base, **changes}


def named_axis(
    theme: Theme,
    names: Sequence[str],
    at: object = None,
    size: float = 11,
    colour: str = "",
    **changes: Any,
) -> Look:
    """Return an axis of names without ticks, at 0, 1, 2, ... unless ``at`` says where."""
    where = list(range(len(names))) if at is None else np.asarray(at).tolist()
    return axis(
        theme,
        **{
            "tickvals": where,
            "ticktext": list(names),
            "ticks": "",
            "ticklabelstandoff": 3,
            "tickfont": {"size": size * theme.scale, "color": colour or theme.muted},
            "ticklabeloverflow": "allow",
            **changes,
        },
    )


def row_axis(theme: Theme, names: Sequence[str], size: float = 12.5, **changes: Any) -> Look:
    """Return the axis of rows that are named at their left, the first at the top."""
    whole = {"range": [len(names) - 0.45, -0.55], **changes}
    return named_axis(theme, names, None, size, theme.ink, **whole)


def time_axis(theme: Theme, until_ms: float, *, grid: bool = False, most_ticks: int = 8) -> Look:
    """Return an axis of times given in ms that is read in ms below two seconds and in s above."""
    if until_ms < IN_SECONDS:
        return ms_axis(theme, (0, until_ms), most_ticks, grid=grid)
    ticks = multiples(round_step(until_ms / (most_ticks - 1)), 0.0, until_ms)
    return axis(
        theme,
        grid=grid,
        range=[0, until_ms],
        tickvals=ticks,
        ticktext=[f"{t / 1000:,g} s" for t in ticks],
    )


def ms_axis(theme: Theme, window_ms: tuple[float, float], ticks: int, **changes: Any) -> Look:
    """Return an axis of times in ms."""
    return axis(
        theme,
        **{
            "range": list(window_ms),
            "ticksuffix": " ms",
            "nticks": ticks,
            "tickformat": ",~g",
            **changes,
        },
    )


def multiples(step: float, low: float, high: float, rounding: float = 1e-9) -> list[float]:
    """Return the multiples of a step between two numbers, those at the ends within ``rounding`` steps."""
    first, last = math.ceil(low / step - rounding), math.floor(high / step + rounding)
    return [k * step for k in range(first, last + 1)]


def round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is no smaller than ``least``."""
    power = 10.0 ** np.floor(np.log10(max(least, 1e-12)))
    return float(next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9)))


def log_ticks(low: float, high: float) -> list[float]:
    """Return four to nine round numbers between two, for a logarithmic axis."""
    for steps in (
        (1,),
        (1, 3),
        (1, 2, 5),
        (1, 1.5, 2, 3, 4, 5, 7),
        tuple(1 + k / 4 for k in range(36)),
        tuple(1 + k / 20 for k in range(180)),
        tuple(1 + k / 100 for k in range(900)),
    ):
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [m * 10.0**d for d in decades for m in steps if low <= m * 10.0**d <= high]
        if len(ticks) >= 4:
            return ticks[:: math.ceil(len(ticks) / 8)]
    return [low, high]


def log_axis(
    theme: Theme,
    low: float,
    high: float,
    words: Callable[[float], str],
    room: float = 0.0,
    **changes: Any,
) -> Look:
    """Return a logarithmic axis between two numbers and a share of their distance beyond, with ``words`` of its ticks."""
    beyond = (high / low) ** room
    low, high = low / beyond, high * beyond
    ticks = log_ticks(low, high)
    said = {"tickvals": ticks, "ticktext": [words(tick) for tick in ticks], **changes}
    return axis(theme, type="log", range=[math.log10(low), math.log10(high)], **said)


def roomy(
    values: Iterable[float], below: float, above: float, least: float = 0.02
) -> tuple[float, float, float]:
    """Return the ends of an axis with room below and above its values, and the span that room is a share of.

    Parameters
    ----------
    least
        The span is no less than this share of the highest value.
    """
    known = list(values) or [0.0, 1.0]
    low, high = min(known), max(known)
    span = max(high - low, least * high, 1e-9)
    return low - below * span, high + above * span, span


def name_px(
    names: Sequence[str], theme: Theme, pad: float, letter: float, if_none: int = 0
) -> float:
    """Return the room that names take beside a chart, in px; ``if_none`` letters without any."""
    return (pad + letter * max(map(len, names), default=if_none)) * theme.scale


def margins(
    left: float, right: float, top: float, bottom: float, pad: float = 0
) -> dict[str, float]:
    """Return the margins of a chart, in px."""
    return {"l": left, "r": right, "t": top, "b": bottom, "pad": pad}


def frame(
    layers: Iterable[Any],
    theme: Theme,
    height: float,
    marks: Iterable[Look | None] = (),
    **changes: Any,
) -> go.Figure:
    """Return a chart on transparent paper, with small margins and a horizontal legend, without a mode bar.

    Parameters
    ----------
    layers
        Its traces from the back to the front, None for one that there is not.
    marks
        Its notes and shapes, None for one that there is not.
    """
    figure = go.Figure([one for one in layers if one is not None])
    drawn = [mark for mark in marks if mark is not None]
    font = {"family": FONT, "size": 12 * theme.scale, "color": theme.ink}
    base: Look = {
        "height": round(height),
        "margin": margins(8, 8, 8, 8),
        "autosize": True,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": font,
        "legend": {
            **HORIZONTAL_LEGEND,
            "yanchor": "bottom",
            "y": 1,
            "xanchor": "left",
            "bgcolor": "rgba(0,0,0,0)",
            "font": {k: font[k] for k in ("size", "color")},
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
            "font": font,
        },
        "separators": ".,",
        # Streamlit draws every new figure twice, the second time from a copy. With a revision, and
        # lists in place of arrays, plotly sees that nothing changed, and does not draw again.
        "datarevision": 1,
        "annotations": [mark for mark in drawn if "text" in mark],
        "shapes": [mark for mark in drawn if "text" not in mark],
    }
    figure.update_layout({**base, **changes}, overwrite=True)
    # The figure says how it looks. The template that is in force (plotly's, Streamlit's) would be
    # sent with it, and a copy of a template counts as a change; only this takes it out for good.
    figure._layout.pop("template", None)
    for trace in figure.data:
        for name in {"x", "y", "base", "width"} & set(trace):
            values = trace[name]
            if isinstance(values, np.ndarray):
                trace[name] = None  # a list that equals the array would not be taken
                trace[name] = values.tolist()
    return figure


CLEAR = "rgba(0,0,0,0)"
DOTS = "2px,3px"
ARC_POINTS = 16
# Text inside a bar, upright and at its own size even where it is wider than the bar.
INSIDE: Look = {
    "textposition": "inside",
    "insidetextanchor": "middle",
    "constraintext": "none",
    "textangle": 0,
}
# Streamlit fades what is not selected; these keep every bar as it is.
UNFADED: Look = {
    "selected": {"marker": {"opacity": 1}},
    "unselected": {"marker": {"opacity": 1}},
}


def note(text: str, x: object, y: object, size: float, colour: str, **placement: Any) -> Look:
    """Return an annotation without an arrow; ``placement`` are anchors, shifts and references."""
    return {
        "x": x,
        "y": y,
        "text": text,
        "showarrow": False,
        "font": {"size": size, "color": colour},
        **placement,
    }


def first_that_fits(words: Iterable[str], letters: float) -> str:
    """Return the first of some words that is shorter than so many letters; none where all are too long."""
    return next((one for one in words if len(one) < letters), "")


def kept_apart(values: Sequence[float], least: float, most: float = math.inf) -> list[float]:
    """Return where labels of ascending values stand, each at least so far above the one before and none above ``most``."""
    places = [-math.inf]
    for value in values:
        places.append(max(value, places[-1] + least))
    for k in range(len(places) - 1, 0, -1):
        places[k], most = min(places[k], most), min(places[k], most) - least
    return places[1:]


def beside(
    texts: Sequence[str],
    ends: Sequence[float],
    theme: Theme,
    size: float = 12,
    shift: float = 6,
    rows: Sequence[float] | None = None,
) -> list[Look]:
    """Return words behind the ends of bars, in rows 0, 1, 2, ... unless ``rows`` says which."""
    return [
        note(text, x, y, size * theme.scale, theme.ink, xanchor="left", xshift=shift)
        for text, x, y in zip(texts, ends, range(len(texts)) if rows is None else rows, strict=True)
    ]


def outside(text: Sequence[str] | None, theme: Theme, size: float = 11.5) -> Look:
    """Return what writes values at the ends of bars, of the highest one too."""
    return {
        "text": text,
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": size * theme.scale, "color": theme.ink},
    }


def line(colour: str, width: float, dash: str | None = None) -> Look:
    """Return the style of a line."""
    return {"color": colour, "width": width, **({"dash": dash} if dash else {})}


def opaque(size: object, colour: object = None, **style: Any) -> Look:
    """Return markers that nothing shines through, in the colour of their trace unless one is given."""
    own = {} if colour is None else {"color": colour}
    return {"size": size, "opacity": 1, **own, **style}


def box(x0: float, x1: float, y0: float, y1: float, **style: Any) -> Look:
    """Return a rectangle between two corners."""
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, **style}


def band(y0: float, y1: float, colour: str) -> Look:
    """Return a filled stripe across the whole chart, below its data."""
    return box(0, 1, y0, y1, xref="paper", layer="below", fillcolor=colour, line={"width": 0})


def upright(x: float, style: Look, low: float = 0, high: float = 1, yref: str = "paper") -> Look:
    """Return a vertical line, by default from the bottom of the chart to its top."""
    return {"type": "line", "yref": yref, "line": style, "x0": x, "x1": x, "y0": low, "y1": high}


def level(y: float, style: Look) -> Look:
    """Return a horizontal line across the whole chart."""
    return {"type": "line", "xref": "paper", "line": style, "x0": 0, "x1": 1, "y0": y, "y1": y}


def hatch(theme: Theme, colour: str = VERMILION, size: float = 5, solidity: float = 0.45) -> Look:
    """Return diagonal hatching on the page's colour; vermilion: a circuit being set up."""
    return {
        "shape": "/",
        "size": size,
        "solidity": solidity,
        "fgcolor": colour,
        "bgcolor": theme.page,
    }


def hatched(theme: Theme, colour: str = VERMILION, size: float = 5, solidity: float = 0.45) -> Look:
    """Return the marker of a hatched bar with an outline."""
    return {
        "color": CLEAR,
        "line": line(colour, 1),
        "pattern": hatch(theme, colour, size, solidity),
    }


def image(z: object, colours: Sequence[str], **style: Any) -> go.Heatmap:
    """Return an image whose value k has the k-th colour; hover words only from ``style``."""
    plain: Look = {} if "hovertemplate" in style else {"hoverinfo": "skip"}
    k = len(colours)
    return go.Heatmap(
        z=z,
        # K flat steps.
        colorscale=[[(i + edge) / k, one] for i, one in enumerate(colours) for edge in (0, 1)],
        zmin=-0.5,
        zmax=k - 0.5,
        showscale=False,
        **{**plain, **style},
    )


def time_image(z: Any, colours: Sequence[str], until_ms: float, **style: Any) -> go.Heatmap:
    """Return an image whose columns are equal parts of the time from 0 to ``until_ms``."""
    step = until_ms / z.shape[1] if until_ms else 1.0
    return image(z, colours, x0=step / 2, dx=step, **style)


def spread_band(
    x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
) -> go.Scatter:
    """Return the filled band between two lines over the same places, without an entry in the legend."""
    return go.Scatter(
        x=[*x, *reversed(x)],
        y=[*high, *reversed(low)],
        fill="toself",
        mode="lines",
        fillcolor=colour,
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )


def curved_lines(
    start: FloatArray, end: FloatArray, bend: FloatArray | float, points: int = ARC_POINTS
) -> FloatArray:
    """Return the points of :func:`arc_points` as one line, ``[points, 2]``, with a gap (NaN) after each curve."""
    curves = arc_points(start, end, bend, points)
    return np.concatenate([curves, np.full((len(curves), 1, 2), np.nan)], axis=1).reshape(-1, 2)


def legend_square(name: str, colour: str, size: float = 13) -> go.Scatter:
    """Return an entry of the legend for a colour of an image."""
    return go.Scatter(
        x=[None],
        y=[None],
        name=name,
        marker={"symbol": "square", "size": size, "color": colour},
        mode="markers",
        showlegend=True,
        hoverinfo="skip",
    )


def sideways_bars(
    start: FloatArray | Sequence[float] | None,
    length: FloatArray | Sequence[float],
    rows: object,
    name: str,
    marker: Look,
    **style: Any,
) -> go.Bar:
    """Return horizontal bars of one kind, named in the legend; from 0 without ``start``."""
    return go.Bar(
        orientation="h",
        base=start,
        x=length,
        y=rows,
        **{"name": name, "showlegend": True, "marker": marker, **style},
    )


def on_a_circle(places: int, at: NDArray[np.int64]) -> FloatArray:
    """Return x and y of places on a circle of so many, clockwise from the top."""
    angle = np.pi / 2 - 2 * np.pi * at / max(1, places)
    return np.array([np.cos(angle), np.sin(angle)])


def clock(low_ms: float, high_ms: float) -> tuple[list[float], list[str]]:
    """Return about eight ticks between two times in ms, and their words: in ms below two seconds, else in s."""
    ticks = multiples(round_step((high_ms - low_ms) / 8), low_ms, high_ms)
    unit, name = (1000.0, "s") if high_ms >= IN_SECONDS else (1.0, "ms")
    return ticks, [f"{t / unit:,g} {name}" for t in ticks]


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
    return bezier(start, bulge, end, np.linspace(0.0, 1.0, points))


def bezier(start: FloatArray, control: FloatArray, end: FloatArray, t: FloatArray) -> FloatArray:
    """Return the points of quadratic Bezier curves at some shares of their way: ``[..., len(t), 2]``."""
    at = t[:, None]
    from_start, by_control, from_end = (one[..., None, :] for one in (start, control, end))
    curve: FloatArray = (
        (1 - at) ** 2 * from_start + 2 * at * (1 - at) * by_control + at**2 * from_end
    )
    return curve
