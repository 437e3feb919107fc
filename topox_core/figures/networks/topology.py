"""TopologyFinder step by step: circuits on a circle, hops between servers, and the steps inside one collective."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from topox_core.fabrics.controllers.one_collective import OneCollective, StepsOnPorts, set_ups
from topox_core.figures.builders import Bar, Point, arcs, arrows, bars, curve, dots, row_chart
from topox_core.figures.palette import VERMILION, Theme, blend
from topox_core.figures.template import (
    Figure,
    Layer,
    Look,
    arc_points,
    frame,
    image,
    line,
    margins,
    named_axis,
    note,
    on_a_circle,
    opaque,
    time_axis,
)
from topox_core.model.transfer_graph import FloatArray
from topox_core.topology.ring_circuits import Frame
from topox_core.topology.routing import Path
from topox_core.topology.traffic import Pair

# A step's number is written where its bar has room for it.
LABELLED_SHARE = 0.02


def steps_on_ports(one: OneCollective, way: StepsOnPorts, theme: Theme) -> Figure:
    """Return a row per port: its steps in the colours of their circuits, and the set-ups between them.

    All members do the same, so that the ports of one stand for all. A set-up is drawn right before
    the step that needs it.
    """
    sent: dict[int, list[Bar]] = {k: [] for k in np.unique(one.steps.circuits).tolist()}
    for q, port in np.argwhere(way.share_ms > 0).tolist():
        lasts_ms, start_ms = float(way.share_ms[q, port]) + one.latency_ms, way.start_ms[q, port]
        part = way.share_ms[q, port] / one.steps.busy[q]
        said = f"<b>step {q + 1}</b>, port {port + 1}<br>{part:.1%} of the message<br>"
        said += f"{start_ms:.6g} ms for {lasts_ms:.6g} ms"
        label = str(q + 1) if lasts_ms > LABELLED_SHARE * way.makespan_ms else ""
        sent[one.steps.circuits[q]].append(Bar(port, lasts_ms, said, float(start_ms), label))
    return row_chart(
        [f"port {port + 1}" for port in range(one.ports)],
        [
            *(
                bars(
                    "",
                    {"color": theme.switch_colour(circuits), "line": {"width": 0}},
                    every,
                    theme,
                    ink=theme.switch_text(circuits),
                    size=12,
                )
                for circuits, every in sent.items()
            ),
            bars(
                "",
                {"color": VERMILION, "line": {"width": 0}},
                [
                    Bar(port, one.delay_ms, f"set-up, {one.delay_ms:.6g} ms", start)
                    for port, start in set_ups(one, way)
                ],
                theme,
                0.24,
            ),
        ],
        theme,
        time_axis(theme, way.makespan_ms, grid=True),
        34,
        12.5,
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
) -> Figure:
    """Return servers on a circle and the circuits so far; those of this step are heavy.

    Parameters
    ----------
    routes
        Paths to draw on top, server by server.
    busiest
        Between which servers the circuits lead that carry most, and their name in the legend.
    """
    layers: list[Layer] = []
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
        ends = _ends(one.pairs, drawn, servers)
        style = line(colour, 2.6 if heavy else 1.2, dash)
        layers.append(
            arcs(
                f"{one.name} ({len(one.pairs)})",
                *ends,
                style,
                BENT_POINTS,
                opacity=0.95 if heavy or not new else 0.55,
            )
        )
        if len(one.pairs) <= MAX_ARROWS and one.laid:
            # Nearer its end, a small triangle says which way each leads.
            says = [f"S{a} → S{b}<br>{one.name}" for a, b in one.pairs]
            triangle = opaque(8 if heavy else 6, colour, symbol="triangle-up")
            curves = arc_points(*ends, BENT_POINTS)
            layers.append(arrows(one.name, curves, BENT_POINTS - 2, says, triangle, theme))
    if busiest is not None:
        links, words = busiest
        ends = _ends(links, drawn, servers)
        layers.append(arcs(words, *ends, line(theme.ink, 4), BENT_POINTS, hoverinfo="name"))
    at = on_a_circle(servers, np.arange(servers)).T.tolist()
    for path in routes:
        points = [Point(0.965 * at[server][0], 0.965 * at[server][1]) for server in path]
        name = " → ".join(f"S{server}" for server in path)
        layers.append(curve(name, points, line(theme.ink, 4), theme, mark="circle", size=9))
    named = servers <= MAX_NAMED
    plain = {"visible": False, "fixedrange": True}
    return frame(
        [
            *layers,
            dots(
                "servers",
                [Point(x, y, f"S{server}") for server, (x, y) in enumerate(at)],
                opaque(9 if named else 5, theme.page, line=line(theme.ink, 1.5)),
                theme,
            ),
        ],
        theme,
        400 * theme.scale,
        [
            note(f"<b>S{server}</b>", 1.1 * x, 1.1 * y, 12 * theme.scale, theme.ink)
            for server, (x, y) in enumerate(at)
            if server % (1 if named else max(1, servers // 16)) == 0
        ],
        showlegend=True,
        margin=margins(8, 8, 48 * theme.scale, 8),
        xaxis={**plain, "range": [-1.22, 1.22], "constrain": "domain"},
        yaxis={**plain, "range": [-1.18, 1.18], "scaleanchor": "x", "scaleratio": 1},
    )


def _ends(
    pairs: Sequence[Pair], drawn: Collection[Pair], servers: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return where circuits begin and end, and their bend; of all ``drawn``, those that lead both ways stand apart."""
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    start, end = (on_a_circle(servers, ends[:, k]).T for k in (0, 1))
    both = np.array([(b, a) in drawn for a, b in pairs], np.bool_)
    length = np.hypot(*(end - start).T)
    return start, end, np.where(both, np.maximum(BEND * length, MIN_BEND), 0.0)


# Where circuits begin and end, and how far each bends.


def hops(matrix: NDArray[np.int32], most: int, theme: Theme) -> Figure:
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
