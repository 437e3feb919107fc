"""Who talks to whom in a slot: source servers down, destinations across."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.palette import VERMILION, Theme
from topox_core.figures.slot_state import SlotState
from topox_core.figures.template import (
    INSIDE,
    LEGEND_BELOW,
    axis,
    frame,
    hatched,
    image,
    legend_square,
    line,
    margins,
    named_axis,
    note,
    sideways_bars,
)
from topox_core.model.execution import Circuits, Execution
from topox_core.model.measures import in_port, out_port
from topox_core.model.transfer_graph import FloatArray
from topox_core.text.foreign import escape_untrusted

CELLS_PX = 380.0  # width of all cells on a laptop; decides which have room for a number
MOST_CELLS = 40  # servers a side for which cells are drawn with numbers
SWITCH_COLOURS = 8
# Both axes keep to their squares, the first row at the top.
_X: dict[str, Any] = {"constrain": "domain", "side": "top", "constraintoward": "left"}
_Y: dict[str, Any] = {"constrain": "domain", "scaleanchor": "x", "constraintoward": "top"}


def matrix(execution: Execution, state: SlotState, theme: Theme) -> go.Figure:
    """Return who talks to whom, sources down, destinations across; colour and number: switch."""
    if execution.cluster.servers > MOST_CELLS:
        return _large_matrix(execution, state, theme)
    n, circuits = execution.cluster.servers, execution.circuits
    background = np.zeros((n, n), np.uint8)
    np.fill_diagonal(background, 1)
    figure = go.Figure(image(background, [theme.cell, theme.cell_diagonal], xgap=3, ygap=3))
    left, width = _split_cells(circuits, state)
    size = float(np.clip(220 / n, 6, 14)) * theme.scale
    for switch in np.unique(circuits.switch[state.carrying]).tolist():
        of = np.flatnonzero(circuits.switch[state.carrying] == switch)
        wide = width[of] * CELLS_PX / n > 0.75 * size * len(str(switch))
        figure.add_trace(
            sideways_bars(
                left[of],
                width[of],
                circuits.source[state.carrying[of]],
                f"switch {switch}",
                {
                    "color": theme.switch_colour(switch),
                    "line": line(theme.page, 1 if n < 24 else 0),
                },
                text=np.where(wide, f"<b>{switch}</b>", "").tolist(),
                textfont={"size": size, "color": theme.switch_text(switch)},
                **_cell_style(execution, state.carrying[of]),
            )
        )
    if len(state.dark):
        tail = slice(len(state.carrying), None)
        figure.add_trace(
            sideways_bars(
                left[tail],
                width[tail],
                circuits.source[state.dark],
                "dark",
                hatched(theme, size=6, solidity=0.4),
                **_cell_style(execution, state.dark),
            )
        )
    return _square(figure, execution, state, theme)


def _split_cells(circuits: Circuits, state: SlotState) -> tuple[FloatArray, FloatArray]:
    """Return left edge and width of each circuit in its cell; parallel ones stand side by side."""
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


def _cell_style(execution: Execution, chosen: NDArray[np.intp]) -> dict[str, Any]:
    """Return how cells are labelled and what hovering over them says."""
    circuits, ids = execution.circuits, execution.graph.ids
    columns = (
        circuits.source,
        circuits.destination,
        circuits.switch,
        circuits.node,
        circuits.setup_ms,
        circuits.end_ms,
    )
    facts = [
        [
            f"S{s} → S{d}",
            f"switch {r}",
            escape_untrusted(ids[node], "figure"),
            f"{setup:.9g}",
            f"{end:.9g}",
        ]
        for s, d, r, node, setup, end in zip(
            *(column[chosen].tolist() for column in columns), strict=True
        )
    ]
    hover = (
        "<b>%{customdata[0]}</b>  %{customdata[1]}<br>%{customdata[2]}<br>"
        "%{customdata[3]} to %{customdata[4]} ms<extra></extra>"
    )
    return {"width": 0.92, "customdata": facts, "hovertemplate": hover, **INSIDE}


def _square(figure: go.Figure, execution: Execution, state: SlotState, theme: Theme) -> go.Figure:
    """Return the matrix with names of servers, and how many of its ports each uses at the edges."""
    n, circuits, limit = (
        execution.cluster.servers,
        execution.circuits,
        execution.cluster.ports_per_server,
    )
    # Ports, not circuits: within a slot one port may hold several, one after another.
    first_out = np.unique(out_port(circuits)[state.all], return_index=True)[1]
    first_in = np.unique(in_port(circuits)[state.all], return_index=True)[1]
    out = np.bincount(circuits.source[state.all[first_out]], minlength=n)
    into = np.bincount(circuits.destination[state.all[first_in]], minlength=n)
    shown = list(range(0, n, 1 if n <= 24 else 2))
    size = 11 if n <= 24 else 9
    words = [
        *(f"<b>{out[s]}</b> of {limit}" + ("<br>out" if s == 0 else "") for s in shown),
        *(f"<b>{into[d]}</b>" + (f"<br>of {limit} in" if d == 0 else "") for d in shown),
    ]
    places = [
        *({"x": n - 0.4, "y": s, "xanchor": "left"} for s in shown),
        *({"x": d, "y": n - 0.42, "yanchor": "top"} for d in shown),
    ]
    totals = [
        note(text, size=size * theme.scale, colour=theme.ink, **place)
        for text, place in zip(words, places, strict=True)
    ]
    names = [f"S{s}" for s in shown]
    # The totals need room inside the axes: annotations beyond an axis' range are not drawn.
    across, down = [-0.5, n - 0.5 + n * 0.15], [n - 0.5 + n * 0.09, -0.5]
    return frame(
        figure,
        theme,
        500 * theme.scale,
        showlegend=True,
        annotations=totals,
        margin=margins(30, 4, 22, 26),
        legend=LEGEND_BELOW,
        xaxis=named_axis(theme, names, shown, size, range=across, **_X),
        yaxis=named_axis(theme, names, shown, size, range=down, **_Y),
    )


def _large_matrix(execution: Execution, state: SlotState, theme: Theme) -> go.Figure:
    """Return the matrix as one image, for more servers than cells could be read."""
    n, circuits = execution.cluster.servers, execution.circuits
    z = np.zeros((n, n), np.uint8)
    z[circuits.source[state.dark], circuits.destination[state.dark]] = SWITCH_COLOURS + 1
    z[circuits.source[state.carrying], circuits.destination[state.carrying]] = (
        1 + circuits.switch[state.carrying] % SWITCH_COLOURS
    )
    colours = [theme.cell, *(theme.switch_colour(r) for r in range(SWITCH_COLOURS)), VERMILION]
    figure = go.Figure(image(z, colours, hovertemplate="S%{y} → S%{x}<extra></extra>"))
    for switch in np.unique(circuits.switch[state.carrying]).tolist()[:SWITCH_COLOURS]:
        figure.add_trace(legend_square(f"switch {switch}", theme.switch_colour(switch), 11))
    ticks: dict[str, Any] = {"nticks": 10, "tickprefix": "S"}
    return frame(
        figure,
        theme,
        500 * theme.scale,
        showlegend=True,
        margin=margins(44, 8, 22, 26),
        legend=LEGEND_BELOW,
        xaxis=axis(theme, range=[-0.5, n - 0.5], **ticks, **_X),
        yaxis=axis(theme, range=[n - 0.5, -0.5], **ticks, **_Y),
    )
