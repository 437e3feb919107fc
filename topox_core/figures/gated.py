"""Iterations whose gating changes, on each network: a line a network, iteration after iteration."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from topox_core.fabrics.gated_iterations import (
    FAT_TREE,
    NETWORKS,
    OVERSUBSCRIBED,
    PACKET_PORTS,
    REEVALUATED,
    REGIONAL,
    STATIC,
    GatedNetwork,
)
from topox_core.fabrics.registry import ENTRIES
from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, frame, line, margins, opaque

HEIGHT = 280
# Packet networks share the colour of the fat-tree; dash and sign tell them apart.
_LOOKS = {
    FAT_TREE: ("fat_tree", "dash", "square"),
    OVERSUBSCRIBED: ("fat_tree", "longdash", "square-open"),
    PACKET_PORTS: ("fat_tree", "dot", "circle-open"),
    STATIC: (STATIC, ENTRIES[STATIC].dash, ENTRIES[STATIC].mark),
    REEVALUATED: (REEVALUATED, ENTRIES[REEVALUATED].dash, ENTRIES[REEVALUATED].mark),
    REGIONAL: (REGIONAL, "solid", "circle"),
}


def gated_lines(runs: Mapping[str, GatedNetwork], theme: Theme) -> go.Figure:
    """Return the iteration time of every network over the number of the iteration, from zero."""
    figure = go.Figure()
    for name, run in runs.items():
        colour, dash, sign = _LOOKS[name]
        figure.add_scatter(
            x=list(range(1, len(run.iterations_ms) + 1)),
            y=list(run.iterations_ms),
            mode="lines+markers",
            name=NETWORKS[name],
            showlegend=True,
            line=line(theme.fabric_colour(colour), 3 if name == REGIONAL else 2, dash),
            marker=opaque(8 * theme.scale, theme.fabric_colour(colour), symbol=sign),
            customdata=[f"{ms:.6g}" for ms in run.iterations_ms],
            hovertemplate=f"<b>{NETWORKS[name]}</b><br>iteration %{{x}}: %{{customdata}} ms<extra></extra>",
        )
    most = max((max(run.iterations_ms) for run in runs.values()), default=1.0)
    count = max((len(run.iterations_ms) for run in runs.values()), default=1)
    return frame(
        figure,
        theme,
        HEIGHT * theme.scale,
        showlegend=True,
        margin=margins(48 * theme.scale, 10, 34 * theme.scale, 44),
        xaxis=axis(
            theme,
            range=[0.7, count + 0.3],
            tickvals=list(range(1, count + 1, -(-count // 12))),
            title="iteration",
        ),
        yaxis=axis(theme, grid=True, range=[0, most * 1.06], title="ms"),
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 12 * theme.scale, "color": theme.ink},
        },
    )
