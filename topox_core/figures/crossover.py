"""Fabrics against each other over a parameter: who wins where, and a line a fabric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.fabrics.compare import EQUAL
from topox_core.fabrics.gated_iterations import (
    FAT_TREE,
    NETWORKS,
    OVERSUBSCRIBED,
    PACKET_PORTS,
    REEVALUATED,
    REGIONAL,
    STATIC,
    GatedNetwork,
)
from topox_core.fabrics.map_words import (
    OPEN_WORDS,
    MapPicture,
    cell_words,
    outcome_words,
    winner_words,
)
from topox_core.fabrics.registry import ENTRIES, FABRICS, LETTERS, PAYS_DELAY
from topox_core.fabrics.sweep import Point
from topox_core.figures.palette import Theme
from topox_core.figures.template import (
    DOTS,
    axis,
    box,
    frame,
    image,
    line,
    log_ticks,
    margins,
    named_axis,
    note,
    opaque,
    upright,
)
from topox_core.text.numbers import delay_label, percent, short

HEIGHT = 280
# Packet networks share the colour of the fat-tree; dash and sign tell them apart.
_LOOKS = {
    FAT_TREE: ("fat_tree", "dash", "square"),
    OVERSUBSCRIBED: ("fat_tree", "longdash", "square-open"),
    PACKET_PORTS: ("fat_tree", "dot", "circle-open"),
    STATIC: (STATIC, ENTRIES[STATIC].dash, ENTRIES[STATIC].mark),
    REEVALUATED: (REEVALUATED, ENTRIES[REEVALUATED].dash, ENTRIES[REEVALUATED].mark),
    REGIONAL: (REGIONAL, "solid", "circle"),
}


def gated_lines(runs: Mapping[str, GatedNetwork], theme: Theme) -> go.Figure:
    """Return the iteration time of every network over the number of the iteration, from zero."""
    figure = go.Figure()
    for name, run in runs.items():
        colour, dash, sign = _LOOKS[name]
        figure.add_scatter(
            x=list(range(1, len(run.iterations_ms) + 1)),
            y=list(run.iterations_ms),
            mode="lines+markers",
            name=NETWORKS[name],
            showlegend=True,
            line=line(theme.fabric_colour(colour), 3 if name == REGIONAL else 2, dash),
            marker=opaque(8 * theme.scale, theme.fabric_colour(colour), symbol=sign),
            customdata=[f"{ms:.6g}" for ms in run.iterations_ms],
            hovertemplate=f"<b>{NETWORKS[name]}</b><br>iteration %{{x}}: %{{customdata}} ms<extra></extra>",
        )
    most = max((max(run.iterations_ms) for run in runs.values()), default=1.0)
    count = max((len(run.iterations_ms) for run in runs.values()), default=1)
    return frame(
        figure,
        theme,
        HEIGHT * theme.scale,
        showlegend=True,
        margin=margins(48 * theme.scale, 10, 34 * theme.scale, 44),
        xaxis=axis(
            theme,
            range=[0.7, count + 0.3],
            tickvals=list(range(1, count + 1, -(-count // 12))),
            title="iteration",
        ),
        yaxis=axis(theme, grid=True, range=[0, most * 1.06], title="ms"),
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 12 * theme.scale, "color": theme.ink},
        },
    )


# A line that leaves the fastest this far behind leaves the picture.
CUT_AT = 5.0
CUT_HEIGHT = 300


def place(values: Sequence[float], value: float) -> float:
    """Return where a value lies among the ascending values of an axis with equal steps."""
    low = _level(values, 0.0)
    levels = [_level(values, v) for v in values]
    return float(np.interp(max(_level(values, value), low), levels, np.arange(len(values))))


def _level(values: Sequence[float], value: float) -> float:
    least = min((v for v in values if v > 0), default=1.0)
    return math.log10(value) if value > 0 else math.log10(least) - 1.0


def winner_map(picture: MapPicture, now: tuple[float, float], theme: Theme) -> go.Figure:
    """Return the map: the winner's colour, its lead over the next in %, the setting in a box.

    A cell between points that agree has their colour and no number; one that a gap or rounding
    decides has a sign.

    Parameters
    ----------
    now
        The setting as (value, delay in ms).
    """
    axes = picture.axes
    values, delays = sorted(axes.values), sorted(axes.delay_ms)
    winners = picture.winners
    computed = {(p.value, p.delay_ms) for p in picture.points}
    present = [name for name in FABRICS if any(one.fabric == name for one in winners.values())]
    codes = {name: k + 2 for k, name in enumerate(present)}
    z = np.zeros((len(delays), len(values)), np.uint8)
    text: list[dict[str, Any]] = []
    for (value, delay), one in winners.items():
        x, y = values.index(value), delays.index(delay)
        z[y, x] = codes.get(one.fabric, 1)
        if (value, delay) in computed:
            colour = theme.fabric_text(one.fabric) if one.fabric else theme.muted
            text.append(note(cell_words(one), x, y, 12 * theme.scale, colour))
    colours = [theme.page, theme.grid, *(theme.fabric_colour(name) for name in present)]
    figure = go.Figure(image(z, colours, xgap=2, ygap=2))
    figure.add_trace(_clicks(picture, values, delays, theme))
    across, up = place(values, now[0]), place(delays, now[1])
    here = box(across - 0.47, across + 0.47, up - 0.46, up + 0.46, line=line(theme.ink, 2.5))
    by_speed = axes.by == "port_gbps"
    return frame(
        figure,
        theme,
        _height(len(delays)) * theme.scale,
        annotations=text,
        shapes=[here],
        margin=margins(76 * theme.scale, 8, 8, 44),
        xaxis=named_axis(
            theme,
            [f"{v:g}G" if by_speed else f"{v:g}" for v in values],
            range=[-0.5, len(values) - 0.5],
            title="port speed" if by_speed else "ports per server",
        ),
        yaxis=named_axis(
            theme,
            [delay_label(d) for d in delays],
            range=[-0.5, len(delays) - 0.5],
            title="reconfiguration delay",
        ),
    )


def map_legend(picture: MapPicture, theme: Theme) -> list[tuple[str, str]]:
    """Return the colours (empty for a sign) and the words of a map's legend, which stands above it."""
    winners = picture.winners.values()
    shown = [point.winner for point in picture.points]
    keys = [
        (theme.fabric_colour(name), f"{LETTERS[name]} {picture.labels[name]}")
        for name in FABRICS
        if any(one.fabric == name for one in winners)
    ]
    if any(not one.fabric for one in winners):
        keys.append((theme.grid, f"= equal (within {percent(EQUAL)})"))
    if any(one.fabric and not one.lead and one.next for one in shown):
        keys.append(("", "a letter with =: another one is as fast"))
    keys += [
        ("", words) for doubt, words in OPEN_WORDS.items() if any(w.doubt == doubt for w in shown)
    ]
    return keys + ([("", "no number: between points that agree")] if picture.between else [])


