"""The Gantt chart of a window: bars by kind, dark circuits, the critical chain."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.iteration.lanes import DEVICE_LANE, GAP, PIXELS, PORT_LANE, Bars, Lanes
from topox_core.figures.palette import (
    BACKWARD,
    CATEGORY_COLOURS,
    CATEGORY_LETTER,
    CATEGORY_TEXT,
    DARK,
    EXPERT,
    FORWARD,
    GRADIENT,
    MODEL,
    SEND,
    UPDATE,
    Theme,
    category_words,
    traffic,
)
from topox_core.figures.template import (
    CLEAR,
    DOTS,
    INSIDE,
    LANE_LEFT,
    LANE_RIGHT,
    UNFADED,
    Look,
    band,
    frame,
    hatched,
    line,
    margins,
    ms_axis,
    named_axis,
    note,
    sideways_bars,
)
from topox_core.model.critical_path import CriticalPath
from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import FloatArray
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import short

# In the order of the legend.
COLOURED = (FORWARD, BACKWARD, UPDATE, SEND, GRADIENT, MODEL, EXPERT)
MAX_BARS = 5_000
PLOT_PX = 680.0  # width of the lanes on a laptop; decides which bars have room for text
MAX_SLOT_LINES = 60
Window = tuple[float, float]


@dataclass(frozen=True)
class _View:
    """What one chart shows: the bars within a window, and which nodes are critical."""

    execution: Execution
    bars: Bars
    lanes: Lanes
    window: Window
    critical: NDArray[np.bool_]
    theme: Theme
    words: Mapping[int, str]

    def ends(self, chosen: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return start and end of bars, clipped to the window."""
        start = np.maximum(self.bars.start_ms[chosen], self.window[0])
        return start, np.minimum(self.bars.end_ms[chosen], self.window[1])

    def middle(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return the y of the middle of bars."""
        return self.lanes.middle(self.bars.server[chosen], self.bars.row[chosen])

    def thickness(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Return how much of the y axis bars take."""
        ports = self.bars.row[chosen] >= self.lanes.devices
        return np.where(ports, PORT_LANE * 0.78, DEVICE_LANE * 0.86)


def in_view(bars: Bars, lanes: Lanes, window: Window) -> NDArray[np.intp]:
    """Return which bars touch the window and the servers in view."""
    low, high = window
    return np.flatnonzero(
        (bars.start_ms < high)
        & (bars.end_ms > low)
        & (bars.server >= lanes.first)
        & (bars.server <= lanes.last)
    )


def gantt(
    execution: Execution,
    bars: Bars,
    lanes: Lanes,
    window: Window,
    chain: CriticalPath | None,
    theme: Theme,
    words: Mapping[int, str] | None = None,
) -> go.Figure:
    """Return the Gantt chart of the servers in view: the first ``MAX_BARS`` bars.

    Bars are clipped to the window, so that labels centre in what is visible. ``customdata`` of a
    bar begins with its task's id.

    Parameters
    ----------
    words
        What bars of each category are called, where the bars of other kinds of work have its
        colours; it stands in their bars too.
    """
    chosen = in_view(bars, lanes, window)[:MAX_BARS]
    nodes = len(execution.graph)
    critical = chain.mask(nodes) if chain is not None else np.zeros(nodes, np.bool_)
    view = _View(execution, bars, lanes, window, critical, theme, words or {})
    names = {**category_words(traffic(execution.graph)), **view.words}
    layers = [
        _kind(view, of_kind, category, names[category])
        for category in (*COLOURED, DARK)
        if len(of_kind := chosen[bars.category[chosen] == category])
    ]
    if chain is not None:
        layers += _chain(view, chosen, chain)
    # Lanes are named, servers told apart by bands, and slots by a grid.
    servers = range(lanes.first, lanes.last + 1)
    edge = GAP / 2
    rows = np.tile(np.arange(lanes.rows, dtype=np.int32), len(servers))
    ticks = lanes.middle(np.repeat(np.array(servers, np.int32), lanes.rows), rows)
    slot = execution.cluster.slot_ms
    lines = {
        "dtick": slot,
        "tick0": 0,
        "showgrid": True,
        "gridcolor": theme.grid,
        "gridwidth": 1,
        "ticks": "",
    }
    in_window = (window[1] - window[0]) / slot
    return frame(
        layers,
        theme,
        len(servers) * lanes.unit_per_server * PIXELS * theme.scale + 64,
        [
            *(
                band(lanes.top(s) - edge, lanes.top(s) + lanes.unit_per_server - edge, theme.band)
                for s in servers
                if s % 2 == 0
            ),
            *(
                note(
                    f"<b>{lanes.letter}{s}</b>",
                    0,
                    lanes.top(s) + (lanes.unit_per_server - GAP) / 2,
                    12 * theme.scale,
                    theme.ink,
                    xref="paper",
                    xshift=-57,
                    xanchor="left",
                )
                for s in servers
            ),
        ],
        showlegend=True,
        margin=margins(LANE_LEFT, LANE_RIGHT, 32, 32),
        # What Streamlit sets for a chart whose bars can be clicked: a difference is a second drawing.
        clickmode="event+select",
        dragmode="pan",
        xaxis=ms_axis(
            theme,
            window,
            9,
            grid=in_window >= MAX_SLOT_LINES,
            minor=lines if in_window < MAX_SLOT_LINES else None,
            tickformat=",~g" if window[1] < 1e5 else ",d",
        ),
        yaxis=named_axis(
            theme,
            lanes.names() * len(servers),
            ticks,
            10,
            range=[(len(servers)) * lanes.unit_per_server - edge, -edge],
        ),
    )


def _kind(view: _View, of_kind: NDArray[np.intp], category: int, words: str) -> go.Bar:
    """Return the bars of one kind."""
    theme, window = view.theme, view.window
    start, end = view.ends(of_kind)
    style: Look = {
        "width": float(view.thickness(of_kind)[0]) * (0.5 if category == UPDATE else 1.0),
        # An array: plotly copies a nested list entry by entry, which took half of the drawing.
        "customdata": np.array(_facts(view, of_kind), dtype=object),
        "hovertemplate": HOVER,
        **INSIDE,
        **UNFADED,
    }
    if category == DARK:
        marker = hatched(theme)
    else:
        pixels = (end - start) * PLOT_PX / max(window[1] - window[0], 1e-9)
        # An outline in the page's colour parts neighbours; on bars of a pixel or two it would
        # paint them over.
        parted = float(np.mean(pixels < 3)) < 0.1
        edge = "#7A6A00" if category == MODEL and theme.name == "light" else theme.page
        marker = {"color": CATEGORY_COLOURS[category], "line": line(edge, 1 if parted else 0)}
        style["text"] = _labels(view, of_kind, category, pixels)
        style["textfont"] = {"size": 10.5 * view.theme.scale, "color": CATEGORY_TEXT[category]}
    return sideways_bars(start, end - start, view.middle(of_kind), words, marker, **style)


def name_kinds_elsewhere(figure: go.Figure, execution: Execution, bars: Bars) -> None:
    """Add to a Gantt chart's legend the kinds of bars that only its overview shows, outside the window."""
    words, drawn = category_words(traffic(execution.graph)), {trace.name for trace in figure.data}
    figure.add_traces(
        [
            go.Bar(
                x=[None],
                y=[None],
                name=words[category],
                marker={"color": CATEGORY_COLOURS[category]},
            )
            for category in COLOURED
            if words[category] not in drawn and (bars.category == category).any()
        ]
    )


HOVER = (
    "<b>%{customdata[0]}</b>  %{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]} to %{customdata[4]} ms, "
    "%{customdata[5]} ms%{customdata[6]}<extra></extra>"
)


def _labels(view: _View, of_kind: NDArray[np.intp], category: int, pixels: FloatArray) -> list[str]:
    """Return a letter (compute) or the number of the other end (transfer) where it fits."""
    circuits, here = view.execution.circuits, view.bars.circuit[of_kind]
    if category in CATEGORY_LETTER:
        words = [view.words.get(category, CATEGORY_LETTER[category])] * len(of_kind)
    else:
        leaves = circuits.source[here] == view.bars.server[of_kind]
        source, to = circuits.source[here].tolist(), circuits.destination[here].tolist()
        words = [str(b) if out else f"← {a}" for a, b, out in zip(source, to, leaves, strict=True)]
    return [
        one if px >= 6.5 * (1 + len(one)) else ""
        for one, px in zip(words, pixels.tolist(), strict=True)
    ]


def _facts(view: _View, of_kind: NDArray[np.intp]) -> list[list[str]]:
    """Return what hovering over bars says."""
    graph, circuits, bars = view.execution.graph, view.execution.circuits, view.bars
    names, letter, rows = view.lanes.names(), view.lanes.letter, []
    columns = (
        bars.node,
        bars.circuit,
        bars.server,
        bars.row,
        bars.start_ms,
        bars.end_ms,
        bars.category,
    )
    for node, circuit, server, row, start, end, category in zip(
        *(column[of_kind].tolist() for column in columns), strict=True
    ):
        place = f"{letter}{server} {names[row]}"
        if circuit >= 0:
            source, to = circuits.source[circuit], circuits.destination[circuit]
            on = "" if view.lanes.named else f" on switch {circuits.switch[circuit]}"
            place = f"{letter}{source} → {letter}{to}{on}"
        kind = f"{graph.task_kind[node]} {graph.parallelism[node]}".strip().replace("_", " ")
        rows.append(
            [
                escape_untrusted(graph.ids[node], "figure"),
                "dark: being set up" if category == DARK else view.words.get(category, kind),
                place,
                f"{start:.9g}",
                f"{end:.9g}",
                f"{end - start:.6g}",
                ", critical" if view.critical[node] else "",
            ]
        )
    return rows


def _chain(view: _View, chosen: NDArray[np.intp], chain: CriticalPath) -> list[Any]:
    """Return an outline of the chain's bars, dark stretches on it included, and the dotted lines that join them."""
    begin = np.full(len(view.execution.graph), np.inf)
    begin[chain.nodes] = chain.begin_ms
    critical = chosen[view.bars.end_ms[chosen] > begin[view.bars.node[chosen]] + 1e-9]
    start, end = view.ends(critical)
    outlines = sideways_bars(
        start,
        end - start,
        view.middle(critical),
        "critical path",
        {"color": CLEAR, "line": line(view.theme.ink, 2)},
        width=view.thickness(critical),
        hoverinfo="skip",
    )
    x, y = _connectors(view, chain)
    joins = go.Scatter(
        x=x,
        y=y,
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        name="critical path, joins",
        line=line(view.theme.ink, 1.25, DOTS),
    )
    return [outlines if len(critical) else None, joins if x else None]


def _connectors(view: _View, chain: CriticalPath) -> tuple[list[float | None], list[float | None]]:
    """Return the dotted lines from the end of each link of the chain to the next lane."""
    bars, lanes, (low, high) = view.bars, view.lanes, view.window
    on = np.flatnonzero(view.critical[bars.node])
    nodes, first = np.unique(bars.node[on], return_index=True)
    height = dict(zip(nodes.tolist(), view.middle(on[first]).tolist(), strict=True))
    bottom = lanes.top(lanes.last + 1)
    links = zip(chain.nodes.tolist(), chain.begin_ms.tolist(), strict=True)
    x: list[float | None] = []
    y: list[float | None] = []
    for (before, _), (after, begin) in pairwise(one for one in links if one[0] in height):
        here, there = height[before], height[after]
        seen = min(here, there) >= 0 and max(here, there) <= bottom and low <= begin <= high
        if seen and here != there:
            x += [max(min(float(view.execution.end_ms[before]), begin), low), begin, begin, None]
            y += [here, here, there, None]
    return x, y


def window_words(window: Window, bars_in_view: int) -> str:
    """Return the note under a chart that could not draw everything, or an empty string."""
    if bars_in_view <= MAX_BARS:
        return ""
    return (
        f"The first {MAX_BARS:,} of {bars_in_view:,} bars between {short(window[0])} and {short(window[1])} ms are drawn: "
        "narrow the time window to see the rest."
    )
