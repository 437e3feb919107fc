"""Strategies: the walk of a search, where each operator is, what operators cost, and what plans spend their time on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.fabrics import round_step, time_axis
from topox_core.figures.palette import Theme, discrete_scale
from topox_core.figures.template import axis, frame
from topox_core.strategy.moves import Move
from topox_core.strategy.plan_search import RankedPlan
from topox_core.strategy.strategy import Strategy
from topox_core.text.numbers import short, time

REASONS = {
    "better": ("faster", "circle"),
    "chance": ("slower, by the rule", "circle-open"),
    "equal": ("as fast", "square-open"),
    "descent": ("descent", "diamond"),
    "blocks": ("blocks", "square"),
    "proved": ("all tried", "star"),
    "topology": ("new circuits", "triangle-up"),
}
AFTER = ("blocks", "descent", "proved")
# A reset is a jump back, not a find: it is in the line and has no mark.
PLAN_PARTS: Mapping[str, tuple[str, str]] = {
    "compute_ms": ("compute", "#0072B2"),
    "tensor_ms": ("tensor", "#F0E442"),
    "context_ms": ("context", "#CC79A7"),
    "expert_ms": ("experts", "#8F86E8"),
    "sends_ms": ("sends", "#E69F00"),
    "bubble_ms": ("bubble", ""),
    "gradients_ms": ("gradients", "#007A5A"),
    "update_ms": ("update", "#8A8F98"),
}
MOST_ROWS = 90


def walk(
    current: Sequence[tuple[int, float]],
    moves: Sequence[Move],
    start_ms: float,
    best_ms: float,
    until: int,
    theme: Theme,
    scale: float = 1.0,
) -> go.Figure:
    """Return the search as it went: iteration time against proposals, accepted moves by reason, the best so far, and the start.

    Parameters
    ----------
    current
        (proposals, iteration of the chain in ms) as told while it ran; used where there are no
        moves yet.
    until
        Proposals so far.
    """
    at = _places(moves, until)
    points = list(zip(at, (move.after_ms for move in moves), strict=True)) or list(current)
    x: list[float] = [0, *(p for p, _ in points), max(until, *(p for p, _ in points), 1)]
    y = [start_ms, *(ms for _, ms in points)]
    y.append(y[-1])
    best = np.minimum.accumulate(y)
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="lines",
            name="chain",
            line={"shape": "hv", "width": 1.2, "color": theme.muted},
            showlegend=True,
            hoverinfo="skip",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=x,
            y=best,
            mode="lines",
            name="best so far",
            showlegend=True,
            line={"shape": "hv", "width": 2.6, "color": theme.primary},
            hovertemplate="best %{y:.6~g} ms after %{x:,.0f} proposals<extra></extra>",
        )
    )
    for reason, (words, symbol) in REASONS.items():
        of = [(place, move) for place, move in zip(at, moves, strict=True) if move.reason == reason]
        if of:
            figure.add_trace(
                go.Scatter(
                    x=[place for place, _ in of],
                    y=[move.after_ms for _, move in of],
                    mode="markers",
                    name=words,
                    showlegend=True,
                    marker={
                        "symbol": symbol,
                        "size": 7,
                        "opacity": 1,
                        "color": theme.muted if reason == "chance" else theme.primary,
                    },
                    customdata=[
                        [
                            move.operator or "circuits",
                            f"{move.before_ms:.6g}",
                            f"{move.after_ms:.6g}",
                        ]
                        for _, move in of
                    ],
                    hovertemplate="<b>%{customdata[0]}</b>: %{customdata[1]} to %{customdata[2]} ms<br>"
                    + words
                    + "<extra></extra>",
                )
            )
    low, high = min([best_ms, *y]), max([start_ms, *y])
    high = min(high, max(start_ms, 1.6 * best_ms) * 1.05)
    spread = max(high - low, 0.04 * high, 1e-9)
    dots = {"color": theme.ink, "width": 1.5, "dash": "2px,3px"}
    shapes = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": start_ms,
            "y1": start_ms,
            "line": dots,
        }
    ]
    notes = []
    if x[-1] > until:
        shapes.append(
            {
                "type": "line",
                "x0": until,
                "x1": until,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": theme.line, "width": 1},
            }
        )
        notes.append(
            {
                "x": until,
                "xanchor": "left",
                "xshift": 3,
                "yref": "paper",
                "y": 0,
                "yanchor": "bottom",
                "showarrow": False,
                "text": "after the chain",
                "font": {"size": 11 * scale, "color": theme.muted},
            }
        )
    step = round_step(max(1, until) / 6)
    ticks = [k * step for k in range(int(until / step + 1e-9) + 1)]
    label = {
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "y": start_ms,
        "yanchor": "bottom",
        "showarrow": False,
        "text": f"data parallel {time(start_ms)}",
        "font": {"size": 12 * scale, "color": theme.ink},
    }
    return frame(
        figure,
        theme,
        300 * scale,
        scale,
        showlegend=True,
        shapes=shapes,
        annotations=[label, *notes],
        margin={"l": 54 * scale, "r": 10, "t": 34 * scale, "b": 44, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            range=[0, x[-1]],
            tickvals=ticks,
            ticktext=[f"{t:,.0f}" for t in ticks],
            title="proposals",
        ),
        yaxis=axis(
            theme,
            scale,
            grid=True,
            range=[low - 0.12 * spread, high + 0.18 * spread],
            nticks=6,
            tickformat=",~g",
            title="iteration, ms",
        ),
    )


def _places(moves: Sequence[Move], until: int) -> list[float]:
    """Return where moves are drawn: at their proposal, and what comes after the chain's last proposal in a band of its own."""
    chain = len(moves)
    while chain and moves[chain - 1].reason in (*AFTER, "reset"):
        chain -= 1
    if not any(move.reason in AFTER for move in moves[chain:]):
        chain = len(moves)
    after = len(moves) - chain
    return [float(move.proposal) for move in moves[:chain]] + [
        max(1, until) * (1 + 0.18 * (k + 1) / (after + 1)) for k in range(after)
    ]


