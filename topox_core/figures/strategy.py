"""Strategies: the walk of a search, operators' places and costs, where plans' time goes, and what each fabric makes of them."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from topox_core.fabrics.registry import FABRICS
from topox_core.figures.builders import (
    Bar,
    Point,
    bars,
    chart,
    curve,
    dots,
    marked_across,
    on_top,
    row_chart,
    ticks_across,
)
from topox_core.figures.palette import Theme, blend
from topox_core.figures.template import (
    DOTS,
    UNFADED,
    Figure,
    Look,
    axis,
    beside,
    frame,
    image,
    legend_square,
    line,
    margins,
    multiples,
    named_axis,
    note,
    opaque,
    roomy,
    round_step,
    time_axis,
    upright,
)
from topox_core.strategy.fabric_table import StrategyTable
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


def walk(
    current: Sequence[tuple[int, float]],
    moves: Sequence[Move],
    start_ms: float,
    best_ms: float,
    until: int,
    theme: Theme,
    tried: int = 0,
) -> Figure:
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
    last = max(until, tried, *(p for p, _ in points), 1)
    path = [(0.0, start_ms), *points]
    path.append((float(last), path[-1][1]))
    best = zip([x for x, _ in path], accumulate((ms for _, ms in path), min), strict=True)
    layers = [
        curve(
            "now",
            [Point(*one) for one in path],
            line(theme.muted, 1.2),
            theme,
            steps=True,
            showlegend=False,
        ),
        curve(
            "best so far",
            [Point(x, ms, f"best {ms:,.6g} ms after {x:,.0f} strategies") for x, ms in best],
            line(theme.primary, 2.6),
            theme,
            steps=True,
        ),
    ]
    for words, symbol in dict.fromkeys(REASONS.values()):
        layers.append(
            dots(
                words,
                [
                    Point(
                        float(move.proposal),
                        move.after_ms,
                        f"<b>{move.operator or 'circuits'}</b>: {move.before_ms:.6g} to "
                        f"{move.after_ms:.6g} ms<br>{words}",
                    )
                    for move in moves
                    if REASONS.get(move.reason) == (words, symbol)
                ],
                opaque(5, theme.muted if symbol == "circle-open" else theme.primary, symbol=symbol),
                theme,
            )
        )
    y = [ms for _, ms in path]
    highest = min(max(y), max(start_ms, 1.6 * best_ms) * 1.05)
    low, high, _ = roomy((min(best_ms, *y), highest), 0.12, 0.18, 0.04)
    words, size = f"data parallel {time(start_ms)}", 11 * theme.scale
    marks = marked_across(start_ms, words, line(theme.ink, 1.5, DOTS), theme, 12)
    if last > until:
        beside_it: Look = {"xanchor": "left", "xshift": 3, "yref": "paper", "yanchor": "bottom"}
        marks += [
            upright(until, line(theme.line, 1)),
            note("then in order", until, 0, size, theme.muted, **beside_it),
        ]
    ticks = multiples(round_step(last / 6), 0.0, last)
    counts: Look = {"tickvals": ticks, "ticktext": [f"{t:,.0f}" for t in ticks]}
    return chart(
        layers,
        theme,
        300,
        axis(theme, range=[0, last], title="strategies tried", **counts),
        axis(
            theme,
            grid=True,
            range=[low, high],
            nticks=6,
            tickformat=",~g",
            title="iteration time, ms",
        ),
        marks,
        legend=True,
        room={"right": 24},
    )


def before_and_after(rows: Sequence[tuple[str, float, float]], theme: Theme) -> Figure:
    """Return iterations one below the other: what the busiest server computes, and the rest, in which it waits for data.

    Parameters
    ----------
    rows
        What an iteration is called, its time, and how much of it is computing, in ms.
    """
    totals = [total for _, total, _ in rows]
    looks = {
        "computing, busiest server": (PLAN_PARTS["compute"][1], "#FFFFFF"),
        "waiting for data": (theme.line, theme.ink),
    }
    parted = [(name, (part, total - part)) for name, total, part in rows]
    kinds = on_top(
        [
            Bar(
                row,
                ms[k],
                f"<b>{name}</b><br>{words} {time(ms[k])}",
                text=short(ms[k]) if ms[k] >= NUMBERED * max(totals) else "",
            )
            for row, (name, ms) in enumerate(parted)
        ]
        for k, words in enumerate(looks)
    )
    return row_chart(
        [name for name, *_ in rows],
        [
            bars(words, colour, kind, theme, 0.66, ink=ink)
            for (words, (colour, ink)), kind in zip(looks.items(), kinds, strict=True)
        ],
        theme,
        time_axis(theme, 1.24 * max(totals)),
        37,
        legend=True,
        marks=beside([f"<b>{time(t)}</b>" for t in totals], totals, theme, 13),
    )


def placements(strategy: Strategy, theme: Theme) -> Figure:
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


def plan_bars(ranked: Sequence[RankedPlan], theme: Theme, called: Sequence[str] = ()) -> Figure:
    """Return plans, each iteration stacked by what it is spent on; ``called``: what stands under the name of each."""
    totals = [one.total_ms for one in ranked]
    kinds = on_top(
        [
            Bar(row, one.parts[key], f"<b>{one.words}</b><br>{words} {one.parts[key]:.6g} ms")
            for row, one in enumerate(ranked)
            if one.parts[key]
        ]
        for key, (words, _) in PLAN_PARTS.items()
    )
    return row_chart(
        [
            plan_word(one).replace(", ", f"<br>{words and f'{words}, '}")
            for one, words in zip(ranked, called or [""] * len(ranked), strict=True)
        ],
        [
            bars(words, colour or theme.line, kind, theme, 0.7)
            for (words, colour), kind in zip(PLAN_PARTS.values(), kinds, strict=True)
        ],
        theme,
        time_axis(theme, max(totals, default=1.0), grid=True, most_ticks=4),
        41,
        10.5,
        True,
        # Time and memory stand behind the bars, the longest one's in the margin.
        {"right": 112},
        marks=beside(
            [f"{time(one.total_ms)}, {short(one.memory.total_bytes / 1e9)} GB" for one in ranked],
            totals,
            theme,
        ),
    )


def plan_word(one: RankedPlan) -> str:
    """Return a plan as short as it goes, what it does not split left out: TP2 DP64, 4 x 2."""
    plan = one.plan
    split = " ".join(f"{word}{value}" for word, value in plan.degrees.items() if value > 1) or "DP1"
    micro = f"{plan.microbatches}×{plan.microbatch_size}"
    return f"{split}, {micro}{' R' if one.recomputes else ''}"


UPPER, LOWER, THICK = -0.2, 0.2, 0.34


def strategies_on_fabrics(table: StrategyTable, theme: Theme) -> Figure:
    """Return two bars a fabric: data parallel above, the strategy found for the fabric below."""
    shown = [name for name in table.fabrics if name in table.start.outcomes]
    kinds = {
        "data parallel": (UPPER, theme.line, [table.start] * len(shown)),
        "found for the fabric": (
            LOWER,
            [theme.fabric_colour(name) for name in shown],
            [table.best(name) for name in shown],
        ),
    }
    every = [
        (words, k + at, FABRICS[name], row.outcomes[name])
        for words, (at, _, rows) in kinds.items()
        for k, (name, row) in enumerate(zip(shown, rows, strict=True))
    ]
    times_ms = [one.iteration_ms for *_, one in every]
    bounds = [
        Point(one.bound_ms, at, f"no less than {one.bound_ms:.6g} ms<br>{one.bound_by}")
        for _, at, _, one in every
    ]
    return row_chart(
        [FABRICS[name] for name in shown],
        [
            *(
                bars(
                    words,
                    look,
                    [
                        Bar(
                            at,
                            one.iteration_ms,
                            f"<b>{name}</b><br>{words}: {one.iteration_ms:.6g} ms",
                        )
                        for of, at, name, one in every
                        if of == words
                    ],
                    theme,
                    THICK,
                    **UNFADED,
                )
                for words, (_, look, _) in kinds.items()
            ),
            ticks_across("lower bound", bounds, theme, 15),
        ],
        theme,
        time_axis(theme, max(times_ms, default=1.0) * 1.18 or 1.0, grid=True),
        53,
        12.5,
        legend=True,
        marks=beside(
            list(map(time, times_ms)), times_ms, theme, shift=8, rows=[at for _, at, *_ in every]
        ),
    )
