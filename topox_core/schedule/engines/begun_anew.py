"""When a model is begun anew for a shorter schedule that was found elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

# A model that is no older, or older than so much (twice as much each time), is begun anew.
YOUNG_S, PATIENCE_S = 0.3, 2.0


@dataclass(frozen=True)
class ModelAge:
    """How old a model is, in seconds, and from which age on it is begun anew."""

    patience_s: float
    began: float = field(default_factory=time.monotonic)

    @property
    def little_is_lost(self) -> bool:
        """Whether the model is so young, or so old, that what it has learnt is no reason to keep it."""
        return not YOUNG_S < time.monotonic() - self.began < self.patience_s


def models() -> Iterator[ModelAge]:
    """Yield the age of each model from when it is built: each may become twice as old as the one before."""
    patience_s = PATIENCE_S
    while True:
        yield ModelAge(patience_s)
        patience_s *= 2
