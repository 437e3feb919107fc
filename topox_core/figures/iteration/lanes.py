"""Where things sit on a Gantt chart: lanes by server; a whole iteration as a small image, alone or beside others; ports in use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    DARK,
    IDLE,
    VERMILION,
    Theme,
    categories,
    category_words,
    traffic,
)
from topox_core.figures.template import (
    DOTS,
    LANE_LEFT,
    LANE_RIGHT,
    Look,
    axis,
    box,
    frame,
    hatch,
    line,
    margins,
    ms_axis,
    named_axis,
    note,
    time_axis,
    time_image,
    upright,
)
from topox_core.model.arrays.csr import ranges
from topox_core.model.execution import Circuits, Execution, ports_in_use
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, FloatArray, IntArray
from topox_core.text.numbers import time

DEVICE_LANE, PORT_LANE, GAP = 1.0, 0.8, 0.45
PIXELS = 13.75  # a unit; makes a port lane 11 px, the least that reads
MAX_UNITS = 52.0  # lanes that fit a screen (about 720 px)
NO_TASK = -1


@dataclass(frozen=True)
class Bars:
    """All bars as arrays, ordered by start: compute tasks, circuits, dark stretches.

    ``row`` counts lanes within the server (devices, then ports); ``node`` is the task it belongs
    to; ``circuit`` the circuit's position or -1 for compute tasks.
    """

    server: IntArray
    row: IntArray
    category: NDArray[np.uint8]
    start_ms: FloatArray
    end_ms: FloatArray
    node: IntArray
    circuit: IntArray

    def __len__(self) -> int:
        return len(self.node)


@dataclass(frozen=True)
class Lanes:
    """The lanes of all servers, and where they are with ``first`` to ``last`` in view.

    Attributes
    ----------
    ports
        (Switch, port on it) of each.
    named
        What a server's lanes are called, where that is not by device and switch.
    letter
        What a server's number follows.
    """

    servers: int
    devices: int
    ports: tuple[tuple[int, int], ...]
    first: int = 0
    last: int = -1
    named: tuple[str, ...] = ()
    letter: str = "S"

    @property
    def rows(self) -> int:
        """Lanes a server."""
        return self.devices + len(self.ports)

    @property
    def unit_per_server(self) -> float:
        """Height of one server with the gap below it."""
        return self.devices * DEVICE_LANE + len(self.ports) * PORT_LANE + GAP

    @property
    def most_servers(self) -> int:
        """How many servers fit a screen."""
        return max(1, min(self.servers, int(MAX_UNITS / self.unit_per_server)))

    def showing(self, first: int, last: int) -> Lanes:
        """Return the same lanes with other servers in view."""
        first = max(0, min(first, self.servers - 1))
        return replace(self, first=first, last=max(first, min(last, self.servers - 1)))

    def top(self, server: int) -> float:
        """Return the y at which a server's lanes begin (y grows downwards)."""
        return (server - self.first) * self.unit_per_server

    def middle(self, server: IntArray, row: IntArray) -> FloatArray:
        """Return the y of the middle of lanes."""
        port = row - self.devices
        inside = np.where(
            port < 0,
            (row + 0.5) * DEVICE_LANE,
            self.devices * DEVICE_LANE + (port + 0.5) * PORT_LANE,
        )
        return np.asarray((server - self.first) * self.unit_per_server + inside, np.float64)

    def names(self) -> list[str]:
        """Return the short names of a server's lanes: gpu, sw0, sw1."""
        if self.named:
            return list(self.named)
        devices = ["gpu"] if self.devices == 1 else [f"gpu{d}" for d in range(self.devices)]
        several = max((port for _, port in self.ports), default=0) > 0
        return devices + [
            f"sw{switch}.{port}" if several else f"sw{switch}" for switch, port in self.ports
        ]


