"""What commands print: tables, numbers as people read them, and notes on standard error."""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from topox_core.text.numbers import ENDED

# Kernels that take longer than this to compile or load are told apart.
TOLD_APART_S = 1.0


def table(*rows: tuple[str, ...] | str | bool | None) -> str:
    """Return rows as lines with their columns aligned; the last column is free to be long, and what is no row is left out."""
    shown = [row for row in rows if isinstance(row, tuple)]
    columns = max(map(len, shown))
    widths = [
        max((len(row[i]) for row in shown if i < len(row) - 1), default=0) for i in range(columns)
    ]
    return "\n".join(
        "  ".join([*map(str.ljust, row[:-1], widths), row[-1]]).rstrip() for row in shown
    )


# By heading what stands below it: an attribute or a key of a thing, or what a function makes of it.
Says = Mapping[str, str | Callable[[Any], object]]


def columns(things: Iterable[Any], says: Says) -> str:
    """Return a table with a row for each thing; of numbers that are no words yet six digits."""

    def said(thing: Any, what: str | Callable[[Any], object]) -> object:
        if callable(what):
            return what(thing)
        return thing[what] if isinstance(thing, Mapping) else getattr(thing, what)

    rows = (tuple(cell(said(one, what)) for what in says.values()) for one in things)
    return table(tuple(says), *rows)


def note(*lines: str) -> None:
    """Print lines on standard error."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def ended(stopped_by: str, wall_s: float, working_s: float | None = None) -> str:
    """Return why a solve ended and after how long, in words; what did not count towards its limit is told apart."""
    words = f"{ENDED[stopped_by]}, {figure(round(wall_s, 3), 's')}"
    if working_s is not None and wall_s - working_s >= TOLD_APART_S:
        loading = figure(round(wall_s - working_s, 3), "s")
        words += f", of which {loading} to make the kernels ready"
    return words


def figure(value: float | None, unit: str = "") -> str:
    """Return a number as people read it: up to six significant digits, a dash for none."""
    if value is None:
        return "-"
    text = f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:.6g}"
    return f"{text} {unit}".rstrip()


def cell(value: object) -> str:
    """Return any value as a cell of a table."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return figure(value)
    return "-" if value is None else str(value)


def percent(fraction: float | None) -> str:
    """Return a fraction as a percentage."""
    return "-" if fraction is None else f"{fraction * 100:.3g} %"
