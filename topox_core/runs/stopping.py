"""When to stop, as objects beside the algorithms: each is asked with nothing and answers yes or no."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Stop = Callable[[], bool]


def never() -> bool:
    """Stop criterion that never stops."""
    return False


@dataclass(frozen=True)
class AfterSeconds:
    """Yes once ``seconds`` have passed since it was made."""

    seconds: float
    began: float = field(default_factory=time.monotonic)

    def __call__(self) -> bool:
        """Return whether the time is up."""
        return time.monotonic() - self.began >= self.seconds


@dataclass(frozen=True)
class WhenSet:
    """Yes once an event is set: somebody cancelled."""

    event: threading.Event

    def __call__(self) -> bool:
        """Return whether the event is set."""
        return self.event.is_set()


@dataclass(frozen=True)
class AnyOf:
    """Yes as soon as one of several says so."""

    stops: tuple[Stop, ...]

    def __call__(self) -> bool:
        """Return whether one says so."""
        return any(stop() for stop in self.stops)
