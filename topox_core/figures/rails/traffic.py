"""What is sent on a rail and when: one rank's traffic with the windows between, and when each group's circuits stand."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from topox_core.figures.palette import VERMILION, Theme, parallelism_colour, parallelism_word
from topox_core.figures.template import (
    CLEAR,
    INSIDE,
    Look,
    axis,
    clock,
    frame,
    hatched,
    line,
    margins,
    name_px,
    row_axis,
    sideways_bars,
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
) -> go.Figure:
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
    layers = [
        _outlines(windows, view, theme),
        *_traffic(phases, view, theme),
        *_marks(too_short, view, "triangle-up", 0, f"shorter than {time(dark_ms)}", theme.scale),
        *_marks(
            [one for one in windows if one.length_ms <= 0],
            view,
            "x-thin",
            2,
            "no window: 0 or an overlap",
            theme.scale,
        ),
    ]
    ticks, words = clock(*view)
    long = sum(44 + 6.4 * len(trace.name) for trace in layers) > LEGEND_PX
    above = (30 + 20 * long) * legend
    return frame(
        layers,
        theme,
        (82 + above) * theme.scale,
        showlegend=legend,
        bargap=0,
        margin=margins(16, 18, above * theme.scale, 26),
        xaxis=axis(theme, range=list(view), tickvals=ticks, ticktext=words),
        yaxis=axis(theme, range=[-0.42, 1.02], tickvals=[], ticks=""),
    )


def strip_legend(figure: go.Figure, theme: Theme) -> list[tuple[str, str]]:
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


def _outlines(windows: Sequence[Window], view: tuple[float, float], theme: Theme) -> go.Bar:
    low, high = view
    here = [
        one
        for one in windows
        if one.length_ms > 0 and one.begin_ms + one.length_ms >= low and one.begin_ms <= high
    ]
    begins = [max(low, one.begin_ms) for one in here]
    widths = [
        min(high, one.begin_ms + one.length_ms) - begin
        for one, begin in zip(here, begins, strict=True)
    ]
    return sideways_bars(
        begins,
        widths,
        [0.5] * len(here),
        "window",
        {"color": CLEAR, "line": line(theme.muted, 1)},
        width=1,
        legendrank=2000,
        text=[
            _length(one) if width >= LABELLED * (high - low) else ""
            for one, width in zip(here, widths, strict=True)
        ],
        **INSIDE,
        cliponaxis=True,
        textfont={"size": 11.5 * theme.scale, "color": theme.ink},
        customdata=[
            [*_facts(one), one.operation.replace("_", " "), mib(one.size_bytes)] for one in here
        ],
        hovertemplate="<b>window of %{customdata[0]}</b><br>%{customdata[1]} → %{customdata[2]}<br>then %{customdata[3]}, "
        "%{customdata[4]}<extra></extra>",
    )


def _facts(window: Window) -> list[str]:
    return [time(window.length_ms), parallelism_word(window.before), parallelism_word(window.after)]


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


def _traffic(phases: Sequence[Phase], view: tuple[float, float], theme: Theme) -> list[go.Bar]:
    """Return a trace of bars a parallelism, none too thin to be seen, over the windows beside."""
    low, high = view
    least = THINNEST * (high - low)
    traces = []
    markers = parallelism_markers([one.parallelism for one in phases], theme)
    for name in dict.fromkeys(one.parallelism for one in phases):
        shown = [
            s for s in phases if s.parallelism == name and s.end_ms >= low and s.begin_ms <= high
        ]
        begins = [max(low, s.begin_ms) for s in shown]
        widths = [max(least, min(high, s.end_ms) - b) for s, b in zip(shown, begins, strict=True)]
        traces.append(
            sideways_bars(
                [min(b, high - w) for b, w in zip(begins, widths, strict=True)],
                widths,
                [0.5] * len(shown),
                parallelism_word(name),
                markers[name],
                width=1,
                customdata=[
                    [
                        parallelism_word(s.parallelism),
                        time(s.begin_ms),
                        time(s.end_ms - s.begin_ms),
                        _sent(s),
                    ]
                    for s in shown
                ],
                hovertemplate="<b>%{customdata[0]}</b> for %{customdata[2]} from %{customdata[1]}<br>%{customdata[3]}"
                "<extra></extra>",
            )
        )
    return [one for one in traces if one.x]


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
    scale: float,
) -> list[go.Scatter]:
    """Return a mark below each window that begins in view, as one trace, if there is any."""
    shown = [one for one in windows if view[0] <= one.begin_ms <= view[1]]
    if not shown:
        return []
    return [
        go.Scatter(
            x=[min(one.begin_ms + max(0.0, one.length_ms) / 2, view[1]) for one in shown],
            y=[-0.22] * len(shown),
            mode="markers",
            name=words,
            showlegend=True,
            marker={
                "symbol": symbol,
                "size": 9 * scale,
                "color": VERMILION,
                "opacity": 1,
                "line": line(VERMILION, line_px),
            },
            cliponaxis=False,
            customdata=[_facts(one) for one in shown],
            hovertemplate="<b>%{customdata[0]}</b>: "
            + words
            + "<br>%{customdata[1]} → %{customdata[2]}<extra></extra>",
        )
    ]


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


def timeline(run: RailRun, theme: Theme) -> go.Figure:
    """Return when each group's circuits stand: dark (hatched) first, then in place."""
    shown = groups_in_view(run)
    row = {group: k for k, group in enumerate(shown)}
    circuits = [one for one in run.circuits if one.group in row][:MAX_CIRCUITS]
    groups = run.iteration.groups
    least = 0.003 * run.iteration_ms  # of the width: about three pixels
    markers = parallelism_markers([groups[g].parallelism for g in shown], theme)
    alike = {
        name: [one for one in circuits if groups[one.group].parallelism == name]
        for name in dict.fromkeys(groups[g].parallelism for g in shown)
    }
    layers = [
        sideways_bars(
            [one.start_ms for one in same],
            [max(least, one.end_ms - one.start_ms) for one in same],
            [row[one.group] for one in same],
            parallelism_word(name),
            markers[name],
            width=0.72,
            customdata=[
                [
                    group_words(run, one.group),
                    _members(run, one.group),
                    time(one.start_ms),
                    time(one.end_ms),
                ]
                for one in same
            ],
            hovertemplate="<b>%{customdata[0]}</b>, %{customdata[1]}<br>set up from %{customdata[2]} to %{customdata[3]}"
            "<extra></extra>",
        )
        for name, same in alike.items()
    ]
    dark = [one for one in circuits if one.changed and one.start_ms > one.setup_ms]
    dark_bars = sideways_bars(
        [one.setup_ms for one in dark],
        [one.start_ms - one.setup_ms for one in dark],
        [row[one.group] for one in dark],
        "dark (switching)",
        hatched(theme),
        width=0.72,
        customdata=[
            [group_words(run, one.group), time(one.setup_ms), time(one.start_ms - one.setup_ms)]
            for one in dark
        ],
        hovertemplate="<b>%{customdata[0]}</b> dark from %{customdata[1]}, %{customdata[2]}<extra></extra>",
    )
    names = [group_words(run, g) for g in shown]
    return frame(
        [*layers, dark_bars if dark else None],
        theme,
        ((17 if len(shown) <= 24 else 13.5) * len(shown) + 76) * theme.scale,
        showlegend=True,
        margin=margins(name_px(names, theme, 18, 6.2, 4), 10, 32 * theme.scale, 26),
        xaxis=time_axis(theme, max(run.iteration_ms, 1e-9)),
        yaxis=row_axis(theme, names, 10.5, range=[len(shown) - 0.4, -0.6]),
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
