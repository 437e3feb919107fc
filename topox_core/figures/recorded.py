"""Figures of a recorded run: its steps, its lanes on one clock, its iteration at other network speeds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from topox_core.figures.palette import (
    KIND_COLOURS,
    Theme,
    faded,
    parallelism_colour,
    parallelism_word,
)
from topox_core.figures.template import (
    CLEAR,
    LANE_LEFT,
    LANE_RIGHT,
    UNFADED,
    axis,
    band,
    frame,
    level,
    line,
    margins,
    named_axis,
    note,
    opaque,
    outside,
    sideways_bars,
)
from topox_core.text.numbers import short, size, time
from topox_core.traces.run_graph import CallBar, Node, RunGraph, StepTime, call_bars, label_of

# Calls of one rank that go on at once have lanes of their own, up to so many.
MAX_CALL_LANES = 3
_SEGMENT, _CALL, _GAP = 1.0, 0.85, 0.5
# A label stands in a step's bar only where steps are few.
LABELLED_STEPS = 16
_PALE = 0.35
UNLABELLED = "#999933"


def call_words(node: Node, labels: Mapping[str, str]) -> str:
    """Return how the legend calls a call: by its parallelism, else by its kind."""
    label = label_of(node, labels)
    return parallelism_word(label) if label else f"{node.kind.replace('_', '-')}, no label"


def call_colour(label: str) -> str:
    """Return the colour of calls of a parallelism, or of those without one."""
    return parallelism_colour(label) if label else UNLABELLED


def steps(rows: Sequence[StepTime], chosen: int, theme: Theme) -> go.Figure:
    """Return the steps of a recording as bars, the network's part on top, the chosen one outlined."""
    at = list(range(len(rows)))
    network = [max(0.0, one.recorded_ms - one.free_ms) for one in rows]
    hover = [
        [one.words, time(one.recorded_ms), time(n)] for one, n in zip(rows, network, strict=True)
    ]
    says = "step %{customdata[0]}: %{customdata[1]}, the network at most %{customdata[2]}<extra></extra>"
    ink = [line(theme.ink, 2) if one.number == chosen else None for one in rows]
    figure = go.Figure()
    parts = (
        (
            "without the network",
            [one.recorded_ms - n for one, n in zip(rows, network, strict=True)],
        ),
        ("the network at most", network),
    )
    for k, (name, heights) in enumerate(parts):
        figure.add_bar(
            x=at,
            y=heights,
            base=[0.0] * len(rows) if k == 0 else parts[0][1],
            name=name,
            width=0.7,
            marker={
                "color": (theme.primary, faded(theme.primary, _PALE))[k],
                "line": {"width": 0},
            },
            customdata=hover,
            hovertemplate=says,
            **UNFADED,
        )
    figure.add_bar(
        x=at,
        y=[one.recorded_ms for one in rows],
        width=0.7,
        marker={
            "color": CLEAR,
            "line": {"color": theme.ink, "width": [2 if one else 0 for one in ink]},
        },
        **outside(
            [short(one.recorded_ms) for one in rows] if len(rows) <= LABELLED_STEPS else None, theme
        ),
        customdata=hover,
        hovertemplate=says,
        **UNFADED,
    )
    every = max(1, math.ceil(len(rows) / LABELLED_STEPS))
    top = max((one.recorded_ms for one in rows), default=1.0) * 1.18
    return frame(
        figure,
        theme,
        190 * theme.scale,
        margin=margins(58, 8, 8, 42 * theme.scale),
        xaxis=axis(
            theme,
            range=[-0.6, max(len(rows), 4) - 0.4],
            tickvals=at[::every],
            ticktext=[one.words for one in rows[::every]],
            title="step of the profiler",
        ),
        yaxis=axis(theme, grid=True, range=[0, top], nticks=4, tickformat=",~g", title="ms"),
    )


