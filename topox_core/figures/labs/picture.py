"""A figure of a lab's screen with everything that goes with it, and what it is asked to show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from topox_core.figures.palette import Theme
from topox_core.figures.template import Figure
from topox_core.labs.generators.generator import GivenTable
from topox_core.labs.lab import Lab, Screen, Texts


@dataclass(frozen=True)
class Picture:
    """A figure with its title, the line under it, alternative text made from its data, and its table."""

    id: str
    title: str
    note: str
    figure: Figure
    alt: str
    table: GivenTable


@dataclass(frozen=True)
class Asking:
    """What a screen's figures are drawn from.

    Attributes
    ----------
    hidden
        Values that no figure may show yet.
    computed
        Whether figures may show anything but the instance itself.
    value
        Where the screen's slider stands; None without one.
    starts_ms
        A schedule that is being entered by hand.
    tried
        Groupings that were tried, in order.
    """

    lab: Lab
    screen: Screen
    instance: Any
    words: Texts
    theme: Theme
    hidden: frozenset[str] = frozenset()
    computed: bool = False
    value: float | None = None
    starts_ms: Mapping[str, float] = field(default_factory=dict)
    tried: Sequence[str] = ()

    @property
    def keys(self) -> frozenset[str]:
        """Values that questions of this screen ask for."""
        return frozenset(q.key for q in self.screen.questions if isinstance(q.key, str))

    def hides(self, *names: str) -> bool:
        """Return whether one of these values may not be shown yet."""
        return not self.hidden.isdisjoint(names)

    def say(self, key: str, /, **facts: object) -> str:
        """Return a text of figures."""
        return self.words.say(f"page.figure.{key}", **facts)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[object]], more: Sequence[str] = ()
    ) -> GivenTable:
        """Return a table whose columns are named by keys of the texts, and ``more`` in words."""
        names = (*(self.say(f"table.{name}") for name in columns), *more)
        return GivenTable(names, tuple(tuple(map(_cell, row)) for row in rows))

    def picture(
        self, kind: str, figure: Figure, table: GivenTable, note: str = "", **facts: object
    ) -> Picture:
        """Return a figure with the texts of its kind; ``facts`` are of the alternative text."""
        return Picture(
            kind,
            self.say(f"{kind}.title"),
            note or self.say(f"{kind}.note"),
            figure,
            self.say(f"{kind}.alt", **facts),
            table,
        )


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
