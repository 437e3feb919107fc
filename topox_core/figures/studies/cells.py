"""Cells over two axes: a measure of a study, who wins where, and which side is right, in colours and signs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.claims.cells import Cell, Side
from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.fabrics.crossover.map_run import (
    OPEN_WORDS,
    MapPicture,
    cell_words,
    outcome_words,
    winner_words,
)
from topox_core.fabrics.crossover.sweep import Point, Winner
from topox_core.fabrics.registry import FABRICS, LETTERS
from topox_core.figures.palette import Theme, blend, readable_on
from topox_core.figures.studies.axes import MeasureWords, StudyAxis, is_logarithmic
from topox_core.figures.template import (
    CLEAR,
    Look,
    box,
    frame,
    image,
    line,
    margins,
    name_px,
    named_axis,
    note,
)
from topox_core.model.transfer_graph import FloatArray
from topox_core.studies.slices import Cell as PointCell
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import delay_label, percent, whole_percent

# Cells with their number in them: more would not have the room.
MAX_WRITTEN = 14
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
    found
        What is known, by the values on both axes.
    ratio
        Whether the values are a ratio, which is pale at 1; else pale is the middle one of the values.
    """

    across: StudyAxis
    up: StudyAxis
    measure: MeasureWords
    found: Mapping[tuple[Any, Any], PointCell]
    ratio: bool = False

    def cells(self) -> list[tuple[Place, PointCell | None]]:
        """Return every (row, column) with what is known there, row by row."""
        return [
            ((row, column), self.found.get((a, b)))
            for row, b in enumerate(self.up.values)
            for column, a in enumerate(self.across.values)
        ]

    def values(self) -> FloatArray:
        """Return the values row by row, NaN where there is none."""
        means = [np.nan if one is None or one.mean is None else one.mean for _, one in self.cells()]
        return np.array(means, np.float64).reshape(len(self.up.values), len(self.across.values))

    def known(self) -> list[float]:
        """Return the values that are there."""
        return [one.mean for _, one in self.cells() if one is not None and one.mean is not None]


def heat_map(picture: HeatMap, theme: Theme) -> go.Figure:
    """Return the map: better than the middle in one colour, worse in another.

    The first row stands at the bottom. Clear markers over the cells take the clicks; the first entry
    of their customdata are the runs behind the cell.
    """
    rows, columns = len(picture.up.values), len(picture.across.values)
    steps, colours = _steps(picture), _colours(theme)
    z = np.where(np.isnan(steps), 0, np.nan_to_num(steps) + STEPS + 1).astype(np.uint8)
    gap = 2 if max(rows, columns) <= 24 else 0
    written = columns <= MAX_WRITTEN and rows <= 2 * MAX_WRITTEN
    size = (12 if columns <= 8 else 10) * theme.scale
    marks: list[Look] = []
    for (row, column), one in picture.cells():
        if one is None or one.mean is None:
            sign = IMPOSSIBLE if one is not None and one.failed else NOT_YET
            marks.append(note(sign, column, row, size, theme.muted))
        elif written:
            colour = readable_on(colours[int(steps[row, column]) + STEPS])
            marks.append(note(picture.measure.words(one.mean), column, row, size, colour))
    if not written and len(marks) > 400:
        marks = []
    return frame(
        [image(z, [theme.page, *colours], xgap=gap, ygap=gap), _clicks(picture, theme)],
        theme,
        (max(150, min(380, 48 * rows)) + 52) * theme.scale,
        marks,
        margin=margins(name_px(picture.up.labels, theme, 34, 6.2), 8, 6, 44 * theme.scale),
        xaxis=picture.across.named(theme, MAX_WRITTEN),
        yaxis=picture.up.named(theme, MAX_WRITTEN),
    )


def heat_legend(picture: HeatMap, theme: Theme, better: str, worse: str) -> list[tuple[str, str]]:
    """Return colours and words of the legend, which stands under the map.

    Parameters
    ----------
    better, worse
        What a cell says that is better than the middle, or worse.
    """
    colours = _colours(theme)
    steps = _steps(picture)
    pale = (
        f"equal within {percent(EQUAL)}"
        if picture.ratio
        else f"about {picture.measure.words(_middle(picture))}"
        if picture.known()
        else ""
    )
    impossible = {
        one is not None and one.failed
        for _, one in picture.cells()
        if one is None or one.mean is None
    }
    keys = [
        ((steps < 0).any(), colours[1], better),
        ((steps == 0).any() and pale, colours[STEPS], pale),
        ((steps > 0).any(), colours[-2], worse),
        (False in impossible, "", "dot: not computed yet"),
        (True in impossible, "", f"{IMPOSSIBLE} cannot run"),
    ]
    return [(colour, words) for there, colour, words in keys if there]


