"""Circuits: who talks to whom in a slot, all of them over the iteration, and one switch with the servers around it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.figures.builders import Bar, Point, bars, curve, dots
from topox_core.figures.iteration.lanes import COLUMNS, paint
from topox_core.figures.palette import VERMILION, Theme
from topox_core.figures.template import (
    INSIDE,
    LANE_LEFT,
    LANE_RIGHT,
    LEGEND_BELOW,
    Figure,
    Layer,
    Look,
    axis,
    bezier,
    box,
    frame,
    hatched,
    image,
    legend_square,
    line,
    margins,
    ms_axis,
    named_axis,
    note,
    on_a_circle,
    opaque,
    sideways_bars,
    time_image,
    upright,
)
from topox_core.model.execution import (
    Circuits,
    Execution,
    SlotState,
    changes_a_slot,
    in_port,
    out_port,
    ports_in_use,
)
from topox_core.model.transfer_graph import FloatArray
from topox_core.text.foreign import escape_untrusted


def cross_connects_in(execution: Execution, state: SlotState) -> dict[str, list[str]]:
    """Return a row per server, a column per switch: where its out-ports lead, ``–`` if free."""
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


CELLS_PX = 380.0  # width of all cells on a laptop; decides which have room for a number
MAX_CELLS = 40  # servers a side for which cells are drawn with numbers
SWITCH_COLOURS = 8
# Both axes keep to their squares, the first row at the top.
_X: Look = {"constrain": "domain", "side": "top", "constraintoward": "left"}
_Y: Look = {"constrain": "domain", "scaleanchor": "x", "constraintoward": "top"}


def matrix(execution: Execution, state: SlotState, theme: Theme) -> Figure:
    """Return who talks to whom, sources down, destinations across; colour and number: switch."""
    if execution.cluster.servers > MAX_CELLS:
        return _large_matrix(execution, state, theme)
    n, circuits = execution.cluster.servers, execution.circuits
    background = np.zeros((n, n), np.uint8)
    np.fill_diagonal(background, 1)
    left, width = _split_cells(circuits, state)
    size = float(np.clip(220 / n, 6, 14)) * theme.scale
    layers: list[Any] = [image(background, [theme.cell, theme.cell_diagonal], xgap=3, ygap=3)]
    for switch in np.unique(circuits.switch[state.carrying]).tolist():
        of = np.flatnonzero(circuits.switch[state.carrying] == switch)
        wide = width[of] * CELLS_PX / n > 0.75 * size * len(str(switch))
        marker = {
            "color": theme.switch_colour(switch),
            "line": line(theme.page, 1 if n < 24 else 0),
        }
        layers.append(
            sideways_bars(
                left[of],
                width[of],
                circuits.source[state.carrying[of]],
                f"switch {switch}",
                marker,
                text=np.where(wide, f"<b>{switch}</b>", "").tolist(),
                textfont={"size": size, "color": theme.switch_text(switch)},
                **_cell_style(execution, state.carrying[of]),
            )
        )
    tail = slice(len(state.carrying), None)
    dark = sideways_bars(
        left[tail],
        width[tail],
        circuits.source[state.dark],
        "dark",
        hatched(theme, size=6, solidity=0.4),
        **_cell_style(execution, state.dark),
    )
    shown = list(range(0, n, 1 if n <= 24 else 2))
    size = 11 if n <= 24 else 9
    names = [f"S{s}" for s in shown]
    # The totals need room inside the axes: annotations beyond an axis' range are not drawn.
    across, down = [-0.5, n - 0.5 + n * 0.15], [n - 0.5 + n * 0.09, -0.5]
    return frame(
        [*layers, dark if len(state.dark) else None],
        theme,
        500 * theme.scale,
        _totals(execution, state, shown, size * theme.scale, theme.ink),
        showlegend=True,
        margin=margins(30, 4, 22, 26),
        legend=LEGEND_BELOW,
        xaxis=named_axis(theme, names, shown, size, range=across, **_X),
        yaxis=named_axis(theme, names, shown, size, range=down, **_Y),
    )


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


def _cell_style(execution: Execution, chosen: NDArray[np.intp]) -> Look:
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


def _totals(
    execution: Execution, state: SlotState, shown: Sequence[int], size: float, colour: str
) -> list[Look]:
    """Return at the edges of the matrix how many of its ports each server uses."""
    circuits, limit = execution.circuits, execution.cluster.ports_per_server
    n = execution.cluster.servers
    # Ports, not circuits: within a slot one port may hold several, one after another.
    first_out = np.unique(out_port(circuits)[state.all], return_index=True)[1]
    first_in = np.unique(in_port(circuits)[state.all], return_index=True)[1]
    out = np.bincount(circuits.source[state.all[first_out]], minlength=n)
    into = np.bincount(circuits.destination[state.all[first_in]], minlength=n)
    right = [(f"<b>{out[s]}</b> of {limit}" + ("<br>out" if s == 0 else ""), s) for s in shown]
    below = [(f"<b>{into[d]}</b>" + (f"<br>of {limit} in" if d == 0 else ""), d) for d in shown]
    return [
        *(note(words, n - 0.4, s, size, colour, xanchor="left") for words, s in right),
        *(note(words, d, n - 0.42, size, colour, yanchor="top") for words, d in below),
    ]


def _large_matrix(execution: Execution, state: SlotState, theme: Theme) -> Figure:
    """Return the matrix as one image, for more servers than cells could be read."""
    n, circuits = execution.cluster.servers, execution.circuits
    z = np.zeros((n, n), np.uint8)
    z[circuits.source[state.dark], circuits.destination[state.dark]] = SWITCH_COLOURS + 1
    z[circuits.source[state.carrying], circuits.destination[state.carrying]] = (
        1 + circuits.switch[state.carrying] % SWITCH_COLOURS
    )
    colours = [theme.cell, *(theme.switch_colour(r) for r in range(SWITCH_COLOURS)), VERMILION]
    present = np.unique(circuits.switch[state.carrying]).tolist()[:SWITCH_COLOURS]
    ticks: Look = {"nticks": 10, "tickprefix": "S"}
    return frame(
        [
            image(z, colours, hovertemplate="S%{y} → S%{x}<extra></extra>"),
            *(legend_square(f"switch {r}", theme.switch_colour(r), 11) for r in present),
        ],
        theme,
        500 * theme.scale,
        showlegend=True,
        margin=margins(44, 8, 22, 26),
        legend=LEGEND_BELOW,
        xaxis=axis(theme, range=[-0.5, n - 0.5], **ticks, **_X),
        yaxis=axis(theme, range=[n - 0.5, -0.5], **ticks, **_Y),
    )


MAX_LABELLED = 3_000
MAX_BAR_ROWS = 64


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
) -> Figure:
    """Return every out-port over the iteration: an image, or bars for one switch alone."""
    row, rows = port_rows(execution, switch)
    shown = np.flatnonzero(row >= 0)
    if switch is not None and len(shown) <= MAX_LABELLED and len(rows) <= MAX_BAR_ROWS:
        layers: list[Any] = _bars(execution, switch, row, shown, theme)
        several = any(port for _, _, port in rows)
        ticks: NDArray[Any] = np.arange(0, len(rows), max(1, len(rows) // 32))
        names = [f"S{rows[k][0]}.{rows[k][2]}" if several else f"S{rows[k][0]}" for k in ticks]
        height, pixels = len(rows), float(np.clip(len(rows) * 18, 120, 420)) * theme.scale
    else:
        servers = execution.cluster.servers
        each = len(rows) // servers
        gap = 1 if each > 1 and len(rows) <= 400 else 0
        fold = max(1, -(-(len(rows) + gap * servers) // 640))
        height, pixels = -(-(len(rows) + gap * servers) // fold), 236 * theme.scale
        z = np.zeros((height, COLUMNS), np.uint8)
        _paint_circuits(z, execution, shown, (row[shown] + gap * (row[shown] // each)) // fold)
        colours = [theme.page, *(theme.switch_colour(r) for r in range(SWITCH_COLOURS)), VERMILION]
        layers = [time_image(z, colours, execution.makespan_ms or 1.0)]
        named = np.arange(0, servers, max(1, int(np.ceil(11 * servers / pixels))))
        ticks = ((named + 0.5) * (each + gap) - gap / 2) / fold - 0.5
        names = [f"S{s}" for s in named]
    return frame(
        layers,
        theme,
        pixels + 30,
        [upright(state.at_ms, line(theme.ink, 1.2), -0.02, 1.02)],
        margin=margins(34, 12, 6, 24),
        xaxis=ms_axis(theme, (0, execution.makespan_ms or 1.0), 8),
        yaxis=named_axis(theme, names, ticks, 10, range=[height - 0.5, -0.5]),
    )


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
    paint(z, row[which], dark_begin, dark_end, np.full(len(which), SWITCH_COLOURS + 1, np.uint8))


def _dark(
    execution: Execution, shown: NDArray[np.intp]
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Return (position in ``shown``, begin, end) of the times in which the circuits shown are dark."""
    which, begin, end = execution.circuits.dark_times(execution.makespan_ms)
    mine = np.isin(which, shown)
    return np.searchsorted(shown, which[mine]), begin[mine], end[mine]


