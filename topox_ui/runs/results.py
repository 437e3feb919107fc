"""Results that are kept: how much memory they take and which are dropped first; and answers that all sessions share.

A shared answer is worked out once, and the least used go first when memory runs short.
"""

import gc
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, MutableMapping
from concurrent.futures import Future
from types import FunctionType, ModuleType
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from topox_core.runs.latest import Latest
from topox_core.runs.run import Stop
from topox_ui.runs.limits import server_limits

T = TypeVar("T")
# Of a long list so many entries are weighed, evenly spread, and stand for the rest.
SAMPLE = 64
# What weighs nothing, or is not held by a result alone.
_NOT_WEIGHED = (type(None), bool, int, float, type, FunctionType, ModuleType)


def approximate_bytes(value: object, seen: set[int] | None = None) -> int:
    """Return about how much memory a value takes, what it holds twice counted once.

    Long lists of one kind of thing are weighed by a sample: a schedule of a hundred thousand tasks
    takes a millisecond.
    """
    seen = set() if seen is None else seen
    if isinstance(value, _NOT_WEIGHED) or id(value) in seen:
        return 0
    seen.add(id(value))
    own = sys.getsizeof(value)
    if isinstance(value, np.ndarray):
        return int(max(own, value.nbytes))
    held = gc.get_referents(value)
    # An odd stride: keys and values of a mapping take turns.
    sample = held[:: len(held) // SAMPLE | 1]
    weighed = sum(approximate_bytes(one, seen) for one in sample)
    return own + weighed * len(held) // max(1, len(sample))


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
        # Held by who works an answer out, and gone once nobody waits for it.
        self._turns = WeakValueDictionary[str, threading.Lock]()
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
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        while (answer := self.known(key)) is None:
            if turn.acquire(timeout=WAIT_S):
                try:
                    answer = self.known(key)  # worked out since it was looked for
                    if answer is None:
                        answer = make()
                        if not over():
                            self._kept[key] = answer
                except Exception:
                    if not over():
                        raise
                finally:
                    turn.release()
            if over():
                raise StopException
            if answer is not None:
                break
        return answer


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
