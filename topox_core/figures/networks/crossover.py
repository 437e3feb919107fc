"""Fabrics against each other over a parameter: who wins where, and a line per fabric."""

import math
from collections.abc import Mapping, Sequence

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
from topox_core.fabrics.crossover.sweep import Point as SweepPoint
from topox_core.fabrics.registry import ENTRIES, FABRICS, PAYS_DELAY
from topox_core.figures.builders import Point, chart, curve, dots
from topox_core.figures.palette import Theme
from topox_core.figures.studies.cells import delay_level
from topox_core.figures.template import (
    DOTS,
    Figure,
    Layer,
    axis,
    beside,
    kept_apart,
    line,
    log_axis,
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


def gated_lines(runs: Mapping[str, GatedNetwork], theme: Theme) -> Figure:
    """Return the iteration time of every network over the number of the iteration, from zero."""
    count = max((len(run.iterations_ms) for run in runs.values()), default=1)
    return chart(
        [_gated_line(name, run, theme) for name, run in runs.items()],
        theme,
        280,
        axis(
            theme,
            range=[0.7, count + 0.3],
            tickvals=list(range(1, count + 1, -(-count // 12))),
            title="iteration",
        ),
        axis(
            theme,
            grid=True,
            range=[0, 1.06 * max((max(run.iterations_ms) for run in runs.values()), default=1.0)],
            title="ms",
        ),
        legend=True,
    )


def _gated_line(name: str, run: GatedNetwork, theme: Theme) -> Layer:
    fabric, dash, sign = _LOOKS[name]
    return curve(
        NETWORKS[name],
        [
            Point(k, ms, f"<b>{NETWORKS[name]}</b><br>iteration {k}: {ms:.6g} ms")
            for k, ms in enumerate(run.iterations_ms, 1)
        ],
        line(theme.fabric_colour(fabric), 3 if name == REGIONAL else 2, dash),
        theme,
        mark=sign,
        size=8,
    )


# A line that leaves the fastest this far behind leaves the picture.
CUT_AT = 5.0
HEIGHT = 300


def cut(
    points: Sequence[SweepPoint],
    value: float,
    delays: Sequence[float],
    labels: Mapping[str, str],
    now_ms: float,
    theme: Theme,
) -> Figure:
    """Return iteration against delay, both logarithmic; today's delay is a dotted line.

    A delay of 0 has no place on a logarithmic axis; it is drawn a decade below the smallest other
    one.
    """
    here = sorted((p for p in points if p.value == value), key=lambda p: p.delay_ms)
    order = sorted(delays)
    times_ms = {
        name: {p.delay_ms: p.outcomes[name].iteration_ms for p in here if name in p.outcomes}
        for name in FABRICS
    }
    every = [ms for of in times_ms.values() for ms in of.values()]
    steady = [ms for name, of in times_ms.items() if name not in PAYS_DELAY for ms in of.values()]
    best, most = min(every, default=1.0), max(every, default=1.0)
    top = min(max(CUT_AT * best, 1.15 * max(steady, default=0.0)), 1.15 * most)
    layers = [
        curve(
            labels[name],
            [
                Point(
                    delay_level(order, delay),
                    ms,
                    f"<b>{labels[name]}</b><br>{delay_label(delay)}: {ms:.6g} ms",
                )
                for delay, ms in of.items()
            ],
            line(theme.fabric_colour(name), 3 if name == "scheduled" else 2, ENTRIES[name].dash),
            theme,
            mark=ENTRIES[name].mark if name in PAYS_DELAY else "",
        )
        for name, of in times_ms.items()
        if of
    ]
    low = best / 1.12
    levels = [delay_level(order, d) for d in order]
    wide = levels[-1] - levels[0]
    span = 0.05 * wide if len(levels) > 1 else 0.5
    shown = _apart(levels, wide / 9)
    return chart(
        layers,
        theme,
        HEIGHT - 40 + 20 * math.ceil(len(layers) / 2),  # two names in a row
        axis(
            theme,
            grid=True,
            range=[levels[0] - span, levels[-1] + span],
            tickvals=[levels[k] for k in shown],
            ticktext=[f"{order[k]:g}" for k in shown],
            title="reconfiguration delay, ms (log; 0 at the left)",
        ),
        log_axis(theme, low, max(top, low * 1.3), short, grid=True),
        [upright(delay_level(order, now_ms), line(theme.ink, 1.5, DOTS))],
        legend=True,
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
) -> Figure:
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
        style = line(
            theme.fabric_colour(fabric),
            2 if variant else 3,
            DOTS if variant else ENTRIES[name].dash if name in ENTRIES else "solid",
        )
        points = [
            Point(x, ms, f"{labels[name]}<br>{x:g}: {ms:.4g} ms")
            for x, ms in zip(delays_ms, values, strict=True)
        ]
        layers += [
            curve(labels[name], points, style, theme),
            dots(
                "",
                [one._replace(says="") for one in points if one.x == now_ms],
                opaque(10 * theme.scale, style["color"], line=line(theme.page, 1.5)),
                theme,
            ),
        ]
    top = 1.12 * max(max(values) for values in times_ms.values())
    # Behind the ends of their lines names are crossed by none.
    ends = sorted((values[-1], labels[name]) for name, values in times_ms.items())
    places = kept_apart([ms for ms, _ in ends], 16 / (HEIGHT - 52) * top, top)
    names = [words for _, words in ends]
    return chart(
        layers,
        theme,
        HEIGHT,
        axis(theme, range=[0, delays_ms[-1]], title=title),
        axis(theme, grid=True, range=[0, top]),
        [
            upright(now_ms, line(theme.ink, 1.5, DOTS)),
            *beside(names, [delays_ms[-1]] * len(names), theme, rows=places),
        ],
        room={"right": name_px(names, theme, 12, 6.2) / theme.scale},
    )
