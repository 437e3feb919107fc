"""A few numbers side by side: one named bar each, the number behind it, and a bound as a line across."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import plotly.graph_objects as go

from topox_core.figures.marks import DOTS, line, note, upright
from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, frame, margins, row_axis

ROW_PX = 28.0


def named_bars(
    names: Sequence[str],
    values: Sequence[float],
    unit: str,
    theme: Theme,
    marked: Collection[int] = (),
    bound: tuple[float, str] | None = None,
) -> go.Figure:
    """Return one bar a number, all from 0.

    Parameters
    ----------
    unit
        Of the numbers, written behind each.
    marked
        Bars that stand out.
    bound
        Where a dotted line goes, and its words.
    """
    words = [f"{value:,.4g} {unit}" for value in values]
    colours = [theme.primary if k in marked else theme.line for k in range(len(values))]
    figure = go.Figure().add_bar(
        orientation="h",
        x=list(values),
        y=list(range(len(values))),
        width=0.62,
        marker={"color": colours, "line": line(theme.muted, 0.5)},
        text=[f"<b>{one}</b>" if k in marked else one for k, one in enumerate(words)],
        textposition="outside",
        cliponaxis=False,
        textfont={"size": 12 * theme.scale, "color": theme.ink},
        customdata=[[name] for name in names],
        hovertemplate="<b>%{customdata[0]}</b>: %{text}<extra></extra>",
    )
    shapes, notes = [], []
    if bound is not None:
        at, label = bound
        shapes.append(upright(at, line(theme.ink, 2, DOTS)))
        place = {"yref": "paper", "yanchor": "bottom", "xanchor": "center"}
        notes.append(note(label, at, 1, 11.5 * theme.scale, theme.ink, **place))
    longest = max((len(name) for name in names), default=1)
    top = max([*values, bound[0] if bound else 0.0, 1e-9])
    return frame(
        figure,
        theme,
        (len(names) * ROW_PX + 58) * theme.scale,
        shapes=shapes,
        annotations=notes,
        margin=margins((18 + 6.6 * longest) * theme.scale, 8, 20 * theme.scale, 26 * theme.scale),
        xaxis=axis(theme, grid=True, range=[0, 1.22 * top], ticksuffix=f" {unit}", nticks=6),
        yaxis=row_axis(theme, names, 12),
    )
