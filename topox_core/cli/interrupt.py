"""Ctrl-C as a wish to stop: the solve ends and the best schedule so far is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from topox_core.cli.printing import note


@contextmanager
def ctrl_c_stops() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed; a second Ctrl-C ends the command at once."""
    asked = threading.Event()

    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        note("stopping; the best schedule so far is kept (Ctrl-C again ends at once)")

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