def placements(strategy: Strategy, theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return who works on what: operators down, servers across; the number is how many partitions the operator has.

    Operators in as many partitions as there are servers are data parallel; one partition is a whole
    operator.
    """
    names = [placement.operator for placement in strategy.placements]
    counts = sorted({placement.partitions for placement in strategy.placements})
    codes = {p: k + 1 for k, p in enumerate(counts)}
    z = np.zeros((len(names), strategy.servers), np.uint8)
    for row, placement in enumerate(strategy.placements):
        z[row, list(placement.servers(strategy.servers))] = codes[placement.partitions]
    shades = _shades(counts, strategy.servers, theme)
    colours = [theme.page, *shades]
    figure = go.Figure(
        go.Heatmap(
            z=z,
            colorscale=discrete_scale(colours),
            zmin=-0.5,
            zmax=len(colours) - 0.5,
            showscale=False,
            xgap=1,
            ygap=1,
            customdata=[[name] * strategy.servers for name in names] if z.size <= 20_000 else None,
            hovertemplate="%{customdata} on S%{x}<extra></extra>" if z.size <= 20_000 else None,
        )
    )
    for p, shade in zip(counts, shades, strict=True):
        figure.add_trace(
            go.Scatter(
                x=[None],
                y=[None],
                mode="markers",
                showlegend=True,
                hoverinfo="skip",
                name="whole" if p == 1 else f"{p} partitions",
                marker={"symbol": "square", "size": 13, "color": shade},
            )
        )
    shown = len(names) <= MOST_ROWS
    every = max(1, strategy.servers // 16)
    servers = list(range(0, strategy.servers, every))
    ticks = (
        list(range(len(names))) if shown else list(range(0, len(names), max(1, len(names) // 30)))
    )
    drawn = frame(
        figure,
        theme,
        float(np.clip(11 * len(names), 160, 900)) * scale + 64,
        scale,
        showlegend=True,
        margin={"l": 112 * scale, "r": 8, "t": 56 * scale, "b": 8, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            side="top",
            tickvals=servers,
            ticktext=[f"S{s}" for s in servers],
            ticks="",
            range=[-0.5, strategy.servers - 0.5],
        ),
        yaxis=axis(
            theme,
            scale,
            tickvals=ticks,
            ticktext=[_brief(names[k]) for k in ticks],
            ticks="",
            range=[len(names) - 0.5, -0.5],
            tickfont={"size": 10 * scale, "color": theme.muted},
        ),
    )
    # Above the names of the servers, which are at the top.
    return drawn.update_layout(legend={"yref": "container", "y": 1, "yanchor": "top"})


def _brief(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:7]}…{name[-10:]}"


def _shades(counts: Sequence[int], servers: int, theme: Theme) -> list[str]:
    """Return a colour a number of partitions: accent for whole operators, deeper blue the more partitions."""
    depth = {p: (np.log2(p) + 1) / (np.log2(max(2, servers)) + 1) for p in counts}
    low, high = (
        np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)])
        for code in (theme.cell_diagonal, theme.primary)
    )
    return [
        "#E69F00"
        if p == 1
        else "#" + "".join(f"{round(v):02X}" for v in (low + (high - low) * depth[p]).tolist())
        for p in counts
    ]


def plan_bars(ranked: Sequence[RankedPlan], theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return the fastest plans, each iteration stacked by what it is spent on."""
    figure = go.Figure()
    totals = [one.time.total_ms for one in ranked]
    left = np.zeros(len(ranked))
    for key, (words, colour) in PLAN_PARTS.items():
        values = np.array([getattr(one.time, key) for one in ranked])
        if not (values > 0.002 * max(totals, default=1.0)).any():
            left += values
            continue
        outline = {"color": theme.page, "width": 1}
        marker: dict[str, Any] = {"color": colour or theme.line, "line": outline}
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=left.copy(),
                x=values,
                y=list(range(len(ranked))),
                width=0.7,
                name=words,
                showlegend=True,
                marker=marker,
                customdata=[
                    [one.plan.words, f"{value:.6g}"]
                    for one, value in zip(ranked, values.tolist(), strict=True)
                ],
                hovertemplate="<b>%{customdata[0]}</b><br>"
                + words
                + " %{customdata[1]} ms<extra></extra>",
            )
        )
        left += values
    top = max(totals, default=1.0)
    words_at = [
        {
            "x": total,
            "y": k,
            "xanchor": "left",
            "xshift": 6,
            "showarrow": False,
            "font": {"size": 12 * scale, "color": theme.ink},
            "text": f"{time(total)}, {short(ranked[k].memory.total_bytes / 1e9)} GB",
        }
        for k, total in enumerate(totals)
    ]
    return frame(
        figure,
        theme,
        (30 * len(ranked) + 76) * scale,
        scale,
        showlegend=True,
        annotations=words_at,
        margin={"l": 190 * scale, "r": 8, "t": 34 * scale, "b": 30, "pad": 0},
        xaxis=time_axis(theme, scale, top * 1.22, grid=True),
        yaxis=axis(
            theme,
            scale,
            range=[len(ranked) - 0.45, -0.55],
            tickvals=list(range(len(ranked))),
            ticks="",
            ticktext=[plan_word(one) for one in ranked],
            tickfont={"size": 11.5 * scale, "color": theme.ink},
        ),
    )


def plan_word(one: RankedPlan) -> str:
    """Return a plan as short as it goes: TP2 PP1 DP64, 4 x 2."""
    plan = one.plan
    extra = "".join(
        f" {word}{value}"
        for word, value in (("CP", plan.context), ("EP", plan.expert))
        if value > 1
    )
    return (
        f"TP{plan.tensor} PP{plan.pipeline} DP{plan.data}{extra}, {plan.microbatches}×{plan.microbatch_size}"
        + (" R" if plan.recompute else "")
    )
