"""Links of one pod group in one stage: how many between each two pods, and the rings that run on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.palette import VERMILION, Theme, blend, faded, readable_on
from topox_core.figures.template import (
    ARC_POINTS,
    Look,
    arc_points,
    axis,
    box,
    frame,
    line,
    margins,
    note,
    on_a_circle,
    opaque,
)
from topox_core.tdm.model.bottleneck import LinkView, link_view
from topox_core.tdm.model.round import PUSH, Round
from topox_core.text.numbers import short

MAX_CELLS = 24  # pods a side for which cells carry numbers
RING_COLOURS = 8


def link_matrix(view: LinkView, theme: Theme) -> go.Figure:
    """Return links between pods, source down and destination across, the slower the deeper.

    Ports in use at the right.
    """
    n = len(view.links)
    lettered = n <= MAX_CELLS
    longest = float(view.time_s.max()) or 1.0
    share = np.where(view.links > 0, 0.12 + 0.88 * view.time_s / longest, 0.0)
    low, high = theme.cell, "#0072B2" if theme.name == "light" else "#2F7FB8"
    text = [
        [f"<b>{count}</b><br>{short(t) if t else '–'}" for count, t in zip(*row, strict=True)]
        for row in zip(view.links.tolist(), view.time_s.tolist(), strict=True)
    ]
    figure = go.Figure(
        go.Heatmap(
            z=share,
            zmin=0,
            zmax=1,
            colorscale=[[0, low], [1, high]],
            showscale=False,
            xgap=2,
            ygap=2,
            hoverinfo="skip",
        )
    )
    size = float(np.clip(110 / n, 7, 12)) * theme.scale
    rows, columns = np.nonzero(view.links > 0)
    if lettered:
        cells = list(zip(rows.tolist(), columns.tolist(), strict=True))
        figure.add_scatter(
            x=columns,
            y=rows,
            mode="text",
            text=[text[i][j] for i, j in cells],
            textfont={
                "size": size,
                "color": [readable_on(blend(low, high, float(share[cell]))) for cell in cells],
            },
            hoverinfo="skip",
        )
    figure.add_scatter(
        x=columns,
        y=rows,
        mode="markers",
        marker={"size": 22, "opacity": 0, "symbol": "square"},
        customdata=[
            [
                f"P{i} → P{j}",
                int(view.links[i, j]),
                f"{view.demand_gbit[i, j]:,.6g}",
                f"{view.time_s[i, j]:.6g}",
            ]
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]} links, %{customdata[2]} Gbit, %{customdata[3]} s"
        "<extra></extra>",
    )
    shapes: list[Look] = []
    if view.worst is not None:
        i, j = view.worst
        shapes.append(box(j - 0.47, j + 0.47, i - 0.47, i + 0.47, line=line(VERMILION, 3)))
    drawn, room = _port_bars(view, theme)
    for trace in drawn:
        figure.add_trace(trace)
    every = 1 if n <= 16 else -(-n // 16)
    names: Look = {
        "tickvals": list(range(0, n, every)),
        "ticktext": [f"P{p}" for p in range(0, n, every)],
        "ticks": "",
        "constrain": "domain",
    }
    title = note(
        "ports",
        n - 0.5 + 0.06 * n,
        -0.5,
        11 * theme.scale,
        theme.muted,
        xanchor="left",
        yanchor="bottom",
        yshift=3,
    )
    return frame(
        figure,
        theme,
        400 * theme.scale,
        shapes=shapes,
        annotations=[title],
        margin=margins(30, 4, 24, 4),
        xaxis=axis(
            theme, **names, side="top", range=[-0.5, n - 0.5 + room], constraintoward="left"
        ),
        yaxis=axis(theme, **names, range=[n - 0.5, -0.5], scaleanchor="x", constraintoward="top"),
    )


def _port_bars(view: LinkView, theme: Theme) -> tuple[list[go.Bar | go.Scatter], float]:
    """Return a bar a pod of its ports in use, full at the limit, and how wide all of it is in cells."""
    n = len(view.links)
    left, width = n - 0.5 + 0.06 * n, 0.16 * n
    pods = list(range(n))
    bar = partial(go.Bar, orientation="h", base=[left] * n, y=pods, width=0.44)
    full = bar(
        x=[width] * n, hoverinfo="skip", marker={"color": theme.cell_diagonal, "line": {"width": 0}}
    )
    used = bar(
        x=(width * view.ports / max(1, view.limit)).tolist(),
        marker={"color": theme.muted, "line": {"width": 0}},
        customdata=[[int(p), view.limit] for p in view.ports],
        hovertemplate="P%{y}: %{customdata[0]} of %{customdata[1]} ports<extra></extra>",
    )
    words = go.Scatter(
        x=[left + width + 0.02 * n] * n,
        y=pods,
        mode="text",
        textposition="middle right",
        hoverinfo="skip",
        text=[
            f"<b>{p}</b>/{view.limit}" if p >= view.limit else f"{p}/{view.limit}"
            for p in view.ports
        ],
        textfont={"size": (11 if n <= 16 else 9) * theme.scale, "color": theme.ink},
    )
    return ([full, used, words], 0.42 * n) if n <= MAX_CELLS else ([full, used], 0.26 * n)


def ring_drawing(
    round_: Round,
    pod_group: int,
    group: int,
    theme: Theme,
    way: int = PUSH,
    only: int | None = None,
) -> go.Figure:
    """Return the pods of a group on a circle with every link as wide as it has fibres, and the rings that run on them.

    A link that other traffic wanted anyway is grey; an arc that a ring added is on a pale band.
    Each ring has a colour and a distance from the straight line of its own.

    Parameters
    ----------
    only
        Index of the one ring job to draw; None: all of them.
    """
    view = link_view(round_, pod_group, group, way)
    pods = len(view.links)
    places = on_a_circle(pods, np.arange(pods)).T
    figure = go.Figure()
    rings = [
        n
        for n in round_.jobs.of_group(pod_group)
        if round_.group[n] == group and len(round_.rings[n]) > 1
    ]
    _base_links(figure, view, places, theme)
    laid = view.wanted.copy()
    for k, n in enumerate(rings):
        ring = round_.rings[n] if way == PUSH else round_.rings[n][::-1]
        arcs = list(zip(ring, (*ring[1:], ring[0]), strict=True))
        added = [arc for arc in arcs if not laid[arc]]
        colour, bend = theme.switch_colour(k), 0.09 + 0.045 * (k % RING_COLOURS)
        if only is None or only == n:
            band = line(faded(colour, 0.28), 10)
            figure.add_trace(_arcs(places, added, bend, band, "added for a ring"))
            _ring(figure, places, arcs, view, bend, colour, round_.jobs.jobs[n].id, len(added))
        for arc in arcs:
            laid[arc] = True
    figure.add_scatter(
        x=places[:, 0],
        y=places[:, 1],
        mode="markers+text",
        text=[f"<b>P{p}</b>" for p in range(pods)],
        hoverinfo="skip",
        showlegend=False,
        textfont={"size": (12 if pods <= 12 else 9) * theme.scale, "color": theme.ink},
        marker=opaque(
            (30 if pods <= 12 else 20) * theme.scale, theme.panel, line=line(theme.muted, 1.2)
        ),
    )
    return frame(
        figure,
        theme,
        400 * theme.scale,
        showlegend=True,
        margin=margins(4, 4, 4, 4),
        legend={
            "orientation": "v",
            "x": 1.0,
            "xanchor": "right",
            "y": 1,
            "yanchor": "top",
            "itemwidth": 30,
            "itemclick": False,
            "itemdoubleclick": False,
            "font": {"size": 11 * theme.scale, "color": theme.ink},
            "bgcolor": "rgba(0,0,0,0)",
        },
        xaxis=axis(theme, visible=False, range=[-1.2, 2.35]),
        yaxis=axis(theme, visible=False, range=[-1.2, 1.2], scaleanchor="x"),
    )


def _base_links(
    figure: go.Figure, view: LinkView, places: NDArray[np.float64], theme: Theme
) -> None:
    """Draw the links that other traffic wanted, as wide as they have fibres."""
    for k, count in enumerate(sorted(set(view.links[view.wanted].tolist()))):
        arcs = [
            (int(i), int(j))
            for i, j in zip(*np.nonzero(view.wanted & (view.links == count)), strict=True)
        ]
        style, name = line(theme.line, _width(count)), "wanted by other traffic"
        figure.add_trace(_arcs(places, arcs, 0.04, style, name, legend=k == 0))


def _arcs(
    places: NDArray[np.float64],
    arcs: Sequence[tuple[int, int]],
    bend: float,
    style: Look,
    name: str,
    legend: bool = False,
) -> go.Scatter:
    """Return curved lines between pods, under one name in the legend."""
    x: list[float | None] = []
    y: list[float | None] = []
    for i, j in arcs:
        curve = arc_points(places[i], places[j], bend)
        x += [*curve[:, 0].tolist(), None]
        y += [*curve[:, 1].tolist(), None]
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        line=style,
        name=name,
        hoverinfo="skip",
        legendgroup=name,
        showlegend=legend,
    )


def _ring(
    figure: go.Figure,
    places: NDArray[np.float64],
    arcs: Sequence[tuple[int, int]],
    view: LinkView,
    bend: float,
    colour: str,
    job: str,
    added: int,
) -> None:
    """Draw one ring: arcs as wide as the link has fibres, an arrow in the middle of each."""
    name = f"{job[:18]}: {len(arcs)} arcs, {added} added"
    for count in sorted({int(view.links[arc]) for arc in arcs}):
        of = [arc for arc in arcs if view.links[arc] == count]
        legend = count == int(view.links[arcs[0]])
        figure.add_trace(_arcs(places, of, bend, line(colour, _width(count)), name, legend))
    middles = [
        arc_points(places[i], places[j], bend)[ARC_POINTS * 5 // 8 - 1 : ARC_POINTS * 5 // 8 + 1]
        for i, j in arcs
    ]
    figure.add_scatter(
        x=[m[1, 0] for m in middles],
        y=[m[1, 1] for m in middles],
        mode="markers",
        name=name,
        legendgroup=name,
        showlegend=False,
        marker=opaque(
            11,
            colour,
            symbol="arrow",
            angle=[
                90 - math.degrees(math.atan2(m[1, 1] - m[0, 1], m[1, 0] - m[0, 0])) for m in middles
            ],
        ),
        customdata=[[job, f"P{i} → P{j}", int(view.links[i, j])] for i, j in arcs],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}, %{customdata[2]} links<extra></extra>",
    )


def _width(links: int) -> float:
    return min(1.0 + 0.6 * links, 5.0)
