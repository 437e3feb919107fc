"""Strategies: the walk of a search, operators' places and costs, where plans' time goes, and what each fabric makes of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from topox_core.fabrics.registry import FABRICS
from topox_core.figures.palette import Theme, blend
from topox_core.figures.template import (
    DOTS,
    INSIDE,
    UNFADED,
    Look,
    axis,
    beside,
    frame,
    image,
    legend_square,
    level,
    line,
    margins,
    multiples,
    named_axis,
    note,
    opaque,
    roomy,
    round_step,
    row_axis,
    sideways_bars,
    time_axis,
    upright,
)
from topox_core.strategy.fabric_table import StrategyTable, TableRow
from topox_core.strategy.plans import RankedPlan
from topox_core.strategy.search.moves import Move
from topox_core.strategy.strategy import Strategy
from topox_core.text.numbers import short, time

REASONS = {
    "better": ("faster or as fast", "circle"),
    "equal": ("faster or as fast", "circle"),
    "chance": ("slower, kept by chance", "circle-open"),
    "descent": ("faster, tried in order", "diamond"),
    "blocks": ("faster, tried in order", "diamond"),
    "proved": ("faster, tried in order", "diamond"),
    "topology": ("new circuits", "triangle-up"),
}
# A reset is a jump back, not a find: it is in the line and has no mark.
PLAN_PARTS: Mapping[str, tuple[str, str]] = {
    "compute": ("compute", "#0072B2"),
    "host": ("host", "#56B4E9"),
    "tensor": ("tensor", "#F0E442"),
    "context": ("context", "#CC79A7"),
    "expert": ("experts", "#8F86E8"),
    "sends": ("sends", "#E69F00"),
    "bubble": ("bubble", ""),
    "gradients": ("gradients, weights", "#007A5A"),
    "update": ("update", "#8A8F98"),
}
MAX_ROWS = 90
NUMBERED = 0.08  # of the longest bar: a part as wide as this has its number
HOVER_BEST = "best %{y:.6~g} ms after %{x:,.0f} strategies<extra></extra>"


def walk(
    current: Sequence[tuple[int, float]],
    moves: Sequence[Move],
    start_ms: float,
    best_ms: float,
    until: int,
    theme: Theme,
    tried: int = 0,
) -> go.Figure:
    """Return the search: iteration time against strategies tried, accepted moves by reason, the best.

    Parameters
    ----------
    current
        (proposals, iteration of the chain in ms) as reported while it ran; used where there are no
        moves yet.
    until
        Proposals of the chain so far.
    tried
        All strategies tried, where some were after the chain.
    """
    points = [(float(move.proposal), move.after_ms) for move in moves] or list(current)
    x: list[float] = [0, *(p for p, _ in points), max(until, tried, *(p for p, _ in points), 1)]
    y = [start_ms, *(ms for _, ms in points)]
    y.append(y[-1])
    layers = [
        go.Scatter(
            x=x,
            y=values,
            mode="lines",
            name=words,
            showlegend=words != "now",
            line={"shape": "hv", **line(colour, width)},
            hovertemplate=hover,
            hoverinfo=None if hover else "skip",
        )
        for words, values, width, colour, hover in (
            ("now", y, 1.2, theme.muted, None),
            ("best so far", np.minimum.accumulate(y), 2.6, theme.primary, HOVER_BEST),
        )
    ]
    by_look = {
        look: [move for move in moves if REASONS.get(move.reason) == look]
        for look in dict.fromkeys(REASONS.values())
    }
    layers += [
        go.Scatter(
            x=[float(move.proposal) for move in of],
            y=[move.after_ms for move in of],
            mode="markers",
            name=words,
            showlegend=True,
            marker=opaque(
                5, theme.muted if symbol == "circle-open" else theme.primary, symbol=symbol
            ),
            customdata=[
                [move.operator or "circuits", f"{move.before_ms:.6g}", f"{move.after_ms:.6g}"]
                for move in of
            ],
            hovertemplate="<b>%{customdata[0]}</b>: %{customdata[1]} to %{customdata[2]} ms<br>"
            + words
            + "<extra></extra>",
        )
        for (words, symbol), of in by_look.items()
        if of
    ]
    highest = min(max(y), max(start_ms, 1.6 * best_ms) * 1.05)
    low, high, _ = roomy((min(best_ms, *y), highest), 0.12, 0.18, 0.04)
    words, size = f"data parallel {time(start_ms)}", 12 * theme.scale
    marks = [
        level(start_ms, line(theme.ink, 1.5, DOTS)),
        note(words, 1, start_ms, size, theme.ink, xref="paper", xanchor="right", yanchor="bottom"),
    ]
    if x[-1] > until:
        marks += [
            upright(until, line(theme.line, 1)),
            note(
                "then in order",
                until,
                0,
                11 * theme.scale,
                theme.muted,
                xanchor="left",
                xshift=3,
                yref="paper",
                yanchor="bottom",
            ),
        ]
    ticks = multiples(round_step(x[-1] / 6), 0.0, x[-1])
    return frame(
        layers,
        theme,
        300 * theme.scale,
        marks,
        showlegend=True,
        margin=margins(54 * theme.scale, 24, 34 * theme.scale, 44),
        xaxis=axis(
            theme,
            range=[0, x[-1]],
            tickvals=ticks,
            ticktext=[f"{t:,.0f}" for t in ticks],
            title="strategies tried",
        ),
        yaxis=axis(
            theme,
            grid=True,
            range=[low, high],
            nticks=6,
            tickformat=",~g",
            title="iteration time, ms",
        ),
    )


def before_and_after(rows: Sequence[tuple[str, float, float]], theme: Theme) -> go.Figure:
    """Return iterations one below the other: what the busiest server computes, and the rest, in which it waits for data.

    Parameters
    ----------
    rows
        What an iteration is called, its time, and how much of it is computing, in ms.
    """
    names, totals, computing = (list(column) for column in zip(*rows, strict=True))
    waiting = [total - part for total, part in zip(totals, computing, strict=True)]
    parts = (
        (
            "computing, busiest server",
            [0.0] * len(rows),
            computing,
            PLAN_PARTS["compute"][1],
            "#FFFFFF",
        ),
        ("waiting for data", computing, waiting, theme.line, theme.ink),
    )
    return frame(
        [
            sideways_bars(
                np.array(begin),
                np.array(values),
                list(range(len(rows))),
                words,
                {"color": colour, "line": line(theme.page, 1)},
                width=0.66,
                text=[short(v) if v >= NUMBERED * max(totals) else "" for v in values],
                **INSIDE,
                textfont={"size": 11.5 * theme.scale, "color": ink},
                customdata=[[name, time(v)] for name, v in zip(names, values, strict=True)],
                hovertemplate=f"<b>%{{customdata[0]}}</b><br>{words} %{{customdata[1]}}<extra></extra>",
            )
            for words, begin, values, colour, ink in parts
        ],
        theme,
        138 * theme.scale,
        beside([f"<b>{time(t)}</b>" for t in totals], totals, theme, 13, 5),
        showlegend=True,
        margin=margins(104 * theme.scale, 8, 34 * theme.scale, 30),
        xaxis=time_axis(theme, 1.24 * max(totals)),
        yaxis=row_axis(theme, names, 12, range=[len(rows) - 0.5, -0.5]),
    )


def placements(strategy: Strategy, theme: Theme) -> go.Figure:
    """Return operators down, servers across; the number is the operator's partitions.

    Operators in as many partitions as there are servers are data parallel; one partition is a whole
    operator.
    """
    names = [placement.operator for placement in strategy.placements]
    counts = sorted({placement.partitions for placement in strategy.placements})
    codes = {p: k + 1 for k, p in enumerate(counts)}
    z = np.zeros((len(names), strategy.servers), np.uint8)
    for row, placement in enumerate(strategy.placements):
        z[row, list(placement.servers(strategy.servers))] = codes[placement.partitions]
    shades = _shades(counts, theme)
    hover: Look = {"hoverinfo": None}
    if z.size <= 20_000:
        hover = {
            "customdata": [[name] * strategy.servers for name in names],
            "hovertemplate": "%{customdata} on S%{x}<extra></extra>",
        }
    squares = [
        legend_square("on one server" if p == 1 else f"over {p} servers", shade)
        for p, shade in zip(counts, shades, strict=True)
    ]
    servers = list(range(0, strategy.servers, max(1, strategy.servers // 16)))
    every = 1 if len(names) <= MAX_ROWS else max(1, len(names) // 30)
    drawn = frame(
        [image(z, [theme.page, *shades], xgap=1, ygap=1, **hover), *squares],
        theme,
        float(np.clip(11 * len(names), 160, 900)) * theme.scale + 64,
        showlegend=True,
        margin=margins(126 * theme.scale, 8, 56 * theme.scale, 8),
        xaxis=named_axis(
            theme,
            [f"S{s}" for s in servers],
            servers,
            side="top",
            range=[-0.5, strategy.servers - 0.5],
        ),
        yaxis=named_axis(
            theme,
            [n if len(n) <= 20 else f"{n[:7]}…{n[-10:]}" for n in names[::every]],
            list(range(0, len(names), every)),
            10,
            range=[len(names) - 0.5, -0.5],
        ),
    )
    # Above the names of the servers, which are at the top.
    return drawn.update_layout(legend={"yref": "container", "y": 1, "yanchor": "top"})


def _shades(counts: Sequence[int], theme: Theme) -> list[str]:
    """Return colours by partitions: accent for whole operators, the deepest blue for most, far apart where they are few."""
    split = [p for p in counts if p > 1]
    depth = dict(
        zip(split, np.linspace(0.35 if len(split) > 1 else 1.0, 1.0, len(split)), strict=True)
    )
    return [
        "#E69F00" if p == 1 else blend(theme.cell_diagonal, theme.primary, float(depth[p]))
        for p in counts
    ]


def plan_bars(ranked: Sequence[RankedPlan], theme: Theme, called: Sequence[str] = ()) -> go.Figure:
    """Return plans, each iteration stacked by what it is spent on; ``called``: what stands under the name of each."""
    totals = [one.total_ms for one in ranked]
    begin = np.zeros(len(ranked))
    layers = []
    for key, (words, colour) in PLAN_PARTS.items():
        values = np.array([one.parts[key] for one in ranked])
        if values.any():
            layers.append(
                sideways_bars(
                    begin,
                    values,
                    list(range(len(ranked))),
                    words,
                    {"color": colour or theme.line, "line": line(theme.page, 1)},
                    width=0.7,
                    customdata=[
                        [one.words, f"{value:.6g}"]
                        for one, value in zip(ranked, values.tolist(), strict=True)
                    ],
                    hovertemplate=f"<b>%{{customdata[0]}}</b><br>{words} %{{customdata[1]}} ms<extra></extra>",
                )
            )
        begin = begin + values
    labels = [f"{time(one.total_ms)}, {short(one.memory.total_bytes / 1e9)} GB" for one in ranked]
    return frame(
        layers,
        theme,
        (38 * len(ranked) + 76) * theme.scale,
        beside(labels, totals, theme),
        showlegend=True,
        # Time and memory stand behind the bars, the longest one's in the margin.
        margin=margins(132 * theme.scale, 112 * theme.scale, 34 * theme.scale, 30),
        xaxis=time_axis(theme, max(totals, default=1.0), grid=True, most_ticks=4),
        yaxis=row_axis(
            theme,
            [
                plan_word(one).replace(", ", f"<br>{words and f'{words}, '}")
                for one, words in zip(ranked, called or [""] * len(ranked), strict=True)
            ],
            10.5,
        ),
    )


def plan_word(one: RankedPlan) -> str:
    """Return a plan as short as it goes, what it does not split left out: TP2 DP64, 4 x 2."""
    plan = one.plan
    split = " ".join(f"{word}{value}" for word, value in plan.degrees.items() if value > 1) or "DP1"
    micro = f"{plan.microbatches}×{plan.microbatch_size}"
    return f"{split}, {micro}{' R' if one.recomputes else ''}"


UPPER, LOWER, THICK = -0.2, 0.2, 0.34


def strategies_on_fabrics(table: StrategyTable, theme: Theme) -> go.Figure:
    """Return two bars a fabric: data parallel above, the strategy found for the fabric below."""
    shown = [name for name in table.fabrics if name in table.start.outcomes]
    pairs = [(k, name, table.start, table.best(name)) for k, name in enumerate(shown)]
    times_ms = [row.outcomes[name].iteration_ms for _, name, *rows in pairs for row in rows]
    both = [
        (k + at, row.outcomes[name])
        for k, name, *rows in pairs
        for at, row in zip((UPPER, LOWER), rows, strict=True)
    ]
    return frame(
        [
            _bars(
                "data parallel", [(k + UPPER, name, row) for k, name, row, _ in pairs], theme.line
            ),
            _bars(
                "found for the fabric",
                [(k + LOWER, name, row) for k, name, _, row in pairs],
                [theme.fabric_colour(name) for name in shown],
            ),
            go.Scatter(
                x=[one.bound_ms for _, one in both],
                y=[at for at, _ in both],
                mode="markers",
                name="lower bound",
                showlegend=True,
                marker=opaque(15 * theme.scale, symbol="line-ns", line=line(theme.ink, 2.2)),
                customdata=[[f"{one.bound_ms:.6g}", one.bound_by] for _, one in both],
                hovertemplate="no less than %{customdata[0]} ms<br>%{customdata[1]}<extra></extra>",
            ),
        ],
        theme,
        (46 * len(shown) + 78) * theme.scale,
        beside(
            [time(one.iteration_ms) for _, one in both],
            [one.iteration_ms for _, one in both],
            theme,
            shift=8,
            rows=[at for at, _ in both],
        ),
        showlegend=True,
        margin=margins(124 * theme.scale, 8, 34 * theme.scale, 30),
        xaxis=time_axis(theme, max(times_ms, default=1.0) * 1.18 or 1.0, grid=True),
        yaxis=row_axis(theme, [FABRICS[name] for name in shown]),
    )


def _bars(name: str, rows: list[tuple[float, str, TableRow]], colour: str | list[str]) -> go.Bar:
    times_ms = [row.outcomes[fabric].iteration_ms for _, fabric, row in rows]
    return sideways_bars(
        None,
        times_ms,
        [at for at, *_ in rows],
        name,
        {"color": colour},
        width=THICK,
        **UNFADED,
        customdata=[
            [FABRICS[fabric], f"{one:.6g}"]
            for (_, fabric, _), one in zip(rows, times_ms, strict=True)
        ],
        hovertemplate=f"<b>%{{customdata[0]}}</b><br>{name}: %{{customdata[1]}} ms<extra></extra>",
    )
