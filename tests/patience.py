"""How long a test waits for what a busy machine may do late: no test asserts a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 300.0


def wait_until(happened: Callable[[], T], meanwhile: Callable[[], object] | None = None) -> T:
    """Wait until something has happened, doing `meanwhile` now and then; fail where it never does."""
    end = time.monotonic() + PATIENCE_S
    while not (said := happened()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02 if meanwhile is None else 0.2)
        if meanwhile is not None:
            meanwhile()
    return said


def counted(until: int, stop: Callable[[], bool], on_step: Callable[[int], object]) -> int:
    """Count up, a step every 10 ms; return how far, which a stop ends early."""
    for k in range(until):
        if stop():
            return k
        on_step(k)
        time.sleep(0.01)
    return until
