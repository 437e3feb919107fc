"""What is sent on a rail and when: one rank's traffic with the windows between, and when each group's circuits stand."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from topox_core.figures.builders import Bar, Point, bars, chart, dots, row_chart
from topox_core.figures.palette import VERMILION, Theme, parallelism_colour, parallelism_word
from topox_core.figures.template import (
    CLEAR,
    Figure,
    Layer,
    Look,
    axis,
    clock,
    hatched,
    line,
    opaque,
    time_axis,
)
from topox_core.rails.iteration import RailRun, Window
from topox_core.rails.window_lengths import hides, mib
from topox_core.rails.windows import Phase
from topox_core.text.numbers import plural, short, time

# Of the strip's width: a window wider than this carries its length.
LABELLED = 0.026
# Of the strip's width: traffic is drawn at least this wide, about three pixels.
THINNEST = 0.003
LEGEND_PX = 1010  # of a laptop's page: a longer legend takes a second row
# Parallelisms that share a colour: the first of a chart is plain, the others are striped.
_STRIPES = ("", "-", "x")


def strip(
    phases: Sequence[Phase],
    windows: Sequence[Window],
    dark_ms: float,
    view: tuple[float, float],
    theme: Theme,
    legend: bool = True,
) -> Figure:
    """Return one rank's communication pattern: traffic, outlined windows, short ones marked.

    Parameters
    ----------
    dark_ms
        How long a changed circuit carries nothing: a window shorter than this cannot hide a change.
    view
        The stretch of time in view, in ms.
    legend
        Without one, :func:`strip_legend` says what to write beside the figure.
    """
    too_short = [one for one in windows if one.length_ms > 0 and not hides(one, dark_ms)]
    none, words = [one for one in windows if one.length_ms <= 0], f"shorter than {time(dark_ms)}"
    every = [
        _outlines(windows, view, theme),
        *_traffic(phases, view, theme),
        _marks(too_short, view, "triangle-up", 0, words, theme),
        _marks(none, view, "x-thin", 2, "no window: 0 or an overlap", theme),
    ]
    layers = [one for one in every if one is not None]
    ticks, said = clock(*view)
    long = sum(44 + 6.4 * len(trace.name) for trace in layers) > LEGEND_PX
    above = (30 + 20 * long) * legend
    return chart(
        layers,
        theme,
        84 + above,
        axis(theme, range=list(view), tickvals=ticks, ticktext=said),
        axis(theme, range=[-0.42, 1.02], tickvals=[], ticks=""),
        legend=legend,
        room={"left": 16, "right": 18, "top": above},
    )


def strip_legend(figure: Figure, theme: Theme) -> list[tuple[str, str]]:
    """Return what the signs of a strip mean, each as CSS draws it: for a legend beside the figure, which wraps on a phone."""
    return [(_as_css(trace, theme), trace.name) for trace in figure.data]


def _as_css(trace: Any, theme: Theme) -> str:
    colour = trace.marker.color
    if trace.type == "scatter":
        if trace.marker.symbol == "triangle-up":
            return f"{colour};clip-path:polygon(50% 0,100% 100%,0 100%)"
        strokes = (
            f"linear-gradient({turn}deg,transparent 43%,{colour} 43% 57%,transparent 57%)"
            for turn in (45, -45)
        )
        return ",".join(strokes)
    if trace.marker.pattern.shape:
        return f"repeating-linear-gradient({colour} 0 2px,{theme.page} 2px 4px)"
    if colour == CLEAR:
        return f"{theme.page};border:1px solid {theme.muted}"
    return str(colour)


def _outlines(windows: Sequence[Window], view: tuple[float, float], theme: Theme) -> Layer:
    """Return the windows in view as outlines with their lengths, as far as these have room."""
    low, high = view
    spans = [
        (one, max(low, one.begin_ms), min(high, one.begin_ms + one.length_ms))
        for one in windows
        if one.length_ms > 0
    ]
    return bars(
        "window",
        {"color": CLEAR, "line": line(theme.muted, 1)},
        [
            Bar(
                0.5,
                end - begin,
                f"<b>window of {time(one.length_ms)}</b><br>{_between(one)}<br>"
                f"then {one.operation.replace('_', ' ')}, {mib(one.size_bytes)}",
                begin,
                _length(one) if end - begin >= LABELLED * (high - low) else "",
            )
            for one, begin, end in spans
            if end >= begin
        ],
        theme,
        1,
        ink=theme.ink,
        legendrank=2000,
        cliponaxis=True,
    )


def _between(window: Window) -> str:
    """Return what is sent before a window and what after it."""
    return f"{parallelism_word(window.before)} → {parallelism_word(window.after)}"


def parallelism_markers(parallelisms: Sequence[str], theme: Theme) -> dict[str, Look]:
    """Return the marker of each parallelism: its colour, striped where another one has it."""
    seen: Counter[str] = Counter()
    markers: dict[str, Look] = {}
    for name in sorted(set(parallelisms), key=lambda name: (name != "fsdp", name)):
        colour = parallelism_colour(name)
        stripes = _STRIPES[min(seen[colour], len(_STRIPES) - 1)]
        seen[colour] += 1
        markers[name] = {"color": colour, "line": {"width": 0}}
        if stripes:
            markers[name]["pattern"] = {
                "shape": stripes,
                "size": 4,
                "solidity": 0.4,
                "bgcolor": colour,
                "fgcolor": theme.page,
            }
    return markers


def _traffic(phases: Sequence[Phase], view: tuple[float, float], theme: Theme) -> list[Layer]:
    """Return a trace of bars a parallelism, none too thin to be seen, over the windows beside."""
    low, high = view
    markers = parallelism_markers([one.parallelism for one in phases], theme)
    spans = [
        (one, max(low, one.begin_ms), min(high, one.end_ms))
        for one in phases
        if one.end_ms >= low and one.begin_ms <= high
    ]
    return [
        bars(
            parallelism_word(use),
            markers[use],
            [
                Bar(
                    0.5,
                    wide,
                    f"<b>{parallelism_word(use)}</b> for {time(one.end_ms - one.begin_ms)} from "
                    f"{time(one.begin_ms)}<br>{_sent(one)}",
                    min(begin, high - wide),
                )
                for one, begin, end in spans
                if one.parallelism == use
                for wide in [max(THINNEST * (high - low), end - begin)]
            ],
            theme,
            1,
        )
        for use in dict.fromkeys(one.parallelism for one in phases)
    ]


def _sent(one: Phase) -> str:
    """Return what a stretch of traffic sends, as far as it is known."""
    known = (
        one.communications and plural(one.communications, "communication"),
        one.operation and f"first {one.operation.replace('_', ' ')}",
        one.size_bytes and mib(one.size_bytes),
    )
    return ", ".join(words for words in known if words)


def _marks(
    windows: list[Window],
    view: tuple[float, float],
    symbol: str,
    line_px: float,
    words: str,
    theme: Theme,
) -> Layer:
    """Return a mark below each window that begins in view, as one trace, if there is any."""
    return dots(
        words,
        [
            Point(
                min(one.begin_ms + max(0.0, one.length_ms) / 2, view[1]),
                -0.22,
                f"<b>{time(one.length_ms)}</b>: {words}<br>{_between(one)}",
            )
            for one in windows
            if view[0] <= one.begin_ms <= view[1]
        ],
        opaque(9 * theme.scale, VERMILION, symbol=symbol, line=line(VERMILION, line_px)),
        theme,
        cliponaxis=False,
    )


def _length(window: Window) -> str:
    """Return a window's length as short as it can be written into it."""
    length_ms = window.length_ms
    return f"{short(length_ms / 1000)} s" if length_ms >= 1000 else short(length_ms)


