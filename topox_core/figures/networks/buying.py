"""What to buy: iteration time against price, and how far a number swings when one price or choice changes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from topox_core.economics.comparison import Swing
from topox_core.figures.builders import Bar, Point, bars, chart, dots, front_line, row_chart
from topox_core.figures.palette import Theme, readable_on
from topox_core.figures.studies.axes import (
    MeasureWords,
    letters_of,
    measure_axis,
    place_on,
    point_labels,
)
from topox_core.figures.template import (
    Figure,
    Layer,
    Look,
    axis,
    line,
    note,
    opaque,
    upright,
)
from topox_core.text.numbers import NBSP, and_more, percent

PLOT_PX = 190.0  # of the bars, without their labels, on a laptop


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
        What comes of both ends stands below a figure's name, the smaller value first, and what it
        moves to in the bars: so that the chart fits a narrow screen.
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


def swings_words(swings: Sequence[Swing], of: Swinging = SAVING) -> str:
    """Return in words what a tornado shows: what each figure moves to, and what that gives."""
    return "; ".join(
        f"{one.name} " + ", ".join(f"{to} gives {of.words(value)}" for to, value in one.ends)
        for one in swings
    )


def tornado(swings: Sequence[Swing], base: float, theme: Theme, of: Swinging = SAVING) -> Figure:
    """Return the swings of a number round its present value, the widest on top, each end labelled.

    Parameters
    ----------
    base
        The number now; a saving is a share.
    """
    smaller, larger = (theme.line, "#4A5666" if theme.name == "light" else "#AEB9C6")
    layers = []
    marks: list[Look] = []
    values = [base, *(value for swing in swings for _, value in swing.ends)]
    for side, colour, words in (
        (-1, smaller, f"smaller {of.name}"),
        (1, larger, f"larger {of.name}"),
    ):
        rows = [
            (k, end[0], end[1])
            for k, swing in enumerate(swings)
            for end in swing.ends
            if (end[1] - base) * side > 1e-12 * max(1.0, abs(base))
        ]
        # Where both ends lie on one side, the longer is drawn beneath, so that neither hides the
        # other.
        rows.sort(key=lambda row: -abs(row[2] - base))
        # Of two ends on one side the longer has its label beside the bar, the other in it.
        longest = {k: (moved_to, value) for k, moved_to, value in reversed(rows)}
        layers.append(
            bars(
                words,
                colour,
                [
                    Bar(
                        k,
                        of.factor * (value - base),
                        f"<b>{swings[k].name}</b><br>{moved_to}: {of.name} {of.words(value)}",
                        of.factor * base,
                        moved_to
                        if of.ends_below
                        else ""
                        if longest[k] == (moved_to, value)
                        else of.label(value),
                    )
                    for k, moved_to, value in rows
                ],
                theme,
                0.56,
                ink=readable_on(colour),
                size=10,
                insidetextanchor="end",
                constraintext="both",
            )
        )
        for k, (moved_to, value) in () if of.ends_below else longest.items():
            share = f"<b>{of.label(value)}</b>".replace("-", "−")
            marks.append(
                note(
                    f"{share}&nbsp; {moved_to}" if side > 0 else f"{moved_to}&nbsp; {share}",
                    of.factor * value,
                    k,
                    11.5 * theme.scale,
                    theme.ink,
                    xanchor="left" if side > 0 else "right",
                    xshift=6 * side,
                )
            )
    low, high = of.factor * min(values), of.factor * max(values)
    span = max(high - low, of.least_span) or 1.0
    before, after = (
        _label_share(
            [mark["text"] for mark in marks if mark["xanchor"] == side],
            0.0 if of.ends_below else 0.12,
        )
        for side in ("right", "left")
    )
    return row_chart(
        [_with_ends(swing, of) if of.ends_below else swing.name for swing in swings],
        layers,
        theme,
        axis(
            theme,
            grid=True,
            range=[low - before * span, high + after * span],
            ticksuffix=of.unit,
            nticks=5 if of.ends_below else 7,  # a phone has no room for more
        ),
        42 if of.ends_below else 29,
        legend=True,
        room={"left": 178},
        marks=[*marks, {"xref": "x", **upright(of.factor * base, line(theme.ink, 1.5))}],
        uniformtext={"mode": "hide", "minsize": 9},  # where a bar has no room for its label
    )


def _with_ends(swing: Swing, of: Swinging) -> str:
    """Return a figure's name and below it what comes of its ends, as the bars stand from left to right."""
    ends = sorted(swing.ends, key=lambda end: end[1])
    words = ", ".join(f"{moved_to}: {of.label(value)}" for moved_to, value in ends)
    return f"{swing.name}<br><span style='font-size:11px'>{words}</span>"


def _label_share(texts: Sequence[str], least: float) -> float:
    """Return the width of the longest label as a share of the bars' width."""
    plain = (text.replace("&nbsp;", " ") for text in texts)
    return max(least, (6.3 * max(map(letters_of, plain), default=0) + 12) / PLOT_PX)


HEIGHT = 400
# Points nearer than this share of the picture have one label; a narrow screen has room for few.
NEAR_X, NEAR_Y = 0.02, 0.03
MAX_IN_LABEL = 3


