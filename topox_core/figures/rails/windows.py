"""Windows of a rail: their lengths, by what follows and side by side, and how many a stage has."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

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
from topox_core.figures.palette import VERMILION, Theme, parallelism_colour, parallelism_word
from topox_core.figures.template import (
    DOTS,
    Figure,
    Layer,
    Look,
    axis,
    box,
    hatched,
    level,
    line,
    log_axis,
    note,
    opaque,
    upright,
)
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.iteration import Window
from topox_core.rails.window_lengths import (
    TrafficClass,
    cdf as distribution,
    mib,
    share_hiding,
)
from topox_core.text.numbers import count, percent, plural, time

TOO_SHORT = "rgba(213,94,0,0.09)"


@dataclass(frozen=True)
class LengthAxis:
    """A logarithmic axis of lengths of windows: its ends in ms, its ticks and their words."""

    low: float
    high: float
    ticks: tuple[float, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, lengths: Sequence[float], threshold_ms: float = 0.0) -> Self:
        """Return an axis of whole decades that holds some lengths, and a threshold above 0.

        Where windows overlap (a length of 0 or less), it begins half a decade earlier with a place
        for them.
        """
        positive = [v for v in lengths if v > 0]
        least, most = (min(positive), max(positive)) if positive else (1.0, 1.0)
        least = max(least, most * 1e-6)
        if threshold_ms > 0:
            least, most = min(least, threshold_ms), max(most, threshold_ms)
        first = math.floor(math.log10(least) + 1e-9)
        last = max(math.ceil(math.log10(most * 1.0001)), first + 1)
        ticks = [10.0**d for d in range(first, last + 1, 1 if last - first <= 6 else 2)]
        words = [time(t) for t in ticks]
        if len(positive) == len(lengths):
            return cls(10.0**first, 10.0**last, tuple(ticks), tuple(words))
        none = 10.0 ** (first - 0.6)
        return cls(none, 10.0**last, (none, *ticks), ("none", *words))

    def place(self, length_ms: float) -> float:
        """Return where a length is drawn: what lies beyond an end, there."""
        return min(max(length_ms, self.low), self.high)

    def share(self, length_ms: float) -> float:
        """Return how far along the axis a length is drawn, 0 to 1."""
        return math.log10(self.place(length_ms) / self.low) / math.log10(self.high / self.low)

    def drawn(self, theme: Theme, room: float = 0.0) -> Look:
        """Return the axis of a figure, with so many decades beyond its ends."""
        return axis(
            theme,
            grid=True,
            type="log",
            range=[math.log10(self.low) - room, math.log10(self.high) + room],
            tickvals=self.ticks,
            ticktext=self.words,
            title="length of a window (log)",
        )


def cdf(windows: Sequence[Window], threshold_ms: float, theme: Theme) -> Figure:
    """Return the distribution of the windows' lengths, with the threshold, where it is not 0, and the share below it.

    The axis is logarithmic and holds the threshold; overlaps (negative windows) lie at its left end,
    where they count as too short.
    """
    lengths = LengthAxis.of([w.length_ms for w in windows], threshold_ms)
    at = lengths.place(threshold_ms)
    too_short = percent(1 - share_hiding(windows, threshold_ms))
    right = lengths.share(threshold_ms) < 0.55
    side = {"xanchor": "left", "xshift": 8} if right else {"xanchor": "right", "xshift": -8}
    marks = [
        note(
            f"delay {time(threshold_ms)}<br><b>{too_short} shorter</b>",
            math.log10(at),
            1 if right else 0.04,
            12.5 * theme.scale,
            theme.ink,
            yref="paper",
            yanchor="top" if right else "bottom",
            align=side["xanchor"],
            **side,
        ),
        upright(at, line(VERMILION, 2)),
        box(
            lengths.low,
            at,
            0,
            1,
            yref="paper",
            layer="below",
            line={"width": 0},
            fillcolor=TOO_SHORT,
        ),
    ]
    return _shares(
        [_distribution(windows, lengths, line(theme.primary, 2.4), "", theme)],
        lengths,
        marks if threshold_ms > 0 else [],
        theme,
    )


def _distribution(
    windows: Sequence[float] | Sequence[Window],
    lengths: LengthAxis,
    style: Look,
    name: str,
    theme: Theme,
) -> Layer:
    """Return the share of windows that are no longer than a length."""
    ascending, shares = (values.tolist() for values in distribution(windows))
    x = [lengths.low, *map(lengths.place, ascending), lengths.high]
    said = f"<b>{name}</b>: " if name else ""
    return curve(
        name,
        [
            Point(at, 100 * share, f"{said}{100 * share:.1f} % are no longer than {time(at)}")
            for at, share in zip(x, [0.0, *shares, 1.0], strict=True)
        ],
        style,
        theme,
        steps=True,
    )


def _shares(
    layers: Sequence[Layer],
    lengths: LengthAxis,
    marks: Sequence[Look],
    theme: Theme,
) -> Figure:
    """Return a chart of shares of windows over their length."""
    shares = (0, 25, 50, 75, 100)
    words = [f"{share} %" for share in shares]
    return chart(
        layers,
        theme,
        256,
        lengths.drawn(theme),
        axis(theme, grid=True, range=[0, 102], tickvals=shares, ticktext=words),
        marks,
        room={"right": 18},
    )


def traffic_words(group: TrafficClass) -> str:
    """Return a class of traffic in words: operation (else parallelism) and mean size."""
    name = group.name or parallelism_word(group.parallelism)
    return f"{name}, {mib(group.mean_bytes)}" if group.mean_bytes else name


def breakdown(groups: Sequence[TrafficClass], threshold_ms: float, theme: Theme) -> Figure:
    """Return each class's windows as dots (logarithmic), their mean, and the threshold where it is not 0."""
    lengths = LengthAxis.of([w.length_ms for group in groups for w in group.windows], threshold_ms)
    return row_chart(
        [f"{traffic_words(group)}  ({count(group.count)})" for group in groups],
        [
            ticks_across(
                "mean",
                [
                    Point(
                        lengths.place(group.mean_idle_ms),
                        row,
                        f"mean {time(group.mean_idle_ms)} of {plural(group.count, 'window')}",
                    )
                    for row, group in enumerate(groups)
                ],
                theme,
                22,
            ),
            *[
                dots(
                    parallelism_word(group.parallelism),
                    [
                        Point(
                            lengths.place(one.length_ms),
                            row,
                            f"<b>{time(one.length_ms)}</b> after {parallelism_word(one.before)}<br>"
                            f"before {traffic_words(group)}",
                        )
                        for one in group.windows
                    ],
                    opaque(
                        10 * theme.scale,
                        parallelism_colour(group.parallelism),
                        line=line(theme.page, 1),
                        symbol=["circle" if one.length_ms > 0 else "x" for one in group.windows],
                    ),
                    theme,
                )
                for row, group in enumerate(groups)
            ],
        ],
        theme,
        lengths.drawn(theme, 0.08),
        max(30, 60 / max(1, len(groups))),
        11.5,
        marks=[upright(lengths.place(threshold_ms), line(VERMILION, 2))]
        if threshold_ms > 0
        else [],
    )