MAX_GROUPS = 48
MAX_CIRCUITS = 4_000


def groups_in_view(run: RailRun) -> list[int]:
    """Return the groups of the timeline: those with circuits, by parallelism, then in order."""
    with_circuits = {circuit.group for circuit in run.circuits}
    uses = {g: run.iteration.groups[g].parallelism for g in with_circuits}
    return sorted(with_circuits, key=lambda g: (uses[g] != "pp", uses[g], g))[:MAX_GROUPS]


def timeline(run: RailRun, theme: Theme) -> Figure:
    """Return when each group's circuits stand: dark (hatched) first, then in place."""
    shown = groups_in_view(run)
    row = {group: k for k, group in enumerate(shown)}
    circuits = [one for one in run.circuits if one.group in row][:MAX_CIRCUITS]
    uses = {group: run.iteration.groups[group].parallelism for group in shown}
    markers = parallelism_markers(list(uses.values()), theme)
    names = {group: group_words(run, group) for group in shown}
    stand = [
        bars(
            parallelism_word(use),
            markers[use],
            [
                Bar(
                    row[one.group],
                    # No thinner than about three pixels.
                    max(0.003 * run.iteration_ms, one.end_ms - one.start_ms),
                    f"<b>{names[one.group]}</b>, {_members(run, one.group)}<br>"
                    f"set up from {time(one.start_ms)} to {time(one.end_ms)}",
                    one.start_ms,
                )
                for one in circuits
                if uses[one.group] == use
            ],
            theme,
            0.72,
        )
        for use in dict.fromkeys(uses.values())
    ]
    dark = [
        Bar(
            row[one.group],
            one.start_ms - one.setup_ms,
            f"<b>{names[one.group]}</b> dark from {time(one.setup_ms)}, "
            f"{time(one.start_ms - one.setup_ms)}",
            one.setup_ms,
        )
        for one in circuits
        if one.changed and one.start_ms > one.setup_ms
    ]
    return row_chart(
        list(names.values()),
        [*stand, bars("dark (switching)", hatched(theme), dark, theme, 0.72)],
        theme,
        time_axis(theme, max(run.iteration_ms, 1e-9)),
        17 if len(shown) <= 24 else 13.5,
        10.5,
        legend=True,
    )


def group_words(run: RailRun, group: int) -> str:
    """Return a group's parallelism and stages in words: pp, stages 0 and 1; fsdp, stage 0."""
    iteration = run.iteration
    one = iteration.groups[group]
    stages = sorted({int(iteration.stage[rank]) for rank in one.ranks})
    words = f"stage {stages[0]}"
    if len(set(iteration.stage.tolist())) == 1 and iteration.ranks > 1:
        words = _members(run, group)
    elif len(stages) > 1:
        words = f"stages {', '.join(map(str, stages[:-1]))} and {stages[-1]}"
    return f"{one.parallelism or 'transfers'}, {words}"


def _members(run: RailRun, group: int) -> str:
    ranks = run.iteration.groups[group].ranks
    words = ", ".join(map(str, ranks))
    if len(ranks) > 8:
        words = f"{ranks[0]} to {ranks[-1]}, {len(ranks)} of them"
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {words}"
