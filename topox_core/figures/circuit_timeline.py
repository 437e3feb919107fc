"""Circuits over the iteration: which circuit every out-port holds, and changes slot by slot."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.circuit_matrix import SWITCH_COLOURS
from topox_core.figures.overview import COLUMNS, paint
from topox_core.figures.palette import VERMILION, Theme
from topox_core.figures.slot_state import SlotState, changes_a_slot
from topox_core.figures.template import (
    INSIDE,
    LANE_LEFT,
    LANE_RIGHT,
    axis,
    frame,
    hatched,
    line,
    margins,
    ms_axis,
    named_axis,
    sideways_bars,
    time_image,
    upright,
)
from topox_core.model.execution import Execution
from topox_core.model.measures import ports_in_use
from topox_core.model.transfer_graph import FloatArray
from topox_core.text.foreign import escape_untrusted

MOST_LABELLED = 3_000
MOST_BAR_ROWS = 64


def port_rows(
    execution: Execution, switch: int | None
) -> tuple[NDArray[np.int64], list[tuple[int, int, int]]]:
    """Return each circuit's row (-1: another switch), and (server, switch, port) of each row."""
    circuits, cluster = execution.circuits, execution.cluster
    each = max(
        1,
        cluster.ports_per_server // cluster.switches,
        int(circuits.source_port.max(initial=0)) + 1,
    )
    switches = range(cluster.switches) if switch is None else [switch]
    rows = [(s, r, p) for s in range(cluster.servers) for r in switches for p in range(each)]
    source = circuits.source.astype(np.int64)
    if switch is None:
        return (source * cluster.switches + circuits.switch) * each + circuits.source_port, rows
    return np.where(circuits.switch == switch, source * each + circuits.source_port, -1), rows


