"""Circuits: who talks to whom in a slot, every out-port over the iteration, changes a slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.overview import paint
from topox_core.figures.palette import VERMILION, Theme, discrete_scale
from topox_core.figures.template import LANE_LEFT, LANE_RIGHT, axis, frame
from topox_core.model.execution import Circuits, Execution
from topox_core.model.measures import in_port, out_port, ports_in_use

EPS_MS = 1e-9
CELLS_PX = (
    380.0  # width of all cells on a laptop; decides which parts of a cell have room for a number
)
MOST_CELLS = 40  # servers a side for which cells are drawn with numbers
MOST_LABELLED = 3_000
SWITCH_COLOURS = 8


@dataclass(frozen=True)
class SlotState:
    """What the circuits do in one slot: positions of those that carry data, and of those being set up only."""

    slot: int
    low_ms: float
    high_ms: float
    carrying: NDArray[np.intp]
    dark: NDArray[np.intp]

    @property
    def all(self) -> NDArray[np.intp]:
        """Carrying, then dark."""
        return np.concatenate([self.carrying, self.dark])


def slots(execution: Execution) -> int:
    """Return how many slots the iteration has (at least one)."""
    return max(1, int(np.ceil(execution.makespan_ms / execution.cluster.slot_ms - 1e-9)))


def slot_state(execution: Execution, slot: int) -> SlotState:
    """Return what the circuits do in ``slot``; a circuit that begins to carry within it counts as carrying."""
    circuits, tau = execution.circuits, execution.cluster.slot_ms
    low, high = slot * tau, (slot + 1) * tau
    edge = 1e-6 * tau
    carries = (circuits.start_ms < high - edge) & (circuits.end_ms > low + edge)
    dark = (circuits.setup_ms < high - edge) & (circuits.start_ms > low + edge) & ~carries
    return SlotState(slot, low, high, np.flatnonzero(carries), np.flatnonzero(dark))


def ports_busy(circuits: Circuits, chosen: NDArray[np.intp], inwards: bool = False) -> int:
    """Return how many different ports the chosen circuits hold."""
    return len(np.unique((in_port if inwards else out_port)(circuits)[chosen]))


def matrix(execution: Execution, state: SlotState, theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return who talks to whom: source servers down, destinations across, colour and number the switch."""
    if execution.cluster.servers > MOST_CELLS:
        return _large_matrix(execution, state, theme, scale)
    n, circuits = execution.cluster.servers, execution.circuits
    background = np.zeros((n, n), np.uint8)
    np.fill_diagonal(background, 1)
    figure = go.Figure(
        go.Heatmap(
            z=background,
            colorscale=discrete_scale([theme.cell, theme.cell_diagonal]),
            zmin=-0.5,
            zmax=1.5,
            showscale=False,
            hoverinfo="skip",
            xgap=3,
            ygap=3,
        )
    )
    left, width = _split_cells(circuits, state)
    size = float(np.clip(220 / n, 6, 14)) * scale
    for switch in np.unique(circuits.switch[state.carrying]).tolist():
        of = np.flatnonzero(circuits.switch[state.carrying] == switch)
        figure.add_trace(
            _cells(
                execution,
                state.carrying[of],
                left[of],
                width[of],
                f"switch {switch}",
                {
                    "color": theme.switch_colour(switch),
                    "line": {"color": theme.page, "width": 1 if n < 24 else 0},
                },
                text=np.where(
                    width[of] * CELLS_PX / n > 0.75 * size * len(str(switch)),
                    f"<b>{switch}</b>",
                    "",
                ).tolist(),
                textfont={"size": size, "color": theme.switch_text(switch)},
            )
        )
    if len(state.dark):
        tail = slice(len(state.carrying), None)
        figure.add_trace(
            _cells(
                execution,
                state.dark,
                left[tail],
                width[tail],
                "dark",
                {
                    "color": "rgba(0,0,0,0)",
                    "line": {"color": VERMILION, "width": 1},
                    "pattern": {
                        "shape": "/",
                        "size": 6,
                        "solidity": 0.4,
                        "fgcolor": VERMILION,
                        "bgcolor": theme.page,
                    },
                },
            )
        )
    return _square(figure, execution, state, theme, scale)


