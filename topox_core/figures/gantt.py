"""The Gantt chart of a window: bars by kind, dark circuits, the critical chain."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.lanes import DEVICE_LANE, GAP, PORT_LANE, Bars, Lanes
from topox_core.figures.palette import (
    BACKWARD,
    DARK,
    EXPERT,
    FORWARD,
    GRADIENT,
    LOOK_COLOURS,
    LOOK_LETTER,
    LOOK_TEXT,
    MODEL,
    SEND,
    UPDATE,
    VERMILION,
    Theme,
    look_words,
    traffic,
)
from topox_core.figures.template import LANE_LEFT, LANE_RIGHT, axis, frame
from topox_core.model.execution import Execution
from topox_core.model.measures import CriticalChain
from topox_core.model.transfer_graph import FloatArray
from topox_core.text.numbers import short

MOST_BARS = 5_000
PLOT_PX = 680.0  # width of the lanes on a laptop; decides which bars have room for text
MOST_SLOT_LINES = 60
Window = tuple[float, float]


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
    chain: CriticalChain | None,
    theme: Theme,
    scale: float = 1.0,
) -> go.Figure:
    """Return the Gantt chart of the servers in view; at most ``MOST_BARS`` bars, the earliest first.

    Bars are clipped to the window, so that labels centre in what is visible. ``customdata`` of a
    bar begins with its task's id.
    """
    chosen = in_view(bars, lanes, window)[:MOST_BARS]
    figure = go.Figure()
    on_chain = (
        chain.mask(len(execution.graph))
        if chain is not None
        else np.zeros(len(execution.graph), np.bool_)
    )
    words = look_words(traffic(execution.graph))
    for look in (FORWARD, BACKWARD, UPDATE, SEND, GRADIENT, MODEL, EXPERT, DARK):
        of_kind = chosen[bars.look[chosen] == look]
        if len(of_kind):
            figure.add_trace(
                _kind(
                    execution,
                    bars,
                    of_kind,
                    look,
                    words[look],
                    lanes,
                    window,
                    on_chain,
                    theme,
                    scale,
                )
            )
    if chain is not None:
        _add_chain(figure, execution, bars, chosen, lanes, window, chain, theme)
    return _framed(figure, execution, lanes, window, theme, scale)


def _kind(
    execution: Execution,
    bars: Bars,
    of_kind: NDArray[np.intp],
    look: int,
    words: str,
    lanes: Lanes,
    window: Window,
    on_chain: NDArray[np.bool_],
    theme: Theme,
    scale: float,
) -> go.Bar:
    start = np.maximum(bars.start_ms[of_kind], window[0])
    end = np.minimum(bars.end_ms[of_kind], window[1])
    ports = bars.row[of_kind] >= lanes.devices
    width = np.where(ports, PORT_LANE * 0.78, DEVICE_LANE * 0.86) * (0.5 if look == UPDATE else 1.0)
    common: dict[str, Any] = {
        "orientation": "h",
        "x": end - start,
        "base": start,
        "y": lanes.middle(bars.server[of_kind], bars.row[of_kind]),
        "width": float(width[0]),
        "name": words,
        "showlegend": True,
        "textposition": "inside",
        "insidetextanchor": "middle",
        "constraintext": "none",
        "textangle": 0,
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
        "customdata": _facts(execution, bars, of_kind, lanes, on_chain),
        "hovertemplate": HOVER,
    }
    if look == DARK:
        return go.Bar(
            **common,
            marker={
                "color": "rgba(0,0,0,0)",
                "line": {"color": VERMILION, "width": 1},
                "pattern": {
                    "shape": "/",
                    "size": 5,
                    "solidity": 0.45,
                    "fgcolor": VERMILION,
                    "bgcolor": theme.page,
                },
            },
        )
    pixels = (end - start) * PLOT_PX / max(window[1] - window[0], 1e-9)
    # An outline in the page's colour parts neighbours; on bars of a pixel or two it would paint
    # them over.
    parted = float(np.mean(pixels < 3)) < 0.1
    line = {
        "color": "#7A6A00" if look == MODEL and theme.name == "light" else theme.page,
        "width": 1 if parted else 0,
    }
    labels = _labels(execution, bars, of_kind, look, pixels)
    return go.Bar(
        **common,
        text=labels,
        textfont={"size": 10.5 * scale, "color": LOOK_TEXT[look]},
        marker={"color": LOOK_COLOURS[look], "line": line},
    )


HOVER = (
    "<b>%{customdata[0]}</b>  %{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]} to %{customdata[4]} ms, "
    "%{customdata[5]} ms%{customdata[6]}<extra></extra>"
)


def _labels(
    execution: Execution, bars: Bars, of_kind: NDArray[np.intp], look: int, pixels: FloatArray
) -> list[str]:
    """Return a letter (compute) or the destination's number (transfer) where it fits."""
    if look in LOOK_LETTER:
        return [LOOK_LETTER[look] if wide else "" for wide in (pixels >= 13).tolist()]
    destination = execution.circuits.destination[bars.circuit[of_kind]].tolist()
    return [
        str(d) if px >= 7 + 6.5 * len(str(d)) else ""
        for d, px in zip(destination, pixels.tolist(), strict=True)
    ]


