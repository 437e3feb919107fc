"""What switching costs: overhead by delay, by degree of expert parallelism and by wiring."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from topox_core.fabrics.registry import ENTRIES
from topox_core.figures.builders import Bar, Point, bars, chart, curve, dots, row_chart
from topox_core.figures.palette import VERMILION, Theme, blend
from topox_core.figures.rails.windows import TOO_SHORT
from topox_core.figures.template import (
    DOTS,
    LEGEND_BELOW,
    Figure,
    Layer,
    Look,
    axis,
    band,
    frame,
    hatched,
    level,
    line,
    log_axis,
    margins,
    note,
    opaque,
    time_axis,
    upright,
)
from topox_core.text.numbers import delay_label, percent, time

# On demand and provisioned have the colours, dashes and marks of the circuit controllers on every
# other page.
CONTROL = {
    "on_demand": ("reactive", "on demand", "circle"),
    "provisioned": ("provisioned", "provisioned", "diamond"),
}
MIN_MS, MAX_MS = 0.1, 3000.0
# What lies above this share is cut, unless the chosen delay costs more: a curve that leaves the
# picture has made its point.
CUT_AT = 0.24
DASHES = ("solid", "6px,3px", "2px,3px", "9px,3px,2px,3px")
MIN_OVERHEAD = 0.1  # per cent; what is less is drawn here
BEFORE_0 = 0.5  # decades left of the least delay, where a delay of 0 is drawn


@dataclass(frozen=True)
class Curve:
    """Iteration against delay: of one kind of control, simulated here or measured by others.

    Attributes
    ----------
    control
        ``on_demand`` or ``provisioned``.
    base_ms
        The iteration on an electrical rail that this curve's overhead is counted from.
    """

    control: str
    base_ms: float
    delay_ms: tuple[float, ...]
    iteration_ms: tuple[float, ...]
    measured: str = ""

    @property
    def overhead(self) -> tuple[float, ...]:
        """What switching adds, as a share of the undisturbed iteration."""
        return tuple(value / self.base_ms - 1 for value in self.iteration_ms)


def overhead_curves(
    curves: Sequence[Curve],
    now_ms: float,
    limit: float,
    technologies: Mapping[str, float],
    theme: Theme,
) -> Figure:
    """Return overhead against delay (logarithmic), with your delay, limit and the technologies.

    Both axes reach as far as your delay and what it costs.

    Parameters
    ----------
    limit
        Overhead that is still accepted, as a share.
    technologies
        Switching time in ms by name.
    """
    most = max(MAX_MS, now_ms)
    every = [
        (d, 100 * o) for one in curves for d, o in zip(one.delay_ms, one.overhead, strict=True)
    ]
    highest = max((o for d, o in every if d <= MAX_MS), default=0.0)
    here = max((o for d, o in every if d == now_ms), default=0.0)
    top = max(100 * limit * 2, min(100 * CUT_AT, highest), here, 1.0)
    layers, labels = [], []
    for one in curves:
        at = sorted(zip(one.delay_ms, one.overhead, one.iteration_ms, strict=True))
        at = [point for point in at if point[0] <= most]
        layers.append(_overhead(one, at, theme))
        if not one.measured and at:
            labels.append(_label(at, CONTROL[one.control][1], one.control, top, theme))
    limit_note = note(
        f"limit, {percent(limit)}",
        0,
        100 * limit,
        11 * theme.scale,
        theme.ink,
        xref="paper",
        xanchor="left",
        xshift=4,
        yanchor="bottom",
        bgcolor=theme.page,
        borderpad=0,
    )
    measured = any(one.measured for one in curves)
    above, below, plot = 34 * theme.scale, 42, 186 * theme.scale
    key = 22 * theme.scale if measured else 0  # the legend, under the axis and its title
    decades = range(round(math.log10(MIN_MS)), math.ceil(math.log10(most)))
    values = [*(10.0**d for d in decades), most]
    return frame(
        layers,
        theme,
        above + plot + below + key,
        [
            limit_note,
            *labels,
            *_technologies(
                technologies, most, theme
            ),  # a narrow window hides the fourth note and on
            upright(_place(now_ms), line(VERMILION, 2)),
            level(100 * limit, line(theme.ink, 1.2, DOTS)),
        ],
        showlegend=measured,
        legend={
            **LEGEND_BELOW,
            "y": -below / plot,
            "font": {"size": 11 * theme.scale, "color": theme.muted},
        },
        margin=margins(46 * theme.scale, 14, above, below + key),
        xaxis=axis(
            theme,
            grid=True,
            range=[_place(0.0) - 0.15, math.log10(most) + 0.05],
            tickvals=[_place(0.0), *(math.log10(v) for v in values)],
            ticktext=["0", *(time(v) for v in values)],
            title="reconfiguration delay (log; 0 at the left)",
        ),
        yaxis=axis(
            theme,
            grid=True,
            range=[-0.08 * top, top * 1.06],
            nticks=7,
            ticksuffix=" %",
            tickformat="~g",
        ),
    )


def _overhead(one: Curve, at: Sequence[tuple[float, float, float]], theme: Theme) -> Layer:
    """Return a curve through (delay, overhead, iteration), dotted with open marks where others measured it."""
    fabric, words, symbol = CONTROL[one.control]
    colour, name = theme.fabric_colour(fabric), words
    name += f", {one.measured}" if one.measured else ""
    points = [
        Point(
            _place(delay),
            100 * overhead,
            f"<b>{name}</b><br>{delay_label(delay)}: +{percent(overhead)}, {time(ms)}",
        )
        for delay, overhead, ms in at
    ]
    if not one.measured:
        style = line(colour, 2.4, ENTRIES[fabric].dash)
        return curve(name, points, style, theme, mark=symbol, showlegend=False)
    style, mode = line(colour, 1, "dot"), "lines+markers"
    return curve(
        name,
        points,
        style,
        theme,
        mode=mode,
        marker=opaque(9 * theme.scale, colour, symbol=f"{symbol}-open", line=line(colour, 1.6)),
    )


def _label(
    at: list[tuple[float, float, float]], words: str, control: str, top: float, theme: Theme
) -> Look:
    """Return a curve's name beside it: on demand to its left, provisioned to its right."""
    share = (0.45 if control == "on_demand" else 0.22) * top
    place, overhead = _place(at[-1][0]), 100 * at[-1][1]
    for (d0, o0, _), (d1, o1, _) in pairwise(at):
        if 100 * o0 <= share < 100 * o1:
            place = _place(d0) + (_place(d1) - _place(d0)) * (share - 100 * o0) / (100 * (o1 - o0))
            overhead = share
            break
    left = control == "on_demand" or place >= _place(MAX_MS / 3)
    return note(
        f"<b>{words}</b>",
        place,
        min(overhead, 0.9 * top),
        12.5 * theme.scale,
        theme.fabric_colour(CONTROL[control][0]) if theme.name == "dark" else theme.ink,
        xanchor="right" if left else "left",
        xshift=-10 if left else 10,
        yanchor="bottom" if control == "on_demand" else "top",
        bgcolor=theme.page,
        borderpad=0,
    )