def _bars(
    execution: Execution, switch: int, row: NDArray[np.int64], shown: NDArray[np.intp], theme: Theme
) -> list[Layer]:
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
    marker = {"color": theme.switch_colour(switch), "line": line(theme.page, 1)}
    plain = {"width": 0.8, "showlegend": None}
    dark, begin, end = _dark(execution, shown)
    return [
        sideways_bars(
            start,
            length,
            row[shown],
            f"switch {switch}",
            marker,
            **plain,
            text=[
                str(d) if px >= 7 + 6.5 * len(str(d)) else ""
                for d, px in zip(destination, pixels, strict=True)
            ],
            textfont={"size": 10 * theme.scale, "color": theme.switch_text(switch)},
            customdata=facts,
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<br>from %{base:.9~g} ms, %{x:.6~g} ms<extra></extra>",
            **INSIDE,
        ),
        sideways_bars(
            begin,
            end - begin,
            row[shown[dark]],
            "dark",
            hatched(theme),
            **plain,
            hoverinfo="skip",
        )
        if len(dark)
        else None,
    ]


def changes(execution: Execution, state: SlotState, theme: Theme) -> Figure:
    """Return how many circuits are set up slot by slot, on the slot slider's axis.

    Where nothing ever changes it shows the circuits in use instead.
    """
    counts, tau = changes_a_slot(execution), execution.cluster.slot_ms
    moving = bool(counts.any())
    if not moving:  # out-ports that carry data in each slot, rounded up
        edges: FloatArray = np.arange(len(counts) + 1, dtype=np.float64) * tau
        used = ports_in_use(execution.circuits.start_ms, execution.circuits.end_ms, edges)
        counts = np.ceil(used - 1e-6).astype(np.int64)
    fold = max(1, -(-len(counts) // 500))
    folded = (np.add if moving else np.maximum).reduceat(counts, np.arange(0, len(counts), fold))
    word = "set up" if moving else "in use"
    every = [
        Bar((k + 0.5) * fold * tau, each, f"{each} {word} at {(k + 0.5) * fold * tau:.6g} ms")
        for k, each in enumerate(folded.tolist())
    ]
    look = theme.muted if moving else theme.line
    return frame(
        [bars(word, look, every, theme, fold * tau, standing=True)],
        theme,
        84 * theme.scale,
        [upright(state.at_ms, line(theme.ink, 1.5), high=1.08)],
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


_BEND = 0.16  # how far a circuit keeps from the middle, so that opposite ones lie apart


def around_a_switch(execution: Execution, state: SlotState, theme: Theme) -> Figure:
    """Return the servers around one switch, and a line with an arrow for each circuit that carries data."""
    n, circuits = execution.cluster.servers, execution.circuits
    places, colour = on_a_circle(n, np.arange(n)).T, theme.switch_colour(0)
    start = places[circuits.source[state.carrying]]
    end = places[circuits.destination[state.carrying]]
    way = end - start
    side = np.stack([-way[:, 1], way[:, 0]], axis=1) / np.hypot(*way.T)[:, None] * _BEND
    lines = bezier(start, side, end, np.linspace(0.14, 0.86, 25)).tolist()
    square = opaque(44 * theme.scale, theme.panel, symbol="square", line=line(theme.line, 1.5))
    names = [Point(x, y, "", f"<b>S{s}</b>") for s, (x, y) in enumerate(places.tolist())]
    inside: Look = {
        "textposition": "middle center",
        "textfont": {"size": 14 * theme.scale, "color": theme.ink},
    }
    span: Look = {"range": [-1.3, 1.3], "visible": False}
    arrow: Look = {
        **dict.fromkeys(("xref", "axref"), "x"),
        **dict.fromkeys(("yref", "ayref"), "y"),
        "arrowhead": 2,
        "arrowsize": 1.1,
        "arrowwidth": 2.5,
        "arrowcolor": colour,
        "showarrow": True,
        "text": "",
    }
    style, fill = line(theme.muted, 1.5), theme.cell
    below: Look = {"xanchor": "left", "yanchor": "top"}
    return frame(
        [
            *(curve("", [Point(*at) for at in points], line(colour, 3), theme) for points in lines),
            dots("", names, square, theme, **inside),
        ],
        theme,
        300 * theme.scale,
        [
            box(-0.42, 0.42, -0.42, 0.42, layer="below", line=style, fillcolor=fill),
            *(
                {**arrow, "x": to_x, "y": to_y, "ax": from_x, "ay": from_y}
                for *_, (from_x, from_y), (to_x, to_y) in lines
            ),
            note("optical switch", 0.48, -0.42, 11.5 * theme.scale, theme.muted, **below),
        ],
        margin=margins(4, 4, 4, 4),
        xaxis=axis(theme, **span, scaleanchor="y", constrain="domain"),
        yaxis=axis(theme, **span, constrain="domain"),
    )
