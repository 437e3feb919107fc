"""An axis of a study as figures draw it, and the words of what is measured along it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, log_ticks, named_axis
from topox_core.text.numbers import short

# More values than this are drawn at their place on a number line, fewer at equal steps.
MOST_NAMED = 12
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

    def __post_init__(self) -> None:
        assert len(self.values) == len(self.labels)

    @property
    def numbers(self) -> bool:
        """Whether its values are numbers, so that their distance means something."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @property
    def by_names(self) -> bool:
        """Whether its values stand at equal steps, each with its label."""
        return not self.numbers or len(self.values) <= MOST_NAMED

    @property
    def logarithmic(self) -> bool:
        """Whether its numbers are drawn on a logarithmic axis."""
        return not self.by_names and is_logarithmic(self.values)

    def places(self) -> list[float]:
        """Return where its values stand on a drawn axis."""
        if self.by_names:
            return [float(k) for k in range(len(self.values))]
        return [math.log10(v) if self.logarithmic else float(v) for v in self.values]

    def drawn(self, theme: Theme, *, grid: bool = False) -> dict[str, Any]:
        """Return the axis of a figure whose marks stand at :meth:`places`."""
        if self.by_names:
            every = max(1, math.ceil(len(self.values) / MOST_NAMED))
            shown = range(0, len(self.values), every)
            return named_axis(
                theme,
                [self.labels[k] for k in shown],
                list(shown),
                range=[-0.5, len(self.values) - 0.5],
                title=self.title,
                showgrid=grid,
                gridcolor=theme.grid,
            )
        places = self.places()
        low, high = min(places), max(places)
        room = 0.03 * (high - low or 1.0)
        ticks: dict[str, Any] = {"nticks": 7}
        if self.logarithmic:
            values = log_ticks(min(self.values), max(self.values))
            ticks = {
                "tickvals": [math.log10(v) for v in values],
                "ticktext": [short(v) for v in values],
            }
        words = f"{self.title}, logarithmic" if self.logarithmic else self.title
        return axis(theme, grid=grid, range=[low - room, high + room], title=words, **ticks)


@dataclass(frozen=True)
class MeasureWords:
    """What a measure is called, how a value of it is written, and which way is better."""

    title: str
    words: Callable[[float], str]
    more_is_better: bool = False


def is_logarithmic(values: Sequence[float]) -> bool:
    """Return whether positive numbers lie so far apart that only a logarithmic axis shows them all."""
    return len(values) > 1 and min(values) > 0 and max(values) >= LOG_FROM * min(values)


def measure_axis(
    theme: Theme, measure: MeasureWords, values: Sequence[float], room: float = 0.06
) -> dict[str, Any]:
    """Return the axis of a measure over some values, ticks in its words; logarithmic where they lie far apart.

    Parameters
    ----------
    room
        Of the axis, beyond the values at either end.
    """
    known = list(values) or [0.0, 1.0]
    low, high = min(known), max(known)
    if is_logarithmic(known):
        beyond = (high / low) ** room
        ticks = log_ticks(low / beyond, high * beyond)
        return axis(
            theme,
            grid=True,
            type="log",
            range=[math.log10(low / beyond), math.log10(high * beyond)],
            tickvals=ticks,
            ticktext=[measure.words(t) for t in ticks],
            title=f"{measure.title}, logarithmic",
        )
    beyond = room * (high - low) or max(0.05 * abs(high), 1e-9)
    ticks = _round_ticks(low - beyond, high + beyond)
    return axis(
        theme,
        grid=True,
        range=[low - beyond, high + beyond],
        tickvals=ticks,
        ticktext=[measure.words(t) for t in ticks],
        title=measure.title,
    )


def _round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between two, about six."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(m * power for m in (1, 2, 5, 10) if (high - low) / (m * power) <= most)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [k * step for k in range(first, last + 1)]
