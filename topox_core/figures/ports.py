"""How many out-ports carry data, are dark, or are free, on the Gantt chart's time axis."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    VERMILION,
    Theme,
    categories,
    category_words,
    traffic,
)
from topox_core.figures.template import (
    LANE_LEFT,
    LANE_RIGHT,
    axis,
    frame,
    hatch,
    margins,
    ms_axis,
    note,
)
from topox_core.model.execution import Execution
from topox_core.model.measures import ports_in_use
from topox_core.model.transfer_graph import FloatArray

MOST_STEPS = 420


def step_edges(window: tuple[float, float], slot_ms: float) -> FloatArray:
    """Return the edges of steps: slot boundaries while they fit, else equal parts."""
    low, high = window
    first, last = np.ceil(low / slot_ms - 1e-9), np.floor(high / slot_ms + 1e-9)
    if 1 <= last - first <= MOST_STEPS:
        inner = np.arange(first, last + 1) * slot_ms
        edges: FloatArray = np.unique(
            np.concatenate(([low], inner[(inner > low) & (inner < high)], [high]))
        )
        return edges
    return np.linspace(low, high, MOST_STEPS + 1)


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
    figure = go.Figure()
    for name, colour, pattern, values in parts:
        if not values.any():
            continue
        # One closing point, so that the last step is drawn to its end.
        figure.add_scatter(
            x=edges,
            y=np.append(values, values[-1:]),
            name=name,
            stackgroup="ports",
            mode="lines",
            line={"shape": "hv", "width": 0 if pattern is None else 1, "color": colour},
            fillcolor=colour if pattern is None else None,
            fillpattern=pattern,
            hovertemplate="%{y:.3~g} out-ports: " + name + "<extra></extra>",
        )
    peak = float(np.sum([values for _, _, _, values in parts], axis=0).max(initial=0.0))
    top = float(total) if peak > total / 4 else max(1.0, peak * 1.15)
    notes = []
    if top < total:
        ends = {"xref": "paper", "xanchor": "right", "yref": "paper", "yanchor": "bottom"}
        notes = [note(f"of {total:,} out-ports", 1, 1, 10.5 * theme.scale, theme.muted, **ends)]
    return frame(
        figure,
        theme,
        112 * theme.scale,
        hovermode="x unified",
        annotations=notes,
        margin=margins(LANE_LEFT, LANE_RIGHT, 14, 24),
        xaxis=ms_axis(theme, window, 9),
        yaxis=axis(theme, grid=True, range=[0, top], nticks=4, tickformat=",~g", title="out-ports"),
    )
