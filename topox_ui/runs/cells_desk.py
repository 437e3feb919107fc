"""Work in many cells beside a page: computed in worker processes, watched, cancelled, kept cell by cell."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from topox_core.runs.child_processes import ChildProcesses
from topox_ui.runs.attending import attend
from topox_ui.schedule.solving import BUSY

STOPPED = "Stopped. The points that were computed are kept; computing goes on from there."
Result = TypeVar("Result")


class CellsRun(Protocol):
    """What a desk asks of work that is going on."""

    @property
    def running(self) -> bool:
        """Whether cells are still to come."""
        ...

    def cancel(self) -> None:
        """Stop at once."""
        ...


Run = TypeVar("Run", bound=CellsRun)


class Cells(OrderedDict[str, Result], Generic[Result]):
    """Cells of all work of a session by their key, the oldest beyond ``most`` forgotten first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: str, value: Result) -> None:
        super().__setitem__(key, value)
        while len(self) > self._most:
            self.popitem(last=False)


@dataclass
class CellsDesk(Generic[Run, Result]):
    """One session's work of a kind: what was computed, and the run that has as many processes as there are free places.

    Parameters
    ----------
    begin
        Starts a run on an executor; it puts what it computes into the cells.
    lost
        What a run that has ended left out, in words; empty if nothing.
    """

    places: threading.BoundedSemaphore
    cells: Cells[Result]
    lost: Callable[[Run], str]
    run: Run | None = None
    note: str = ""
    _workers: ChildProcesses | None = None
    _held: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def start(self, begin: Callable[[ChildProcesses, Cells[Result]], Run]) -> None:
        """Start a run; one that goes on is ended first, its cells are kept."""
        self.close()
        self.note = ""
        while self._held < (os.cpu_count() or 1) and self.places.acquire(blocking=False):
            self._held += 1
        if not self._held:
            self.note = BUSY
            return
        self._workers = ChildProcesses(self._held)
        self.run = run = begin(self._workers, self.cells)
        attend(lambda: self.run is run, self.poll)

    def poll(self) -> bool:
        """Return True when the run has just ended."""
        with self._lock:
            if self.run is None or self.run.running:
                return False
            self._ended(self.lost(self.run))
        return True

    def cancel(self) -> None:
        """Stop at once; the cells that are there are kept."""
        with self._lock:
            if self.run is not None:
                self.run.cancel()
                self._ended(STOPPED)

    def close(self) -> None:
        """End the run: the tab was closed, or another begins."""
        with self._lock:
            if self.run is not None:
                self.run.cancel()
            self._ended(self.note)

    def _ended(self, note: str) -> None:
        self.run, self.note = None, note
        if self._workers is not None:
            self._workers.kill()
            self._workers = None
        while self._held:
            self._held -= 1
            self.places.release()
