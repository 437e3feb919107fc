"""TopologyFinder step by step: circuits on a circle, hops between servers, and the steps inside one collective."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.fabrics.controllers.one_collective import OneCollective, StepsOnPorts, set_ups
from topox_core.figures.palette import VERMILION, Theme, blend
from topox_core.figures.template import (
    INSIDE,
    Look,
    arc_points,
    curved_lines,
    frame,
    image,
    line,
    margins,
    named_axis,
    note,
    on_a_circle,
    opaque,
    row_axis,
    time_axis,
)
from topox_core.model.transfer_graph import FloatArray
from topox_core.topology.ring_circuits import Frame, LinkSet
from topox_core.topology.routing import Path
from topox_core.topology.traffic import Pair

# A step's number is written where its bar has room for it.
LABELLED_SHARE = 0.02


def steps_on_ports(one: OneCollective, way: StepsOnPorts, theme: Theme) -> go.Figure:
    """Return a row per port: its steps in the colours of their circuits, and the set-ups between them.

    All members do the same, so that the ports of one stand for all. A set-up is drawn right before
    the step that needs it.
    """
    lasting_ms = {
        (q, r): float(way.share_ms[q, r]) + one.latency_ms
        for q, r in np.argwhere(way.share_ms > 0).tolist()
    }
    sent_on = {
        circuits: [(q, r) for q, r in lasting_ms if one.steps.circuits[q] == circuits]
        for circuits in np.unique(one.steps.circuits).tolist()
    }
    layers = [
        go.Bar(
            x=[lasting_ms[step] for step in sent],
            base=[float(way.start_ms[step]) for step in sent],
            y=[r for _, r in sent],
            orientation="h",
            width=0.62,
            marker={"color": theme.switch_colour(circuits), "line": {"width": 0}},
            text=[
                str(step[0] + 1) if lasting_ms[step] > LABELLED_SHARE * way.makespan_ms else ""
                for step in sent
            ],
            textfont={"color": theme.switch_text(circuits)},
            customdata=[
                [q + 1, r + 1, f"{way.share_ms[q, r] / one.steps.busy[q]:.1%}"] for q, r in sent
            ],
            hovertemplate="<b>step %{customdata[0]}</b>, port %{customdata[1]}<br>%{customdata[2]} of the message<br>"
            "%{base:.6g} ms for %{x:.6g} ms<extra></extra>",
            **INSIDE,
        )
        for circuits, sent in sent_on.items()
    ]
    dark = set_ups(one, way)
    dark_bars = go.Bar(
        x=[one.delay_ms] * len(dark),
        base=[start for _, start in dark],
        y=[port for port, _ in dark],
        orientation="h",
        width=0.24,
        marker={"color": VERMILION, "line": {"width": 0}},
        hovertemplate="set-up, %{x:.6g} ms<extra></extra>",
    )
    return frame(
        [*layers, dark_bars if dark else None],
        theme,
        (44 + 34 * one.ports) * theme.scale,
        xaxis=time_axis(theme, way.makespan_ms, grid=True),
        yaxis=row_axis(theme, [f"port {r + 1}" for r in range(one.ports)]),
        margin=margins(64 * theme.scale, 12, 6, 30 * theme.scale),
    )


DASHES = (
    "solid",
    "8px,3px",
    "2px,3px",
    "10px,3px,2px,3px",
    "5px,2px",
    "12px,4px",
    "1px,2px",
    "6px,2px,2px,2px",
)
MAX_ARROWS = 220
MAX_NAMED = 40
MAX_NUMBERED = 20
BENT_POINTS = 7
# How far circuits that lead both ways stand apart: a share of their length, and no less than this.
BEND, MIN_BEND = 0.06, 0.035
# Lines need more contrast with the page than cells do: no yellow on white, no navy on black.
_LINES_LIGHT = (
    "#0072B2",
    "#661100",
    "#009E73",
    "#8F86E8",
    "#8A6D00",
    "#56B4E9",
    "#CC79A7",
    "#4A5568",
)
_LINES_DARK = (
    "#56B4E9",
    "#F0E442",
    "#3CC9A0",
    "#CC79A7",
    "#8F86E8",
    "#DDCC77",
    "#B4BDC8",
    "#E07B5A",
)


def ring(
    picture: Frame,
    servers: int,
    routes: Sequence[Path],
    theme: Theme,
    busiest: tuple[Sequence[Pair], str] | None = None,
) -> go.Figure:
    """Return servers on a circle and the circuits so far; those of this step are heavy.

    Parameters
    ----------
    routes
        Paths to draw on top, server by server.
    busiest
        Between which servers the circuits lead that carry most, and their name in the legend.
    """
    layers: list[go.Scatter | None] = []
    new = {one.name for one in picture.added}
    laid = picture.circuits_laid
    drawn = {pair for one in laid for pair in one.pairs}
    colours = _LINES_LIGHT if theme.name == "light" else _LINES_DARK
    for one in (*picture.laid, *picture.added):
        number = laid.index(one) if one.laid else 0
        colour, dash = theme.muted, "2px,4px"
        if one.laid:
            colour, dash = colours[number % len(colours)], DASHES[number % len(DASHES)]
        heavy = one.name in new
        arcs = _arcs(one.pairs, drawn, servers)
        arrows = len(one.pairs) <= MAX_ARROWS and one.laid
        layers += [
            _lines(
                arcs,
                f"{one.name} ({len(one.pairs)})",
                line(colour, 2.6 if heavy else 1.2, dash),
                opacity=0.95 if heavy or not new else 0.55,
                hoverinfo="skip",
            ),
            _arrows(one, arcs, colour, 8 if heavy else 6) if arrows else None,
        ]
    if busiest is not None:
        links, words = busiest
        arcs = _arcs(links, drawn, servers)
        layers.append(_lines(arcs, words, line(theme.ink, 4), hoverinfo="name"))
    for path in routes:
        x, y = 0.965 * on_a_circle(servers, np.array(path))
        layers.append(
            go.Scatter(
                x=x,
                y=y,
                mode="lines+markers",
                name=" → ".join(f"S{s}" for s in path),
                showlegend=True,
                line=line(theme.ink, 4),
                hoverinfo="name",
                marker=opaque(9, theme.ink),
            )
        )
    x, y = on_a_circle(servers, np.arange(servers))
    named = servers <= MAX_NAMED
    nodes = go.Scatter(
        x=x,
        y=y,
        mode="markers",
        name="servers",
        customdata=[f"S{s}" for s in range(servers)],
        marker=opaque(9 if named else 5, theme.page, line=line(theme.ink, 1.5)),
        hovertemplate="%{customdata}<extra></extra>",
    )
    step = 1 if named else max(1, servers // 16)
    plain = {"visible": False, "fixedrange": True}
    return frame(
        [*layers, nodes],
        theme,
        400 * theme.scale,
        [
            note(f"<b>S{s}</b>", 1.1 * float(x[s]), 1.1 * float(y[s]), 12 * theme.scale, theme.ink)
            for s in range(0, servers, step)
        ],
        showlegend=True,
        margin=margins(8, 8, 48 * theme.scale, 8),
        xaxis={**plain, "range": [-1.22, 1.22], "constrain": "domain"},
        yaxis={**plain, "range": [-1.18, 1.18], "scaleanchor": "x", "scaleratio": 1},
    )


# Where circuits begin and end, and how far each bends.
_Arcs = tuple[FloatArray, FloatArray, FloatArray]


def _arcs(pairs: Sequence[Pair], drawn: Collection[Pair], servers: int) -> _Arcs:
    """Return the arcs of circuits; of all that are ``drawn``, those that lead both ways stand apart."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    start, end = (on_a_circle(servers, ends[:, k]).T for k in (0, 1))
    both = np.array([(b, a) in drawn for a, b in pairs], np.bool_)
    length = np.hypot(*(end - start).T)
    return start, end, np.where(both, np.maximum(BEND * length, MIN_BEND), 0.0)


