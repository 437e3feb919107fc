"""Seeded draws with names: each number comes from a hash of its name, so that a new draw changes no old one.

Any language can repeat them: SHA-256 over plain text, numbers in decimal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from topox_core.errors import wrong_setting

MAX_ATTEMPTS = 3_000
SEEDS = 100_000_000
KEPT_SEEDS = 1_000  # below: for classes, practice and tests

T = TypeVar("T")


@dataclass(frozen=True)
class Draws:
    """The draws of one attempt at one instance of a generator."""

    generator: str
    seed: int
    attempt: int

    def whole(self, name: str, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        text = f"topox-lab/1|{self.generator}|{self.seed}|{self.attempt}|{name}"
        return low + _number(text) % (high - low + 1)

    def pick(self, name: str, items: Sequence[T]) -> T:
        """Return one of several."""
        return items[self.whole(name, 0, len(items) - 1)]

    def shuffle(self, name: str, items: Sequence[T]) -> list[T]:
        """Return items in a drawn order."""
        order = list(items)
        for i in range(len(order) - 1, 0, -1):
            other = self.whole(f"{name}#{i}", 0, i)
            order[i], order[other] = order[other], order[i]
        return order


def first_that(generator: str, seed: int, make: Callable[[Draws], T | None]) -> T:
    """Return what ``make`` makes of the draws of the first attempt that it does not refuse with None.

    Raises
    ------
    InputError
        If the seed is negative, or no attempt has made an instance; the generator is named.
    """
    if seed < 0:
        raise wrong_setting("seed", f"must be at least 0 (got {seed})")
    for attempt in range(MAX_ATTEMPTS):
        if (one := make(Draws(generator, seed, attempt))) is not None:
            return one
    problem = f"{seed} makes no instance of generator {generator} in {MAX_ATTEMPTS:,} attempts"
    raise wrong_setting("seed", problem)


def seed_of(course: str, student: str) -> int:
    """Return the seed of a student of a course; spelling in capitals or with spaces around makes no difference."""
    names = (unicodedata.normalize("NFKC", one).strip().casefold() for one in (course, student))
    seed = _number("|".join(("topox-seed/1", *names))) % SEEDS
    return seed + KEPT_SEEDS if seed < KEPT_SEEDS else seed


def _number(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")
