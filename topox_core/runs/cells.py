"""A run made from many independent cells on an executor."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from topox_core.runs.executor import LocalExecutor
from topox_core.runs.run import RunProgress

CellT = TypeVar("CellT", bound=Hashable)
KeyT = TypeVar("KeyT", bound=Hashable)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class CellsResult(Generic[CellT, ResultT]):
    """What a run of cells has computed.

    Attributes
    ----------
    results
        Of the cells that are complete.
    total
        How many cells there are.
    cancelled
        Whether the run was stopped on request.
    failures
        Why other cells have no result.
    """

    results: dict[CellT, ResultT]
    total: int
    cancelled: bool
    failures: dict[CellT, BaseException]

    @property
    def lost(self) -> tuple[str, ...]:
        """Why cells are missing, in words, once for each reason."""
        reasons = [str(error) or type(error).__name__ for error in self.failures.values()]
        return tuple(
            f"{reason}: {reasons.count(reason)} of {self.total} calls are missing"
            for reason in dict.fromkeys(reasons)
        )


class CellsRun(Generic[CellT, KeyT, ResultT]):
    """A run of cells, each one call of a function.

    Parameters
    ----------
    cells
        In the order in which they are computed.
    key
        Key of a cell in ``known``.
    function
        ``function(cell) -> result``; importable (or a ``partial`` of such), its arguments picklable.
    known
        Results computed before, which are not computed again; new ones are added.
    executor
        Anything with the ``submit`` of ``concurrent.futures``; whoever made it ends it. Without
        one the run has worker processes of its own.
    workers
        How many of its own; by default one a core.
    """

    def __init__(
        self,
        cells: Sequence[CellT],
        key: Callable[[CellT], KeyT],
        function: Callable[[CellT], ResultT],
        known: MutableMapping[KeyT, ResultT] | None = None,
        executor: concurrent.futures.Executor | None = None,
        workers: int | None = None,
    ) -> None:
        self.cells = tuple(cells)
        self._key, self._known = key, {} if known is None else known
        self._own = None if executor is not None else LocalExecutor(workers)
        self._lock = threading.Lock()
        self._cancelled = self._closed = False
        self._failures: dict[CellT, BaseException] = {}
        self._results = {cell: self._known[key(cell)] for cell in cells if key(cell) in self._known}
        self._first = len(self._results)
        self._began, self._ended_s = time.monotonic(), 0.0
        runner = executor or self._own
        assert runner is not None
        self._futures = {
            cell: runner.submit(function, cell) for cell in cells if cell not in self._results
        }
        self._open = len(self._futures)
        for cell, future in self._futures.items():
            future.add_done_callback(partial(self._take, cell))

    @property
    def running(self) -> bool:
        """Whether cells are still to come."""
        return not self._closed and self._open > 0

    @property
    def progress(self) -> RunProgress:
        """How many cells are done, and an estimate of the time left from their mean duration."""
        with self._lock:
            done = len(self._results) + len(self._failures)
        total, elapsed_s = len(self.cells), self._ended_s or time.monotonic() - self._began
        computed = done - self._first
        return RunProgress(
            elapsed_s,
            done / total if total else 1.0,
            done,
            total,
            left_s=elapsed_s / computed * (total - done) if computed else None,
        )

    def poll(self) -> None:
        """Do nothing: results are taken in as they come."""

    def use(self, workers: int) -> None:
        """Have so many of its own workers compute from now on; cells that are being computed are finished."""
        if self._own is not None:
            self._own.use(workers)

    def cancel(self) -> None:
        """Stop at once; the results that are complete are kept."""
        self._cancelled = self._cancelled or self.running
        self.close()

    def close(self) -> None:
        """Compute no more cells, and end the run's own workers."""
        self._closed = True
        self._ended_s = self._ended_s or time.monotonic() - self._began
        for future in self._futures.values():
            future.cancel()
        if self._own is not None:
            self._own.kill()

    def result(self) -> CellsResult[CellT, ResultT]:
        """Return what is complete so far."""
        with self._lock:
            return CellsResult(
                dict(self._results), len(self.cells), self._cancelled, dict(self._failures)
            )

    def _take(self, cell: CellT, future: concurrent.futures.Future[ResultT]) -> None:
        """Keep what a call gave; called in a thread of the executor."""
        error = None if future.cancelled() else future.exception()
        with self._lock:
            self._open -= 1
            if not self._open and not self._closed:
                self._ended_s = time.monotonic() - self._began
            if future.cancelled():
                return
            if error is None:
                self._results[cell] = self._known[self._key(cell)] = future.result()
            elif not self._closed:
                self._failures[cell] = error
