"""What a number hangs on: how far it swings when one price or choice changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from topox_core.economics.comparison import Swing
from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, frame, line, margins, note, row_axis, upright
from topox_core.text.numbers import NBSP, percent

PLOT_PX = 190.0  # of the bars, without their labels, on a laptop
NARROW_PX = 62.0  # the same on a phone, where the ends stand below the names


@dataclass(frozen=True)
class Swinging:
    """The number that swings: what it is called, and how a value of it is drawn and written.

    Attributes
    ----------
    factor, unit
        A value times ``factor`` is drawn, on an axis whose numbers ``unit`` follows.
    label, words
        A value at the end of its bar, and with all its digits.
    least_span
        The axis covers at least so much.
    ends_below
        What a figure moves between stands below its name, the end of the smaller value first, and
        not at the bars: so that the chart fits a narrow screen.
    """

    name: str
    factor: float
    unit: str
    label: Callable[[float], str]
    words: Callable[[float], str]
    least_span: float = 0.0
    ends_below: bool = False


SAVING = Swinging(
    "saving", 100.0, f"{NBSP}%", lambda share: f"{100 * share:.0f}{NBSP}%", percent, 4.0
)


def tornado(swings: Sequence[Swing], base: float, theme: Theme, of: Swinging = SAVING) -> go.Figure:
    """Return the swings of a number round its present value, the widest on top, each end labelled.

    Parameters
    ----------
    base
        The number now; a saving is a share.
    """
    figure = go.Figure()
    smaller, larger = (theme.line, "#4A5666" if theme.name == "light" else "#AEB9C6")
    marks: list[dict[str, Any]] = []
    values = [base]
    for side, colour, words in (
        (-1, smaller, f"smaller {of.name}"),
        (1, larger, f"larger {of.name}"),
    ):
        rows = [
            (k, end)
            for k, swing in enumerate(swings)
            for end in (swing.low, swing.high)
            if end is not None and (end[1] - base) * side > 1e-12 * max(1.0, abs(base))
        ]
        # Where both ends lie on one side, the longer is drawn beneath, so that neither hides the
        # other.
        rows.sort(key=lambda row: -abs(row[1][1] - base))
        figure.add_bar(
            orientation="h",
            y=[k for k, _ in rows],
            x=[of.factor * (end[1] - base) for _, end in rows],
            base=of.factor * base,
            width=0.56,
            name=words,
            marker={"color": colour, "line": line(theme.page, 1)},
            customdata=[[swings[k].name, end[0], of.words(end[1])] for k, end in rows],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}: "
            f"{of.name} %{{customdata[2]}}<extra></extra>",
        )
        labelled: set[int] = set()
        for k, (moved_to, value) in rows:
            values.append(value)
            if k in labelled:
                continue
            labelled.add(k)
            share = f"<b>{of.label(value)}</b>".replace("-", "−")
            text = f"{share}&nbsp; {moved_to}" if side > 0 else f"{moved_to}&nbsp; {share}"
            if of.ends_below:
                text = share
            beside = {"xanchor": "left" if side > 0 else "right", "xshift": 6 * side}
            marks.append(note(text, of.factor * value, k, 11.5 * theme.scale, theme.ink, **beside))
    low, high = of.factor * min(values), of.factor * max(values)
    span = max(high - low, of.least_span) or 1.0
    before, after = (
        _label_share(
            [mark["text"] for mark in marks if mark["xanchor"] == side],
            NARROW_PX if of.ends_below else PLOT_PX,
        )
        for side in ("right", "left")
    )
    names = [_with_ends(swing) if of.ends_below else swing.name for swing in swings]
    return frame(
        figure,
        theme,
        ((36 if of.ends_below else 29) * max(1, len(swings)) + 60) * theme.scale,
        showlegend=True,
        annotations=marks,
        shapes=[{"xref": "x", **upright(of.factor * base, line(theme.ink, 1.5))}],
        margin=margins(178 * theme.scale, 8, 26 * theme.scale, 28 * theme.scale),
        xaxis=axis(
            theme,
            grid=True,
            range=[low - before * span, high + after * span],
            ticksuffix=of.unit,
            nticks=7,
        ),
        yaxis=row_axis(theme, names, 12, range=[len(swings) - 0.4, -0.6]),
    )


def _with_ends(swing: Swing) -> str:
    """Return a figure's name and below it what it moves between, as the bars stand from left to right."""
    ends = [end for end in (swing.low, swing.high) if end is not None]
    words = " to ".join(end[0] for end in sorted(ends, key=lambda end: end[1]))
    return f"{swing.name}<br><span style='font-size:10px'>{words}</span>"


def _label_share(texts: Sequence[str], plot_px: float) -> float:
    """Return the width of the longest label as a share of the bars' width."""
    wide = max(
        (len(text.replace("<b>", "").replace("</b>", "").replace("&nbsp;", " ")) for text in texts),
        default=0,
    )
    return max(0.12, (6.3 * wide + 12) / plot_px)
