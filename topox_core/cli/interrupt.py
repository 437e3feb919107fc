"""Ctrl-C and SIGTERM as a wish to stop: the solve ends and the best schedule so far is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from topox_core.cli.printing import note


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