def _height(delays: int) -> float:
    """Return the height of the map: a row of cells is low where there are many."""
    return (31 if delays < 10 else 26) * delays + 66


def _clicks(
    picture: MapPicture, values: list[float], delays: list[float], theme: Theme
) -> go.Scatter:
    """Return clear markers over the cells: a heatmap's cells cannot be clicked in Streamlit."""
    labels, points = picture.labels, {(p.value, p.delay_ms): p for p in picture.points}
    by_speed = picture.axes.by == "port_gbps"
    facts: list[list[object]] = []
    for (value, delay), one in picture.winners.items():
        p = points.get((value, delay))
        rows = [] if p is not None else ["not computed: the points around it agree"]
        if p is not None:
            rows = [outcome_words(name, p, labels) for name in FABRICS if name in p.outcomes]
            rows += [f"{labels[name]}: cannot run" for name in p.failed]
        if one.doubt:
            rows.append(OPEN_WORDS[one.doubt])
        head = winner_words(one, labels) if p is not None else labels.get(one.fabric, "equal")
        where = f"{value:g}" + ("G" if by_speed else " ports")
        facts.append([value, delay, head, "<br>".join(rows), where, delay_label(delay)])
    return go.Scatter(
        x=[values.index(value) for value, _ in picture.winners],
        y=[delays.index(delay) for _, delay in picture.winners],
        mode="markers",
        name="",
        marker={
            "symbol": "square",
            "size": 26 * theme.scale,
            "color": "rgba(0,0,0,0)",
            "opacity": 0,
        },
        customdata=facts,
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="<b>%{customdata[4]}, %{customdata[5]}</b><br>%{customdata[2]}<br>%{customdata[3]}<extra></extra>",
    )


