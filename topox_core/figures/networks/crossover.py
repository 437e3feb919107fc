"""Fabrics against each other over a parameter: who wins where, and a line per fabric."""

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from topox_core.fabrics.comparison.gated_iterations import (
    FAT_TREE,
    NETWORKS,
    OVERSUBSCRIBED,
    PACKET_PORTS,
    REEVALUATED,
    REGIONAL,
    STATIC,
    GatedNetwork,
)
from topox_core.fabrics.crossover.sweep import Point
from topox_core.fabrics.registry import ENTRIES, FABRICS, PAYS_DELAY
from topox_core.figures.palette import Theme
from topox_core.figures.studies.cells import delay_level
from topox_core.figures.template import (
    DOTS,
    axis,
    beside,
    frame,
    kept_apart,
    line,
    log_axis,
    margins,
    name_px,
    opaque,
    upright,
)
from topox_core.text.numbers import delay_label, short

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
    count = max((len(run.iterations_ms) for run in runs.values()), default=1)
    return frame(
        [_gated_line(name, run, theme) for name, run in runs.items()],
        theme,
        280 * theme.scale,
        showlegend=True,
        margin=margins(48 * theme.scale, 10, 34 * theme.scale, 44),
        xaxis=axis(
            theme,
            range=[0.7, count + 0.3],
            tickvals=list(range(1, count + 1, -(-count // 12))),
            title="iteration",
        ),
        yaxis=axis(
            theme,
            grid=True,
            range=[0, 1.06 * max((max(run.iterations_ms) for run in runs.values()), default=1.0)],
            title="ms",
        ),
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 12 * theme.scale, "color": theme.ink},
        },
    )


def _gated_line(name: str, run: GatedNetwork, theme: Theme) -> go.Scatter:
    fabric, dash, sign = _LOOKS[name]
    colour = theme.fabric_colour(fabric)
    return go.Scatter(
        x=list(range(1, len(run.iterations_ms) + 1)),
        y=list(run.iterations_ms),
        mode="lines+markers",
        name=NETWORKS[name],
        showlegend=True,
        line=line(colour, 3 if name == REGIONAL else 2, dash),
        marker=opaque(8 * theme.scale, colour, symbol=sign),
        customdata=[f"{ms:.6g}" for ms in run.iterations_ms],
        hovertemplate=f"<b>{NETWORKS[name]}</b><br>iteration %{{x}}: %{{customdata}} ms<extra></extra>",
    )


# A line that leaves the fastest this far behind leaves the picture.
CUT_AT = 5.0
HEIGHT = 300


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
    every = [one.iteration_ms for p in here for one in p.outcomes.values()]
    best, most = min(every, default=1.0), max(every, default=1.0)
    steady = [
        one.iteration_ms for p in here for name, one in p.outcomes.items() if name not in PAYS_DELAY
    ]
    top = min(max(CUT_AT * best, 1.15 * max(steady, default=0.0)), 1.15 * most)
    found = {
        name: [(p.delay_ms, p.outcomes[name].iteration_ms) for p in here if name in p.outcomes]
        for name in FABRICS
    }
    lines_of = {name: at for name, at in found.items() if at}
    layers = [
        go.Scatter(
            x=[delay_level(order, delay) for delay, _ in at],
            y=[ms for _, ms in at],
            mode="lines+markers" if name in PAYS_DELAY else "lines",
            name=labels[name],
            showlegend=True,
            line=line(
                theme.fabric_colour(name),
                3 if name == "scheduled" else 2,
                ENTRIES[name].dash,
            ),
            marker=opaque(7, symbol=ENTRIES[name].mark),
            customdata=[[labels[name], delay_label(d), f"{ms:.6g}"] for d, ms in at],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}: %{customdata[2]} ms<extra></extra>",
        )
        for name, at in lines_of.items()
    ]
    low = best / 1.12
    high = max(top, low * 1.3)
    levels = [delay_level(order, d) for d in order]
    span = (levels[-1] - levels[0]) * 0.05 if len(levels) > 1 else 0.5
    shown = _apart(levels, (levels[-1] - levels[0]) / 9 if len(levels) > 1 else 0.0)
    return frame(
        layers,
        theme,
        (HEIGHT - 40 + 20 * math.ceil(len(lines_of) / 2)) * theme.scale,  # two names in a row
        [upright(delay_level(order, now_ms), line(theme.ink, 1.5, DOTS))],
        showlegend=True,
        margin=margins(48 * theme.scale, 10, 34 * theme.scale, 44),
        xaxis=axis(
            theme,
            grid=True,
            range=[levels[0] - span, levels[-1] + span],
            tickvals=[levels[k] for k in shown],
            ticktext=[f"{order[k]:g}" for k in shown],
            title="reconfiguration delay, ms (log; 0 at the left)",
        ),
        yaxis=log_axis(theme, low, high, short, grid=True),
    )


def _apart(levels: Sequence[float], distance: float) -> list[int]:
    """Return which ticks to label so that labels keep their distance."""
    kept: list[int] = []
    for k, level in enumerate(levels):
        if not kept or level - levels[kept[-1]] >= distance:
            kept.append(k)
    return kept


def over_delay(
    delays_ms: Sequence[float],
    times_ms: Mapping[str, Sequence[float]],
    labels: Mapping[str, str],
    now_ms: float,
    theme: Theme,
    title: str = "reconfiguration delay, ms",
) -> go.Figure:
    """Return one line per fabric: iteration time over delay, both linear; today's delay is a dotted line.

    Parameters
    ----------
    times_ms
        By fabric; what follows a colon tells two lines of one fabric apart.
    now_ms
        One of ``delays_ms``.
    title
        Of the axis, where it is no delay that the lines go over.
    """
    layers = []
    for name, values in times_ms.items():
        fabric, _, variant = name.partition(":")
        colour = theme.fabric_colour(fabric)
        dash = DOTS if variant else ENTRIES[name].dash if name in ENTRIES else "solid"
        layers += [
            go.Scatter(
                x=list(delays_ms),
                y=list(values),
                mode="lines",
                line=line(colour, 2 if variant else 3, dash),
                name=labels[name],
                hovertemplate=f"{labels[name]}<br>%{{x}}: %{{y:.4g}} ms<extra></extra>",
            ),
            go.Scatter(
                x=[now_ms],
                y=[values[list(delays_ms).index(now_ms)]],
                mode="markers",
                marker=opaque(10, colour, line=line(theme.page, 1.5)),
                hoverinfo="skip",
                showlegend=False,
            ),
        ]
    top = 1.12 * max(max(values) for values in times_ms.values())
    # Behind the ends of their lines names are crossed by none.
    ends = sorted((values[-1], labels[name]) for name, values in times_ms.items())
    places = kept_apart([ms for ms, _ in ends], 16 / (HEIGHT - 52) * top, top)
    names = [words for _, words in ends]
    return frame(
        layers,
        theme,
        HEIGHT * theme.scale,
        [
            upright(now_ms, line(theme.ink, 1.5, DOTS)),
            *beside(names, [delays_ms[-1]] * len(names), theme, rows=places),
        ],
        margin=margins(44, name_px(names, theme, 12, 6.2), 10, 42),
        xaxis=axis(theme, range=[0, delays_ms[-1]], title=title),
        yaxis=axis(theme, grid=True, range=[0, top]),
    )
