"""How much memory results take, and which are dropped first."""

from __future__ import annotations

import sys
import threading
from collections.abc import Hashable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

# Of a long list so many entries are weighed, evenly spread, and stand for the rest.
SAMPLE = 64


def approximate_bytes(value: object, seen: set[int] | None = None) -> int:
    """Return about how much memory a value takes, what it holds twice counted once.

    Long lists of one kind of thing are weighed by a sample: a schedule of a hundred thousand tasks
    takes a millisecond.
    """
    seen = set() if seen is None else seen
    if value is None or isinstance(value, bool | int | float | type) or id(value) in seen:
        return 0
    seen.add(id(value))
    own = sys.getsizeof(value)
    if isinstance(value, np.ndarray):
        return int(max(own, value.nbytes))
    if isinstance(value, str | bytes):
        return own
    if isinstance(value, Mapping):
        return (
            own
            + _of_many(value.keys(), len(value), seen)
            + _of_many(value.values(), len(value), seen)
        )
    if isinstance(value, list | tuple | set | frozenset):
        return own + _of_many(value, len(value), seen)
    if is_dataclass(value):
        return own + sum(
            approximate_bytes(getattr(value, one.name, None), seen) for one in fields(value)
        )
    held = getattr(value, "__dict__", None)
    return own + (approximate_bytes(held, seen) if held else 0)


def _of_many(values: Iterable[object], number: int, seen: set[int]) -> int:
    stride = max(1, number // SAMPLE)
    weighed = [one for place, one in enumerate(values) if place % stride == 0]
    sample = sum(8 + approximate_bytes(one, seen) for one in weighed)
    return sample * number // max(1, len(weighed))


@dataclass(frozen=True)
class _Held:
    results: MutableMapping[Any, Any]
    key: Hashable
    size_bytes: int


class ResultMemory:
    """Results that are kept, the oldest dropped first beyond a number of bytes; the newest always stays."""

    def __init__(self, most_bytes: float) -> None:
        self._most_bytes = most_bytes
        self._held: list[_Held] = []
        self._lock = threading.Lock()

    def took(self, results: MutableMapping[Any, Any], key: Hashable) -> None:
        """Count a result that was just kept, and drop the oldest ones if they are too many.

        A result that knows its own size, as ``size_bytes``, is believed.
        """
        known = getattr(results[key], "size_bytes", None)
        new = _Held(results, key, known or approximate_bytes(results[key]))
        with self._lock:
            there = [
                one
                for one in self._held
                if one.key in one.results and not (one.results is results and one.key == key)
            ]
            self._held = [*there, new]
            total = sum(one.size_bytes for one in self._held)
            while total > self._most_bytes and len(self._held) > 1:
                oldest = self._held.pop(0)
                oldest.results.pop(oldest.key, None)
                total -= oldest.size_bytes

    def used(self, results: MutableMapping[Any, Any], key: Hashable) -> None:
        """Make a result the last to be dropped."""
        with self._lock:
            for place, one in enumerate(self._held):
                if one.results is results and one.key == key:
                    self._held.append(self._held.pop(place))
                    return