def _place(delay_ms: float) -> float:
    """Return where a delay is drawn: its logarithm; what is below the least stands at the left."""
    if delay_ms <= 0:
        return math.log10(MIN_MS) - BEFORE_0
    return max(math.log10(delay_ms), math.log10(MIN_MS) - BEFORE_0 / 2)


def _technologies(technologies: Mapping[str, float], most_ms: float, theme: Theme) -> list[Look]:
    """Return a dashed, named line a technology; those off the axis stand at its ends."""
    known = sorted(technologies.items(), key=lambda item: item[1])
    fast = [item for item in known if item[1] < MIN_MS]
    slow = [item for item in known if item[1] > most_ms]
    inside = [item for item in known if MIN_MS <= item[1] <= most_ms]
    marks: list[Look] = []

    def name_at(x: float, words: str, side: str, shift: float, **placement: Any) -> None:
        where = {"yref": "paper", "yanchor": "bottom", "yshift": 2, "xanchor": side, "align": side}
        where |= {"xshift": shift, **placement}
        marks.append(note(words, x, 1, 10.5 * theme.scale, theme.muted, **where))

    if fast:
        less = " and less" if len(fast) > 1 else ""
        names = ", ".join(name for name, _ in fast)
        name_at(_place(0.0), f"‹ {names}<br>{delay_label(fast[-1][1])}{less}", "left", -4)
    if slow:
        names = ", ".join(name for name, _ in slow)
        name_at(1, f"{names}<br>{time(slow[0][1])} ›", "right", -2, xref="paper")
    for k, (name, delay) in enumerate(inside):
        x = _place(delay)
        marks.append(upright(x, line(theme.muted, 1, "3px,3px")))
        # A near neighbour to the right takes that side of its own line, unless one to the left has
        # the other already.
        crowded = k > 0 and x - _place(inside[k - 1][1]) < 0.5
        left = k + 1 < len(inside) and _place(inside[k + 1][1]) - x < 0.8 and not crowded
        side, shift = ("right", -4) if left else ("left", 4)
        name_at(x, f"{name}<br>{delay_label(delay)}", side, shift)
    return marks


