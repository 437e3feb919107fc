"""Theirs against ours: a published number and the one computed here, pair by pair, and as one small picture of a card."""

import math
from base64 import b64encode
from collections.abc import Sequence
from textwrap import wrap

from topox_core.figures.builders import Point, curve, dots, row_chart
from topox_core.figures.palette import Theme
from topox_core.figures.template import (
    Figure,
    Layer,
    Look,
    axis,
    line,
    log_axis,
    note,
    opaque,
)
from topox_core.papers.rows import APART_NAMES, VERDICTS, Row
from topox_core.text.numbers import NBSP, short

LABEL = 44  # letters that fit at the left, in two lines
BREAK = "<br>"


def paired(rows: Sequence[Row], theme: Theme, logarithmic: bool = False) -> Figure:
    """Return paired dots: theirs hollow, ours filled, the bound a tick, the verdict in sign and words, or the kind, at the right.

    Parameters
    ----------
    rows
        Of one series and one unit, in reading order from the top.
    logarithmic
        Whether the numbers span decades; the axis title says so.
    """

    def of(name: str, values: Sequence[float | None], marker: Look) -> Layer:
        return dots(
            name,
            [
                Point(value, y, f"{name}, {row.item}: {value:.6g} {row.unit}")
                for y, (row, value) in enumerate(zip(rows, values, strict=True))
                if value is not None
            ],
            marker,
            theme,
            cliponaxis=False,
        )

    theirs, ours = [row.theirs for row in rows], [row.ours for row in rows]
    size, outline = 10 * theme.scale, line(theme.ink, 1.8)
    return row_chart(
        [_label(row) for row in rows],
        [
            curve(
                "",
                [
                    Point(x, y)
                    for y, row in enumerate(rows)
                    if row.theirs is not None
                    for x in (row.theirs, row.ours, math.nan)
                ],
                line(theme.line, 3),
                theme,
            ),
            of(
                "lower bound",
                [row.bound for row in rows],
                {"symbol": "line-ns", "size": 15 * theme.scale, "line": line(theme.muted, 2)},
            ),
            of(
                "theirs (printed)", theirs, opaque(size, theme.page, symbol="diamond", line=outline)
            ),
            of("ours (computed)", ours, opaque(size, theme.primary, symbol="circle")),
        ],
        theme,
        _values(rows, theme, logarithmic),
        36,
        11,
        legend=True,
        room={"top": 26, "right": 100},
        marks=[_verdict(y, row, theme) for y, row in enumerate(rows)],
    )


def _label(row: Row) -> str:
    """Return a row's item, with what it is about where both fit beside the chart, in two lines at most; the table has all of it."""
    label = f"{row.item}{NBSP * 2}{row.about}" if row.about else row.item
    if len(label) > LABEL:
        label = row.item if len(row.item) <= LABEL else f"{row.item[: LABEL - 1]}…"
    # As narrow as two lines can be: on a telephone the chart has what they leave.
    tried = (wrap(label, letters) for letters in range(8, LABEL + 1))
    return BREAK.join(next((lines for lines in tried if len(lines) <= 2), [label]))


def _values(rows: Sequence[Row], theme: Theme, logarithmic: bool) -> dict[str, object]:
    unit = rows[0].unit if rows else ""
    known = [
        value
        for row in rows
        for value in (row.theirs, row.ours, row.bound)
        if value is not None and value > 0
    ]
    least, most = min(known, default=1.0), max(known, default=1.0)
    if not logarithmic:
        return axis(theme, grid=True, title=unit, range=[0, 1.06 * most], tickformat=",~g")
    title, most = f"{unit}, logarithmic".removeprefix(", "), max(most, 1.26 * least)
    return log_axis(theme, least, most, "{:,g}".format, 0.06, grid=True, title=title)


def _verdict(y: int, row: Row, theme: Theme) -> dict[str, object]:
    sign, words = VERDICTS[row.verdict]
    said = APART_NAMES.get(row.counted_as, f"<b>{sign}</b>{NBSP}{words}")
    colour = {"match": theme.good, "trend": theme.ink, "differs": theme.bad}
    off = "" if row.deviation is None else f"{BREAK}{_signed(row.deviation)}"
    return note(
        f"{said}{off}",
        1,
        y,
        12 * theme.scale,
        colour.get(row.counted_as, theme.muted),
        xref="paper",
        xanchor="left",
        xshift=8,
        align="left",
    )


def _signed(share: float) -> str:
    percent = 100 * share
    if abs(percent) < 0.05:
        return f"0{NBSP}%"
    return f"{'+' if percent > 0 else '−'}{short(float(f'{abs(percent):.2g}'))}{NBSP}%"


WIDTH, HEIGHT, EDGE = 228, 54, 7
MAX = 16  # points that fit beside each other


def thumbnail(rows: Sequence[Row], theme: Theme, logarithmic: bool = False) -> str:
    """Return the picture of one series as the address of an image (``data:``).

    Parameters
    ----------
    rows
        Of one series and one unit, in reading order; of more than fit, every so many-th is drawn.
    """
    chosen = rows[:: -(-len(rows) // MAX) or 1]
    values = [value for row in chosen for value in (row.theirs, row.ours) if value is not None]
    logarithmic = logarithmic and min(values, default=0) > 0
    place = math.log10 if logarithmic else float
    low, high = (f(map(place, values), default=0.0) for f in (min, max))
    if not logarithmic and low > 0 and low < 0.6 * high:
        low = 0.0
    # What differs by less than a tenth is drawn side by side, not as far apart as can be.
    span = max(high - low, 0.1 if logarithmic else 0.1 * max(abs(low), abs(high))) or 1.0
    low = (low + high - span) / 2

    def y(value: float) -> float:
        return HEIGHT - EDGE - (place(value) - low) / span * (HEIGHT - 2 * EDGE)

    def x(number: int) -> float:
        return EDGE + (number + 0.5) / len(chosen) * (WIDTH - 2 * EDGE)

    both = [
        (x(number), y(row.ours), y(row.theirs))
        for number, row in enumerate(chosen)
        if row.theirs is not None
    ]
    marks = [
        f'<path d="M0 {HEIGHT - 0.5}H{WIDTH}" stroke="{theme.line}" stroke-width="1" fill="none"/>',
        *(
            f'<path d="M{at:.1f} {ours:.1f}V{theirs:.1f}" stroke="{theme.line}" stroke-width="2"/>'
            f'<path d="M{at - 4:.1f} {theirs:.1f}l4 -4l4 4l-4 4z" fill="{theme.page}" stroke="{theme.ink}" stroke-width="1.4"/>'
            for at, ours, theirs in both
        ),
        *(
            f'<circle cx="{x(number):.1f}" cy="{y(row.ours):.1f}" r="3" fill="{theme.primary}"/>'
            for number, row in enumerate(chosen)
        ),
    ]
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}">{"".join(marks)}</svg>'
    )
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