def _steps(picture: HeatMap) -> FloatArray:
    """Return how far each cell is from the middle in steps of colour: below 0 better, above worse, NaN without a value."""
    values, known = picture.values(), picture.known()
    if not known:
        return values
    middle = 1.0 if picture.ratio else _middle(picture)
    logarithmic = picture.ratio or is_logarithmic(known)
    away = np.log(np.maximum(values, 1e-12) / middle) if logarithmic else values - middle
    # What differs by no more than rounding is one value.
    span = max(float(np.nanmax(np.abs(away))), 1e-9 * max(1.0, abs(middle)))
    steps = np.ceil(np.nan_to_num(np.abs(away) / span) * (STEPS + 0.5) - 0.5).clip(0, STEPS)
    if picture.ratio:
        steps = np.digitize(np.nan_to_num(np.abs(away)), [math.log(edge) for edge in _RATIOS])
    sign = -1.0 if picture.measure.more_is_better else 1.0
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


def _clicks(picture: HeatMap, theme: Theme) -> go.Scatter:
    """Return clear markers over the cells, with what a hover says."""
    facts = []
    for (row, column), one in picture.cells():
        words, aside = "not computed yet", ""
        if one is not None and one.failed:
            words, aside = "cannot run", escape_untrusted(one.message, "figure")
        elif one is not None and one.mean is not None:
            words = f"{picture.measure.title} {picture.measure.words(one.mean)}"
            aside = f"mean of {one.values} points" * (one.values > 1)
        where = picture.across.labels[column], picture.up.labels[row]
        facts.append([one and list(one.runs), *where, words, aside])
    return _clear_markers(
        [(column, row) for (row, column), _ in picture.cells()],
        max(6, min(26, 420 // max(1, len(picture.across.values)))) * theme.scale,
        facts,
        "<b>%{customdata[1]}, %{customdata[2]}</b><br>%{customdata[3]}<br>%{customdata[4]}",
    )


def _clear_markers(
    at: Sequence[tuple[int, int]], size: float, facts: Sequence[Sequence[object]], words: str
) -> go.Scatter:
    """Return what takes the clicks at (x, y): the cells of an image cannot be clicked in Streamlit."""
    unseen = {"marker": {"opacity": 0}}
    return go.Scatter(
        x=[x for x, _ in at],
        y=[y for _, y in at],
        mode="markers",
        name="",
        marker={"symbol": "square", "size": size, "color": CLEAR, "opacity": 0},
        customdata=facts,
        selected=unseen,
        unselected=unseen,
        hovertemplate=f"{words}<extra></extra>",
    )


def _painted(
    shape: tuple[int, int], cells: Sequence[tuple[int, int, int, str, str]], theme: Theme
) -> tuple[NDArray[np.uint8], list[Look]]:
    """Return an image of (column, row, code of the colour, words, their colour), and the words in its cells."""
    z = np.zeros(shape, np.uint8)
    for x, y, code, _, _ in cells:
        z[y, x] = code
    size = 12 * theme.scale
    return z, [note(words, x, y, size, ink) for x, y, _, words, ink in cells if words]


# A letter in each cell says what its colour says.
SIGNS: Mapping[Side, str] = {"changing": "C", "fixed": "F", "even": "=", "": "·"}
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
    said = [
        (f"{SIGNS[one.side]} {whole_percent(one.lead)}", theme.fabric_text(_AS_FABRIC[one.side]))
        if one.side in _AS_FABRIC
        else (SIGNS[one.side], theme.muted)
        for one in cells
    ]
    z, text = _painted(
        (len(rows), len(delays)),
        [
            (delays.index(one.delay_ms), rows.index(one.job), _SIDES.index(one.side), *words)
            for one, words in zip(cells, said, strict=True)
        ],
        theme,
    )
    colours = [theme.page, theme.grid, *(theme.fabric_colour(_AS_FABRIC[s]) for s in _SIDES[2:])]
    # Above its row, so that a narrow window keeps its width for the cells.
    titles = [
        note(title, -0.5, y - 0.48, 12.5 * theme.scale, theme.ink, xanchor="left", yanchor="middle")
        for y, title in enumerate(jobs.values())
    ]
    return frame(
        [image(z, colours, xgap=2, ygap=24 * theme.scale)],
        theme,
        (58 * len(rows) + 84) * theme.scale,
        [*text, *titles],
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
        (theme.fabric_colour("scheduled"), "C: changing circuits are faster, by this many %"),
        (theme.fabric_colour("static"), "F: a fixed network is faster, by this many %"),
        (theme.grid, f"= even (within {percent(EQUAL)})"),
    ]


def place(values: Sequence[float], value: float) -> float:
    """Return where a value lies among the ascending values of an axis with equal steps."""
    level = max(delay_level(values, value), delay_level(values, 0.0))
    return float(np.interp(level, [delay_level(values, v) for v in values], np.arange(len(values))))


def delay_level(values: Sequence[float], value: float) -> float:
    """Return the logarithm of a value; of 0 that of a tenth of the least other one."""
    least = min((v for v in values if v > 0), default=1.0)
    return math.log10(value) if value > 0 else math.log10(least) - 1.0


def winner_map(picture: MapPicture, now: tuple[float, float], theme: Theme) -> go.Figure:
    """Return the map: the winner's colour, its lead over the next in %, the setting in a box, between cells as a circle.

    A cell between points that agree has their colour and no number; one that a gap or rounding
    decides has a sign.

    Parameters
    ----------
    now
        The setting as (value, delay in ms).
    """
    values, delays = sorted(picture.axes.values), sorted(picture.axes.delay_ms)
    by_speed, winners = picture.axes.by == "port_gbps", picture.winners
    points = {(p.value, p.delay_ms): p for p in picture.points}
    present = [name for name in FABRICS if any(one.fabric == name for one in winners.values())]
    codes = {name: k + 2 for k, name in enumerate(present)}
    z, marks = _painted(
        (len(delays), len(values)),
        [
            (
                values.index(value),
                delays.index(delay),
                codes.get(one.fabric, 1),
                cell_words(one) if (value, delay) in points else "",
                theme.fabric_text(one.fabric) if one.fabric else theme.muted,
            )
            for (value, delay), one in winners.items()
        ],
        theme,
    )
    yours = _your_place(place(values, now[0]), place(delays, now[1]), theme)
    for mark in marks if yours["type"] == "circle" else ():
        off = mark["x"] - yours["xanchor"]
        if abs(off) < 0.35 and abs(mark["y"] - yours["yanchor"]) < 0.4:
            # It would cover the words: they stand beside it, their sign below, as a phone's cells are narrow.
            mark.update(
                text=mark["text"].replace(" ", "\u00a0", 1).replace(" ", "<br>"),
                font={**mark["font"], "size": 9.5 * theme.scale},
                xshift=math.copysign(12 * theme.scale, off),
            )
    marks.append(yours)
    clicks = _clear_markers(
        [(values.index(value), delays.index(delay)) for value, delay in winners],
        26 * theme.scale,
        [
            [
                value,
                delay,
                *_said_of(one, points.get((value, delay)), picture.labels),
                f"{value:g}" + ("G" if by_speed else " ports"),
                delay_label(delay),
            ]
            for (value, delay), one in winners.items()
        ],
        "<b>%{customdata[4]}, %{customdata[5]}</b><br>%{customdata[2]}<br>%{customdata[3]}",
    )
    colours = [theme.page, theme.grid, *(theme.fabric_colour(name) for name in present)]
    return frame(
        [image(z, colours, xgap=2, ygap=2), clicks],
        theme,
        # A row of cells is low where there are many.
        ((31 if len(delays) < 10 else 26) * len(delays) + 66) * theme.scale,
        marks,
        margin=margins(76 * theme.scale, 8, 8, 44),
        xaxis=named_axis(
            theme,
            [f"{v:g}G" if by_speed else f"{v:g}" for v in values],
            range=[-0.5, len(values) - 0.5],
            title="port speed" if by_speed else "ports per server",
        ),
        yaxis=named_axis(
            theme,
            [delay_label(d) for d in delays],
            range=[-0.5, len(delays) - 0.5],
            title="reconfiguration delay",
        ),
    )


def _your_place(x: float, y: float, theme: Theme) -> Look:
    """Return a box round the cell of the setting, or where it lies between cells a circle there."""
    style, half = line(theme.ink, 2.5), 6 * theme.scale
    if x.is_integer() and y.is_integer():
        return box(x - 0.47, x + 0.47, y - 0.46, y + 0.46, line=style)
    pixels = {
        "type": "circle",
        "xsizemode": "pixel",
        "ysizemode": "pixel",
        "xanchor": x,
        "yanchor": y,
    }
    return {**box(-half, half, -half, half, line=style, fillcolor=theme.page), **pixels}


def _said_of(one: Winner, point: Point | None, labels: Mapping[str, str]) -> tuple[str, str]:
    """Return who wins a cell, and what a hover says of every fabric there."""
    head, rows = labels.get(one.fabric, "equal"), ["not computed: the points around it agree"]
    if point is not None:
        head = winner_words(one, labels)
        rows = [outcome_words(name, point, labels) for name in FABRICS if name in point.outcomes]
        rows += [f"{labels[name]}: cannot run" for name in point.failed]
    if one.doubt:
        rows.append(OPEN_WORDS[one.doubt])
    return head, "<br>".join(rows)


def map_legend(picture: MapPicture, theme: Theme) -> list[tuple[str, str]]:
    """Return the colours (empty for a sign) and the words of a map's legend, which stands above it."""
    winners = picture.winners.values()
    shown = [point.winner for point in picture.points]
    fabrics = [
        (theme.fabric_colour(name), f"{LETTERS[name]} {picture.labels[name]}")
        for name in FABRICS
        if any(one.fabric == name for one in winners)
    ]
    some_equal = any(one.fabric and not one.lead and one.next for one in shown)
    signs = [
        (any(not one.fabric for one in winners), theme.grid, f"= equal (within {percent(EQUAL)})"),
        (some_equal, "", "a letter with =: another one is as fast"),
        *((any(w.doubt == doubt for w in shown), "", words) for doubt, words in OPEN_WORDS.items()),
        (bool(picture.between), "", "no number: between points that agree"),
    ]
    return fabrics + [(colour, words) for there, colour, words in signs if there]
