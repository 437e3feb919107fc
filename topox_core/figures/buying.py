"""What is worth its price: iteration time against price of each network, ranges as whiskers, the one to buy ringed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.study_axes import MeasureWords, measure_axis
from topox_core.figures.template import frame, line, margins, note, opaque

HEIGHT = 400
# Points nearer than this share of the picture have one label; a narrow screen has room for few.
NEAR_X, NEAR_Y = 0.02, 0.03
MOST_IN_LABEL = 3
WIDTH_PX = 480.0  # of the picture, between a laptop's and a phone's


@dataclass(frozen=True)
class Drawn:
    """A network as it is drawn.

    Attributes
    ----------
    price, time
        As (least, usual, most).
    rival
        Whether it changes no circuits; drawn as a diamond.
    on_front
        Whether no other one beats it in time and price.
    words
        What a hover says besides.
    """

    name: str
    price: tuple[float, float, float]
    time: tuple[float, float, float]
    rival: bool = False
    on_front: bool = False
    words: str = ""


def buying_figure(
    networks: Sequence[Drawn],
    price: MeasureWords,
    time: MeasureWords,
    theme: Theme,
    best: Collection[int] = (),
    steps: Sequence[int] = (),
) -> go.Figure:
    """Return the networks with their whiskers, the front as a step line, and the best ones ringed and in bold.

    Parameters
    ----------
    steps
        The front in time and price, as positions in order of the price.
    """
    x_axis = measure_axis(theme, price, [v for one in networks for v in one.price], 0.12)
    y_axis = measure_axis(theme, time, [v for one in networks for v in one.time], 0.1)
    accent = theme.fabric_colour("scheduled")
    figure = go.Figure()
    if len(steps) > 1:
        figure.add_scatter(
            x=[networks[k].price[1] for k in steps],
            y=[networks[k].time[1] for k in steps],
            mode="lines",
            line={"shape": "hv", **line(accent, 1.8)},
            name="nothing beats it",
            showlegend=True,
            hoverinfo="skip",
        )
    for rival, name, symbol, colour in (
        (False, "switch", "circle", accent),
        (True, "no switch", "diamond", theme.ink),
    ):
        figure.add_trace(_points(networks, rival, name, symbol, colour, best, (price, time), theme))
    if best:
        figure.add_scatter(
            x=[networks[k].price[1] for k in best],
            y=[networks[k].time[1] for k in best],
            mode="markers",
            name="to buy",
            showlegend=True,
            hoverinfo="skip",
            marker={
                "size": 19 * theme.scale,
                "symbol": "circle-open",
                "color": theme.ink,
                "line": {"width": 2.5, "color": theme.ink},
            },
        )
    longest = max((len(words) for words in y_axis["ticktext"]), default=0)
    return frame(
        figure,
        theme,
        HEIGHT * theme.scale,
        showlegend=True,
        annotations=_labels(networks, best, x_axis, y_axis, theme),
        margin=margins((34 + 6.4 * longest) * theme.scale, 14, 62 * theme.scale, 44 * theme.scale),
        xaxis=x_axis,
        yaxis=y_axis,
    )


def _points(
    networks: Sequence[Drawn],
    rival: bool,
    name: str,
    symbol: str,
    colour: str,
    best: Collection[int],
    measures: tuple[MeasureWords, MeasureWords],
    theme: Theme,
) -> go.Scatter:
    price, time = measures
    rows = [k for k, one in enumerate(networks) if one.rival == rival]
    bars = {
        error: {
            "type": "data",
            "symmetric": False,
            "array": [
                getattr(networks[k], field)[2] - getattr(networks[k], field)[1] for k in rows
            ],
            "arrayminus": [
                getattr(networks[k], field)[1] - getattr(networks[k], field)[0] for k in rows
            ],
            "color": theme.muted,
            "thickness": 1.1,
            "width": 3,
        }
        for error, field in (("error_x", "price"), ("error_y", "time"))
        if not rival
    }
    return go.Scatter(
        x=[networks[k].price[1] for k in rows],
        y=[networks[k].time[1] for k in rows],
        mode="markers",
        name=name,
        showlegend=bool(rows),
        marker=opaque(
            [(10 if networks[k].on_front or k in best else 7) * theme.scale for k in rows],
            colour,
            symbol=symbol,
            line=line(theme.page, 1),
        ),
        customdata=[
            [
                networks[k].name,
                time.words(networks[k].time[1]),
                price.words(networks[k].price[1]),
                networks[k].words,
            ]
            for k in rows
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}, %{customdata[2]}"
        "<br>%{customdata[3]}<extra></extra>",
        **bars,
    )


def _labels(
    networks: Sequence[Drawn],
    best: Collection[int],
    x_axis: dict[str, Any],
    y_axis: dict[str, Any],
    theme: Theme,
) -> list[dict[str, Any]]:
    """Return a label for each place where points lie, the best ones' in bold."""
    width = x_axis["range"][1] - x_axis["range"][0]
    height = y_axis["range"][1] - y_axis["range"][0]
    places: list[tuple[float, float, list[int]]] = []
    order = sorted(range(len(networks)), key=lambda k: (k not in best, not networks[k].on_front))
    for k in order:
        x = _place(networks[k].price[1], x_axis)
        y = _place(networks[k].time[1], y_axis)
        for at_x, at_y, group in places:
            if abs(x - at_x) < NEAR_X * width and abs(y - at_y) < NEAR_Y * height:
                group.append(k)
                break
        else:
            places.append((x, y, [k]))
    marks: list[dict[str, Any]] = []
    taken: list[tuple[float, float, float, float]] = []
    for x, y, group in places:
        names = [
            f"<b>{networks[k].name}</b>" if k in best else networks[k].name
            for k in group[:MOST_IN_LABEL]
        ]
        more = f" and {len(group) - MOST_IN_LABEL} more" if len(group) > MOST_IN_LABEL else ""
        lines = [*names[:-1], f"{names[-1]}{more}"]
        letters = max(len(text.replace("<b>", "").replace("</b>", "")) for text in lines)
        across = (5.6 * letters + 14) / WIDTH_PX * width
        high = (14.0 * len(lines)) / (HEIGHT - 110) * height
        first_up = not networks[group[0]].rival  # so that labels of neighbours part
        side = _free_side((x, y), (across, high), x_axis["range"], taken, first_up)
        if side is None:
            continue
        (x0, x1, y0, y1), placement = side
        taken.append((x0, x1, y0, y1))
        marks.append(
            note("<br>".join(lines), x, y, 11 * theme.scale, theme.ink, align="left", **placement)
        )
    return marks


def _free_side(
    place: tuple[float, float],
    size: tuple[float, float],
    span: Sequence[float],
    taken: Sequence[tuple[float, float, float, float]],
    first_up: bool,
) -> tuple[tuple[float, float, float, float], dict[str, Any]] | None:
    """Return a box beside a point in which no label is yet, inside the picture, and how a note gets there."""
    (x, y), (across, high) = place, size
    for right in (True, False):
        x0, x1 = (x, x + across) if right else (x - across, x)
        if x0 < span[0] or x1 > span[1]:
            continue
        for up in (first_up, not first_up):
            y0, y1 = (y, y + high) if up else (y - high, y)
            if any(x0 < b and a < x1 and y0 < d and c < y1 for a, b, c, d in taken):
                continue
            placement = {
                "xanchor": "left" if right else "right",
                "xshift": 9 if right else -9,
                "yanchor": "bottom" if up else "top",
                "yshift": 3 if up else -3,
            }
            return (x0, x1, y0, y1), placement
    return None


def _place(value: float, drawn: dict[str, Any]) -> float:
    """Return where a value's annotation stands: plotly wants the exponent on a logarithmic axis."""
    return log10(value) if drawn.get("type") == "log" else value