def _split_cells(
    circuits: Circuits, state: SlotState
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return left edge and width of each circuit's part of its cell: parallel circuits share it side by side."""
    every = state.all
    cell = circuits.source[every].astype(np.int64) * 100_003 + circuits.destination[every]
    order = np.lexsort((circuits.switch[every], cell))
    _, first, count = np.unique(cell[order], return_index=True, return_counts=True)
    place = np.empty(len(every))
    share = np.empty(len(every))
    place[order] = np.arange(len(every)) - np.repeat(first, count)
    share[order] = np.repeat(count, count)
    width = 0.92 / share
    return circuits.destination[every] - 0.46 + place * width, width


def _cells(
    execution: Execution,
    chosen: NDArray[np.intp],
    left: NDArray[np.float64],
    width: NDArray[np.float64],
    name: str,
    marker: dict[str, object],
    **label: object,
) -> go.Bar:
    circuits, ids = execution.circuits, execution.graph.ids
    facts = [
        [f"S{s} → S{d}", f"switch {r}", ids[node], f"{setup:.9g}", f"{end:.9g}"]
        for s, d, r, node, setup, end in zip(
            *(
                column[chosen].tolist()
                for column in (
                    circuits.source,
                    circuits.destination,
                    circuits.switch,
                    circuits.node,
                    circuits.setup_ms,
                    circuits.end_ms,
                )
            ),
            strict=True,
        )
    ]
    return go.Bar(
        orientation="h",
        base=left,
        x=width,
        y=circuits.source[chosen],
        width=0.92,
        name=name,
        marker=marker,
        showlegend=True,
        customdata=facts,
        textposition="inside",
        insidetextanchor="middle",
        constraintext="none",
        textangle=0,
        hovertemplate="<b>%{customdata[0]}</b>  %{customdata[1]}<br>%{customdata[2]}<br>"
        "%{customdata[3]} to %{customdata[4]} ms<extra></extra>",
        **label,
    )


def _square(
    figure: go.Figure, execution: Execution, state: SlotState, theme: Theme, scale: float
) -> go.Figure:
    n, circuits, cluster = execution.cluster.servers, execution.circuits, execution.cluster
    out = np.bincount(circuits.source[state.all], minlength=n)
    into = np.bincount(circuits.destination[state.all], minlength=n)
    limit = cluster.ports_per_server
    every = 1 if n <= 24 else 2
    tick = {"size": (11 if n <= 24 else 9) * scale, "color": theme.muted}
    total = {"size": (11 if n <= 24 else 9) * scale, "color": theme.ink}
    margin = [
        {
            "x": n - 0.4,
            "y": s,
            "xanchor": "left",
            "showarrow": False,
            "font": total,
            "text": f"<b>{out[s]}</b> of {limit}" + (" out" if s == 0 else ""),
        }
        for s in range(0, n, every)
    ]
    margin += [
        {
            "x": d,
            "y": n - 0.42,
            "yanchor": "top",
            "showarrow": False,
            "font": total,
            "text": f"<b>{into[d]}</b>" + (f"<br>of {limit} in" if d == 0 else ""),
        }
        for d in range(0, n, every)
    ]
    names = [f"S{s}" for s in range(0, n, every)]
    common: dict[str, Any] = {
        "showgrid": False,
        "tickvals": list(range(0, n, every)),
        "ticktext": names,
        "ticks": "",
        "tickfont": tick,
        "constrain": "domain",
    }
    # The totals need room inside the axes: annotations beyond an axis' range are not drawn.
    right, below = n * 0.15, n * 0.09
    return frame(
        figure,
        theme,
        500 * scale,
        scale,
        showlegend=True,
        annotations=margin,
        margin={"l": 30, "r": 4, "t": 22, "b": 26, "pad": 0},
        legend={
            "orientation": "h",
            "x": 0,
            "y": 0,
            "yanchor": "top",
            "itemclick": False,
            "itemdoubleclick": False,
        },
        xaxis=axis(
            theme,
            scale,
            **common,
            range=[-0.5, n - 0.5 + right],
            side="top",
            constraintoward="left",
        ),
        yaxis=axis(
            theme,
            scale,
            **common,
            range=[n - 0.5 + below, -0.5],
            scaleanchor="x",
            constraintoward="top",
        ),
    )


def _large_matrix(execution: Execution, state: SlotState, theme: Theme, scale: float) -> go.Figure:
    """Return the matrix as one image, for more servers than cells could be read."""
    n, circuits = execution.cluster.servers, execution.circuits
    image = np.zeros((n, n), np.uint8)
    image[circuits.source[state.dark], circuits.destination[state.dark]] = SWITCH_COLOURS + 1
    image[circuits.source[state.carrying], circuits.destination[state.carrying]] = (
        1 + circuits.switch[state.carrying] % SWITCH_COLOURS
    )
    colours = [theme.cell, *(theme.switch_colour(r) for r in range(SWITCH_COLOURS)), VERMILION]
    figure = go.Figure(
        go.Heatmap(
            z=image,
            colorscale=discrete_scale(colours),
            zmin=-0.5,
            zmax=len(colours) - 0.5,
            showscale=False,
            hovertemplate="S%{y} → S%{x}<extra></extra>",
        )
    )
    for switch in np.unique(circuits.switch[state.carrying]).tolist()[:SWITCH_COLOURS]:
        figure.add_trace(
            go.Scatter(
                x=[None],
                y=[None],
                mode="markers",
                name=f"switch {switch}",
                showlegend=True,
                marker={"symbol": "square", "size": 11, "color": theme.switch_colour(switch)},
            )
        )
    common: dict[str, Any] = {
        "constrain": "domain",
        "nticks": 10,
        "tickprefix": "S",
        "range": [-0.5, n - 0.5],
    }
    return frame(
        figure,
        theme,
        500 * scale,
        scale,
        showlegend=True,
        margin={"l": 44, "r": 8, "t": 22, "b": 26, "pad": 0},
        legend={
            "orientation": "h",
            "x": 0,
            "y": 0,
            "yanchor": "top",
            "itemclick": False,
            "itemdoubleclick": False,
        },
        xaxis=axis(theme, scale, **common, side="top", constraintoward="left"),
        yaxis=axis(
            theme,
            scale,
            **{**common, "range": [n - 0.5, -0.5]},
            scaleanchor="x",
            constraintoward="top",
        ),
    )


def port_rows(
    execution: Execution, switch: int | None
) -> tuple[NDArray[np.int64], list[tuple[int, int, int]]]:
    """Return each circuit's row and what the rows are, (server, switch, port): all switches, or one (else row -1)."""
    circuits, cluster = execution.circuits, execution.cluster
    each = max(
        1,
        cluster.ports_per_server // cluster.switches,
        int(circuits.source_port.max(initial=0)) + 1,
    )
    switches = range(cluster.switches) if switch is None else [switch]
    rows = [(s, r, p) for s in range(cluster.servers) for r in switches for p in range(each)]
    if switch is None:
        row = (
            circuits.source.astype(np.int64) * cluster.switches + circuits.switch
        ) * each + circuits.source_port
    else:
        row = np.where(
            circuits.switch == switch,
            circuits.source.astype(np.int64) * each + circuits.source_port,
            -1,
        )
    return row, rows


def ports_over_time(
    execution: Execution, state: SlotState, switch: int | None, theme: Theme, scale: float = 1.0
) -> go.Figure:
    """Return every out-port over the iteration as an image; one switch alone is drawn as bars that name the destination."""
    row, rows = port_rows(execution, switch)
    shown = np.flatnonzero(row >= 0)
    if switch is not None and len(shown) <= MOST_LABELLED and len(rows) <= 64:
        return _bars_over_time(execution, state, switch, row, rows, shown, theme, scale)
    circuits, makespan, columns = execution.circuits, execution.makespan_ms or 1.0, 900
    servers = execution.cluster.servers
    each = len(rows) // servers
    gap = 1 if each > 1 and len(rows) <= 400 else 0
    height = len(rows) + gap * servers
    place = row[shown] + gap * (row[shown] // each)
    fold = max(1, -(-height // 640))
    image = np.zeros((-(-height // fold), columns), np.uint8)
    per_ms = columns / makespan

    def column(time_ms: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.round(time_ms[shown] * per_ms).astype(np.int64)

    colour = (1 + circuits.switch[shown] % SWITCH_COLOURS).astype(np.uint8)
    paint(image, place // fold, column(circuits.start_ms), column(circuits.end_ms), colour)
    dark = circuits.start_ms[shown] > circuits.setup_ms[shown]
    paint(
        image,
        (place // fold)[dark],
        column(circuits.setup_ms)[dark],
        column(circuits.start_ms)[dark],
        np.full(int(dark.sum()), SWITCH_COLOURS + 1, np.uint8),
    )
    colours = [theme.page, *(theme.switch_colour(r) for r in range(SWITCH_COLOURS)), VERMILION]
    step = makespan / columns
    figure = go.Figure(
        go.Heatmap(
            z=image,
            x0=step / 2,
            dx=step,
            colorscale=discrete_scale(colours),
            zmin=-0.5,
            zmax=len(colours) - 0.5,
            showscale=False,
            hoverinfo="skip",
        )
    )
    pixels = 236 * scale
    every = max(1, int(np.ceil(11 * servers / pixels)))
    named = np.arange(0, servers, every)
    ticks = ((named + 0.5) * (each + gap) - gap / 2) / fold - 0.5
    return _over_time(
        figure,
        execution,
        state,
        theme,
        scale,
        pixels,
        [len(image) - 0.5, -0.5],
        ticks,
        [f"S{s}" for s in named],
    )


def _bars_over_time(
    execution: Execution,
    state: SlotState,
    switch: int,
    row: NDArray[np.int64],
    rows: list[tuple[int, int, int]],
    shown: NDArray[np.intp],
    theme: Theme,
    scale: float,
) -> go.Figure:
    circuits, makespan = execution.circuits, execution.makespan_ms or 1.0
    start, end = circuits.start_ms[shown], circuits.end_ms[shown]
    destination = circuits.destination[shown].tolist()
    pixels = ((end - start) * 500 / makespan).tolist()
    facts = [
        [f"S{s} → S{d}", execution.graph.ids[node]]
        for s, d, node in zip(
            circuits.source[shown].tolist(), destination, circuits.node[shown].tolist(), strict=True
        )
    ]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            base=start,
            x=end - start,
            y=row[shown],
            width=0.8,
            customdata=facts,
            name=f"switch {switch}",
            text=[
                str(d) if px >= 7 + 6.5 * len(str(d)) else ""
                for d, px in zip(destination, pixels, strict=True)
            ],
            textposition="inside",
            insidetextanchor="middle",
            constraintext="none",
            textangle=0,
            textfont={"size": 10 * scale, "color": theme.switch_text(switch)},
            marker={
                "color": theme.switch_colour(switch),
                "line": {"color": theme.page, "width": 1},
            },
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<br>from %{base:.9~g} ms, %{x:.6~g} ms<extra></extra>",
        )
    )
    dark = shown[circuits.start_ms[shown] > circuits.setup_ms[shown]]
    if len(dark):
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=circuits.setup_ms[dark],
                x=circuits.start_ms[dark] - circuits.setup_ms[dark],
                y=row[dark],
                width=0.8,
                name="dark",
                hoverinfo="skip",
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
        )
    several = any(port for _, _, port in rows)
    every = max(1, len(rows) // 32)
    names = [f"S{s}.{p}" if several else f"S{s}" for s, _, p in rows]
    return _over_time(
        figure,
        execution,
        state,
        theme,
        scale,
        float(np.clip(len(rows) * 18, 120, 420)) * scale,
        [len(rows) - 0.5, -0.5],
        np.arange(0, len(rows), every),
        names[::every],
    )


def _over_time(
    figure: go.Figure,
    execution: Execution,
    state: SlotState,
    theme: Theme,
    scale: float,
    pixels: float,
    y_range: list[float],
    ticks: NDArray[np.float64] | NDArray[np.int64],
    names: list[str],
) -> go.Figure:
    makespan = execution.makespan_ms or 1.0
    cursor = {
        "type": "rect",
        "x0": state.low_ms,
        "x1": min(state.high_ms, makespan),
        "yref": "paper",
        "y0": -0.02,
        "y1": 1.02,
        "fillcolor": theme.ink,
        "opacity": 0.25 if state.high_ms - state.low_ms > makespan / 100 else 1,
        "line": {"color": theme.ink, "width": 1.5},
    }
    return frame(
        figure,
        theme,
        pixels + 30,
        scale,
        shapes=[cursor],
        margin={"l": 34, "r": 12, "t": 6, "b": 24, "pad": 0},
        xaxis=axis(theme, scale, range=[0, makespan], ticksuffix=" ms", nticks=8, tickformat=",~g"),
        yaxis=axis(
            theme,
            scale,
            range=y_range,
            tickvals=ticks,
            ticktext=names,
            ticks="",
            tickfont={"size": 10 * scale, "color": theme.muted},
        ),
    )


def changes_a_slot(execution: Execution) -> NDArray[np.int64]:
    """Return how many circuits begin to be set up in each slot."""
    circuits, n = execution.circuits, slots(execution)
    begun = np.floor(circuits.setup_ms[circuits.changed] / execution.cluster.slot_ms + 1e-6).astype(
        np.int64
    )
    return np.bincount(np.clip(begun, 0, n - 1), minlength=n)


def changes(execution: Execution, state: SlotState, theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return the strip of circuits set up slot by slot (a few slots a bar, where there are many), on the slot slider's axis.

    Where nothing ever changes it shows the circuits in use instead.
    """
    counts, tau = changes_a_slot(execution), execution.cluster.slot_ms
    moving = bool(counts.any())
    if not moving:
        edges = np.arange(len(counts) + 1, dtype=np.float64) * tau
        counts = np.ceil(
            ports_in_use(execution.circuits.start_ms, execution.circuits.end_ms, edges) - 1e-6
        ).astype(np.int64)
    fold = max(1, -(-len(counts) // 500))
    folded = (np.add if moving else np.maximum).reduceat(counts, np.arange(0, len(counts), fold))
    word = "set up" if moving else "in use"
    figure = go.Figure(
        go.Bar(
            x=(np.arange(len(folded)) + 0.5) * fold * tau,
            y=folded,
            width=fold * tau,
            name=word,
            marker={"color": theme.muted if moving else theme.line, "line": {"width": 0}},
            hovertemplate="%{y} " + word + " at %{x:.6~g} ms<extra></extra>",
        )
    )
    cursor = {
        "type": "line",
        "x0": (state.slot + 0.5) * tau,
        "x1": (state.slot + 0.5) * tau,
        "yref": "paper",
        "y0": 0,
        "y1": 1.08,
        "line": {"color": theme.ink, "width": 1.5},
    }
    return frame(
        figure,
        theme,
        84 * scale,
        scale,
        shapes=[cursor],
        margin={"l": LANE_LEFT, "r": LANE_RIGHT, "t": 4, "b": 22, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            range=[0, len(counts) * tau],
            ticksuffix=" ms",
            nticks=12,
            tickformat=",~g",
        ),
        yaxis=axis(
            theme,
            scale,
            grid=True,
            range=[0, max(1.0, float(folded.max(initial=0)) * 1.1)],
            nticks=3,
            tickformat=",~g",
            title=word if fold == 1 or not moving else f"{word} in {fold}",
        ),
    )


def cross_connects_in(execution: Execution, state: SlotState) -> dict[str, list[str]]:
    """Return one row a server, one column a switch: to whom its out-ports lead in the slot, ``–`` if free."""
    circuits, cluster = execution.circuits, execution.cluster
    table = {f"Switch {r}": ["–"] * cluster.servers for r in range(cluster.switches)}
    for part, word in ((state.carrying, ""), (state.dark, "dark → ")):
        for r, s, d in zip(
            circuits.switch[part].tolist(),
            circuits.source[part].tolist(),
            circuits.destination[part].tolist(),
            strict=True,
        ):
            cell = table[f"Switch {r}"]
            cell[s] = f"{word}S{d}" if cell[s] == "–" else f"{cell[s]}, {word}S{d}"
    return {"Server": [f"S{s}" for s in range(cluster.servers)], **table}