def counts(exact: Sequence[int], formula: int, theme: Theme) -> Figure:
    """Return the windows of an iteration by stage, counted, with the formula's as a dotted line."""
    numbered = len(exact) <= 24
    # Above the picture: beside its line it would stand in the bars' numbers.
    above: Look = {"xref": "paper", "xanchor": "right", "yref": "paper", "yanchor": "bottom"}
    return chart(
        [
            bars(
                "",
                theme.primary,
                [
                    Bar(
                        k, v, f"stage {k}: {plural(v, 'window')}", text=count(v) if numbered else ""
                    )
                    for k, v in enumerate(exact)
                ],
                theme,
                0.7,
                standing=True,
            )
        ],
        theme,
        232,
        axis(
            theme,
            range=[-0.6, len(exact) - 0.4],
            tickvals=list(range(0, len(exact), max(1, len(exact) // 16))),
            title="pipeline stage",
        ),
        axis(
            theme,
            grid=True,
            range=[0, 1.16 * max([*exact, formula, 1])],
            nticks=5,
            tickformat=",~g",
        ),
        [
            level(formula, line(theme.ink, 1.4, DOTS)),
            note(
                f"dotted: formula, reconstructed: {count(formula)}",
                1,
                1,
                11.5 * theme.scale,
                theme.ink,
                **above,
            ),
        ],
        room={"top": 22},
    )


# Of the runs in their order: which fabric's colour, and the dash.
_LOOKS = (
    ("scheduled", "solid"),
    ("reactive", "7px,5px"),
    ("fat_tree", "2px,3px"),
    ("provisioned", "9px,3px,2px,3px"),
)


def windows_side_by_side(runs: Sequence[tuple[str, FloatArray]], theme: Theme) -> Figure:
    """Return the distribution of the windows' lengths of each run (letter, lengths in ms), length logarithmic.

    A run without a window has no line.
    """
    there = [(letter, of.tolist()) for letter, of in runs if len(of)]
    lengths = LengthAxis.of([v for _, of in there for v in of])
    lines, marks = [], []
    for number, (letter, of) in enumerate(there):
        fabric, dash = _LOOKS[number % len(_LOOKS)]
        colour, half = theme.fabric_colour(fabric), float(np.median(of))
        lines.append(_distribution(of, lengths, line(colour, 2.2, dash), letter, theme))
        words_of = f"half longer than {time(half)}" if half > 0 else "half of them overlap"
        # On the side that has more room, each at a height of its own.
        side = 1 if lengths.share(half) < 0.45 else -1
        marks.append(
            note(
                f'<span style="color:{colour}"><b>{letter}</b></span>, {words_of}',
                math.log10(lengths.place(half)),
                30 + 14 * number,
                11.5 * theme.scale,
                theme.ink,
                xanchor="left" if side > 0 else "right",
                xshift=10 * side,
            )
        )
    return _shares(lines, lengths, marks, theme)


def by_length(windows: Sequence[Window], delay_ms: float | None, theme: Theme) -> Figure:
    """Return a bar a window, in the order of time: filled where a change of this delay fits, else hatched.

    Without a delay all are filled.
    """
    low, high = 1.0, max(window.length_ms for window in windows) * 2.5
    kinds: dict[bool, list[Bar]] = {True: [], False: []}
    for row, one in enumerate(windows):
        words = time(one.length_ms)
        kinds[(one.length_ms >= (delay_ms or 0.0))].append(
            Bar(row, one.length_ms - low, words, low, words)
        )
    marks: list[Look] = []
    if delay_ms is not None:
        marks = marked(
            delay_ms,
            f"delay {time(delay_ms)}",
            line(VERMILION, 2),
            theme,
            math.log10(delay_ms),
            12,
            theme.bad,
            "left" if delay_ms < 2 else "center",
        )
    return row_chart(
        [f"{one.before} → {one.after}" if one.after else one.before for one in windows],
        [
            bars("", theme.primary, kinds[True], theme, 0.7),
            bars("", hatched(theme), kinds[False], theme, 0.7),
        ],
        theme,
        log_axis(theme, low, high, time),
        182 / len(windows),
        11.5,
        room={"top": 22, "right": 14},
        marks=marks,
    )
