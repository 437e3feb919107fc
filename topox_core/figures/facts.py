"""What a graph is made of: tasks by kind, bytes by parallelism, what its critical path spends."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from topox_core.figures.palette import (
    BACKWARD,
    CATEGORY_COLOURS,
    FORWARD,
    UPDATE,
    Theme,
    parallelism_colour,
    parallelism_word,
)
from topox_core.figures.template import axis, frame, line, margins, named_axis
from topox_core.text.numbers import count, size, time

KIND_COLOURS = {
    "forward": CATEGORY_COLOURS[FORWARD],
    "backward": CATEGORY_COLOURS[BACKWARD],
    "update": CATEGORY_COLOURS[UPDATE],
}


def _bars(
    names: list[str], values: list[float], colours: list[str], labels: list[str], theme: Theme
) -> go.Figure:
    """Return horizontal bars from zero with the value written at each end."""
    figure = go.Figure().add_bar(
        orientation="h",
        y=list(range(len(names))),
        x=values,
        width=0.62,
        text=labels,
        textposition="outside",
        cliponaxis=False,
        textangle=0,
        textfont={"size": 11.5 * theme.scale, "color": theme.ink},
        customdata=[[n, t] for n, t in zip(names, labels, strict=True)],
        marker={"color": colours, "line": line(theme.line, 0.5)},
        hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
    )
    longest = max((len(name) for name in names), default=0)
    return frame(
        figure,
        theme,
        (len(names) * 25 + 12) * theme.scale,
        margin=margins((14 + 6.1 * longest) * theme.scale, 8, 4, 4, pad=4),
        xaxis=axis(theme, visible=False, range=[0, (max(values, default=1.0) or 1.0) * 1.3]),
        yaxis=named_axis(theme, names, None, 11.5, theme.ink, range=[len(names) - 0.5, -0.5]),
    )


def tasks_by_kind(counts: Mapping[str, int], theme: Theme) -> go.Figure:
    """Return how many tasks of each kind the graph has."""
    colours = [KIND_COLOURS.get(kind, theme.line) for kind in counts]
    return _bars(
        [kind.replace("_", " ") for kind in counts],
        [float(v) for v in counts.values()],
        colours,
        [count(v) for v in counts.values()],
        theme,
    )


def bytes_by_parallelism(sizes: Mapping[str, float], theme: Theme) -> go.Figure:
    """Return how many bytes each kind of traffic moves over the network."""
    return _bars(
        [parallelism_word(use) for use in sizes],
        list(sizes.values()),
        [parallelism_colour(use) for use in sizes],
        [size(v) for v in sizes.values()],
        theme,
    )


def time_by_kind(times_ms: Mapping[str, tuple[float, str]], theme: Theme) -> go.Figure:
    """Return what a chain of tasks spends on each kind of work: words -> (ms, colour)."""
    return _bars(
        list(times_ms),
        [ms for ms, _ in times_ms.values()],
        [colour for _, colour in times_ms.values()],
        [time(ms) for ms, _ in times_ms.values()],
        theme,
    )
