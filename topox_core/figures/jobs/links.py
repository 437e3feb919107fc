"""Links of one pod group in one stage: how many between each two pods, and the rings that run on them."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.builders import Bar, Point, arcs, arrows, bars, dots, written
from topox_core.figures.palette import VERMILION, Theme, blend, faded, readable_on
from topox_core.figures.template import (
    ARC_POINTS,
    LEGEND_BELOW,
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
from topox_core.model.transfer_graph import FloatArray
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
    factor, unit = time_unit(view)
    cells, inks = [], []
    for i, j in np.argwhere(view.links > 0).tolist():
        links, took, gbit = view.links[i, j], factor * view.time_s[i, j], view.demand_gbit[i, j]
        said = f"<b>P{i} → P{j}</b><br>{links} links, {gbit:,.6g} Gbit, {took:.6g} {unit}"
        timed = f"<br>{short(took) if took else '–'}" if n <= MAX_TIMES else ""
        cells.append(Point(j, i, said, f"<b>{links}</b>{timed}"))
        inks.append(readable_on(blend(low, high, float(share[i, j]))))
    size = float(np.clip(88 / n, 7, 11))
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
    above: Look = {"xanchor": "left", "yanchor": "bottom", "yshift": 3}
    return frame(
        [
            go.Heatmap(
                z=share,
                zmin=0,
                zmax=1,
                colorscale=[[0, low], [1, high]],
                showscale=False,
                xgap=2,
                ygap=2,
                hoverinfo="skip",
            ),
            written("links", [one._replace(says="") for one in cells], theme, size, inks)
            if n <= MAX_CELLS
            else None,
            dots(
                "",
                [one._replace(text="") for one in cells],
                {"size": 22, "opacity": 0, "symbol": "square"},
                theme,
            ),
            *ports,
        ],
        theme,
        400 * theme.scale,
        [note("ports", 1.06 * n - 0.5, -0.5, 11 * theme.scale, theme.muted, **above), *worst],
        margin=margins(30, 4, 24, 4),
        xaxis=axis(theme, **names, side="top", range=[-0.5, n - 0.5 + room]),
        yaxis=axis(theme, **names, range=[n - 0.5, -0.5]),
    )


def _port_bars(view: LinkView, theme: Theme) -> tuple[list[go.Bar | go.Scatter | None], float]:
    """Return a bar a pod of its ports in use, full at the limit, and how wide all of it is in cells."""
    n, limit = len(view.links), view.limit
    left, width = 1.06 * n - 0.5, 0.16 * n
    used = [
        Bar(pod, width * ports / max(1, limit), f"P{pod}: {ports} of {limit} ports", left)
        for pod, ports in enumerate(view.ports.tolist())
    ]
    layers = [
        bars(name, {"color": colour, "line": {"width": 0}}, of, theme, 0.44)
        for name, colour, of in (
            ("limit", theme.cell_diagonal, [Bar(pod, width, "", left) for pod in range(n)]),
            ("ports", theme.muted, used),
        )
    ]
    if n > MAX_CELLS:
        return layers, 0.26 * n
    words = [
        Point(
            left + width + 0.02 * n,
            pod,
            "",
            f"<b>{p}</b>/{limit}" if p >= limit else f"{p}/{limit}",
        )
        for pod, p in enumerate(view.ports.tolist())
    ]
    size, at = 11 if n <= 16 else 9, "middle right"
    return [*layers, written("ports", words, theme, size, theme.ink, textposition=at)], 0.42 * n


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
        of_ring = list(zip(ring, (*ring[1:], ring[0]), strict=True))
        added = [arc for arc in of_ring if not laid[arc]]
        colour, bend = theme.switch_colour(k), 0.09 + 0.045 * (k % RING_COLOURS)
        if only is None or only == n:
            job, pale = round_.jobs.jobs[n].id, line(faded(colour, 0.28), 10)
            layers += [
                _arcs(places, added, bend, pale, "added for a ring"),
                *_ring(places, of_ring, view, bend, colour, job, len(added), theme),
            ]
        for arc in of_ring:
            laid[arc] = True
    large = pods <= 12
    disc = opaque((30 if large else 20) * theme.scale, theme.panel, line=line(theme.muted, 1.2))
    font = {"size": (12 if large else 9) * theme.scale, "color": theme.ink}
    names = [Point(x, y, "", f"<b>P{p}</b>") for p, (x, y) in enumerate(places.tolist())]
    inside: Look = {"textposition": "middle center", "textfont": font, "showlegend": False}
    key = 20 * theme.scale * len({one.name for one in layers if one.showlegend})
    return frame(
        [*layers, dots("pods", names, disc, theme, **inside)],
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
    places: FloatArray,
    of: Sequence[Sequence[int]],
    bend: float,
    style: Look,
    name: str,
    legend: bool = False,
) -> go.Scatter:
    """Return curved lines between pods, under one name in the legend."""
    ends = np.array(of, np.int64).reshape(-1, 2)
    start, end = places[ends[:, 0]], places[ends[:, 1]]
    return arcs(name, start, end, bend, style, legendgroup=name, showlegend=legend)


def _ring(
    places: FloatArray,
    of_ring: Sequence[tuple[int, int]],
    view: LinkView,
    bend: float,
    colour: str,
    job: str,
    added: int,
    theme: Theme,
) -> list[go.Scatter | None]:
    """Return one ring: arcs as wide as the link has fibres, an arrow in the middle of each."""
    name = f"{job[:18]}: {len(of_ring)} arcs, {added} added"
    ends = np.array(of_ring)
    says = [f"<b>{job}</b><br>P{i} → P{j}, {view.links[i, j]} links" for i, j in of_ring]
    return [
        *(
            _arcs(
                places,
                [arc for arc in of_ring if view.links[arc] == count],
                bend,
                line(colour, _width(count)),
                name,
                legend=count == int(view.links[of_ring[0]]),
            )
            for count in sorted({int(view.links[arc]) for arc in of_ring})
        ),
        arrows(
            name,
            arc_points(places[ends[:, 0]], places[ends[:, 1]], bend),
            ARC_POINTS * 5 // 8,
            says,
            opaque(11, colour, symbol="arrow"),
            theme,
            legendgroup=name,
        ),
    ]


def _width(links: int) -> float:
    return min(1.0 + 0.6 * links, 5.0)
