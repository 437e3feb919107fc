"""Inside one collective: what each port of a member sends in which step, and when it is set up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from topox_core.fabrics.one_collective import OneCollective, StepsOnPorts
from topox_core.figures.palette import VERMILION, Theme
from topox_core.figures.template import INSIDE, frame, margins, row_axis, time_axis

ROW_PX = 34
# A step's number is written where its bar has room for it.
LABELLED_SHARE = 0.02


def steps_on_ports(one: OneCollective, way: StepsOnPorts, theme: Theme) -> go.Figure:
    """Return a row a port: its steps in the colours of their circuits, and the set-ups between them.

    All members do the same, so that the ports of one stand for all. A set-up is drawn right before
    the step that needs it.
    """
    figure = go.Figure()
    for circuits in np.unique(one.steps.circuits).tolist():
        sent = [
            (q, r)
            for q, r in np.argwhere(way.share_ms > 0).tolist()
            if one.steps.circuits[q] == circuits
        ]
        lengths = [float(way.share_ms[q, r]) + one.latency_ms for q, r in sent]
        figure.add_bar(
            x=lengths,
            base=[float(way.start_ms[q, r]) for q, r in sent],
            y=[r for _, r in sent],
            orientation="h",
            width=0.62,
            marker={"color": theme.switch_colour(circuits), "line": {"width": 0}},
            text=[
                str(q + 1) if length > LABELLED_SHARE * way.makespan_ms else ""
                for (q, _), length in zip(sent, lengths, strict=True)
            ],
            textfont={"color": theme.switch_text(circuits)},
            customdata=[
                [q + 1, r + 1, f"{way.share_ms[q, r] / one.steps.busy[q]:.1%}"] for q, r in sent
            ],
            hovertemplate="<b>step %{customdata[0]}</b>, port %{customdata[1]}<br>%{customdata[2]} of the message<br>"
            "%{base:.6g} ms for %{x:.6g} ms<extra></extra>",
            **INSIDE,
        )
    dark = set_ups(one, way)
    if dark:
        figure.add_bar(
            x=[one.delay_ms] * len(dark),
            base=[start for _, start in dark],
            y=[port for port, _ in dark],
            orientation="h",
            width=0.24,
            marker={"color": VERMILION, "line": {"width": 0}},
            hovertemplate="set-up, %{x:.6g} ms<extra></extra>",
        )
    return frame(
        figure,
        theme,
        (44 + ROW_PX * one.ports) * theme.scale,
        xaxis=time_axis(theme, way.makespan_ms, grid=True),
        yaxis=row_axis(theme, [f"port {r + 1}" for r in range(one.ports)]),
        margin=margins(64 * theme.scale, 12, 6, 30 * theme.scale),
    )


def set_ups(one: OneCollective, way: StepsOnPorts) -> list[tuple[int, float]]:
    """Return port and beginning of every set-up, drawn as late as it may be."""
    found = []
    for r in range(one.ports):
        used = np.flatnonzero(way.share_ms[:, r] > 0).tolist()
        for before, after in pairwise(used):
            if one.steps.circuits[before] != one.steps.circuits[after] and one.delay_ms > 0:
                found.append((r, float(way.start_ms[after, r]) - one.delay_ms))
    return found
