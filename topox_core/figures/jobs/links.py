"""Links of one pod group in one stage: how many between each two pods, and the rings that run on them."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.palette import VERMILION, Theme, blend, faded, readable_on
from topox_core.figures.template import (
    ARC_POINTS,
    LEGEND_BELOW,
    Look,
    arc_points,
    axis,
    box,
    curved_lines,
    frame,
    line,
    margins,
    note,
    on_a_circle,
    opaque,
)
from topox_core.tdm.model.bottleneck import LinkView, as_large, link_view
from topox_core.tdm.model.jobs import PUSH, Round
from topox_core.text.numbers import short

# Pods a side for which cells carry the number of links, and for which they carry its time too.
MAX_CELLS, MAX_TIMES = 24, 10
RING_COLOURS = 8


def time_unit(view: LinkView) -> tuple[float, str]:
    """Return how many of a unit a second has, and the unit, in which the times of links are short."""
    return (1.0, "s") if view.time_s.max() >= 1 else (1000.0, "ms")


def link_matrix(view: LinkView, theme: Theme) -> go.Figure:
    """Return links between pods, source down and destination across, the slower the deeper.

    Ports in use at the right.
    """
    n = len(view.links)
    longest = float(view.time_s.max()) or 1.0
    share = np.where(view.links > 0, 0.12 + 0.88 * view.time_s / longest, 0.0)
    low, high = theme.cell, "#0072B2" if theme.name == "light" else "#2F7FB8"
    cells = np.argwhere(view.links > 0).tolist()
    factor, unit = time_unit(view)
    rows, columns = [i for i, _ in cells], [j for _, j in cells]
    deeper = go.Heatmap(
        z=share,
        zmin=0,
        zmax=1,
        colorscale=[[0, low], [1, high]],
        showscale=False,
        xgap=2,
        ygap=2,
        hoverinfo="skip",
    )
    numbers = go.Scatter(
        x=columns,
        y=rows,
        mode="text",
        text=[
            f"<b>{view.links[i, j]}</b>"
            + (
                f"<br>{short(factor * view.time_s[i, j]) if view.time_s[i, j] else '–'}"
                if n <= MAX_TIMES
                else ""
            )
            for i, j in cells
        ],
        textfont={
            "size": float(np.clip(88 / n, 7, 11)) * theme.scale,
            "color": [readable_on(blend(low, high, float(share[i, j]))) for i, j in cells],
        },
        hoverinfo="skip",
    )
    clicks = go.Scatter(
        x=columns,
        y=rows,
        mode="markers",
        marker={"size": 22, "opacity": 0, "symbol": "square"},
        customdata=[
            [
                f"P{i} → P{j}",
                int(view.links[i, j]),
                f"{view.demand_gbit[i, j]:,.6g}",
                f"{factor * view.time_s[i, j]:.6g} {unit}",
            ]
            for i, j in cells
        ],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]} links, %{customdata[2]} Gbit, %{customdata[3]}"
        "<extra></extra>",
    )
    worst = [
        box(j - 0.47, j + 0.47, i - 0.47, i + 0.47, line=line(VERMILION, 3))
        for i, j in [view.worst or (0, 0)]
        if view.worst and as_large(view.time_s)[0] == 1
    ]
    ports, room = _port_bars(view, theme)
    every = 1 if n <= 16 else -(-n // 16)
    names: Look = {
        "tickvals": list(range(0, n, every)),
        "ticktext": [f"P{p}" for p in range(0, n, every)],
        "ticks": "",
    }
    return frame(
        [deeper, numbers if n <= MAX_CELLS else None, clicks, *ports],
        theme,
        400 * theme.scale,
        [
            note(
                "ports",
                n - 0.5 + 0.06 * n,
                -0.5,
                11 * theme.scale,
                theme.muted,
                xanchor="left",
                yanchor="bottom",
                yshift=3,
            ),
            *worst,
        ],
        margin=margins(30, 4, 24, 4),
        xaxis=axis(theme, **names, side="top", range=[-0.5, n - 0.5 + room]),
        yaxis=axis(theme, **names, range=[n - 0.5, -0.5]),
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
    rings = [
        n
        for n in round_.jobs.of_group(pod_group)
        if round_.group[n] == group and len(round_.rings[n]) > 1
    ]
    # First the links that other traffic wanted, as wide as they have fibres.
    layers = [
        _arcs(
            places,
            np.argwhere(view.wanted & (view.links == count)).tolist(),
            0.04,
            line(theme.line, _width(count)),
            "also used by other traffic",
            legend=k == 0,
        )
        for k, count in enumerate(sorted(set(view.links[view.wanted].tolist())))
    ]
    laid = view.wanted.copy()
    for k, n in enumerate(rings):
        ring = round_.rings[n] if way == PUSH else round_.rings[n][::-1]
        arcs = list(zip(ring, (*ring[1:], ring[0]), strict=True))
        added = [arc for arc in arcs if not laid[arc]]
        colour, bend = theme.switch_colour(k), 0.09 + 0.045 * (k % RING_COLOURS)
        if only is None or only == n:
            layers += [
                _arcs(places, added, bend, line(faded(colour, 0.28), 10), "added for a ring"),
                *_ring(places, arcs, view, bend, colour, round_.jobs.jobs[n].id, len(added)),
            ]
        for arc in arcs:
            laid[arc] = True
    pod_marks = go.Scatter(
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
    key = 20 * theme.scale * len({one.name for one in layers if one.showlegend})
    return frame(
        [*layers, pod_marks],
        theme,
        400 * theme.scale + key,
        showlegend=True,
        margin=margins(4, 4, 4, 4 + key),
        legend={
            **LEGEND_BELOW,
            "orientation": "v",  # one ring a line, whatever the width
            "itemwidth": 30,
            "font": {"size": 11 * theme.scale, "color": theme.ink},
        },
        xaxis=axis(theme, visible=False, range=[-1.2, 1.2]),
        yaxis=axis(theme, visible=False, range=[-1.2, 1.2], scaleanchor="x"),
    )


def _arcs(
    places: NDArray[np.float64],
    arcs: Sequence[Sequence[int]],
    bend: float,
    style: Look,
    name: str,
    legend: bool = False,
) -> go.Scatter:
    """Return curved lines between pods, under one name in the legend."""
    ends = np.array(arcs, np.int64).reshape(-1, 2)
    x, y = curved_lines(places[ends[:, 0]], places[ends[:, 1]], bend).T
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
    places: NDArray[np.float64],
    arcs: Sequence[tuple[int, int]],
    view: LinkView,
    bend: float,
    colour: str,
    job: str,
    added: int,
) -> list[go.Scatter]:
    """Return one ring: arcs as wide as the link has fibres, an arrow in the middle of each."""
    name = f"{job[:18]}: {len(arcs)} arcs, {added} added"
    traces = [
        _arcs(
            places,
            [arc for arc in arcs if view.links[arc] == count],
            bend,
            line(colour, _width(count)),
            name,
            legend=count == int(view.links[arcs[0]]),
        )
        for count in sorted({int(view.links[arc]) for arc in arcs})
    ]
    ends = np.array(arcs)
    curves = arc_points(places[ends[:, 0]], places[ends[:, 1]], bend)
    before, middle = curves[:, ARC_POINTS * 5 // 8 - 1], curves[:, ARC_POINTS * 5 // 8]
    arrows = go.Scatter(
        x=middle[:, 0],
        y=middle[:, 1],
        mode="markers",
        name=name,
        legendgroup=name,
        showlegend=False,
        marker=opaque(
            11,
            colour,
            symbol="arrow",
            angle=(90 - np.degrees(np.arctan2(*(middle - before).T[::-1]))).tolist(),
        ),
        customdata=[[job, f"P{i} → P{j}", int(view.links[i, j])] for i, j in arcs],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}, %{customdata[2]} links<extra></extra>",
    )
    return [*traces, arrows]


def _width(links: int) -> float:
    return min(1.0 + 0.6 * links, 5.0)
