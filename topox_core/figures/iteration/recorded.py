"""Figures of a recorded run: its steps, its lanes on one clock, its iteration at other network speeds."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from topox_core.figures.builders import Bar, Point, bars, chart, curve, dots, marked_across
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
    Figure,
    Layer,
    Look,
    axis,
    band,
    frame,
    line,
    log_axis,
    margins,
    named_axis,
    opaque,
    roomy,
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


def steps(rows: Sequence[StepTime], chosen: int, theme: Theme) -> Figure:
    """Return the steps of a recording as bars, the network's part on top, the chosen one outlined; a click is told the step."""
    network = [max(0.0, one.recorded_ms - one.free_ms) for one in rows]
    labelled = len(rows) <= LABELLED_STEPS
    whole = [
        Bar(
            k,
            one.recorded_ms,
            f"step {one.words}: {time(one.recorded_ms)}, of it network at most {time(part_ms)}",
            text=short(one.recorded_ms) if labelled else "",
            key=one.words,
        )
        for k, (one, part_ms) in enumerate(zip(rows, network, strict=True))
    ]
    parted = [
        (one._replace(text="", length=one.length - part_ms), part_ms)
        for one, part_ms in zip(whole, network, strict=True)
    ]
    free = [one for one, _ in parted]
    on_top = [one._replace(length=part_ms, start=one.length) for one, part_ms in parted]
    outline = {"color": theme.ink, "width": [2 if r.number == chosen else 0 for r in rows]}
    standing: Look = {"standing": True, **UNFADED}
    every = max(1, math.ceil(len(rows) / LABELLED_STEPS))
    return chart(
        [
            bars("without the network", theme.primary, free, theme, 0.7, **standing),
            bars("network at most", faded(theme.primary, _PALE), on_top, theme, 0.7, **standing),
            bars("", {"color": CLEAR, "line": outline}, whole, theme, 0.7, **standing),
        ],
        theme,
        190,
        axis(
            theme,
            range=[-0.6, max(len(rows), 4) - 0.4],
            tickvals=list(range(0, len(rows), every)),
            ticktext=[one.words for one in rows[::every]],
            title="step of the profiler",
        ),
        axis(
            theme,
            grid=True,
            range=[0, 1.18 * max((one.recorded_ms for one in rows), default=1.0)],
            nticks=4,
            tickformat=",~g",
            title="ms",
        ),
    )


def speed_curve(
    points: Sequence[tuple[float, float]],
    now: tuple[float, float],
    recorded_ms: float,
    free_ms: float,
    theme: Theme,
) -> Figure:
    """Return the iteration over the network's speed, the current point, the recorded time as a line.

    Parameters
    ----------
    points, now
        (Gbit/s, ms).
    """
    ordered = sorted({*points, now})
    slowest, fastest = ordered[0][0], max(ordered[-1][0], 1.26 * ordered[0][0])
    highest = max(*(ms for _, ms in ordered), recorded_ms)
    low, high, _ = roomy((min(free_ms, recorded_ms), highest), 0.15, 0.12)
    return chart(
        [
            curve(
                "",
                [Point(gbps, ms, f"{gbps:,g} Gbit/s: {time(ms)}") for gbps, ms in ordered],
                line(theme.primary, 2.4),
                theme,
                mark="circle",
                size=6,
            ),
            dots(
                "",
                [Point(*now, f"now {now[0]:,g} Gbit/s: {time(now[1])}")],
                opaque(13 * theme.scale, theme.primary, line=line(theme.ink, 1.5)),
                theme,
            ),
        ],
        theme,
        240,
        log_axis(
            theme,
            slowest,
            fastest,
            "{:,g}".format,
            0.06,
            title="network speed of a server, Gbit/s (log)",
        ),
        axis(
            theme,
            grid=True,
            range=[max(0.0, low), high],
            nticks=5,
            tickformat=",~g",
            title="iteration, ms",
        ),
        marked_across(
            recorded_ms, f"recorded {time(recorded_ms)}", line(theme.ink, 1.4, "6px,3px"), theme
        ),
    )


def lanes(
    graph: RunGraph,
    ranks: Sequence[int],
    labels: Mapping[str, str],
    view: tuple[float, float],
    theme: Theme,
) -> Figure:
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
    computed = [one for one in graph.nodes if not one.is_call and one.ranks[0] in top]
    segments = [
        _bars(
            [
                (
                    one.end_ms - one.duration_ms,
                    one.end_ms,
                    top[one.ranks[0]],
                    f"rank {one.ranks[0]}, {one.kind}",
                )
                for one in computed
                if one.kind == kind or (kind == "forward" and one.kind not in KIND_COLOURS)
            ],
            kind,
            colour,
            0.86 if kind != "update" else 0.5,
            view,
            theme,
        )
        for kind, colour in KIND_COLOURS.items()
    ]
    rows = [(top[rank], f"<b>R{rank}</b> gpu") for rank in ranks]
    rows += [(top[rank] + (_SEGMENT + deep * _CALL) / 2, "calls") for rank in ranks]
    whole = len(ranks) * pitch
    return frame(
        [
            *segments,
            *_calls(calls, placed, top, labels, view, theme),
        ],
        theme,
        (max(90, 19 * whole) + 60) * theme.scale,
        [band(top[rank] - 0.6, top[rank] - 0.6 + pitch, theme.band) for rank in ranks[::2]],
        margin=margins(LANE_LEFT, LANE_RIGHT, 4, 42 * theme.scale),
        xaxis=axis(
            theme,
            grid=True,
            range=list(view),
            nticks=7,
            tickformat=",~g",
            title="ms from the start of the step, one clock for all ranks",
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


def _calls(
    calls: Sequence[CallBar],
    placed: Sequence[int],
    top: Mapping[int, float],
    labels: Mapping[str, str],
    view: tuple[float, float],
    theme: Theme,
) -> list[Layer]:
    groups: dict[str, list[tuple[CallBar, float, str]]] = defaultdict(list)
    for one, lane in zip(calls, placed, strict=True):
        y = top[one.rank] + _SEGMENT / 2 + _CALL * (lane + 0.5)
        kind = one.call.kind.replace("_", "-")
        words = f"rank {one.rank}, {kind} {size(one.call.size_bytes or 0.0)}"
        groups[label_of(one.call, labels)].append((one, y, words))
    traces = []
    for label, found in groups.items():
        waits, moves = "waits for the last rank", "moves bytes"
        colour, name = call_colour(label), label or "no label"
        early = [(one.begin_ms, one.latest_ms, y, f"{what}: {waits}") for one, y, what in found]
        late = [(one.latest_ms, one.end_ms, y, f"{what}: {moves}") for one, y, what in found]
        traces += [
            _bars(early, f"{name}, {waits}", faded(colour, _PALE), 0.72, view, theme),
            _bars(late, f"{name}, {moves}", colour, 0.72, view, theme),
        ]
    return traces


def _bars(
    spans: Sequence[tuple[float, float, float, str]],
    name: str,
    colour: str,
    width: float,
    view: tuple[float, float],
    theme: Theme,
) -> Layer:
    """Return those (begin in ms, end in ms, y, words) that are seen, clipped to the view; None if none is."""
    seen = [
        Bar(
            y,
            min(end, view[1]) - max(begin, view[0]),
            f"{words}<br><b>{time(end - begin)}</b> from {time(begin)}",
            max(begin, view[0]),
        )
        for begin, end, y, words in spans
        if end > max(begin, view[0]) and begin < view[1]
    ]
    look = {"color": colour, "line": line(theme.page, 0.5)}
    return bars(name, look, seen, theme, width, showlegend=False)
