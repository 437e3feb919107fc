"""How much memory results take, and which are dropped first."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, MutableMapping
from dataclasses import fields, is_dataclass
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


class ResultMemory:
    """Results that are kept, the oldest dropped first beyond a number of bytes; the newest always stays."""

    def __init__(self, most_bytes: float) -> None:
        self._most_bytes = most_bytes
        # By what holds a result and its key: that, and how much it takes; the oldest first.
        self._held = OrderedDict[tuple[int, Hashable], tuple[MutableMapping[Any, Any], int]]()
        self._lock = threading.Lock()

    def took(self, results: MutableMapping[Any, Any], key: Hashable) -> None:
        """Count a result that was just kept, and drop the oldest ones if they are too many.

        A result that knows its own size, as ``size_bytes``, is believed.
        """
        known = getattr(results[key], "size_bytes", None)
        size_bytes = known or approximate_bytes(results[key])
        with self._lock:
            for place in [one for one, (of, _) in self._held.items() if one[1] not in of]:
                del self._held[place]
            self._held[id(results), key] = results, size_bytes
            self._held.move_to_end((id(results), key))
            total = sum(size for _, size in self._held.values())
            while total > self._most_bytes and len(self._held) > 1:
                (_, oldest), (of, size) = self._held.popitem(last=False)
                of.pop(oldest, None)
                total -= size

    def used(self, results: MutableMapping[Any, Any], key: Hashable) -> None:
        """Make a result the last to be dropped."""
        with self._lock:
            if (id(results), key) in self._held:
                self._held.move_to_end((id(results), key))