def speed_curve(
    points: Sequence[tuple[float, float]],
    now: tuple[float, float],
    recorded_ms: float,
    free_ms: float,
    theme: Theme,
) -> go.Figure:
    """Return the iteration over the network's speed, the current point, the recorded time as a line.

    Parameters
    ----------
    points, now
        (Gbit/s, ms).
    """
    ordered = sorted({*points, now})
    x = [gbps for gbps, _ in ordered]
    low, high = min(free_ms, recorded_ms), max(*(ms for _, ms in ordered), recorded_ms)
    span = max(high - low, 0.02 * high, 1e-9)
    figure = go.Figure().add_scatter(
        x=x,
        y=[ms for _, ms in ordered],
        mode="lines+markers",
        line={"width": 2.4, "color": theme.primary},
        marker=opaque(6 * theme.scale, theme.primary),
        customdata=[time(ms) for _, ms in ordered],
        hovertemplate="%{x:,g} Gbit/s: %{customdata}<extra></extra>",
    )
    figure.add_scatter(
        x=[now[0]],
        y=[now[1]],
        mode="markers",
        marker=opaque(13 * theme.scale, theme.primary, line=line(theme.ink, 1.5)),
        customdata=[time(now[1])],
        hovertemplate="now %{x:,g} Gbit/s: %{customdata}<extra></extra>",
    )
    left, right = math.log10(x[0]), math.log10(x[-1])
    words = note(
        f"recorded {time(recorded_ms)}",
        1,
        recorded_ms,
        11.5 * theme.scale,
        theme.ink,
        xref="paper",
        xanchor="right",
        yanchor="bottom",
    )
    edge = 0.06 * max(right - left, 0.1)
    ticks = [v for v in (1, 10, 25, 100, 400, 1600, 10_000) if x[0] <= v <= x[-1]]
    return frame(
        figure,
        theme,
        240 * theme.scale,
        shapes=[level(recorded_ms, line(theme.ink, 1.4, "6px,3px"))],
        annotations=[words],
        margin=margins(58, 12, 8, 44 * theme.scale),
        xaxis=axis(
            theme,
            type="log",
            range=[left - edge, right + edge],
            tickvals=ticks,
            ticktext=[f"{v:,}" for v in ticks],
            title="network speed of a server, Gbit/s (log)",
        ),
        yaxis=axis(
            theme,
            grid=True,
            range=[max(0.0, low - 0.15 * span), high + 0.12 * span],
            nticks=5,
            tickformat=",~g",
            title="iteration, ms",
        ),
    )


def lanes(
    graph: RunGraph,
    ranks: Sequence[int],
    labels: Mapping[str, str],
    view: tuple[float, float],
    theme: Theme,
) -> go.Figure:
    """Return the lanes of some ranks on one clock: segments above, calls below, waiting pale.

    Parameters
    ----------
    labels
        Parallelism by name or description of a group.
    view
        The stretch of time in view, in ms.
    """
    calls = call_bars(graph, ranks)
    placed, deep = _call_lanes(calls)
    pitch = _SEGMENT + deep * _CALL + _GAP
    top = {rank: k * pitch for k, rank in enumerate(ranks)}
    figure = go.Figure()
    _add_segments(figure, graph, top, view, theme)
    _add_calls(figure, calls, placed, top, labels, view, theme)
    rows = [(top[rank], f"<b>R{rank}</b> gpu") for rank in ranks]
    rows += [(top[rank] + (_SEGMENT + deep * _CALL) / 2, "calls") for rank in ranks]
    whole = len(ranks) * pitch
    return frame(
        figure,
        theme,
        (max(90, 19 * whole) + 60) * theme.scale,
        shapes=[band(top[rank] - 0.6, top[rank] - 0.6 + pitch, theme.band) for rank in ranks[::2]],
        margin=margins(LANE_LEFT, LANE_RIGHT, 4, 42 * theme.scale),
        xaxis=axis(
            theme,
            grid=True,
            range=list(view),
            nticks=7,
            tickformat=",~g",
            title="ms from the begin of the step, one clock for all ranks",
        ),
        yaxis=named_axis(
            theme,
            [words for _, words in rows],
            [at for at, _ in rows],
            10,
            range=[whole - _GAP, -0.6],
        ),
    )


