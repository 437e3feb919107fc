"""A run of answers that somebody else computes: it only waits for them, and gives them up."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Generic, TypeVar

from topox_core.runs.cells import CellsResult
from topox_core.runs.run import RunProgress

CellT = TypeVar("CellT", bound=Hashable)
ResultT = TypeVar("ResultT")


class FuturesRun(Generic[CellT, ResultT]):
    """A run that takes answers in as they come.

    Parameters
    ----------
    asked
        The coming answer of each cell.
    keep
        Called as ``keep(cell, answer)``, in the thread that gives the answer.
    """

    def __init__(
        self,
        asked: Mapping[CellT, concurrent.futures.Future[ResultT]],
        keep: Callable[[CellT, ResultT], object],
    ) -> None:
        self._asked, self._keep = dict(asked), keep
        self._lock = threading.Lock()
        self._open = len(self._asked)
        self._results: dict[CellT, ResultT] = {}
        self._failures: dict[CellT, Exception] = {}
        self._cancelled = self._closed = False
        self._began, self._ended_s = time.monotonic(), 0.0
        for cell, future in self._asked.items():
            future.add_done_callback(partial(self._take, cell))

    @property
    def running(self) -> bool:
        """Whether answers are still to come."""
        return not self._closed and self._open > 0

    @property
    def progress(self) -> RunProgress:
        """How many answers are there."""
        done, total = len(self._asked) - self._open, len(self._asked)
        elapsed_s = self._ended_s or time.monotonic() - self._began
        left_s = elapsed_s / done * self._open if done else None
        return RunProgress(elapsed_s, done / total if total else 1.0, done, total, left_s=left_s)

    def poll(self) -> None:
        """Do nothing: answers are taken in as they come."""

    def cancel(self) -> None:
        """Wait for no more answers; those that are there are kept."""
        self._cancelled = self._cancelled or self.running
        self.close()

    def close(self) -> None:
        """Give up what is not answered."""
        self._closed = True
        self._ended_s = self._ended_s or time.monotonic() - self._began
        for future in self._asked.values():
            future.cancel()

    def result(self) -> CellsResult[CellT, ResultT]:
        """Return what is there so far."""
        with self._lock:
            results, failures = dict(self._results), dict(self._failures)
        return CellsResult(results, len(self._asked), self._cancelled, failures)

    def _take(self, cell: CellT, future: concurrent.futures.Future[ResultT]) -> None:
        error = None if future.cancelled() else future.exception()
        answered = not future.cancelled() and error is None
        if answered:
            self._keep(cell, future.result())
        with self._lock:
            if answered:
                self._results[cell] = future.result()
            elif isinstance(error, Exception) and not self._closed:
                self._failures[cell] = error
            self._open -= 1
            if not self._open and not self._closed:
                self._ended_s = time.monotonic() - self._began
