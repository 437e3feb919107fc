"""Results that are kept: how much memory they take and which are dropped first; and answers that all sessions share.

A shared answer is worked out once, and the least used go first when memory runs short.
"""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping
from concurrent.futures import Future
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from topox_core.runs.latest import Latest
from topox_core.runs.run import Stop
from topox_ui.runs.limits import server_limits

T = TypeVar("T")
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
        size_bytes = getattr(results[key], "size_bytes", None) or approximate_bytes(results[key])
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


class Kept(Latest[T]):
    """Results by key, the oldest beyond ``most``, or beyond the session's memory, dropped first."""

    def __init__(self, most: int, memory: ResultMemory | None = None) -> None:
        super().__init__(most)
        self._memory = memory

    def __setitem__(self, key: Hashable, value: T) -> None:
        super().__setitem__(key, value)
        if self._memory is not None:
            self._memory.took(self, key)


MAX = 10_000  # answers of a kind, however small
WAIT_S = 0.25  # between two looks whether who waits is still there


class Shared(Generic[T]):
    """Answers of one kind by key.

    Parameters
    ----------
    memory
        What they may take together with other kinds.
    """

    def __init__(self, memory: ResultMemory) -> None:
        self._memory = memory
        self._kept = Kept[T](MAX, memory)
        self._coming: dict[str, Future[None]] = {}
        self._lock = threading.Lock()

    def known(self, key: str) -> T | None:
        """Return an answer that is there, which makes it the last to go."""
        answer = self._kept.get(key)
        if answer is not None:
            self._memory.used(self._kept, key)
        return answer

    def keep(self, key: str, answer: T) -> None:
        """Keep an answer that was worked out elsewhere."""
        self._kept[key] = answer

    def get(self, key: str, make: Callable[[], T], over: Stop) -> T:
        """Return an answer; who asks while another works it out waits for that.

        Parameters
        ----------
        make
            Works it out; what it raises goes to who asked, and whoever waits tries for himself.
        over
            Whether who asks is gone; then the script ends here, and what was cut short is not kept.
        """
        while (answer := self.known(key)) is None:
            with self._lock:
                coming = self._coming.get(key)
                mine = coming is None
                if coming is None:
                    # It may have been worked out since it was looked for.
                    if (answer := self.known(key)) is not None:
                        break
                    coming = self._coming[key] = Future()
            if mine:
                return self._make(key, make, coming, over)
            wait_for(coming, over)
        return answer

    def _make(self, key: str, make: Callable[[], T], coming: Future[None], over: Stop) -> T:
        try:
            answer = make()
            if not over():
                self._kept[key] = answer
                return answer
        except Exception:
            if not over():
                raise
        finally:
            with self._lock:
                del self._coming[key]
            coming.set_result(None)
        raise StopException


def wait_for(future: Future[T], over: Stop) -> T:
    """Return what a future gives, or raise what it raises; end the script where nobody is there to see it."""
    while True:
        try:
            return future.result(WAIT_S)
        except TimeoutError:
            if over():
                future.cancel()
                raise StopException from None


@st.cache_resource(show_spinner=False)
def _memory() -> ResultMemory:
    """Return the memory that all shared answers of this server may take."""
    return ResultMemory(server_limits().shared_mb * 1e6)


@st.cache_resource(show_spinner=False)
def shared(kind: str) -> Shared[Any]:  # noqa: ARG001 (the kind is what the cache goes by)
    """Return the answers of one kind of this server."""
    return Shared(_memory())