def lanes_of(execution: Execution) -> Lanes:
    """Return all devices and ports as lanes; of more than eight ports only those in use.

    Where no transfer is carried by a circuit, a server has one lane for all that it sends.
    """
    circuits, cluster = execution.circuits, execution.cluster
    used = set(zip(circuits.switch.tolist(), circuits.source_port.tolist(), strict=True))
    each = max(1, cluster.ports_per_server // cluster.switches)
    ports = (
        {(r, p) for r in range(cluster.switches) for p in range(each)}
        if cluster.switches * each <= 8
        else set()
    )
    devices = max(
        cluster.devices_per_server if cluster.devices_per_server <= 8 else 1,
        int(execution.graph.device[execution.graph.kind == COMPUTE].max(initial=0)) + 1,
    )
    lanes = Lanes(cluster.servers, devices, tuple(sorted(used | ports)))
    if not used:
        lanes = replace(lanes, ports=((0, 0),), named=(*lanes.names()[:devices], "out"))
    return lanes.showing(0, lanes.most_servers - 1)


def sent_at_once(execution: Execution) -> Execution:
    """Return an execution without circuits as if each server had one port that may send several transfers at once.

    Only to draw it; one with circuits is returned as it is.
    """
    graph = execution.graph
    if len(execution.circuits):
        return execution
    found = np.flatnonzero((graph.kind == TRANSFER) & (execution.end_ms > execution.start_ms))
    moves = found[np.argsort(execution.start_ms[found], kind="stable")].astype(np.int32)
    zero, start = np.zeros(len(moves), np.int32), execution.start_ms[moves]
    ends = graph.source[moves], graph.destination[moves]
    times = start, start, execution.end_ms[moves]
    return replace(execution, circuits=Circuits(moves, zero, zero, zero, zero > 0, *ends, *times))


def bars_of(execution: Execution, lanes: Lanes) -> Bars:
    """Return every bar: compute tasks on devices, circuits and dark stretches on ports."""
    graph, circuits = execution.graph, execution.circuits
    category = categories(graph)
    compute = np.flatnonzero(
        (graph.kind == COMPUTE) & (execution.end_ms > execution.start_ms)
    ).astype(np.int32)
    row_of = {port: lanes.devices + i for i, port in enumerate(lanes.ports)}
    rows = np.fromiter(
        (
            row_of[p]
            for p in zip(circuits.switch.tolist(), circuits.source_port.tolist(), strict=True)
        ),
        np.int32,
        len(circuits),
    )
    dark, dark_begin, dark_end = circuits.dark_times(execution.makespan_ms)
    dark = dark.astype(np.int32)
    parts = [
        (
            graph.server[compute],
            graph.device[compute],
            category[compute],
            execution.start_ms[compute],
            execution.end_ms[compute],
            compute,
            np.full(len(compute), NO_TASK, np.int32),
        ),
        (
            circuits.source,
            rows,
            np.where(
                category[circuits.node] == IDLE, category.dtype.type(4), category[circuits.node]
            ),
            circuits.start_ms,
            circuits.end_ms,
            circuits.node,
            np.arange(len(circuits), dtype=np.int32),
        ),
        (
            circuits.source[dark],
            rows[dark],
            np.full(len(dark), DARK, np.uint8),
            dark_begin,
            dark_end,
            circuits.node[dark],
            dark,
        ),
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[3], kind="stable")
    return Bars(*(column[order] for column in columns))


def first_window(
    bars: Bars, lanes: Lanes, makespan_ms: float, slot_ms: float, target: int = 600
) -> tuple[float, float]:
    """Return the first window: all, or up to where ``target`` bars in view have begun."""
    start = bars.start_ms[(bars.server >= lanes.first) & (bars.server <= lanes.last)]
    if len(start) <= target or makespan_ms <= 0:
        return 0.0, makespan_ms
    end = float(start[target])
    step = 10.0 ** np.floor(np.log10(max(end, makespan_ms / 1000)))
    end = max(float(np.ceil(end / step * 2) * step / 2), min(slot_ms, makespan_ms))
    return 0.0, min(end, makespan_ms)


COLUMNS = 900
MAX_ROWS = 104  # about as many as the picture has pixels: more would be dropped row by row
# Two rows per server: those of eight servers can be told apart, more are folded into as many.
MAX_STRIP_ROWS = 16


def paint(
    image: NDArray[np.uint8],
    row: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    colour: NDArray[np.uint8],
) -> None:
    """Paint intervals of columns, at least one wide, into rows of an image, all at once."""
    columns = image.shape[1]
    start = np.clip(start, 0, columns - 1)
    length = np.maximum(np.clip(end, 0, columns) - start, 1)
    image.reshape(-1)[ranges(row * columns + start, length)] = np.repeat(colour, length)


def overview_image(
    bars: Bars, lanes: Lanes, makespan_ms: float, columns: int = COLUMNS
) -> tuple[NDArray[np.uint8], int]:
    """Return the image (0 idle, else what a bar means) and its rows a server, one of them a gap.

    Where a row for every lane would be too many, a server has one row for its devices and one for
    its ports; where that is too many, neighbouring servers share rows.
    """
    full = lanes.servers * (lanes.rows + 1) <= MAX_ROWS
    each = lanes.rows + 1 if full else 3
    row = bars.row if full else (bars.row >= lanes.devices).astype(np.int32)
    height = lanes.servers * each
    place = bars.server.astype(np.int64) * each + row
    if height > MAX_ROWS:
        place = place * MAX_ROWS // height
        each, height = 0, MAX_ROWS
    return _painted(bars, place, (height, columns), makespan_ms, dark_on_top=full), each


def strip_image(execution: Execution, until_ms: float) -> NDArray[np.uint8]:
    """Return one iteration as a small image that ends at ``until_ms``: 0 idle, else a category.

    Two rows per server: what its devices compute, and what leaves it, dark circuits included;
    neighbours share rows where there are many servers.
    """
    lanes = lanes_of(execution)
    bars = bars_of(sent_at_once(execution), lanes)
    height = min(2 * lanes.servers, MAX_STRIP_ROWS)
    # Where several servers share rows, devices stay on even ones and what leaves on odd ones.
    server = bars.server.astype(np.int64) * height // (2 * lanes.servers)
    place = 2 * server + (bars.row >= lanes.devices)
    return _painted(bars, place, (height, COLUMNS), until_ms, dark_on_top=False)


def image_keys(
    images: Iterable[NDArray[np.uint8]], parallelisms: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the colours that images of lanes hold, each with its words: they have no legend of their own."""
    drawn = sorted({int(category) for image in images for category in np.unique(image)})
    words = category_words(parallelisms)
    return [
        (CATEGORY_COLOURS[category], words[category]) for category in drawn if category in words
    ]


def _painted(
    bars: Bars, row: NDArray[np.int64], shape: tuple[int, int], until_ms: float, dark_on_top: bool
) -> NDArray[np.uint8]:
    """Return an image of bars in their rows, as far as they begin before its end.

    Dark stretches lie on top except where ports share a row: there they would hide the data beside.
    """
    image = np.zeros(shape, np.uint8)
    order = np.argsort((bars.category == DARK) == dark_on_top, kind="stable")
    order = order[bars.start_ms[order] < until_ms]
    per_ms = shape[1] / until_ms if until_ms > 0 else 0.0
    start = np.floor(bars.start_ms[order] * per_ms + 1e-6).astype(np.int64)
    end = np.round(bars.end_ms[order] * per_ms).astype(np.int64)
    paint(image, row[order], start, end, bars.category[order])
    return image


def overview(
    image: NDArray[np.uint8],
    each: int,
    lanes: Lanes,
    makespan_ms: float,
    window: tuple[float, float],
    theme: Theme,
) -> go.Figure:
    """Return the overview: what is outside the window is veiled, servers in view framed."""
    per_server = len(image) / lanes.servers
    top, bottom = (
        lanes.first * per_server - 0.5,
        (lanes.last + 1) * per_server - (1.5 if each else 0.5),
    )
    veil = {"yref": "paper", "fillcolor": theme.veil, "line": {"width": 0}}
    return frame(
        [overview_trace(image, makespan_ms, theme)],
        theme,
        overview_height(lanes, theme) + 26,
        [
            box(0, window[0], 0, 1, **veil),
            box(window[1], makespan_ms, 0, 1, **veil),
            box(*window, top, bottom, line=line(theme.ink, 1.5)),
        ],
        margin=margins(LANE_LEFT, LANE_RIGHT, 2, 24),
        xaxis=axis(theme, range=[0, makespan_ms or 1], nticks=10, tickformat=",~g"),
        yaxis=server_axis(len(image), lanes, theme),
    )


def overview_trace(image: NDArray[np.uint8], makespan_ms: float, theme: Theme) -> go.Heatmap:
    """Return the image in the colours of what a bar means."""
    colours = [theme.page, *(CATEGORY_COLOURS[category] for category in range(1, DARK + 1))]
    return time_image(image, colours, makespan_ms, y0=0, dy=1, zsmooth=False)


def overview_height(lanes: Lanes, theme: Theme) -> float:
    """Return how high the image is drawn, in px."""
    return float(np.clip(lanes.servers * 10, 78, 130)) * theme.scale


def server_axis(rows: int, lanes: Lanes, theme: Theme) -> Look:
    """Return the axis that names the servers of an image of so many rows, as many as have room."""
    every = max(1, int(np.ceil(11 * lanes.servers / overview_height(lanes, theme))))
    named = np.arange(0, lanes.servers, every)
    return named_axis(
        theme,
        [f"S{s}" for s in named],
        (named + 0.5) * rows / lanes.servers - 1,
        10,
        range=[rows - 0.5, -0.5],
    )


MAX_STEPS = 420


def step_edges(window: tuple[float, float], slot_ms: float) -> FloatArray:
    """Return the edges of steps: slot boundaries while they fit, else equal parts."""
    low, high = window
    first, last = np.ceil(low / slot_ms - 1e-9), np.floor(high / slot_ms + 1e-9)
    if 1 <= last - first <= MAX_STEPS:
        inner = np.arange(first, last + 1) * slot_ms
        edges: FloatArray = np.unique(
            np.concatenate(([low], inner[(inner > low) & (inner < high)], [high]))
        )
        return edges
    return np.linspace(low, high, MAX_STEPS + 1)


def port_use(execution: Execution, window: tuple[float, float], theme: Theme) -> go.Figure:
    """Return out-ports by what they carry (mean of each step), dark ones on top."""
    circuits, cluster = execution.circuits, execution.cluster
    total = cluster.servers * cluster.ports_per_server
    edges = step_edges(window, cluster.slot_ms)
    category = categories(execution.graph)[circuits.node]
    words = category_words(traffic(execution.graph))
    parts: list[tuple[str, str, dict[str, object] | None, FloatArray]] = [
        (
            words[kind],
            CATEGORY_COLOURS[kind],
            None,
            ports_in_use(
                circuits.start_ms[category == kind], circuits.end_ms[category == kind], edges
            ),
        )
        for kind in np.unique(category).tolist()
    ]
    _, dark_begin, dark_end = circuits.dark_times(execution.makespan_ms)
    parts.append(("dark", VERMILION, hatch(theme), ports_in_use(dark_begin, dark_end, edges)))
    layers = [
        go.Scatter(
            x=edges,
            # One closing point, so that the last step is drawn to its end.
            y=np.append(values, values[-1:]),
            name=name,
            stackgroup="ports",
            mode="lines",
            line={"shape": "hv", "width": 0 if pattern is None else 1, "color": colour},
            fillcolor=colour if pattern is None else None,
            fillpattern=pattern,
            hovertemplate="%{y:.3~g} out-ports: " + name + "<extra></extra>",
        )
        for name, colour, pattern, values in parts
        if values.any()
    ]
    peak = float(np.sum([values for _, _, _, values in parts], axis=0).max(initial=0.0))
    top = float(total) if peak > total / 4 else max(1.0, peak * 1.15)
    of_all = note(
        f"of {total:,} out-ports",
        1,
        1,
        10.5 * theme.scale,
        theme.muted,
        xref="paper",
        xanchor="right",
        yref="paper",
        yanchor="bottom",
    )
    return frame(
        layers,
        theme,
        112 * theme.scale,
        [of_all if top < total else None],
        hovermode="x unified",
        margin=margins(LANE_LEFT, LANE_RIGHT, 14, 24),
        xaxis=ms_axis(theme, window, 9),
        yaxis=axis(theme, grid=True, range=[0, top], nticks=4, tickformat=",~g", title="out-ports"),
    )


BEHIND_PX = 84  # room behind the longest run for its length


def on_one_clock(
    letter: str,
    makespan_ms: float,
    image: NDArray[np.uint8],
    lanes: Lanes,
    longest_ms: float,
    shortest_ms: float,
    theme: Theme,
) -> go.Figure:
    """Return a run's overview on the clock of the longest one, with a line where the shortest ends.

    One figure a run, all with the same clock and the same margins, so that they stand under one
    another like one chart.

    Parameters
    ----------
    letter, makespan_ms, image, lanes
        Of the run; the image as ``overview_image`` makes it.
    """
    # The run's own length, and its letter where the page has no room beside the figure.
    return frame(
        [overview_trace(image, makespan_ms, theme)],
        theme,
        overview_height(lanes, theme) + 26,
        [
            upright(shortest_ms, line(theme.ink, 1.5, DOTS)),
            note(
                f"<b>{letter}</b>&nbsp; {time(makespan_ms)}",
                makespan_ms,
                0.5,
                12.5 * theme.scale,
                theme.ink,
                xanchor="left",
                xshift=7,
                yref="paper",
            ),
        ],
        margin=margins(LANE_LEFT, BEHIND_PX * theme.scale, 2, 24),
        xaxis=time_axis(theme, max(longest_ms, 1e-9)),
        yaxis=server_axis(len(image), lanes, theme),
    )
