"""A card in small: printed numbers hollow, ours filled, as one SVG picture."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence

from topox_core.figures.palette import Theme
from topox_core.papers.card import Row

WIDTH, HEIGHT, EDGE = 228, 54, 7
MOST = 16  # points that fit beside each other


def thumbnail(rows: Sequence[Row], theme: Theme, logarithmic: bool = False) -> str:
    """Return the picture of one series as the address of an image (``data:``).

    Parameters
    ----------
    rows
        Of one series and one unit, in reading order; of more than fit, every so many-th is drawn.
    """
    chosen = rows[:: -(-len(rows) // MOST) or 1]
    values = [value for row in chosen for value in (row.theirs, row.ours) if value is not None]
    logarithmic = logarithmic and min(values, default=0) > 0
    place = math.log10 if logarithmic else float
    low, high = (f(map(place, values)) if values else 0.0 for f in (min, max))
    if not logarithmic and low > 0 and low < 0.6 * high:
        low = 0.0
    span = (high - low) or 1.0

    def y(value: float) -> float:
        return HEIGHT - EDGE - (place(value) - low) / span * (HEIGHT - 2 * EDGE)

    def x(number: int) -> float:
        return EDGE + (number + 0.5) / len(chosen) * (WIDTH - 2 * EDGE)

    marks = [
        f'<path d="M0 {HEIGHT - 0.5}H{WIDTH}" stroke="{theme.line}" stroke-width="1" fill="none"/>'
    ]
    for number, row in enumerate(chosen):
        if row.theirs is not None:
            a, b = x(number), y(row.theirs)
            marks.append(
                f'<path d="M{a:.1f} {y(row.ours):.1f}V{b:.1f}" stroke="{theme.line}" stroke-width="2"/>'
                f'<path d="M{a - 4:.1f} {b:.1f}l4 -4l4 4l-4 4z" fill="{theme.page}" stroke="{theme.ink}" stroke-width="1.4"/>'
            )
    marks += [
        f'<circle cx="{x(number):.1f}" cy="{y(row.ours):.1f}" r="3" fill="{theme.primary}"/>'
        for number, row in enumerate(chosen)
    ]
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}">{"".join(marks)}</svg>'
    )
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
