"""Stop criteria: objects that are called without arguments and return whether to stop."""

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
    """Stop once ``seconds`` have passed on ``clock`` since ``began``."""

    seconds: float
    began: float = field(default_factory=time.monotonic)
    clock: Callable[[], float] = time.monotonic

    def __call__(self) -> bool:
        """Return whether the time is up."""
        return self.clock() - self.began >= self.seconds


@dataclass(frozen=True)
class WhenSet:
    """Stop once an event is set."""

    event: threading.Event

    def __call__(self) -> bool:
        """Return whether the event is set."""
        return self.event.is_set()


@dataclass(frozen=True)
class AnyOf:
    """Stop as soon as one of several criteria says so."""

    stops: tuple[Stop, ...]

    def __call__(self) -> bool:
        """Return whether one of the criteria is met."""
        return any(stop() for stop in self.stops)


@dataclass
class Throttled:
    """Another criterion, evaluated at most every ``interval_s`` seconds because it is slow."""

    stop: Stop
    interval_s: float = 0.1
    stopped: bool = False
    next_s: float = 0.0

    def __call__(self) -> bool:
        """Return the criterion's latest answer."""
        now = time.monotonic()
        if not self.stopped and now >= self.next_s:
            self.stopped, self.next_s = self.stop(), now + self.interval_s
        return self.stopped
