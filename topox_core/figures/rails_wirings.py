"""One iteration under every way to wire its rail, and what switching adds to it."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.template import (
    frame,
    hatched,
    margins,
    note,
    row_axis,
    sideways_bars,
    time_axis,
)
from topox_core.text.numbers import percent, time


def wirings(rows: Sequence[tuple[str, float | None, float]], theme: Theme) -> go.Figure:
    """Return a bar a way to wire the rail: the iteration, and hatched what switching adds to it.

    Parameters
    ----------
    rows
        (name, iteration in ms or None where it cannot be wired so, of which stall in ms).
    """
    known = [(k, name, ms, stall) for k, (name, ms, stall) in enumerate(rows) if ms is not None]
    figure = go.Figure(
        sideways_bars(
            None,
            [ms - stall for _, _, ms, stall in known],
            [k for k, *_ in known],
            "iteration",
            {"color": theme.primary, "line": {"width": 0}},
            width=0.66,
            customdata=[[name, time(ms)] for _, name, ms, _ in known],
            hovertemplate="<b>%{customdata[0]}</b>: %{customdata[1]}<extra></extra>",
        )
    )
    stalled = [row for row in known if row[3] > 0]
    if stalled:
        figure.add_trace(
            sideways_bars(
                [ms - stall for _, _, ms, stall in stalled],
                [stall for *_, stall in stalled],
                [k for k, *_ in stalled],
                "stalled by switching",
                hatched(theme),
                width=0.66,
                customdata=[[name, time(stall)] for _, name, _, stall in stalled],
                hovertemplate="<b>%{customdata[0]}</b>: stalled %{customdata[1]}<extra></extra>",
            )
        )
    top = max((ms for _, _, ms, _ in known), default=1.0)
    base = known[0][2] if known else 1.0
    words = []
    for k, (_, ms, _) in enumerate(rows):
        text = "✗ cannot be wired so" if ms is None else time(ms)
        if ms is not None and k and base:
            text += f", {'+' if ms >= base else '−'}{percent(abs(ms / base - 1))}"
        colour = theme.bad if ms is None else theme.ink
        words.append(note(text, ms or 0.0, k, 12 * theme.scale, colour, xanchor="left", xshift=6))
    names = [name for name, *_ in rows]
    return frame(
        figure,
        theme,
        (31 * len(rows) + 66) * theme.scale,
        showlegend=True,
        annotations=words,
        margin=margins(
            (20 + 6.3 * max(map(len, names), default=4)) * theme.scale, 8, 32 * theme.scale, 28
        ),
        xaxis=time_axis(theme, top * 1.22, grid=True),
        yaxis=row_axis(theme, names, 11.5),
    )
