"""A measure of a study over two of its axes: a cell a pair of values, pale in the middle, a dot where it is still to come."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.fabrics.compare import EQUAL
from topox_core.figures.palette import Theme, blend, readable_on
from topox_core.figures.study_axes import MeasureWords, StudyAxis, is_logarithmic
from topox_core.figures.template import box, frame, image, line, margins, named_axis, note
from topox_core.model.transfer_graph import FloatArray
from topox_core.text.numbers import percent

# Cells with their number in them: more would not have the room.
MOST_WRITTEN = 14
# Of a ratio, where a colour begins; on either side of one, in both directions.
_RATIOS = (1 + EQUAL, 1.25, 1.6, 2.2)
STEPS = len(_RATIOS)
NOT_YET, IMPOSSIBLE = "·", "✗"
Place = tuple[int, int]


@dataclass(frozen=True)
class HeatMap:
    """A measure over two axes.

    Attributes
    ----------
    values
        Row by row, None where there is no value yet.
    failed
        The (row, column) of cells that have none and will have none.
    runs
        The runs behind each (row, column): what a click is given.
    notes
        What a hover says of a cell besides its value.
    ratio
        Whether the values are a ratio, which is pale at 1; else pale is the middle one of the values.
    """

    across: StudyAxis
    up: StudyAxis
    measure: MeasureWords
    values: tuple[tuple[float | None, ...], ...]
    failed: Collection[Place] = ()
    runs: Mapping[Place, object] | None = None
    notes: Mapping[Place, str] | None = None
    ratio: bool = False

    def __post_init__(self) -> None:
        assert len(self.values) == len(self.up.values)
        assert all(len(row) == len(self.across.values) for row in self.values)

    def known(self) -> list[float]:
        """Return the values that are there."""
        return [value for row in self.values for value in row if value is not None]


def heat_map(picture: HeatMap, theme: Theme, chosen: Place | None = None) -> go.Figure:
    """Return the map: better than the middle in one colour, worse in another, the chosen cell in a box.

    The first row stands at the bottom. Clear markers over the cells take the clicks; the first entry
    of their customdata is what the picture has for the cell in ``runs``.
    """
    rows, columns = len(picture.up.values), len(picture.across.values)
    steps, colours = _steps(picture), _colours(theme)
    z = np.where(np.isnan(steps), 0, np.nan_to_num(steps) + STEPS + 1).astype(np.uint8)
    gap = 2 if max(rows, columns) <= 24 else 0
    figure = go.Figure(image(z, [theme.page, *colours], xgap=gap, ygap=gap))
    figure.add_trace(_clicks(picture, theme))
    written = columns <= MOST_WRITTEN and rows <= 2 * MOST_WRITTEN
    size = (12 if columns <= 8 else 10) * theme.scale
    text: list[dict[str, Any]] = []
    for row, values in enumerate(picture.values):
        for column, value in enumerate(values):
            if value is None:
                sign = IMPOSSIBLE if (row, column) in picture.failed else NOT_YET
                text.append(note(sign, column, row, size, theme.muted))
            elif written:
                colour = readable_on(colours[int(steps[row, column]) + STEPS])
                text.append(note(picture.measure.words(value), column, row, size, colour))
    shapes = []
    if chosen is not None:
        y, x = chosen
        shapes.append(box(x - 0.48, x + 0.48, y - 0.47, y + 0.47, line=line(theme.ink, 2.5)))
    longest = max((len(label) for label in picture.up.labels), default=0)
    return frame(
        figure,
        theme,
        (max(150, min(380, 48 * rows)) + 52) * theme.scale,
        annotations=text if written or len(text) <= 400 else [],
        shapes=shapes,
        margin=margins((34 + 6.2 * longest) * theme.scale, 8, 6, 44 * theme.scale),
        xaxis=_cell_axis(picture.across, theme),
        yaxis=_cell_axis(picture.up, theme),
    )


def heat_legend(
    picture: HeatMap, theme: Theme, better: str, worse: str, equal: str = ""
) -> list[tuple[str, str]]:
    """Return colours and words of the legend, which stands under the map.

    Parameters
    ----------
    better, worse, equal
        What a cell says that is better than the middle, worse, or pale.
    """
    colours = _colours(theme)
    steps = _steps(picture)
    pale = equal or (
        f"equal within {percent(EQUAL)}"
        if picture.ratio
        else f"about {picture.measure.words(_middle(picture))}"
        if picture.known()
        else ""
    )
    keys = []
    if (steps < 0).any():
        keys.append((colours[1], better))
    if (steps == 0).any() and pale:
        keys.append((colours[STEPS], pale))
    if (steps > 0).any():
        keys.append((colours[-2], worse))
    none = {
        (row, column)
        for row, values in enumerate(picture.values)
        for column, value in enumerate(values)
        if value is None
    }
    if none - set(picture.failed):
        keys.append(("", "dot: still to come"))
    if none & set(picture.failed):
        keys.append(("", f"{IMPOSSIBLE} cannot run"))
    return keys


def _steps(picture: HeatMap) -> FloatArray:
    """Return how far each cell is from the middle in steps of colour: below 0 better, above worse, NaN without a value."""
    values = np.array(
        [[np.nan if v is None else v for v in row] for row in picture.values], np.float64
    )
    values = values.reshape(len(picture.up.values), len(picture.across.values))
    known = picture.known()
    sign = -1.0 if picture.measure.more_is_better else 1.0
    if not known:
        return values
    if picture.ratio:
        far = np.abs(np.log(np.maximum(values, 1e-12)))
        steps = np.digitize(np.nan_to_num(far), [math.log(edge) for edge in _RATIOS])
        away = np.log(np.maximum(values, 1e-12))
    else:
        logarithmic = is_logarithmic(known)
        drawn = np.log(values) if logarithmic else values
        middle = _middle(picture)
        away = drawn - (math.log(middle) if logarithmic else middle)
        span = float(np.nanmax(np.abs(away)))
        # What differs by no more than rounding is one value.
        if span <= 1e-9 * max(1.0, abs(middle)):
            return np.where(np.isnan(values), np.nan, 0.0)
        share = np.abs(away) / span
        steps = np.ceil(np.nan_to_num(share) * (STEPS + 0.5) - 0.5).clip(0, STEPS)
    result: FloatArray = np.where(np.isnan(values), np.nan, sign * np.sign(away) * steps)
    return result


def _middle(picture: HeatMap) -> float:
    """Return the value that is drawn pale: the middle one of those that are there."""
    return float(np.median(picture.known()))


def _colours(theme: Theme) -> list[str]:
    """Return the colours from the best step to the worst, pale in the middle."""
    if theme.name == "light":
        best, pale, worst = "#3D2F8F", "#F0EEE4", "#A88B2C"
    else:
        best, pale, worst = "#A39BF0", "#2A3340", "#E5CF6B"
    shares = [0.28, 0.52, 0.76, 1.0]
    return [
        *(blend(pale, best, share) for share in reversed(shares)),
        pale,
        *(blend(pale, worst, share) for share in shares),
    ]


def _cell_axis(along: StudyAxis, theme: Theme) -> dict[str, Any]:
    """Return an axis of cells, of which at most fourteen are named."""
    every = max(1, math.ceil(len(along.values) / MOST_WRITTEN))
    shown = list(range(0, len(along.values), every))
    return named_axis(
        theme,
        [along.labels[k] for k in shown],
        shown,
        range=[-0.5, len(along.values) - 0.5],
        title=along.title,
    )


def _clicks(picture: HeatMap, theme: Theme) -> go.Scatter:
    """Return clear markers over the cells: a heat map's cells cannot be clicked in Streamlit."""
    places = [
        (row, column)
        for row in range(len(picture.up.values))
        for column in range(len(picture.across.values))
    ]
    said = [_said(picture, place) for place in places]
    runs, notes = picture.runs or {}, picture.notes or {}
    return go.Scatter(
        x=[column for _, column in places],
        y=[row for row, _ in places],
        mode="markers",
        name="",
        marker={
            "symbol": "square",
            "size": max(6, min(26, 420 // max(1, len(picture.across.values)))) * theme.scale,
            "color": "rgba(0,0,0,0)",
            "opacity": 0,
        },
        customdata=[
            [
                runs.get(place),
                picture.across.labels[place[1]],
                picture.up.labels[place[0]],
                words,
                notes.get(place, ""),
            ]
            for place, words in zip(places, said, strict=True)
        ],
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="<b>%{customdata[1]}, %{customdata[2]}</b><br>%{customdata[3]}"
        "<br>%{customdata[4]}<extra></extra>",
    )


def _said(picture: HeatMap, place: Place) -> str:
    value = picture.values[place[0]][place[1]]
    if value is not None:
        return f"{picture.measure.title} {picture.measure.words(value)}"
    return "cannot run" if place in picture.failed else "still to come"
