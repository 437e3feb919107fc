"""A crossover map while it is being computed: progress, cancel, and the points that are there."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from functools import partial

from topox_core.fabrics.sweep import Cell, CellResult, Point, Sweep, run_cell
from topox_core.runs.child_processes import ChildProcesses
from topox_core.runs.stopping import Stop, never

POLL_S = 0.05
Cells = MutableMapping[str, CellResult]


@dataclass(frozen=True)
class CrossoverMap:
    """The points of a map that were computed, in the order of the axes, and what became of the others.

    Attributes
    ----------
    points
        Complete points; all of them unless the sweep was cancelled or a worker died.
    total
        How many points the axes have.
    cancelled
        Whether it was stopped on request.
    lost
        In words, once each, why other points are missing (a worker process died).
    digest
        Of the sweep: the key of a finished map.
    """

    points: tuple[Point, ...]
    total: int
    cancelled: bool
    lost: tuple[str, ...]
    digest: str

    @property
    def complete(self) -> bool:
        """Whether every point is there."""
        return len(self.points) == self.total


class SweepRun:
    """A map on its way: poll it, cancel it, take what is there; nothing here waits.

    Parameters
    ----------
    sweep
        What to compute.
    executor
        Who runs the cells; by default child processes of its own, one a core, ended with the sweep.
    known
        Cells computed before, by :meth:`~topox_core.fabrics.sweep.Sweep.key`; new ones are put in.
    """

    def __init__(
        self,
        sweep: Sweep,
        executor: concurrent.futures.Executor | None = None,
        known: Cells | None = None,
    ) -> None:
        self.sweep = sweep
        self._own = ChildProcesses() if executor is None else None
        self._lock = threading.Lock()
        self._kept: Cells = {} if known is None else known
        self._results: dict[Cell, CellResult] = {}
        self._lost: dict[str, int] = {}
        self._cancelled = False
        self._taken = 0
        self._futures: dict[Cell, concurrent.futures.Future[CellResult]] = {}
        cells = sweep.cells()
        self._cells = len(cells)
        for cell in cells:
            found = self._kept.get(sweep.key(cell))
            if found is not None:
                self._results[cell] = found
        runner = executor or self._own
        assert runner is not None
        for cell in cells:
            if cell not in self._results:
                self._futures[cell] = runner.submit(run_cell, sweep.job_digest, sweep.job, cell)
        for cell, future in self._futures.items():
            future.add_done_callback(partial(self._take, cell))
        if self._own is not None:
            self._own.shutdown(wait=False)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Process numbers of the sweep's own children."""
        return () if self._own is None else self._own.process_ids

    @property
    def running(self) -> bool:
        """Whether cells are still to come."""
        return not self._cancelled and self._taken < len(self._futures)

    @property
    def progress(self) -> float:
        """Share of the cells that are done, 0 to 1."""
        with self._lock:
            return (len(self._results) + sum(self._lost.values())) / self._cells

    def cancel(self) -> None:
        """Stop at once; the points that are complete are kept."""
        if not self.running:
            return
        self._cancelled = True
        for future in self._futures.values():
            future.cancel()
        self.close()

    def close(self) -> None:
        """End the sweep's own children at once (the tab was closed, or it is over)."""
        if self._own is not None:
            self._own.kill()

    def result(self) -> CrossoverMap:
        """Return the map as it stands."""
        with self._lock:
            results, lost = dict(self._results), dict(self._lost)
        found = (
            self.sweep.point(value, delay, results) for value, delay in self.sweep.axes.points()
        )
        points = tuple(point for point in found if point is not None)
        said = tuple(
            f"{why}: {count} of {self._cells} calls are missing" for why, count in lost.items()
        )
        return CrossoverMap(points, len(self.sweep.axes), self._cancelled, said, self.sweep.digest)

    def _take(self, cell: Cell, future: concurrent.futures.Future[CellResult]) -> None:
        """Keep what a call gave; called in the thread that ran it."""
        error = None if future.cancelled() else future.exception()
        with self._lock:
            self._taken += 1
            if future.cancelled():
                return
            if error is None:
                self._results[cell] = future.result()
                self._kept[self.sweep.key(cell)] = future.result()
            elif not self._cancelled:
                self._lost[str(error)] = self._lost.get(str(error), 0) + 1


def run_sweep(
    sweep: Sweep,
    executor: concurrent.futures.Executor | None = None,
    stop: Stop = never,
    on_progress: Callable[[float], None] | None = None,
    known: Cells | None = None,
) -> CrossoverMap:
    """Compute a map and wait for it; ``stop`` cancels it, ``on_progress`` is told the share that is done."""
    run = SweepRun(sweep, executor, known)
    try:
        told = -1.0
        while run.running:
            if stop():
                run.cancel()
            if on_progress is not None and run.progress > told:
                told = run.progress
                on_progress(told)
            time.sleep(POLL_S)
        if on_progress is not None:
            on_progress(run.progress)
        return run.result()
    finally:
        run.close()
