"""An axis of a study as figures draw it, and a line of means over it with the band of its seeds."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from topox_core.fabrics.registry import ENTRIES, FABRICS
from topox_core.figures.builders import Point, chart, curve
from topox_core.figures.palette import Theme, faded
from topox_core.figures.template import (
    UNFADED,
    Figure,
    Look,
    axis,
    line,
    log_axis,
    log_ticks,
    multiples,
    named_axis,
    note,
    round_step,
    spread_band,
)
from topox_core.studies.keys import (
    MEASURES,
    Key,
    Value,
    axis_label,
    axis_words,
    value_words,
)
from topox_core.studies.slices import Cell, SeedLine
from topox_core.text.numbers import short, uncapitalised

# More values than this are drawn at their place on a number line, fewer at equal steps.
MAX_NAMED = 12
LOG_FROM = 4.0  # largest over smallest: from here on a measure is drawn on a logarithmic axis


@dataclass(frozen=True)
class StudyAxis:
    """The values along one axis of a study, in its order, and how they are written.

    Attributes
    ----------
    title
        What varies; the labels carry the unit.
    """

    title: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]

    @property
    def by_names(self) -> bool:
        """Whether its values stand at equal steps, each with its label: where they are few, or no numbers."""
        numbers = (isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)
        return len(self.values) <= MAX_NAMED or not all(numbers)

    @property
    def logarithmic(self) -> bool:
        """Whether its numbers are drawn on a logarithmic axis."""
        return not self.by_names and is_logarithmic(self.values)

    def places(self) -> list[float]:
        """Return where its values stand on a drawn axis."""
        if self.by_names:
            return [float(k) for k in range(len(self.values))]
        return [math.log10(v) if self.logarithmic else float(v) for v in self.values]

    def named(self, theme: Theme, most: int, **changes: Any) -> Look:
        """Return the axis of a figure whose marks stand at 0, 1, 2, ..., of which so many are named."""
        every = max(1, math.ceil(len(self.values) / most))
        places, span = list(range(0, len(self.values), every)), [-0.5, len(self.values) - 0.5]
        labels = self.labels[::every]
        return named_axis(theme, labels, places, range=span, title=self.title, **changes)

    def drawn(self, theme: Theme) -> Look:
        """Return the axis of a figure whose marks stand at :meth:`places`."""
        if self.by_names:
            return self.named(theme, MAX_NAMED)
        places = self.places()
        low, high = min(places), max(places)
        room = 0.03 * (high - low or 1.0)
        ticks: Look = {"nticks": 7}
        if self.logarithmic:
            values = log_ticks(min(self.values), max(self.values))
            ticks = {
                "tickvals": [math.log10(v) for v in values],
                "ticktext": [short(v) for v in values],
            }
        return axis(
            theme,
            range=[low - room, high + room],
            title=f"{self.title}, logarithmic" if self.logarithmic else self.title,
            **ticks,
        )


@dataclass(frozen=True)
class MeasureWords:
    """What a measure is called, how a value of it is written, and which way is better."""

    title: str
    words: Callable[[float], str]
    more_is_better: bool = False


def place_on(drawn: Mapping[str, Any], value: float) -> float:
    """Return where a value's annotation stands: plotly wants the exponent on a logarithmic axis."""
    return math.log10(value) if drawn.get("type") == "log" else value


LINE_PX = 14.0  # of a label
PICTURE_PX = 480.0, 300.0  # of the picture, between a laptop's and a phone's
# Where a label stands beside its point, tried in this order: whether to its right, and how many rows
# off; one that finds no room at the height of its point stands some rows off.
ANYWHERE = ((True, 0), (False, 0), (True, 1), (True, 2), (True, 3))
BELOW_LEFT = ((False, 0), (True, 0))