def _facts(
    execution: Execution,
    bars: Bars,
    of_kind: NDArray[np.intp],
    lanes: Lanes,
    on_chain: NDArray[np.bool_],
) -> list[list[str]]:
    graph, circuits = execution.graph, execution.circuits
    names = lanes.names()
    rows = []
    columns = (
        bars.node,
        bars.circuit,
        bars.server,
        bars.row,
        bars.start_ms,
        bars.end_ms,
        bars.look,
    )
    for node, circuit, server, row, start, end, look in zip(
        *(column[of_kind].tolist() for column in columns), strict=True
    ):
        place = f"S{server} {names[row]}"
        if circuit >= 0:
            place = (
                f"S{server} → S{circuits.destination[circuit]} on switch {circuits.switch[circuit]}"
            )
        kind = f"{graph.task_kind[node]} {graph.parallelism[node]}".strip().replace("_", " ")
        what = "dark: being set up" if look == DARK else kind
        rows.append(
            [
                graph.ids[node],
                what,
                place,
                f"{start:.9g}",
                f"{end:.9g}",
                f"{end - start:.6g}",
                ", critical" if on_chain[node] else "",
            ]
        )
    return rows


def _add_chain(
    figure: go.Figure,
    execution: Execution,
    bars: Bars,
    chosen: NDArray[np.intp],
    lanes: Lanes,
    window: Window,
    chain: CriticalChain,
    theme: Theme,
) -> None:
    """Outline the chain's bars, dark stretches on it included, and join them with dotted lines."""
    begin = np.full(len(execution.graph), np.inf)
    begin[chain.nodes] = chain.begin_ms
    critical = chosen[bars.end_ms[chosen] > begin[bars.node[chosen]] + 1e-9]
    if len(critical):
        ports = bars.row[critical] >= lanes.devices
        start = np.maximum(bars.start_ms[critical], window[0])
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=start,
                x=np.minimum(bars.end_ms[critical], window[1]) - start,
                y=lanes.middle(bars.server[critical], bars.row[critical]),
                width=np.where(ports, PORT_LANE * 0.78, DEVICE_LANE * 0.86),
                name="critical path",
                showlegend=True,
                hoverinfo="skip",
                marker={"color": "rgba(0,0,0,0)", "line": {"color": theme.ink, "width": 2}},
            )
        )
    x, y = _connectors(execution, bars, lanes, window, chain)
    if x:
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                mode="lines",
                hoverinfo="skip",
                showlegend=False,
                name="critical path, joins",
                line={"color": theme.ink, "width": 1.25, "dash": "2px,3px"},
            )
        )


def _connectors(
    execution: Execution, bars: Bars, lanes: Lanes, window: Window, chain: CriticalChain
) -> tuple[list[float | None], list[float | None]]:
    """Return the dotted lines from the end of each link of the chain, along time, to the lane of the next."""
    where: dict[int, tuple[int, int]] = {}
    on = np.flatnonzero(chain.mask(len(execution.graph))[bars.node])
    for node, server, row in zip(
        bars.node[on].tolist(), bars.server[on].tolist(), bars.row[on].tolist(), strict=True
    ):
        where.setdefault(node, (server, row))
    steps = [
        (node, begin)
        for node, begin in zip(chain.nodes.tolist(), chain.begin_ms.tolist(), strict=True)
        if node in where
    ]
    x: list[float | None] = []
    y: list[float | None] = []
    for (before, _), (after, begin) in pairwise(steps):
        end = float(execution.end_ms[before])
        pair = (where[before], where[after])
        if pair[0] == pair[1] or begin < window[0] or begin > window[1]:
            continue
        if any(not lanes.first <= server <= lanes.last for server, _ in pair):
            continue
        high, low = (
            float(lanes.middle(np.array([s], np.int32), np.array([r], np.int32))[0])
            for s, r in pair
        )
        x += [max(min(end, begin), window[0]), begin, begin, None]
        y += [high, high, low, None]
    return x, y


def _framed(
    figure: go.Figure,
    execution: Execution,
    lanes: Lanes,
    window: Window,
    theme: Theme,
    scale: float,
) -> go.Figure:
    servers = range(lanes.first, lanes.last + 1)
    names = lanes.names()
    bands = [
        {
            "type": "rect",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": lanes.top(s) - GAP / 2,
            "layer": "below",
            "y1": lanes.top(s) + lanes.unit_per_server - GAP / 2,
            "fillcolor": theme.band,
            "line": {"width": 0},
        }
        for s in servers
        if s % 2 == 0
    ]
    titles = [
        {
            "xref": "paper",
            "x": 0,
            "xshift": -57,
            "xanchor": "left",
            "showarrow": False,
            "text": f"<b>S{s}</b>",
            "y": lanes.top(s) + (lanes.unit_per_server - GAP) / 2,
            "font": {"size": 12 * scale, "color": theme.ink},
        }
        for s in servers
    ]
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
    height = lanes.height * scale + 64
    return frame(
        figure,
        theme,
        height,
        scale,
        showlegend=True,
        shapes=bands,
        annotations=titles,
        margin={"l": LANE_LEFT, "r": LANE_RIGHT, "t": 32, "b": 32, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            grid=in_window >= MOST_SLOT_LINES,
            range=list(window),
            ticksuffix=" ms",
            nticks=9,
            minor=lines if in_window < MOST_SLOT_LINES else None,
            tickformat=",~g" if window[1] < 1e5 else ",d",
        ),
        yaxis=axis(
            theme,
            scale,
            range=[(len(servers)) * lanes.unit_per_server - GAP / 2, -GAP / 2],
            tickvals=ticks,
            ticktext=names * len(servers),
            ticks="",
            tickfont={"size": 10 * scale, "color": theme.muted},
        ),
    )


def window_words(window: Window, bars_in_view: int) -> str:
    """Return the note under a chart that could not draw everything, or an empty string."""
    if bars_in_view <= MOST_BARS:
        return ""
    return (
        f"The first {MOST_BARS:,} of {bars_in_view:,} bars between {short(window[0])} and {short(window[1])} ms are drawn: "
        "narrow the time window to see the rest."
    )