def cut(
    points: Sequence[Point],
    value: float,
    delays: Sequence[float],
    labels: Mapping[str, str],
    now_ms: float,
    theme: Theme,
) -> go.Figure:
    """Return iteration against delay, both logarithmic; today's delay is a dotted line.

    A delay of 0 has no place on a logarithmic axis; it is drawn a decade below the smallest other
    one.
    """
    here = sorted((p for p in points if p.value == value), key=lambda p: p.delay_ms)
    order = sorted(delays)
    names = [name for name in FABRICS if any(name in p.outcomes for p in here)]
    best = min((one.iteration_ms for p in here for one in p.outcomes.values()), default=1.0)
    steady = [
        one.iteration_ms for p in here for name, one in p.outcomes.items() if name not in PAYS_DELAY
    ]
    top = max(CUT_AT * best, 1.15 * max(steady, default=0.0))
    top = min(
        top,
        1.15 * max((one.iteration_ms for p in here for one in p.outcomes.values()), default=1.0),
    )
    figure = go.Figure()
    level_lines: list[tuple[float, str]] = []
    for name in names:
        at = [
            (_level(order, p.delay_ms), p.outcomes[name].iteration_ms, p.delay_ms)
            for p in here
            if name in p.outcomes
        ]
        steady_name = name not in PAYS_DELAY
        figure.add_scatter(
            x=[x for x, _, _ in at],
            y=[ms for _, ms, _ in at],
            mode="lines" if steady_name else "lines+markers",
            name=labels[name],
            showlegend=not steady_name,
            line=line(
                theme.fabric_colour(name),
                3 if name == "scheduled" else 2,
                ENTRIES[name].dash,
            ),
            marker=opaque(7, symbol=ENTRIES[name].mark),
            customdata=[[labels[name], delay_label(d), f"{ms:.6g}"] for _, ms, d in at],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}: %{customdata[2]} ms<extra></extra>",
        )
        if steady_name and at:
            level_lines.append((math.log10(at[-1][1]), labels[name]))
    low = best / 1.12
    # Lines that lie close together share a label, one name above the other as the lines are.
    near = 18 / CUT_HEIGHT * math.log10(max(top, low * 1.3) / low)
    shared: list[tuple[float, str]] = []
    for y, words in sorted(level_lines):
        if shared and y - shared[-1][0] < near:
            words = f"{words}<br>{shared.pop()[1]}"
        shared.append((y, words))
    corner = {"xanchor": "left", "yanchor": "bottom"}
    left = _level(order, order[0])
    labelled = [
        note(words, left, y, 11.5 * theme.scale, theme.ink, **corner) for y, words in shared
    ]
    mark = upright(_level(order, now_ms), line(theme.ink, 1.5, DOTS))
    levels = [_level(order, d) for d in order]
    span = (levels[-1] - levels[0]) * 0.05 if len(levels) > 1 else 0.5
    shown = _apart(levels, (levels[-1] - levels[0]) / 9 if len(levels) > 1 else 0.0)
    return frame(
        figure,
        theme,
        CUT_HEIGHT * theme.scale,
        showlegend=True,
        shapes=[mark],
        annotations=labelled,
        margin=margins(48 * theme.scale, 10, 34 * theme.scale, 44),
        xaxis=axis(
            theme,
            grid=True,
            range=[levels[0] - span, levels[-1] + span],
            tickvals=[levels[k] for k in shown],
            ticktext=[f"{order[k]:g}" for k in shown],
            title="reconfiguration delay, ms (log; 0 at the left)",
        ),
        yaxis=axis(
            theme,
            grid=True,
            type="log",
            range=[math.log10(low), math.log10(max(top, low * 1.3))],
            tickvals=log_ticks(low, top),
            ticktext=[short(t) for t in log_ticks(low, top)],
        ),
    )


def _apart(levels: Sequence[float], distance: float) -> list[int]:
    """Return which ticks to label so that labels keep their distance."""
    kept: list[int] = []
    for k, level in enumerate(levels):
        if not kept or level - levels[kept[-1]] >= distance:
            kept.append(k)
    return kept
