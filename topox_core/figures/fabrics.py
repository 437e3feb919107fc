"""One graph on every fabric: where each iteration's time goes, and all iterations on one clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.fabrics.run import Breakdown, FabricRun
from topox_core.figures.overview import paint
from topox_core.figures.palette import (
    DARK,
    IDLE,
    LOOK_COLOURS,
    VERMILION,
    Theme,
    discrete_scale,
    looks,
)
from topox_core.figures.template import axis, frame
from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, FloatArray
from topox_core.text.numbers import short, time

COMPUTE_COLOUR, EXPOSED_COLOUR = "#0072B2", "#CC79A7"
LABEL_LEFT = 124  # room for the names of fabrics
PLOT_PX = 470.0  # width of the bars on a laptop; decides which parts have room for a number
# An iteration this many times the fastest would flatten all others: its bar is cut, its number
# stands.
CUT_AT = 3.5
COLUMNS = 900
MOST_STRIP_ROWS = 32

IN_SECONDS = 2_000.0  # an axis that ends beyond this many ms counts in s
PARTS = ("compute", "exposed transfer", "dark", "waiting")


def parts_of(spent: Breakdown) -> tuple[float, float, float, float]:
    """Return a breakdown in the order of ``PARTS``, in ms."""
    return spent.compute_ms, spent.exposed_ms, spent.dark_ms, spent.waiting_ms


def shown_until(times_ms: Sequence[float]) -> float:
    """Return where a time axis ends: at the longest iteration that is not ``CUT_AT`` times the fastest."""
    if not times_ms:
        return 1.0
    best = min(times_ms)
    return max((t for t in times_ms if t <= CUT_AT * best), default=best) or 1.0


def time_axis(theme: Theme, scale: float, until_ms: float, *, grid: bool = False) -> dict[str, Any]:
    """Return an axis of times given in ms that is read in ms below two seconds and in s above."""
    if until_ms < IN_SECONDS:
        return axis(
            theme,
            scale,
            grid=grid,
            range=[0, until_ms],
            ticksuffix=" ms",
            nticks=8,
            tickformat=",~g",
        )
    step = round_step(until_ms / 7)
    ticks = np.arange(0.0, until_ms * (1 + 1e-9), step).tolist()
    return axis(
        theme,
        scale,
        grid=grid,
        range=[0, until_ms],
        tickvals=ticks,
        ticktext=[f"{t / 1000:,g} s" for t in ticks],
    )


def round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is no smaller than ``least``."""
    power = 10.0 ** np.floor(np.log10(max(least, 1e-12)))
    return float(next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9)))