def _lines(arcs: _Arcs, name: str, style: Look, **more: Any) -> go.Scatter:
    """Return circuits as lines with a gap after each; a straight one is its two ends."""
    start, end, bend = arcs
    straight = bend == 0
    parts = [
        curved_lines(start[chosen], end[chosen], bend[chosen], points)
        for chosen, points in ((straight, 2), (~straight, BENT_POINTS))
    ]
    x, y = np.concatenate(parts).T
    return go.Scatter(x=x, y=y, mode="lines", name=name, showlegend=True, line=style, **more)


def _arrows(one: LinkSet, arcs: _Arcs, colour: str, size: int) -> go.Scatter:
    """Return a small triangle on each circuit, nearer its end, that says which way it leads."""
    points = arc_points(*arcs, BENT_POINTS)
    before, at = points[:, -3], points[:, -2]
    return go.Scatter(
        x=at[:, 0],
        y=at[:, 1],
        mode="markers",
        showlegend=False,
        name=one.name,
        marker=opaque(
            size, colour, symbol="triangle-up", angle=np.degrees(np.arctan2(*(at - before).T))
        ),
        customdata=[f"S{a} → S{b}" for a, b in one.pairs],
        hovertemplate="%{customdata}<br>" + one.name + "<extra></extra>",
    )


def hops(matrix: NDArray[np.int32], most: int, theme: Theme) -> go.Figure:
    """Return the hop counts, sources down, destinations across; a cross where no path leads.

    Parameters
    ----------
    most
        Hops that the darkest colour means, so that colours stay what they are from step to step.
    """
    n, most = len(matrix), max(1, most)
    shades = [blend(theme.cell, theme.primary, k / most) for k in range(1, most + 1)]
    z = np.where(matrix < 0, 0, np.minimum(matrix, most) + 1).astype(np.uint8)
    gap = 1 if n <= 40 else 0
    hover = {
        "customdata": matrix,
        "hovertemplate": "S%{y} → S%{x}: %{customdata} hops<extra></extra>",
    }
    words: list[Look] = []
    if n <= MAX_NUMBERED:
        size = float(np.clip(200 / n, 9, 13)) * theme.scale
        words = [
            note(
                "×" if value < 0 else str(value),
                int(b),
                int(a),
                size,
                theme.bad if value < 0 else theme.page if value > most * 0.55 else theme.ink,
            )
            for (a, b), value in np.ndenumerate(matrix)
            if a != b
        ]
    ticks = list(range(0, n, 1 if n <= 24 else max(1, n // 16)))
    names = [f"S{s}" for s in ticks]
    return frame(
        [
            image(
                z,
                [theme.page, theme.cell_diagonal, *shades],
                xgap=gap,
                ygap=gap,
                **(hover if n <= 128 else {}),
            )
        ],
        theme,
        360 * theme.scale,
        words,
        margin=margins(40, 8, 34, 8),
        xaxis=named_axis(
            theme,
            names,
            ticks,
            10,
            range=[-0.5, n - 0.5],
            side="top",
            constrain="domain",
            constraintoward="left",
        ),
        yaxis=named_axis(
            theme,
            names,
            ticks,
            10,
            range=[n - 0.5, -0.5],
            scaleanchor="x",
            constrain="domain",
            constraintoward="top",
        ),
    )
