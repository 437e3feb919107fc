"""Runs one after another, each chosen by what came of those before."""

import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from topox_core.runs.run import Run, RunProgress

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Turn:
    """One of them, and what it does in words."""

    words: str
    run: Run[Any]


class RunsInTurn(Generic[ResultT]):
    """Runs one after another; a :class:`~topox_core.runs.run.Run`.

    Parameters
    ----------
    turns
        Yields them, each running, and is sent the result of each; closed where the run ends early.
    read
        ``read(turn, complete) -> result``: what there is, given the turn that is under way (None: none
        is) and whether all of them have ended.
    unit
        What the pieces of their progress are; empty: as each says.
    total
        How many pieces there are in all, where that is known beforehand.
    """

    def __init__(
        self,
        turns: Generator[Turn, Any, None],
        read: Callable[[Turn | None, bool], ResultT],
        unit: str = "",
        total: int | None = None,
    ) -> None:
        self._turns, self._read, self._unit, self._total = turns, read, unit, total
        self._lock = threading.RLock()  # one thread takes it forward, another draws what is there
        self._turn: Turn | None = None
        self._done = 0  # pieces of the runs that have ended
        self._cancelled = self._closed = False
        self._began, self._ended_s = time.monotonic(), 0.0
        self._next(None)

    @property
    def running(self) -> bool:
        """Whether something is still to come."""
        return self._turn is not None and not self._closed

    @property
    def progress(self) -> RunProgress:
        """How far this one is, or all where it is known how many pieces there are."""
        elapsed_s = self._ended_s or time.monotonic() - self._began
        turn, total = self._turn, self._total
        if turn is None:
            done = self._done if total is None else total
            return RunProgress(elapsed_s, 1.0, done, done, self._unit)
        now = turn.run.progress
        now = replace(now, elapsed_s=elapsed_s, words=turn.words, unit=self._unit or now.unit)
        if total is None:
            return now
        done = self._done + (now.done or 0)
        return replace(now, share=done / max(1, total), done=done, total=total)

    def poll(self) -> None:
        """Begin the next run once one has ended."""
        with self._lock:
            if self._turn is None or self._closed:
                return
            self._turn.run.poll()
            if not self._turn.run.running:
                self._next(self._turn)

    def cancel(self) -> None:
        """Stop; what is there is kept."""
        with self._lock:
            self._cancelled = True
            if self._turn is not None:
                self._turn.run.cancel()
            self.close()

    def close(self) -> None:
        """End the run at once."""
        with self._lock:
            self._closed = True
            self._ended_s = self._ended_s or time.monotonic() - self._began
            if self._turn is not None:
                self._turn.run.close()
            self._turns.close()

    def result(self) -> ResultT:
        """Return what there is."""
        with self._lock:
            return self._read(self._turn, self._turn is None and not self._cancelled)

    def _next(self, ended: Turn | None) -> None:
        """Take the result of the run that has ended, and begin the next one that does not end at once."""
        while True:
            try:
                if ended is None:
                    self._turn = next(self._turns)
                else:
                    self._done += ended.run.progress.done or 0
                    result = ended.run.result()
                    ended.run.close()
                    self._turn = self._turns.send(result)
            except StopIteration:
                self._turn = None
                self._ended_s = self._ended_s or time.monotonic() - self._began
                return
            if self._turn.run.running:
                return
            ended = self._turn
