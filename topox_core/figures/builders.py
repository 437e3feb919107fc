"""What a figure calls with its data: bars, lines and dots with what a hover says of each, and charts of rows or over axes."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.template import (
    ARC_POINTS,
    INSIDE,
    Look,
    curved_lines,
    frame,
    level,
    line,
    margins,
    note,
    opaque,
    outside,
    row_axis,
    upright,
)
from topox_core.model.transfer_graph import FloatArray

# Of a row's name, as a share of the size of its type: the width of a letter.
LETTER = 0.54


class Bar(NamedTuple):
    """One bar: its row (or column) and length, what a hover says, where it begins, its words, and what a click is told first."""

    row: float
    length: float
    says: str = ""
    start: float = 0.0
    text: str = ""
    key: object = None


class Point(NamedTuple):
    """One point: what a hover says of it, the words beside it, and what a click on it is told first."""

    x: float
    y: float
    says: str = ""
    text: str = ""
    key: object = None


def on_top(kinds: Iterable[Iterable[Bar]]) -> list[list[Bar]]:
    """Return bars of several kinds, each beginning where the one of its row and the kind before ends."""
    ends: dict[float, float] = defaultdict(float)
    placed = []
    for kind in kinds:
        placed.append([one._replace(start=ends[one.row]) for one in kind])
        ends.update((one.row, one.start + one.length) for one in placed[-1])
    return placed


def bars(
    name: str,
    look: object,
    every: Iterable[Bar],
    theme: Theme,
    width: float | Sequence[float] = 0.62,
    *,
    ink: str = "",
    size: float | Sequence[float] = 11.5,
    standing: bool = False,
    **style: Any,
) -> go.Bar | None:
    """Return the bars of one kind, lying unless ``standing``; None where there is none.

    Parameters
    ----------
    name
        In the legend; it has none without.
    look
        A colour, a colour a bar, or a marker such as :func:`~topox_core.figures.template.hatched`.
    ink, size
        Of the words: with an ink in the bars, without at their ends.
    """
    of = list(every)
    if not of:
        return None
    texts, starts = [one.text for one in of], [one.start for one in of]
    words = {**(INSIDE if ink else outside(None, theme)), "text": texts, "textangle": 0}
    words["textfont"] = _font(size, ink or theme.ink, theme)
    along, across = ("y", "x") if standing else ("x", "y")
    return go.Bar(
        **{
            along: [one.length for one in of],
            across: [one.row for one in of],
            "orientation": "v" if standing else "h",
            "base": starts if any(starts) else None,
            "width": width,
            "name": name or None,
            "showlegend": bool(name),
            "marker": look
            if isinstance(look, dict)
            else {"color": look, "line": line(theme.page, 0 if standing else 1)},
            **_said([one.says for one in of], [one.key for one in of]),
            **(words if any(texts) else {}),
            **style,
        }
    )


def curve(
    name: str,
    points: Iterable[Point],
    style: Look,
    theme: Theme,
    *,
    mark: str = "",
    size: float = 7,
    steps: bool = False,
    until: float | None = None,
    **more: Any,
) -> go.Scatter | None:
    """Return a line through points, each with a mark where one is named; None without points.

    Parameters
    ----------
    name
        In the legend; it has none without.
    steps
        Whether a value holds until the next point; the last one ``until`` there.
    """
    of = list(points)
    of += [of[-1]._replace(x=until)] if of and until is not None else []
    marker = {"marker": opaque(size * theme.scale, style["color"], symbol=mark)} if mark else {}
    look = {"shape": "hv", **style} if steps else style
    mode = "lines+markers" if mark else "lines"
    return _scatter(name, of, theme, **{"mode": mode, "line": look, **marker, **more})


def dots(
    name: str, points: Iterable[Point], marker: Look, theme: Theme, **more: Any
) -> go.Scatter | None:
    """Return marks at points, named in the legend where they have a name; None without points."""
    return _scatter(name, points, theme, **{"mode": "markers", "marker": marker, **more})


def ticks_across(
    name: str, points: Iterable[Point], theme: Theme, size: float, width: float = 2.5
) -> go.Scatter | None:
    """Return short upright lines across rows: a lower bound, a mean."""
    marker = opaque(size * theme.scale, symbol="line-ns", line=line(theme.ink, width))
    return dots(name, points, marker, theme)


def written(
    name: str, points: Iterable[Point], theme: Theme, size: Any, colour: object, **more: Any
) -> go.Scatter | None:
    """Return words at points, which a page may hide in a narrow window; their name is in no legend."""
    look: Look = {"mode": "text", "showlegend": False, "textposition": "middle center"}
    font = _font(size, colour, theme)
    return _scatter(name, points, theme, **{**look, "textfont": font, **more})


def front_line(name: str, points: Sequence[Point], colour: str, theme: Theme) -> go.Scatter | None:
    """Return the front of two measures as a line of steps; None where it is one point."""
    shown = points if len(points) > 1 else []
    return curve(name, shown, line(colour, 1.8), theme, steps=True)


def arcs(
    name: str,
    start: FloatArray,
    end: FloatArray,
    bend: FloatArray | float,
    style: Look,
    points: int = ARC_POINTS,
    **more: Any,
) -> go.Scatter:
    """Return curves between places as one line with a gap after each; a straight one is its two ends."""
    bends = np.broadcast_to(bend, len(start))
    parts = [
        curved_lines(start[of], end[of], bends[of], each)
        for of, each in ((bends == 0, 2), (bends != 0, points))
    ]
    x, y = np.concatenate(parts).T
    look = {"mode": "lines", "name": name, "line": style, "showlegend": bool(name)}
    return go.Scatter(x=x, y=y, **{**look, "hoverinfo": "skip", **more})


def arrows(
    name: str,
    curves: FloatArray,
    at: int,
    says: Sequence[str],
    marker: Look,
    theme: Theme,
    **more: Any,
) -> go.Scatter | None:
    """Return a mark on each of some curves, ``[curves, points, 2]``, that points along it at one of its points; in no legend."""
    along = curves[:, at] - curves[:, at - 1]
    points = [Point(x, y, said) for (x, y), said in zip(curves[:, at].tolist(), says, strict=True)]
    turned = {**marker, "angle": np.degrees(np.arctan2(*along.T)).tolist()}
    return dots(name, points, turned, theme, showlegend=False, **more)


def _scatter(name: str, points: Iterable[Point], theme: Theme, **style: Any) -> go.Scatter | None:
    of = list(points)
    if not of:
        return None
    texts, keys = [one.text for one in of], [one.key for one in of]
    words: Look = {}
    if any(texts):
        style["mode"] += "" if style["mode"] == "text" else "+text"
        font = _font(11.5, theme.ink, theme)
        words = {"text": texts, "textposition": "top center", "textfont": font, "cliponaxis": False}
    return go.Scatter(
        **{
            "x": [one.x for one in of],
            "y": [one.y for one in of],
            "name": name or None,
            "showlegend": bool(name),
            **_said([one.says for one in of], keys),
            **words,
            **style,
        }
    )


def _said(says: Sequence[str], keys: Sequence[object]) -> Look:
    """Return what a hover says of each mark, and before it what a click is told."""
    if not any(says):
        return {"hoverinfo": "skip"}
    if any(key is not None for key in keys):
        told = [list(both) for both in zip(keys, says, strict=True)]
        return {"customdata": told, "hovertemplate": "%{customdata[1]}<extra></extra>"}
    return {"customdata": list(says), "hovertemplate": "%{customdata}<extra></extra>"}


def _font(size: float | Sequence[float], colour: object, theme: Theme) -> Look:
    """Return the type of words, of one size or of a size each."""
    return {"size": np.multiply(size, theme.scale).tolist(), "color": colour}


def marked(
    x: float,
    words: str,
    style: Look,
    theme: Theme,
    at: float | None = None,
    size: float = 11.5,
    colour: str = "",
    side: str = "center",
) -> list[Look]:
    """Return an upright line at a value with its words above the chart; ``at``: where these stand, on a logarithmic axis."""
    above = {"yref": "paper", "yanchor": "bottom", "xanchor": side}
    place, ink = x if at is None else at, colour or theme.ink
    return [upright(x, style), note(words, place, 1, size * theme.scale, ink, **above)]


def marked_across(
    y: float, words: str, style: Look, theme: Theme, size: float = 11.5, **placement: Any
) -> list[Look]:
    """Return a level line at a value, its words above its right end."""
    where = {"xref": "paper", "xanchor": "right", "yanchor": "bottom", **placement}
    return [level(y, style), note(words, 1, y, size * theme.scale, theme.ink, **where)]


def chart(
    layers: Iterable[Any],
    theme: Theme,
    height: float,
    x: Look,
    y: Look,
    marks: Iterable[Look | None] = (),
    legend: bool = False,
    room: Mapping[str, float] = MappingProxyType({}),
    **changes: Any,
) -> go.Figure:
    """Return a chart over two axes, with the room that their names, their titles and the legend above them take.

    Parameters
    ----------
    height, room
        In px, at the usual size of type; ``room`` says what else is at the ``left``, the ``right`` or the ``top``.
    """
    sides = {"left": _names_px(y, theme), "right": 10.0, "top": 34.0 if legend else 10.0, **room}
    scaled = [theme.scale * px for px in (*map(sides.__getitem__, _SIDES), _below(x))]
    whole = {"showlegend": legend, "margin": margins(*scaled), "xaxis": x, "yaxis": y, **changes}
    return frame(layers, theme, height * theme.scale, marks, **whole)


def row_chart(
    names: Sequence[str],
    layers: Iterable[Any],
    theme: Theme,
    x: Look,
    row_px: float,
    size: float = 12,
    legend: bool = False,
    room: Mapping[str, float] = MappingProxyType({}),
    **changes: Any,
) -> go.Figure:
    """Return a chart of rows named at their left, the first at the top, each so many px high; other parameters as :func:`chart`."""
    around = {"top": 34.0 if legend else 6.0, **room}
    height, y = row_px * len(names) + around["top"] + _below(x), row_axis(theme, names, size)
    return chart(layers, theme, height, x, y, legend=legend, room=around, **changes)


_SIDES = ("left", "right", "top")


def _below(x: Look) -> float:
    """Return the room under an axis, in px."""
    if x.get("visible") is False:
        return 6
    breaks = max((words.count("<br>") for words in x.get("ticktext") or ()), default=0)
    return 28 + 14 * breaks + (14 if x["title"] else 0)


def _names_px(y: Look, theme: Theme) -> float:
    """Return the room left of an upright axis, in px: that of its names, or of numbers."""
    if y.get("visible") is False:
        return 12
    title, letter = 18 if y["title"] else 0, LETTER * float(y["tickfont"]["size"]) / theme.scale
    if not y.get("ticktext"):
        return 36 + title
    plain = [re.sub("<(?!br)[^>]*>", "", words).split("<br>") for words in y["ticktext"]]
    return 14 + title + letter * max(len(one) for lines in plain for one in lines)
