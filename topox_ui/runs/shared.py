"""Answers that all sessions share: each is worked out once, and the least used go first when memory runs short."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from topox_core.runs.run import Stop
from topox_ui.runs.limits import server_limits
from topox_ui.runs.memory import ResultMemory
from topox_ui.runs.owner import Kept, session_over

T = TypeVar("T")

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
            Whether who asks is gone; then the script ends here.
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
                return self._make(key, make, coming)
            wait_for(coming, over)
        return answer

    def _make(self, key: str, make: Callable[[], T], coming: Future[None]) -> T:
        try:
            answer = make()
            self._kept[key] = answer
            return answer
        finally:
            with self._lock:
                del self._coming[key]
            coming.set_result(None)


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


def once(kind: str, key: str, make: Callable[[], T]) -> T:
    """Return an answer that is worked out once for all sessions, by this one's script if none has it."""
    return shared(kind).get(key, make, session_over())
