"""Predictions: how far off they are, by kind; iterations against measured ones; what a class said, the truth only if it is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from topox_core.figures.builders import (
    Bar,
    Point,
    bars,
    chart,
    curve,
    dots,
    marked,
    row_chart,
    ticks_across,
)
from topox_core.figures.palette import Theme
from topox_core.figures.template import (
    DOTS,
    Figure,
    Layer,
    Look,
    axis,
    legend_square,
    line,
    log_axis,
    note,
    opaque,
    spread_band,
    upright,
)
from topox_core.papers import accuracy
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import seconds, short
from topox_core.training.measured.validation import Compared

BAND = 0.1
Kind = Literal["calibration", "test", "table"]
# Rows that numbers were fitted to are hollow; a printed table of another machine has squares.
SYMBOLS: dict[Kind, str] = {"calibration": "circle-open", "test": "circle", "table": "square"}


@dataclass(frozen=True)
class MeasuredSet:
    """Rows of one source, under the name that the legend gives it."""

    name: str
    kind: Kind
    rows: Sequence[Compared]


def predicted_against_measured(sets: Sequence[MeasuredSet], theme: Theme) -> Figure:
    """Return the scatter, both axes in s and logarithmic; colour by model size, symbol by source."""
    times = [
        time_ms / 1e3
        for one in sets
        for row in one.rows
        for time_ms in (row.measured.measured_ms, row.predicted_ms)
    ]
    ends = low, high = min(times) / 1.25, max(times) * 1.25
    models = sorted({row.measured.model for one in sets for row in one.rows}, key=float)
    colours = {model: theme.switch_colour(place) for place, model in enumerate(models)}
    less, more = ([share * end for end in ends] for share in (1 - BAND, 1 + BAND))
    log = partial(log_axis, theme, low, high, "{:g}".format, grid=True)
    return chart(
        [
            spread_band(ends, less, more, theme.band),
            curve("", [Point(end, end) for end in ends], line(theme.muted, 1), theme),
            *(
                dots(
                    f"{model} B, {escape_untrusted(one.name, 'figure')}",
                    [
                        Point(
                            row.measured.measured_ms / 1e3,
                            row.predicted_ms / 1e3,
                            f"{row.measured.job.plan.words}<br>"
                            f"measured {seconds(row.measured.measured_ms / 1e3)}, "
                            f"predicted {seconds(row.predicted_ms / 1e3)}<br>"
                            f"error {short(row.error * 100)} %",
                        )
                        for row in one.rows
                        if row.measured.model == model
                    ],
                    {
                        "symbol": SYMBOLS[one.kind],
                        "size": 8 * theme.scale,
                        "color": colour,
                        "line": line(colour, 1.6),
                    },
                    theme,
                )
                for one in sets
                for model, colour in colours.items()
            ),
        ],
        theme,
        430,
        log(title="measured iteration, s (log)"),
        log(title="predicted iteration, s (log)"),
        legend=True,
        room={"top": 44},
    )


HEIGHT = 172
# Of a picture without an upright axis, in px.
AROUND = {"left": 16.0, "right": 16.0, "top": 34.0}
# Of a row of options, in px; more options than five share the height of five.
ROW, MAX_ROWS_PX, ROWS_EXTRA = 36, 150, 34
TICK = "✓"
# An interval, and how many answers are in it; the first and the last hold the tails.
Interval = tuple[float, float, int]


def numbers_histogram(
    intervals: Sequence[Interval],
    theme: Theme,
    *,
    unit: str,
    ends: tuple[str, str],
    truth: float | None = None,
    truth_words: str = "",
) -> Figure:
    """Return a histogram of numbers.

    Parameters
    ----------
    unit
        Title of the axis: a unit, or what the numbers are divided by.
    ends
        What the first and the last interval say besides: or less, or more.
    truth
        Drawn as a line with ``truth_words``; None before the reveal.
    """
    widest = max(intervals[-1][1] - intervals[0][0], 1e-9)
    columns = [
        Bar((a + b) / 2, count, text=str(count) if count else "") for a, b, count in intervals
    ]
    widths = [max(b - a, widest / 12) * 0.96 for a, b, _ in intervals]
    return chart(
        [bars("", theme.primary, columns, theme, widths, size=13, standing=True)],
        theme,
        HEIGHT,
        _number_axis(theme, intervals, unit, ends, truth),
        axis(theme, visible=False, range=[0, 1.16 * max(1, *(one.length for one in columns))]),
        _truth(truth, truth_words, theme),
        room=AROUND,
    )


def _number_axis(
    theme: Theme,
    intervals: Sequence[Interval],
    unit: str,
    ends: tuple[str, str],
    truth: float | None,
) -> Look:
    """Return an axis whose ticks are the edges between intervals; the tails are named at its ends."""
    low, high = intervals[0][0], intervals[-1][1]
    edges = [a for a, _, _ in intervals[1:]]
    ticks = {at: short(at) for at in edges[:: max(1, -(-len(edges) // 5))]}
    if len(intervals) > 1:
        ticks |= {
            edges[0]: f"{short(edges[0])}<br>{ends[0]}",
            edges[-1]: f"{short(edges[-1])}<br>{ends[1]}",
        }
        # Without ticks too near to the named ends.
        ticks = {
            at: words
            for at, words in ticks.items()
            if at in (edges[0], edges[-1]) or min(at - edges[0], edges[-1] - at) >= (high - low) / 7
        }
    else:
        ticks = {(low + high) / 2: short((low + high) / 2)}
    points = [low, high, *([truth] if truth is not None else [])]
    room = max(max(points) - min(points), 1e-9) * 0.06
    return axis(
        theme,
        title=unit,
        range=[min(points) - room, max(points) + room],
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
    )


def numbers_as_dots(
    values: Sequence[float],
    theme: Theme,
    *,
    unit: str,
    truth: float | None = None,
    truth_words: str = "",
) -> Figure:
    """Return a few numbers as dots, equal ones over each other; parameters as :func:`numbers_histogram`."""
    heights = [values[: k + 1].count(value) for k, value in enumerate(values)]
    points = [*values, *([truth] if truth is not None else [])] or [0.0, 1.0]
    room = max(max(points) - min(points), abs(points[0]) * 0.1, 1e-9) * 0.15
    large = opaque(18 * theme.scale, theme.primary)
    return chart(
        [dots("", [Point(*one) for one in zip(values, heights, strict=True)], large, theme)],
        theme,
        HEIGHT * 0.72,
        axis(theme, title=unit, range=[min(points) - room, max(points) + room], nticks=7),
        axis(theme, visible=False, range=[0.3, max([*heights, 2]) + 0.7]),
        _truth(truth, truth_words, theme),
        room=AROUND,
    )


def _truth(truth: float | None, words: str, theme: Theme) -> list[Look]:
    """Return the true number as a line with its words, nothing before the reveal."""
    if truth is None:
        return []
    return marked(truth, f"{TICK} {words}", line(theme.ink, 3, DOTS), theme, size=14)


def options_chosen(
    options: Sequence[tuple[str, int]],
    theme: Theme,
    *,
    names: tuple[str, str] = ("", ""),
    again: Sequence[int] | None = None,
    right: Sequence[int] = (),
) -> Figure:
    """Return how many chose each option, as bars from 0.

    Parameters
    ----------
    names
        Of the first and of the second vote, for the legend.
    again
        Counts of a second vote, under those of the first.
    right
        Places of the true options; empty before the reveal.
    """
    counts = [count for _, count in options]
    labels = [f"{TICK} {words}" if at in right else words for at, (words, _) in enumerate(options)]
    outline = {"color": theme.ink, "width": [3 if at in right else 0 for at in range(len(options))]}
    votes = [(0.0, 0.62, counts, theme.primary, "")]
    if again is not None:
        votes = [
            (-0.2, 0.36, counts, theme.line, names[0]),
            (0.2, 0.36, [*again], theme.primary, names[1]),
        ]
    layers: list[Layer] = []
    for shift, width, values, colour, name in votes:
        rows = [Bar(at + shift, value, text=str(value)) for at, value in enumerate(values)]
        look = {"color": colour, "line": outline}
        layers += [
            bars(name, look, rows, theme, width, size=13, showlegend=False),
            legend_square(name, colour, 12 * theme.scale) if name else None,
        ]
    return row_chart(
        labels,
        layers,
        theme,
        axis(theme, visible=False, range=[0, 1.08 * max([*counts, *(again or ()), 1])]),
        min(ROW, MAX_ROWS_PX / len(options)),
        14,
        again is not None,
        {"left": min(8.0 * max(map(len, labels)), 300), "right": 40, "top": 24},
    )


# -- predictions of every kind --------------------------------------------------------------------

# What is nearer stands at the left end: digits of printed numbers end there.
NEAREST, FURTHEST = 1e-5, 10.0
ROW_PX, AXIS_PX = 46, 56
AT_LEFT: Look = {"xref": "paper", "xanchor": "left", "yanchor": "middle", "showarrow": False}
MARKED = (0.01, 0.1)


def names_of(kinds: Sequence[accuracy.Kind]) -> list[str]:
    """Return what the rows of the figure are called."""
    return [f"{one.title}, {one.against}" for one in kinds]


def error_dots(kinds: Sequence[accuracy.Kind], theme: Theme) -> Figure:
    """Return a row for each kind: its comparisons as dots, their median as a bar; what a test holds as one hollow dot."""
    layers = []
    for at, kind in enumerate(kinds):
        compared = [
            Point(
                min(max(abs(one.error), NEAREST), FURTHEST),
                at,
                f"{escape_untrusted(one.subject, 'figure')}: {one.error:+.2%}",
            )
            for one in kind.comparisons
        ]
        held = min(max(kind.most, NEAREST), FURTHEST)
        hollow = opaque(8 * theme.scale, theme.primary, symbol="circle-open")
        layers += [
            dots("", compared, {**hollow, "symbol": "circle", "opacity": 0.45}, theme),
            dots(
                "",
                [Point(held, at, f"{kind.count} answers, none further off")]
                if not compared
                else [],
                hollow,
                theme,
            ),
        ]
        median = kind.share(50)
        if median is not None:
            mean = Point(max(median, NEAREST), at, f"median {median:.2%}")
            layers.append(ticks_across("", [mean], theme, 18, 2))
    names = [
        # Above its row: beside it a narrow window would have no room for the dots.
        note(escape_untrusted(name, "figure"), 0, at - 0.44, 12 * theme.scale, theme.ink, **AT_LEFT)
        for at, name in enumerate(names_of(kinds))
    ]
    return chart(
        layers,
        theme,
        ROW_PX * len(kinds) + AXIS_PX,
        log_axis(
            theme,
            NEAREST,
            FURTHEST,
            lambda share: f"{100 * share:g} %",
            0.02,
            title="error, without its sign (log)",
        ),
        axis(theme, range=[len(kinds) - 0.6, -0.75], visible=False),
        [*names, *(upright(one, line(theme.line, 1, "dot")) for one in MARKED)],
        room={"right": 16},
    )