def iteration_bars(
    runs: Mapping[str, FabricRun],
    labels: Mapping[str, str],
    notes: Mapping[str, str],
    theme: Theme,
    scale: float = 1.0,
) -> go.Figure:
    """Return a bar of time a fabric, stacked along its critical chain, with its lower bound as a tick across it.

    Parameters
    ----------
    labels
        Name of each fabric, in words.
    notes
        What to write behind a fabric's time, in bold; absent for most.
    """
    names = list(runs)
    times = [runs[name].iteration_ms for name in names]
    until = shown_until(times)
    cut = any(t > until * (1 + 1e-9) for t in times)
    limit = until * (1.08 if cut else 1.0)
    figure = go.Figure()
    spent = np.array([parts_of(runs[name].breakdown) for name in names]).reshape(-1, len(PARTS))
    ends = np.minimum(np.cumsum(spent, axis=1), limit)
    starts = np.concatenate([np.zeros((len(names), 1)), ends[:, :-1]], axis=1)
    for k, part in enumerate(PARTS):
        width = ends[:, k] - starts[:, k]
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=starts[:, k],
                x=width,
                y=list(range(len(names))),
                width=0.6,
                name=part,
                showlegend=True,
                marker=_part_marker(k, theme),
                selected={"marker": {"opacity": 1}},
                unselected={"marker": {"opacity": 1}},
                customdata=[
                    [
                        name,
                        labels[name],
                        f"{value:.6g}",
                        f"{100 * value / total if total else 0:.3g}",
                    ]
                    for name, value, total in zip(names, spent[:, k].tolist(), times, strict=True)
                ],
                hovertemplate="<b>%{customdata[1]}</b><br>"
                + part
                + " %{customdata[2]} ms, %{customdata[3]} %<extra></extra>",
            )
        )
    numbers = _numbers(
        spent, starts, ends, [run.bound_ms for run in runs.values()], limit * 1.3, theme, scale
    )
    bounds = [
        (k, runs[name].bound_ms) for k, name in enumerate(names) if runs[name].bound_ms <= limit
    ]
    figure.add_trace(
        go.Scatter(
            x=[bound for _, bound in bounds],
            y=[k for k, _ in bounds],
            mode="markers",
            name="lower bound",
            showlegend=True,
            marker={
                "symbol": "line-ns",
                "size": 25 * scale,
                "opacity": 1,
                "line": {"width": 2.5, "color": theme.ink},
            },
            customdata=[
                [names[k], labels[names[k]], f"{bound:.6g}", runs[names[k]].bound_by]
                for k, bound in bounds
            ],
            hovertemplate="<b>%{customdata[1]}</b><br>no less than %{customdata[2]} ms<br>%{customdata[3]}<extra></extra>",
        )
    )
    totals = [
        {
            "x": min(t, limit),
            "y": k,
            "xanchor": "left",
            "xshift": 8,
            "showarrow": False,
            "text": f"<b>{time(t)}&nbsp; {notes[name]}</b>"
            if name in notes
            else time(t) + (" ›" if t > limit else ""),
            "font": {"size": 12 * scale, "color": theme.ink},
        }
        for k, (name, t) in enumerate(zip(names, times, strict=True))
    ]
    return frame(
        figure,
        theme,
        (39 * len(names) + 78) * scale,
        scale,
        showlegend=True,
        annotations=totals + numbers,
        margin={"l": LABEL_LEFT * scale, "r": 8, "t": 34 * scale, "b": 30, "pad": 0},
        xaxis=time_axis(theme, scale, limit * 1.3, grid=True),
        yaxis=axis(
            theme,
            scale,
            range=[len(names) - 0.45, -0.55],
            tickvals=list(range(len(names))),
            ticks="",
            ticktext=[labels[name] for name in names],
            tickfont={"size": 12.5 * scale, "color": theme.ink},
        ),
    )


def _numbers(
    spent: FloatArray,
    starts: FloatArray,
    ends: FloatArray,
    bounds: Sequence[float],
    limit: float,
    theme: Theme,
    scale: float,
) -> list[dict[str, Any]]:
    """Return the numbers inside the parts that have room for one, beside the bound's tick where that would cross them."""
    colours, per_px = ("#FFFFFF", "#10151C", theme.ink, theme.ink), limit / PLOT_PX
    found = []
    for (row, part), value in np.ndenumerate(spent):
        low, high = float(starts[row, part]), float(ends[row, part])
        words = short(float(value) / (1000 if limit >= IN_SECONDS else 1))
        half = (3.6 * len(words) + 3) * scale * per_px
        if part == 2 or high - low < 2 * half:
            continue
        x = (low + high) / 2
        if abs(bounds[row] - x) < half:
            left, right = (low + bounds[row]) / 2, (bounds[row] + high) / 2
            x = left if bounds[row] - low > high - bounds[row] else right
            if min(x - low, high - x, abs(x - bounds[row])) < half:
                continue
        font = {"size": 11.5 * scale, "color": colours[part]}
        found.append({"x": x, "y": int(row), "text": words, "showarrow": False, "font": font})
    return found


def _part_marker(part: int, theme: Theme) -> dict[str, Any]:
    if part == 2:
        return {
            "color": "rgba(0,0,0,0)",
            "line": {"color": VERMILION, "width": 1},
            "pattern": {
                "shape": "/",
                "size": 5,
                "solidity": 0.45,
                "fgcolor": VERMILION,
                "bgcolor": theme.page,
            },
        }
    return {
        "color": [COMPUTE_COLOUR, EXPOSED_COLOUR, "", theme.line][part],
        "line": {"color": theme.page, "width": 1},
    }