@dataclass(frozen=True)
class Drawn:
    """A network as it is drawn.

    Attributes
    ----------
    price, time
        As (least, usual, most).
    rival
        Whether it changes no circuits; drawn as a diamond.
    on_front
        Whether no other one beats it in time and price.
    words
        What a hover says besides.
    """

    name: str
    price: tuple[float, float, float]
    time: tuple[float, float, float]
    rival: bool = False
    on_front: bool = False
    words: str = ""


def buying_figure(
    networks: Sequence[Drawn],
    price: MeasureWords,
    time: MeasureWords,
    theme: Theme,
    best: Collection[int] = (),
    steps: Sequence[int] = (),
) -> Figure:
    """Return the networks with their whiskers, the front as a step line, and the best ones ringed and in bold.

    Parameters
    ----------
    steps
        The front in time and price, as positions in order of the price.
    """
    x_axis = measure_axis(theme, price, [v for one in networks for v in one.price], 0.12)
    # Room for a label of three lines.
    y_axis = measure_axis(theme, time, [v for one in networks for v in one.time], 0.2)
    accent = theme.fabric_colour("scheduled")
    measures = price, time
    at = [Point(one.price[1], one.time[1]) for one in networks]
    return chart(
        [
            front_line("best trade-offs", [at[k] for k in steps], accent, theme),
            _points(networks, False, "switch", "circle", accent, best, measures, theme),
            _points(networks, True, "no switch", "diamond", theme.ink, best, measures, theme),
            dots(
                "advice",
                [at[k] for k in best],
                {
                    "size": 19 * theme.scale,
                    "symbol": "circle-open",
                    "color": theme.ink,
                    "line": line(theme.ink, 2.5),
                },
                theme,
            ),
        ],
        theme,
        HEIGHT,
        x_axis,
        y_axis,
        _labels(networks, best, steps, x_axis, y_axis, theme),
        legend=True,
        room={"top": 62, "right": 14},
    )


def _points(
    networks: Sequence[Drawn],
    rival: bool,
    name: str,
    symbol: str,
    colour: str,
    best: Collection[int],
    measures: tuple[MeasureWords, MeasureWords],
    theme: Theme,
) -> Layer:
    price, time = measures
    rows = {k: one for k, one in enumerate(networks) if one.rival == rival}
    whiskers = {
        error: {
            "type": "data",
            "symmetric": False,
            "array": [most - usual for _, usual, most in spans],
            "arrayminus": [usual - least for least, usual, _ in spans],
            "color": theme.muted,
            "thickness": 1.1,
            "width": 3,
        }
        for error, spans in (
            ("error_x", [one.price for one in rows.values()]),
            ("error_y", [one.time for one in rows.values()]),
        )
        if not rival
    }
    sizes = [(10 if one.on_front or k in best else 7) * theme.scale for k, one in rows.items()]
    return dots(
        name,
        [
            Point(
                one.price[1],
                one.time[1],
                f"<b>{one.name}</b><br>{time.words(one.time[1])}, {price.words(one.price[1])}"
                f"<br>{one.words}",
            )
            for one in rows.values()
        ],
        opaque(sizes, colour, symbol=symbol, line=line(theme.page, 1)),
        theme,
        **whiskers,
    )


def _labels(
    networks: Sequence[Drawn],
    best: Collection[int],
    steps: Sequence[int],
    x_axis: Look,
    y_axis: Look,
    theme: Theme,
) -> list[Look]:
    """Return a label for each place where points lie, the best ones' in bold."""
    width = x_axis["range"][1] - x_axis["range"][0]
    height = y_axis["range"][1] - y_axis["range"][0]
    places: list[tuple[float, float, list[int]]] = []
    for k in sorted(range(len(networks)), key=lambda k: (k not in best, not networks[k].on_front)):
        x = place_on(x_axis, networks[k].price[1])
        y = place_on(y_axis, networks[k].time[1])
        for at_x, at_y, group in places:
            if abs(x - at_x) < NEAR_X * width and abs(y - at_y) < NEAR_Y * height:
                group.append(k)
                break
        else:
            places.append((x, y, [k]))
    # From right to left, so that no line from a label to its point crosses one placed before.
    places.sort(key=lambda place: (place[2][0] not in best, -place[0]))
    labels = []
    for x, y, group in places:
        names = [
            f"<b>{networks[k].name}</b>" if k in best else networks[k].name
            for k in group[:MAX_IN_LABEL]
        ]
        names[-1] += and_more(len(group), MAX_IN_LABEL)
        up = not networks[group[0]].rival  # so that labels of neighbours part
        labels.append(("<br>".join(names), x, y, (up, not up)))
    ends = [
        [place_on(x_axis, v) for v in one.price] + [place_on(y_axis, v) for v in one.time]
        for one in networks
    ]
    ranges = [
        *((cheap, dear, y, y) for cheap, _, dear, _, y, _ in ends),
        *((x, x, fast, slow) for _, x, _, fast, _, slow in ends),
        *((ends[k][1], ends[m][1], ends[k][4], ends[k][4]) for k, m in pairwise(steps)),
        *((ends[m][1], ends[m][1], ends[m][4], ends[k][4]) for k, m in pairwise(steps)),
    ]
    points = [(x, y) for x, y, _ in places]
    return point_labels(labels, (x_axis, y_axis), theme, points=points, ranges=ranges)