def _call_lanes(calls: Sequence[CallBar]) -> tuple[list[int], int]:
    """Return the lane of each call among those of its rank, and how many lanes a rank has."""
    free: dict[int, list[float]] = defaultdict(list)
    placed = [0] * len(calls)
    for k in sorted(range(len(calls)), key=lambda k: (calls[k].begin_ms, calls[k].end_ms)):
        ends = free[calls[k].rank]
        lane = next((n for n, end in enumerate(ends) if end <= calls[k].begin_ms + 1e-9), len(ends))
        lane = min(lane, MAX_CALL_LANES - 1)
        if lane == len(ends):
            ends.append(0.0)
        ends[lane] = max(ends[lane], calls[k].end_ms)
        placed[k] = lane
    return placed, max((len(ends) for ends in free.values()), default=1)


def _add_segments(
    figure: go.Figure,
    graph: RunGraph,
    top: Mapping[int, float],
    view: tuple[float, float],
    theme: Theme,
) -> None:
    for kind, colour in KIND_COLOURS.items():
        found = [
            (node.end_ms - node.duration_ms, node.end_ms, node)
            for node in graph.nodes
            if not node.is_call
            and node.ranks[0] in top
            and node.duration_ms > 0
            and (node.kind if node.kind in KIND_COLOURS else "forward") == kind
        ]
        bars = [one for one in found if _seen(one[0], one[1], view)]
        if bars:
            figure.add_trace(
                _bars(
                    [(begin, end) for begin, end, _ in bars],
                    [top[node.ranks[0]] for _, _, node in bars],
                    [[f"rank {n.ranks[0]}, {n.kind}", time(e - b), time(b)] for b, e, n in bars],
                    kind,
                    colour,
                    0.86 if kind != "update" else 0.5,
                    view,
                    theme,
                )
            )


def _add_calls(
    figure: go.Figure,
    calls: Sequence[CallBar],
    placed: Sequence[int],
    top: Mapping[int, float],
    labels: Mapping[str, str],
    view: tuple[float, float],
    theme: Theme,
) -> None:
    groups: dict[str, list[tuple[CallBar, float]]] = defaultdict(list)
    for one, lane in zip(calls, placed, strict=True):
        y = top[one.rank] + _SEGMENT / 2 + _CALL * (lane + 0.5)
        groups[label_of(one.call, labels)].append((one, y))
    for label, found in groups.items():
        for waits in (True, False):
            shown = [
                (*((one.begin_ms, one.latest_ms) if waits else (one.latest_ms, one.end_ms)), one, y)
                for one, y in found
            ]
            shown = [row for row in shown if row[1] > row[0] and _seen(row[0], row[1], view)]
            if not shown:
                continue
            colour = call_colour(label)
            verb = "waits for the last rank" if waits else "moves bytes"
            hover = [
                [
                    f"rank {one.rank}, {one.call.kind.replace('_', '-')} "
                    f"{size(one.call.size_bytes or 0.0)}: {verb}",
                    time(end - begin),
                    time(begin),
                ]
                for begin, end, one, _ in shown
            ]
            figure.add_trace(
                _bars(
                    [(begin, end) for begin, end, _, _ in shown],
                    [y for *_, y in shown],
                    hover,
                    f"{label or 'no label'}, {verb}",
                    faded(colour, _PALE) if waits else colour,
                    0.72,
                    view,
                    theme,
                )
            )


def _seen(begin: float, end: float, view: tuple[float, float]) -> bool:
    return end > view[0] and begin < view[1]


def _bars(
    spans: Sequence[tuple[float, float]],
    rows: Sequence[float],
    hover: Sequence[Sequence[str]],
    name: str,
    colour: str,
    width: float,
    view: tuple[float, float],
    theme: Theme,
) -> Any:
    low = [max(begin, view[0]) for begin, _ in spans]
    high = [min(end, view[1]) for _, end in spans]
    return sideways_bars(
        low,
        [b - a for a, b in zip(low, high, strict=True)],
        list(rows),
        name,
        {"color": colour, "line": line(theme.page, 0.5)},
        width=width,
        showlegend=False,
        customdata=[list(row) for row in hover],
        hovertemplate="%{customdata[0]}<br><b>%{customdata[1]}</b> from %{customdata[2]}<extra></extra>",
    )
