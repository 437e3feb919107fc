"""Tables, numbers and words that commands print; progress goes to standard error."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from topox_core.text.sentences import ENDED

# Kernels that take longer than this to compile or load are told apart.
TOLD_APART_S = 1.0


def table(*rows: tuple[str, ...]) -> str:
    """Return rows as lines with their columns aligned; the last column is free to be long."""
    columns = max(len(row) for row in rows)
    widths = [
        max((len(row[i]) for row in rows if i < len(row) - 1), default=0) for i in range(columns)
    ]
    return "\n".join(
        "  ".join([*map(str.ljust, row[:-1], widths), row[-1]]).rstrip() for row in rows
    )


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


@contextmanager
def ctrl_c_stops(
    kept: str = "the best schedule so far is kept",
) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether a stop was asked for; asking again ends the command at once.

    Batch systems ask by SIGTERM, and kill a while later. ``kept`` says what becomes of the work.
    """
    asked = threading.Event()

    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        note(f"stopping; {kept} (Ctrl-C again ends at once)")

    asking = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(one, on_interrupt) for one in asking]
    try:
        yield asked.is_set
    finally:
        for one, handler in zip(asking, before, strict=True):
            signal.signal(one, handler)