def switch_word(name: str) -> str:
    """Return a technology's name within a sentence: piezo, liquid crystal, RotorNet, 3D MEMS."""
    return name.lower() if name == name.capitalize() else name


def expert_region(
    degrees: Sequence[int],
    overhead: Mapping[float, Sequence[float | None]],
    published: Mapping[float, Mapping[int, float]],
    limit: float,
    theme: Theme,
) -> Figure:
    """Return overhead (logarithmic) by degree of expert parallelism, a line a delay.

    Parameters
    ----------
    overhead
        Delay in ms -> overhead for each of ``degrees`` as a share; None where there is none yet.
    published
        Delay in ms -> degree -> overhead that others published.
    """
    known = [100 * v for row in overhead.values() for v in row if v is not None]
    known += [100 * v for theirs in published.values() for d, v in theirs.items() if d in degrees]
    low, high = MIN_OVERHEAD, max([300 * limit, *known])
    layers = []
    for number, (delay, row) in enumerate(overhead.items()):
        # From quiet to strong; dashes and labels tell them apart as well.
        words = delay_label(delay)
        points = [
            Point(k, max(low, 100 * v), f"<b>EP {degrees[k]}</b> at {words}: +{percent(v)}")
            for k, v in enumerate(row)
            if v is not None
        ]
        layers.append(
            curve(
                words,
                points,
                line(
                    blend(theme.muted, "#CC79A7", (number + 1) / len(overhead)),
                    2.2,
                    DASHES[number % len(DASHES)],
                ),
                theme,
                mark="circle",
                size=8,
            )
        )
    for delay, theirs in published.items():
        words = f"published, {delay_label(delay)}"
        points = [
            Point(degrees.index(d), 100 * v, f"{words}: +{percent(v)}")
            for d, v in theirs.items()
            if d in degrees
        ]
        layers.append(
            dots(
                words,
                points,
                opaque(11 * theme.scale, theme.ink, symbol="square-open", line={"width": 1.6}),
                theme,
            )
        )
    # Just above the limit, where no curve begins.
    above: Look = {"xanchor": "left", "yanchor": "bottom"}
    fails, at = f"✗ fails: more than {percent(limit)}", math.log10(100 * limit)
    return chart(
        layers,
        theme,
        300,
        axis(
            theme,
            range=[-0.3, len(degrees) - 0.7],
            tickvals=list(range(len(degrees))),
            ticktext=[str(d) for d in degrees],
            title="degree of expert parallelism",
        ),
        log_axis(
            theme,
            low,
            1.32 * high,
            lambda value: f"{'≤ ' * (value <= low)}{value:,g} %",
            grid=True,
        ),
        [
            band(100 * limit, 1.32 * high, TOO_SHORT),
            note(fails, -0.28, at, 12 * theme.scale, theme.bad, **above),
        ],
        legend=True,
    )


def wirings(rows: Sequence[tuple[str, float | None, float]], theme: Theme) -> Figure:
    """Return a bar a way to wire the rail: the iteration, and hatched what switching adds to it.

    Parameters
    ----------
    rows
        (name, iteration in ms or None where it cannot be wired so, of which stall in ms).
    """
    known = [(k, name, ms, stall) for k, (name, ms, stall) in enumerate(rows) if ms is not None]
    stalls = [
        Bar(k, stall, f"<b>{name}</b>: waits {time(stall)} for the switch", ms - stall)
        for k, name, ms, stall in known
        if stall > 0
    ]
    base = known[0][2] if known else 1.0
    told = []
    for k, (name, ms, _) in enumerate(rows):
        words = f"<span style='color:{theme.bad}'>✗ cannot be built</span>"
        if ms is not None:
            more = (
                f", {'+' if ms >= base else '−'}{percent(abs(ms / base - 1))}" if k and base else ""
            )
            words = f"<b>{time(ms)}</b>{more}"
        told.append(f"{name}<br>{words}")  # below the name, where a phone has room for it
    return row_chart(
        told,
        [
            bars(
                "iteration",
                theme.primary,
                [Bar(k, ms - stall, f"<b>{name}</b>: {time(ms)}") for k, name, ms, stall in known],
                theme,
                0.66,
            ),
            bars("waiting for the switch", hatched(theme), stalls, theme, 0.66),
        ],
        theme,
        time_axis(theme, 1.04 * max((ms for _, _, ms, _ in known), default=1.0), grid=True),
        38,
        11.5,
        bool(stalls),
    )
