"""Stop criteria: objects that are called without arguments and return whether to stop."""

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


def any_of(*stops: Stop) -> Stop:
    """Return the criterion that is met as soon as one of several is."""
    return lambda: any(stop() for stop in stops)


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
