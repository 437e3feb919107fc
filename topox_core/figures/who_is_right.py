"""Which side is faster at each job and delay: a row a job, a column a delay, the lead in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from topox_core.claims.cells import Cell, Side
from topox_core.fabrics.compare import EQUAL
from topox_core.figures.palette import Theme
from topox_core.figures.template import frame, image, margins, named_axis, note
from topox_core.text.numbers import delay_label, percent, whole_percent

# A letter in each cell says what its colour says.
LETTERS: Mapping[Side, str] = {"changing": "C", "fixed": "F", "even": "=", "": "·"}
_AS_FABRIC: Mapping[Side, str] = {"changing": "scheduled", "fixed": "static"}
_SIDES: tuple[Side, ...] = ("", "even", "fixed", "changing")


def sides_map(cells: Sequence[Cell], jobs: Mapping[str, str], theme: Theme) -> go.Figure:
    """Return the map of the cells of one network.

    Parameters
    ----------
    cells
        Of one number and one speed of ports.
    jobs
        The rows in their order from the top, with their titles.
    """
    delays = sorted({one.delay_ms for one in cells})
    rows = list(jobs)
    z = np.zeros((len(rows), len(delays)), np.uint8)
    text = []
    for one in cells:
        x, y = delays.index(one.delay_ms), rows.index(one.job)
        z[y, x] = _SIDES.index(one.side)
        text.append(note(_cell(one), x, y, 12 * theme.scale, _ink(one.side, theme)))
    colours = [theme.page, theme.grid, *(theme.fabric_colour(_AS_FABRIC[s]) for s in _SIDES[2:])]
    figure = go.Figure(image(z, colours, xgap=2, ygap=24 * theme.scale))
    # Above its row, so that a narrow window keeps its width for the cells.
    titles = [
        note(title, -0.5, y - 0.48, 12.5 * theme.scale, theme.ink, xanchor="left", yanchor="middle")
        for y, title in enumerate(jobs.values())
    ]
    return frame(
        figure,
        theme,
        (58 * len(rows) + 84) * theme.scale,
        annotations=[*text, *titles],
        margin=margins(8, 8, 20 * theme.scale, 60 * theme.scale),
        xaxis=named_axis(
            theme,
            [delay_label(delay).replace(" ", "<br>") for delay in delays],
            range=[-0.5, len(delays) - 0.5],
            title="reconfiguration delay",
        ),
        yaxis=named_axis(theme, [""] * len(rows), range=[len(rows) - 0.5, -0.5]),
    )


def sides_legend(theme: Theme) -> list[tuple[str, str]]:
    """Return colours and words of the legend."""
    return [
        (theme.fabric_colour("scheduled"), "C: changing circuits are faster, by so many %"),
        (theme.fabric_colour("static"), "F: a fixed network is faster, by so many %"),
        (theme.grid, f"= even (within {percent(EQUAL)})"),
    ]


def _cell(one: Cell) -> str:
    letter = LETTERS[one.side]
    return f"{letter} {whole_percent(one.lead)}" if one.side in _AS_FABRIC else letter


def _ink(side: Side, theme: Theme) -> str:
    return theme.fabric_text(_AS_FABRIC[side]) if side in _AS_FABRIC else theme.muted