def point_labels(
    labels: Sequence[tuple[str, float, float, tuple[bool, ...]]],
    axes: tuple[Look, Look],
    theme: Theme,
    sides: Sequence[tuple[bool, int]] = ANYWHERE,
    points: Sequence[tuple[float, float]] = (),
    ranges: Sequence[tuple[float, float, float, float]] = (),
) -> list[Look]:
    """Return labels beside points, clear of each other and inside the picture; one without room is left out.

    A line leads from one that stands some rows off to its point.

    Parameters
    ----------
    labels
        Words, place on both axes, and whether above the point: as it may be, the first choice first.
    points
        Which a label to the left of its own must not pass: it would seem to be theirs.
    ranges
        Lines (x from, x to, y from, y to) that labels do not cross where they find another place.
    """
    (left, right), (bottom, top) = (one["range"] for one in axes)
    taken: list[tuple[float, float, float, float]] = []
    marks: list[Look] = []
    for text, x, y, ups in labels:
        lines = text.split("<br>")
        across = (5.6 * max(map(letters_of, lines)) + 14) / PICTURE_PX[0] * (right - left)
        row = LINE_PX / PICTURE_PX[1] * (top - bottom)
        for avoided, (at_right, rows), up in product((ranges, ()), sides, ups):
            x0 = x if at_right else x - across
            y0 = y + rows * row if up else y - (rows + len(lines)) * row
            x1, y1 = x0 + across, y0 + len(lines) * row
            beside = len(lines) == 1 and not rows  # may stand out a little above and below
            inside = left <= x0 and x1 <= right and (beside or (bottom <= y0 and y1 <= top))
            clear = not any(x0 < b and a < x1 and y0 < d and c < y1 for a, b, c, d in taken)
            own = at_right or not any(x0 < a < x and y0 <= b <= y1 for a, b in points)
            far0, far1 = (y0, y1 + row / 2) if up else (y0 - row / 2, y1)  # nor touch
            crossed = any(x0 < b and a < x1 and far0 < d and c < far1 for a, b, c, d in avoided)
            if inside and clear and own and not crossed:
                taken.append((x0, x1, y0, y1))
                shift, away = (9 if at_right else -9), 3 + LINE_PX * rows
                where: Look = {"xanchor": "left" if at_right else "right", "xshift": shift}
                where |= {"yanchor": "bottom" if up else "top", "yshift": away if up else -away}
                if rows:  # the thinnest of arrows
                    where |= {
                        "showarrow": True,
                        "ax": where.pop("xshift"),
                        "ay": -where.pop("yshift"),
                        "arrowhead": 0,
                        "arrowwidth": 1,
                        "arrowcolor": theme.muted,
                        "standoff": 4,
                    }
                marks.append(note(text, x, y, 11 * theme.scale, theme.ink, align="left", **where))
                break
    return marks


def letters_of(text: str) -> int:
    """Return how many letters a label has, some of which may be bold."""
    return len(text.replace("<b>", "").replace("</b>", ""))


def is_logarithmic(values: Sequence[float]) -> bool:
    """Return whether positive numbers lie so far apart that only a logarithmic axis shows them all."""
    return len(values) > 1 and min(values) > 0 and max(values) >= LOG_FROM * min(values)


def measure_axis(
    theme: Theme, measure: MeasureWords, values: Sequence[float], room: float = 0.06
) -> Look:
    """Return the axis of a measure over some values, ticks in its words; logarithmic where they lie far apart.

    Parameters
    ----------
    room
        Of the axis, beyond the values at either end.
    """
    known = list(values) or [0.0, 1.0]
    low, high = min(known), max(known)
    if is_logarithmic(known):
        title = f"{measure.title}, logarithmic"
        return log_axis(theme, low, high, measure.words, room, grid=True, title=title)
    beyond = room * (high - low) or max(0.05 * abs(high), 1e-9)
    step = round_step((high - low + 2 * beyond) / 6)
    ticks = multiples(step, low - beyond, high + beyond, rounding=0.0)
    return axis(
        theme,
        grid=True,
        range=[low - beyond, high + beyond],
        tickvals=ticks,
        ticktext=[measure.words(t) for t in ticks],
        title=measure.title,
    )


