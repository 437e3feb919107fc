"""How fast this machine is beside the one that a release's waiting times were measured on."""

import time
from functools import cache

ADDITIONS = 200_000
# The same additions where the waiting times of cards and claims were measured, in s.
RELEASE_S = 0.0075


@cache
def slowness() -> float:
    """Return how many times as long as there work takes here: the best of some tries, whoever else is at work."""
    return min(_additions_s() for _ in range(7)) / RELEASE_S


def _additions_s() -> float:
    began = time.perf_counter()
    total = 0
    for number in range(ADDITIONS):
        total += number
    return time.perf_counter() - began