def strip_image(execution: Execution, until_ms: float, columns: int = COLUMNS) -> NDArray[np.uint8]:
    """Return one iteration as a small image on a clock that ends at ``until_ms``: 0 idle, else what a bar means.

    Two rows a server: what its devices compute, and what leaves it, dark circuits included;
    neighbours share rows where there are many servers.
    """
    graph, circuits, servers = (
        execution.graph,
        execution.circuits,
        max(1, execution.cluster.servers),
    )
    rows = min(2 * servers, MOST_STRIP_ROWS)
    each = 2 * servers / rows
    image = np.zeros((rows, columns), np.uint8)
    look = looks(graph)
    compute = np.flatnonzero((graph.kind == COMPUTE) & (execution.end_ms > execution.start_ms))
    moves = np.flatnonzero((graph.kind == TRANSFER) & (execution.end_ms > execution.start_ms))
    dark = np.flatnonzero(circuits.start_ms > circuits.setup_ms)
    bars = [
        (
            2 * circuits.source[dark] + 1,
            circuits.setup_ms[dark],
            circuits.start_ms[dark],
            np.full(len(dark), DARK, np.uint8),
        ),
        (
            2 * graph.server[compute],
            execution.start_ms[compute],
            execution.end_ms[compute],
            look[compute],
        ),
    ]
    if len(circuits):
        bars.append(
            (2 * circuits.source + 1, circuits.start_ms, circuits.end_ms, look[circuits.node])
        )
    else:
        bars.append(
            (
                2 * graph.source[moves] + 1,
                execution.start_ms[moves],
                execution.end_ms[moves],
                look[moves],
            )
        )
    for row, start, end, colour in bars:
        seen = np.flatnonzero((start < until_ms) & (colour != IDLE))
        # Where several servers share rows, devices stay on even ones and what leaves on odd ones.
        place = row[seen].astype(np.int64)
        if each > 1:
            place = (place // 2 * rows // (2 * servers)) * 2 + place % 2
            place = np.minimum(place, rows - 1)
        per_ms = columns / until_ms if until_ms > 0 else 0.0
        paint(
            image,
            place,
            np.floor(start[seen] * per_ms + 1e-6).astype(np.int64),
            np.round(end[seen] * per_ms).astype(np.int64),
            colour[seen],
        )
    return image


def strips(
    images: Mapping[str, NDArray[np.uint8]],
    labels: Mapping[str, str],
    times_ms: Mapping[str, float],
    until_ms: float,
    theme: Theme,
    scale: float = 1.0,
) -> go.Figure:
    """Return every fabric's iteration under one another on one clock; the end of each is a line with its time."""
    names = list(images)
    rows = max((len(images[name]) for name in names), default=1)
    gap = max(1, round(rows * 0.18))
    stacked = np.zeros(((rows + gap) * max(1, len(names)), COLUMNS), np.uint8)
    for k, name in enumerate(names):
        stacked[k * (rows + gap) : k * (rows + gap) + rows] = images[name]
    colours = ["rgba(0,0,0,0)", *(LOOK_COLOURS[look] for look in range(1, DARK + 1))]
    step = until_ms / COLUMNS
    figure = go.Figure(
        go.Heatmap(
            z=stacked,
            x0=step / 2,
            dx=step,
            y0=0,
            dy=1,
            colorscale=discrete_scale(colours),
            zmin=-0.5,
            zmax=DARK + 0.5,
            showscale=False,
            hoverinfo="skip",
            zsmooth=False,
        )
    )
    shapes: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for k, name in enumerate(names):
        top, bottom = k * (rows + gap) - 0.5, k * (rows + gap) + rows - 0.5
        shapes.append(
            {
                "type": "rect",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": top,
                "y1": bottom,
                "layer": "below",
                "fillcolor": theme.band,
                "line": {"width": 0},
            }
        )
        inside = times_ms[name] <= until_ms * (1 + 1e-9)
        if inside:
            shapes.append(
                {
                    "type": "line",
                    "x0": times_ms[name],
                    "x1": times_ms[name],
                    "y0": top,
                    "y1": bottom,
                    "line": {"color": theme.ink, "width": 1.5},
                }
            )
        words.append(
            {
                "x": min(times_ms[name], until_ms),
                "y": (top + bottom) / 2,
                "xanchor": "left",
                "xshift": 5,
                "showarrow": False,
                "text": time(times_ms[name]) + ("" if inside else " ›"),
                "font": {"size": 11.5 * scale, "color": theme.ink},
            }
        )
    middle = [k * (rows + gap) + (rows - 1) / 2 for k in range(len(names))]
    pixels = float(np.clip(2.6 * rows, 40, 84)) * (1 + gap / rows)
    return frame(
        figure,
        theme,
        (pixels * len(names)) * scale + 34,
        scale,
        shapes=shapes,
        annotations=words,
        margin={"l": LABEL_LEFT * scale, "r": 8, "t": 4, "b": 28, "pad": 0},
        xaxis=time_axis(theme, scale, until_ms * 1.1),
        yaxis=axis(
            theme,
            scale,
            range=[len(stacked) - gap - 0.5, -0.5],
            tickvals=middle,
            ticks="",
            ticktext=[labels[name] for name in names],
            tickfont={"size": 12.5 * scale, "color": theme.ink},
        ),
    )


def before_after(
    rows: Sequence[tuple[str, str, float, float]], theme: Theme, scale: float = 1.0
) -> go.Figure:
    """Return two bars a row, undisturbed (filled) and degraded (hatched): (label, fabric, undisturbed ms, degraded ms)."""
    figure = go.Figure()
    top = max([1e-9, *(max(before, after) for _, _, before, after in rows)])
    for fabric in dict.fromkeys(row[1] for row in rows):
        colour = theme.fabric_colour(fabric)
        hatched = {
            "shape": "/",
            "size": 6,
            "solidity": 0.35,
            "fgcolor": colour,
            "bgcolor": theme.page,
        }
        mine = [(k, row) for k, row in enumerate(rows) if row[1] == fabric]
        for words, after, shift, marker in (
            ("undisturbed", False, -0.19, {"color": colour}),
            (
                "degraded",
                True,
                0.19,
                {
                    "color": "rgba(0,0,0,0)",
                    "pattern": hatched,
                    "line": {"color": colour, "width": 1},
                },
            ),
        ):
            times = [row[3] if after else row[2] for _, row in mine]
            figure.add_trace(
                go.Bar(
                    orientation="h",
                    x=times,
                    y=[k + shift for k, _ in mine],
                    width=0.32,
                    marker=marker,
                    name=f"{fabric} {words}",
                    text=[time(value) for value in times],
                    textposition="outside",
                    cliponaxis=False,
                    textfont={"size": 12 * scale, "color": theme.ink},
                    customdata=[
                        [row[0], f"{value:.6g}"]
                        for (_, row), value in zip(mine, times, strict=True)
                    ],
                    hovertemplate="<b>%{customdata[0]}</b><br>"
                    + words
                    + " %{customdata[1]} ms<extra></extra>",
                )
            )
    return frame(
        figure,
        theme,
        (54 * len(rows) + 40) * scale,
        scale,
        margin={"l": 176 * scale, "r": 8, "t": 6, "b": 30, "pad": 0},
        xaxis=time_axis(theme, scale, top * 1.15, grid=True),
        yaxis=axis(
            theme,
            scale,
            range=[len(rows) - 0.45, -0.55],
            tickvals=list(range(len(rows))),
            ticks="",
            ticktext=[row[0] for row in rows],
            tickfont={"size": 12.5 * scale, "color": theme.ink},
        ),
    )
