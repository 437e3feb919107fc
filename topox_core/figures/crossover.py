"""The crossover map: who wins over delay and port speed, and a cut through it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.fabrics.registry import FABRICS, PAYS_DELAY
from topox_core.fabrics.sweep import Axes, Point
from topox_core.figures.marks import DOTS, box, image, legend_square, line, note, opaque, upright
from topox_core.figures.palette import FABRIC_DASH, Theme
from topox_core.figures.template import axis, frame, log_ticks, margins, named_axis
from topox_core.text.numbers import delay_label, short

# Two fabrics closer than this, as a share of the faster, are called equal on the map.
EQUAL = 0.02
# A line that leaves the fastest this far behind leaves the picture.
CUT_AT = 5.0


@dataclass(frozen=True)
class Winner:
    """Who wins a point of the map.

    Attributes
    ----------
    fabric
        The winner; empty where fixed and changing circuits are equal, or nothing could run.
    lead
        How much sooner it ends than the best fabric that is not equal to it, as a share of the
        latter.
    equals
        All fabrics within ``EQUAL`` of the fastest.
    """

    fabric: str
    lead: float
    equals: tuple[str, ...]


def winner(point: Point) -> Winner:
    """Return who wins a point.

    Fabrics within ``EQUAL`` of the fastest are equal. If all of those change circuits (or none
    does), the simplest of them wins and leads the next that is not equal; if some do and some do
    not, nobody wins.
    """
    times = {name: one.iteration_ms for name, one in point.outcomes.items()}
    if not times:
        return Winner("", 0.0, ())
    best = min(times.values())
    equals = tuple(name for name in FABRICS if name in times and times[name] <= best * (1 + EQUAL))
    others = [value for name, value in times.items() if name not in equals]
    changing = [name in PAYS_DELAY for name in equals]
    if len(equals) > 1 and (any(changing) != all(changing) or not others):
        return Winner("", 0.0, equals)
    first = min(times[name] for name in equals)
    lead = 1 - first / min(others) if others and min(others) > 0 else 0.0
    return Winner(equals[0], lead, equals)


def place(values: Sequence[float], value: float) -> float:
    """Return where a value lies among the ascending values of an axis with equal steps."""
    low = _level(values, 0.0)
    levels = [_level(values, v) for v in values]
    return float(np.interp(max(_level(values, value), low), levels, np.arange(len(values))))


def _level(values: Sequence[float], value: float) -> float:
    least = min((v for v in values if v > 0), default=1.0)
    return math.log10(value) if value > 0 else math.log10(least) - 1.0


def winner_map(
    points: Sequence[Point],
    axes: Axes,
    labels: Mapping[str, str],
    now: tuple[float, float],
    theme: Theme,
) -> go.Figure:
    """Return the map: the winner's colour, its lead in %, the setting in a box.

    Parameters
    ----------
    now
        The setting as (value, delay in ms).
    """
    values, delays = sorted(axes.values), sorted(axes.delay_ms)
    won = {(p.value, p.delay_ms): winner(p) for p in points}
    present = [name for name in FABRICS if any(one.fabric == name for one in won.values())]
    codes = {name: k + 2 for k, name in enumerate(present)}
    z = np.zeros((len(delays), len(values)), np.uint8)
    text: list[dict[str, Any]] = []
    for x, value in enumerate(values):
        for y, delay in enumerate(delays):
            one = won.get((value, delay))
            if one is None:
                continue
            z[y, x] = codes.get(one.fabric, 1)
            colour = theme.fabric_text(one.fabric) if one.fabric else theme.muted
            words = (
                f"{short(round(100 * one.lead))} %"
                if one.fabric
                else "equal"
                if one.equals
                else "none"
            )
            text.append(note(words, x, y, 12 * theme.scale, colour))
    colours = [theme.page, theme.grid, *(theme.fabric_colour(name) for name in present)]
    figure = go.Figure(image(z, colours, xgap=2, ygap=2))
    figure.add_trace(_clicks(points, won, values, delays, labels, axes, theme))
    for name in present:
        figure.add_trace(legend_square(labels[name], theme.fabric_colour(name)))
    if any(not one.fabric for one in won.values()):
        figure.add_trace(legend_square(f"equal (within {100 * EQUAL:.0f} %)", theme.grid))
    across, up = place(values, now[0]), place(delays, now[1])
    here = box(across - 0.47, across + 0.47, up - 0.46, up + 0.46, line=line(theme.ink, 2.5))
    by_speed = axes.by == "port_gbps"
    return frame(
        figure,
        theme,
        (31 * len(delays) + 92) * theme.scale,
        showlegend=True,
        annotations=text,
        shapes=[here],
        margin=margins(76 * theme.scale, 8, 34 * theme.scale, 44),
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


def _clicks(
    points: Sequence[Point],
    won: Mapping[tuple[float, float], Winner],
    values: list[float],
    delays: list[float],
    labels: Mapping[str, str],
    axes: Axes,
    theme: Theme,
) -> go.Scatter:
    """Return clear markers over the cells: a heatmap's cells cannot be clicked in Streamlit."""
    facts = []
    for p in points:
        one = won[p.value, p.delay_ms]
        rows = [
            f"{labels[name]} {short(p.outcomes[name].iteration_ms)} ms"
            for name in FABRICS
            if name in p.outcomes
        ]
        rows += [f"{labels[name]}: cannot run" for name in p.failed]
        head = (
            f"{labels[one.fabric]} leads by {100 * one.lead:.3g} %"
            if one.fabric and one.lead
            else labels[one.fabric]
            if one.fabric
            else "equal: " + ", ".join(labels[name] for name in one.equals)
        )
        facts.append(
            [
                p.value,
                p.delay_ms,
                head,
                "<br>".join(rows),
                f"{p.value:g}" + ("G" if axes.by == "port_gbps" else " ports"),
                delay_label(p.delay_ms),
            ]
        )
    return go.Scatter(
        x=[values.index(p.value) for p in points],
        y=[delays.index(p.delay_ms) for p in points],
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
    labelled: list[dict[str, Any]] = []
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
                FABRIC_DASH.get(name, "longdash"),
            ),
            marker=opaque(
                7, symbol={"reactive": "circle", "provisioned": "diamond"}.get(name, "square")
            ),
            customdata=[[labels[name], delay_label(d), f"{ms:.6g}"] for _, ms, d in at],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}: %{customdata[2]} ms<extra></extra>",
        )
        if steady_name and at:
            y = math.log10(at[-1][1])
            corner = {"xanchor": "left", "yanchor": "bottom"}
            labelled.append(
                note(labels[name], at[0][0], y, 11.5 * theme.scale, theme.ink, **corner)
            )
    low = best / 1.12
    mark = upright(_level(order, now_ms), line(theme.ink, 1.5, DOTS))
    levels = [_level(order, d) for d in order]
    span = (levels[-1] - levels[0]) * 0.05 if len(levels) > 1 else 0.5
    shown = _apart(levels, (levels[-1] - levels[0]) / 9 if len(levels) > 1 else 0.0)
    return frame(
        figure,
        theme,
        (31 * len(order) + 92) * theme.scale,
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


def turning_point(points: Sequence[Point], value: float) -> float | None:
    """Return the longest delay at which changing circuits win; None if never or always.

    Beyond it fixed circuits (or packets) are at least as fast.
    """
    here = sorted((p for p in points if p.value == value), key=lambda p: p.delay_ms)
    wins = [winner(p).fabric in PAYS_DELAY for p in here]
    if not any(wins) or all(wins):
        return None
    last = max(k for k, won in enumerate(wins) if won)
    return here[last].delay_ms if last + 1 < len(here) else None