def study_axis(key: Key, values: tuple[Value, ...]) -> StudyAxis:
    """Return an axis of a study for figures; units that the labels carry are not in its title."""
    unit = "" if key.unit in ("", "ms", "Gbit/s") else f", {key.unit}"
    title = f"{uncapitalised(axis_words(key))}{unit}"
    return StudyAxis(title, values, tuple(axis_label(key, value) for value in values))


def measure_of_study(name: str, against: str = "") -> MeasureWords:
    """Return a measure for figures; against a fabric it is a ratio."""
    one = MEASURES[name]
    more = one.better == "most"
    if against:
        other = uncapitalised(FABRICS.get(against, against))
        return MeasureWords(
            f"{uncapitalised(one.words)} against {other}", lambda ratio: f"{short(ratio)}x", more
        )
    return MeasureWords(uncapitalised(one.words), lambda value: value_words(name, value), more)


# For lines that are no fabrics: colour, dash and mark, so that none is told apart by colour alone.
_LOOKS = (
    ("#0072B2", "solid", "circle"),
    ("#E69F00", "6px,3px", "diamond"),
    ("#009E73", "2px,3px", "square"),
    ("#CC79A7", "9px,3px,2px,3px", "triangle-up"),
    ("#8A8F98", "longdash", "x"),
    ("#56B4E9", "dash", "cross"),
    ("#D55E00", "dot", "star"),
    ("#332288", "dashdot", "triangle-down"),
)
MAX_LINES = len(_LOOKS)


def seed_lines(
    lines: Sequence[SeedLine], along: StudyAxis, measure: MeasureWords, theme: Theme
) -> Figure:
    """Return the lines, each mean with a mark, and behind it the band from the least seed to the most."""
    places, layers = along.places(), []
    every = [(p.least, p.most) for one in lines for p in one.cells.values()]
    value_axis = measure_axis(theme, measure, [v for ends in every for v in ends if v is not None])
    for number, one in enumerate(lines):
        colour, dash, symbol = look_of(one, number, theme)
        cells = sorted(one.cells.items(), key=lambda cell: places[cell[0]])
        points = [
            Point(
                places[at],
                math.nan if cell.mean is None else cell.mean,
                f"<b>{one.name}</b>, {along.labels[at]}<br>{_said(cell, measure)}",
                key=list(cell.runs),
            )
            for at, cell in cells
        ]
        least, most = ([getattr(cell, end) for _, cell in cells] for end in ("least", "most"))
        if least != most:
            x = [point.x for point in points]
            layers.append(spread_band(x, least, most, faded(colour, 0.16)))
        layers.append(
            curve(one.name, points, line(colour, 2.2, dash), theme, mark=symbol, size=8, **UNFADED)
        )
    return chart(
        layers,
        theme,
        330,
        along.drawn(theme),
        value_axis,
        legend=len(lines) > 1,
        room={"top": 12 + 20 * (math.ceil(len(lines) / 4) if len(lines) > 1 else 0)},
    )


def look_of(one: SeedLine, number: int, theme: Theme) -> tuple[str, str, str]:
    """Return colour, dash and mark of a line: its fabric's, or the next of those for other lines."""
    if entry := ENTRIES.get(one.fabric):
        return theme.fabric_colour(one.fabric), entry.dash, entry.mark
    colour, dash, symbol = _LOOKS[number % MAX_LINES]
    if theme.name == "dark":
        colour = {"#0072B2": "#56B4E9", "#56B4E9": "#BFE3F8", "#332288": "#8F86E8"}.get(
            colour, colour
        )
    return colour, dash, symbol


def _said(point: Cell, measure: MeasureWords) -> str:
    mean, least, most = (measure.words(v or 0.0) for v in (point.mean, point.least, point.most))
    of_seeds = f", the mean of {point.values} seeds<br>{least} to {most}" * (point.values > 1)
    return f"{measure.title} {mean}{of_seeds}"