def ports_over_time(
    execution: Execution, state: SlotState, switch: int | None, theme: Theme
) -> go.Figure:
    """Return every out-port over the iteration: an image, or bars for one switch alone."""
    row, rows = port_rows(execution, switch)
    shown = np.flatnonzero(row >= 0)
    if switch is not None and len(shown) <= MOST_LABELLED and len(rows) <= MOST_BAR_ROWS:
        figure = go.Figure(_bars(execution, switch, row, shown, theme))
        several = any(port for _, _, port in rows)
        every = max(1, len(rows) // 32)
        names = [f"S{s}.{p}" if several else f"S{s}" for s, _, p in rows][::every]
        span = [len(rows) - 0.5, -0.5]
        names_axis = named_axis(theme, names, np.arange(0, len(rows), every), 10, range=span)
        pixels = float(np.clip(len(rows) * 18, 120, 420)) * theme.scale
        return _over_time(figure, execution, state, theme, pixels, names_axis)
    servers = execution.cluster.servers
    each = len(rows) // servers
    gap = 1 if each > 1 and len(rows) <= 400 else 0
    height = len(rows) + gap * servers
    fold = max(1, -(-height // 640))
    z = np.zeros((-(-height // fold), COLUMNS), np.uint8)
    _paint_circuits(z, execution, shown, (row[shown] + gap * (row[shown] // each)) // fold)
    colours = [theme.page, *(theme.switch_colour(r) for r in range(SWITCH_COLOURS)), VERMILION]
    pixels = 236 * theme.scale
    named = np.arange(0, servers, max(1, int(np.ceil(11 * servers / pixels))))
    ticks = ((named + 0.5) * (each + gap) - gap / 2) / fold - 0.5
    span = [len(z) - 0.5, -0.5]
    names_axis = named_axis(theme, [f"S{s}" for s in named], ticks, 10, range=span)
    figure = go.Figure(time_image(z, colours, execution.makespan_ms or 1.0))
    return _over_time(figure, execution, state, theme, pixels, names_axis)


def _paint_circuits(
    z: NDArray[np.uint8], execution: Execution, shown: NDArray[np.intp], row: NDArray[np.int64]
) -> None:
    """Paint circuits into rows of an image in their switch's colour, then their dark time."""
    circuits = execution.circuits
    per_ms = z.shape[1] / (execution.makespan_ms or 1.0)
    which, *dark = _dark(execution, shown)
    start, end, dark_begin, dark_end = (
        np.round(time_ms * per_ms).astype(np.int64)
        for time_ms in (circuits.start_ms[shown], circuits.end_ms[shown], *dark)
    )
    paint(z, row, start, end, (1 + circuits.switch[shown] % SWITCH_COLOURS).astype(np.uint8))
    colour = np.full(len(which), SWITCH_COLOURS + 1, np.uint8)
    paint(z, row[which], dark_begin, dark_end, colour)


def _dark(
    execution: Execution, shown: NDArray[np.intp]
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Return (position in ``shown``, begin, end) of the times in which the circuits shown are dark."""
    which, begin, end = execution.circuits.dark_times(execution.makespan_ms)
    mine = np.isin(which, shown)
    return np.searchsorted(shown, which[mine]), begin[mine], end[mine]


def _bars(
    execution: Execution, switch: int, row: NDArray[np.int64], shown: NDArray[np.intp], theme: Theme
) -> list[go.Bar]:
    """Return the circuits of one switch as bars with their destinations, and their dark time."""
    circuits = execution.circuits
    start, length = circuits.start_ms[shown], circuits.end_ms[shown] - circuits.start_ms[shown]
    destination = circuits.destination[shown].tolist()
    pixels = (length * 500 / (execution.makespan_ms or 1.0)).tolist()
    facts = [
        [f"S{s} → S{d}", escape_untrusted(execution.graph.ids[node], "figure")]
        for s, d, node in zip(
            circuits.source[shown].tolist(), destination, circuits.node[shown].tolist(), strict=True
        )
    ]
    texts = [
        str(d) if px >= 7 + 6.5 * len(str(d)) else ""
        for d, px in zip(destination, pixels, strict=True)
    ]
    style: dict[str, Any] = {
        "text": texts,
        "textfont": {"size": 10 * theme.scale, "color": theme.switch_text(switch)},
        "customdata": facts,
        "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>from %{base:.9~g} ms, %{x:.6~g} ms<extra></extra>",
        **INSIDE,
    }
    marker = {"color": theme.switch_colour(switch), "line": line(theme.page, 1)}
    plain = {"width": 0.8, "showlegend": None}
    bars = [sideways_bars(start, length, row[shown], f"switch {switch}", marker, **plain, **style)]
    dark, begin, end = _dark(execution, shown)
    if len(dark):
        hidden = {**plain, "hoverinfo": "skip"}
        rows = row[shown[dark]]
        bars.append(sideways_bars(begin, end - begin, rows, "dark", hatched(theme), **hidden))
    return bars


def _over_time(
    figure: go.Figure,
    execution: Execution,
    state: SlotState,
    theme: Theme,
    pixels: float,
    names_axis: dict[str, Any],
) -> go.Figure:
    """Return the chart over the iteration with the moment marked."""
    makespan = execution.makespan_ms or 1.0
    cursor = upright(state.at_ms, line(theme.ink, 1.2), -0.02, 1.02)
    return frame(
        figure,
        theme,
        pixels + 30,
        shapes=[cursor],
        margin=margins(34, 12, 6, 24),
        xaxis=ms_axis(theme, (0, makespan), 8),
        yaxis=names_axis,
    )


def changes(execution: Execution, state: SlotState, theme: Theme) -> go.Figure:
    """Return how many circuits are set up slot by slot, on the slot slider's axis.

    Where nothing ever changes it shows the circuits in use instead.
    """
    counts, tau = changes_a_slot(execution), execution.cluster.slot_ms
    moving = bool(counts.any())
    if not moving:
        counts = _in_use(execution, len(counts))
    fold = max(1, -(-len(counts) // 500))
    folded = (np.add if moving else np.maximum).reduceat(counts, np.arange(0, len(counts), fold))
    word = "set up" if moving else "in use"
    figure = go.Figure().add_bar(
        x=(np.arange(len(folded)) + 0.5) * fold * tau,
        y=folded,
        width=fold * tau,
        name=word,
        marker={"color": theme.muted if moving else theme.line, "line": {"width": 0}},
        hovertemplate="%{y} " + word + " at %{x:.6~g} ms<extra></extra>",
    )
    return frame(
        figure,
        theme,
        84 * theme.scale,
        shapes=[upright(state.at_ms, line(theme.ink, 1.5), high=1.08)],
        margin=margins(LANE_LEFT, LANE_RIGHT, 4, 22),
        xaxis=ms_axis(theme, (0, len(counts) * tau), 12),
        yaxis=axis(
            theme,
            grid=True,
            range=[0, max(1.0, float(folded.max(initial=0)) * 1.1)],
            nticks=3,
            tickformat=",~g",
            title="circuits" if fold == 1 or not moving else f"circuits in {fold}",
        ),
    )


def _in_use(execution: Execution, slots: int) -> NDArray[np.int64]:
    """Return how many out-ports carry data in each slot, rounded up."""
    edges: FloatArray = np.arange(slots + 1, dtype=np.float64) * execution.cluster.slot_ms
    used = ports_in_use(execution.circuits.start_ms, execution.circuits.end_ms, edges)
    return np.ceil(used - 1e-6).astype(np.int64)
