"""A run made from many independent cells on an executor: in batches, no cell lost, none computed twice without need.

Where the constants come from: docs/cluster.md.
"""

import concurrent.futures
import os
import statistics
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from topox_core.errors import InputError, one_line, refuse_if
from topox_core.runs.executor import (
    TASK_S,
    Answer,
    AnswerLost,
    Executor,
    LocalExecutor,
    Shared,
    WorkerDied,
    answer_cells,
)
from topox_core.runs.run import FunctionRun, RunProgress, Stop

CellT = TypeVar("CellT", bound=Hashable)
KeyT = TypeVar("KeyT", bound=Hashable)
ResultT = TypeVar("ResultT")

MAX_CELLS = 64  # of a batch
MAX_S = 0.5  # then a worker begins no further cell of its batch, unless batches are to be longer
WINDOW = 3  # batches per worker: one at work, one on its way, one to spare
LATEST = 32  # cells whose median duration sizes the next batch
DEATHS = 2  # then a cell is to blame
BROKEN = 5  # workers that died in a row; then one is asked whether it starts at all
POLL_S = 0.5
GRACE_S = 1.0  # for batches under way, once the time is up
FUTURES_S = 0.2  # between two looks whether answers are still wanted
SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"
AWAY_S = 300.0  # how long an executor is waited for that cannot be reached

_Batch = tuple[CellT, ...]


@dataclass(frozen=True)
class CellsResult(Generic[CellT, ResultT]):
    """What a run of cells has computed.

    Attributes
    ----------
    results
        Of the cells that are complete, in the order of the cells.
    total
        How many cells there are.
    cancelled
        Whether the run was stopped on request.
    failures
        Why other cells have no result.
    stopped
        In words, why the run ended before its last cell though nobody asked; empty otherwise.
    """

    results: dict[CellT, ResultT]
    total: int
    cancelled: bool
    failures: dict[CellT, Exception]
    stopped: str = ""

    @property
    def lost(self) -> tuple[str, ...]:
        """Why cells are missing, in words, once for each reason."""
        reasons = [str(error) or type(error).__name__ for error in self.failures.values()]
        return ((self.stopped,) if self.stopped else ()) + tuple(
            f"{reason}: {count} of {self.total} calls are missing"
            for reason, count in Counter(reasons).items()
        )


class CellsRun(FunctionRun[CellsResult[CellT, ResultT], object], Generic[CellT, KeyT, ResultT]):
    """A run of cells, each one call of a function.

    A worker answers several cells at a time, as many as make about a tenth of a second. What a dead
    worker held is computed again, each cell alone once all others are done; a cell whose worker ends
    twice has failed. A thread of the run's own sends cells and takes answers.

    Parameters
    ----------
    cells
        In the order in which they are computed.
    key
        Key of a cell in ``known``.
    function
        ``function(cell) -> result``, with ``shared`` ``function(value, cell)``; importable (or a
        ``partial`` of such), its arguments picklable.
    known
        Results computed before, which are not computed again; new ones are added.
    executor
        Who computes: an executor, which whoever made it ends, or how many worker processes of the
        run's own; by default one a core.
    on_results
        Told (cell, result) of each batch as soon as it is there, in the run's thread. What it raises
        ends the run. The run then keeps no results itself unless there is ``known``.
    shared
        What all cells need, sent to each worker once and unpacked there.
    seconds
        After which time no further cell is begun; those under way have a second more.
    """

    def __init__(
        self,
        cells: Sequence[CellT],
        key: Callable[[CellT], KeyT],
        function: Callable[..., ResultT],
        known: MutableMapping[KeyT, ResultT] | None = None,
        executor: concurrent.futures.Executor | int | None = None,
        on_results: Callable[[list[tuple[CellT, ResultT]]], object] | None = None,
        shared: Shared | None = None,
        seconds: float | None = None,
    ) -> None:
        self.cells = tuple(dict.fromkeys(cells))
        self._key, self._of_cell, self._shared = key, function, shared
        self._on_results, self._seconds = on_results, seconds
        self._keeps = on_results is None or known is not None
        self._known: MutableMapping[KeyT, ResultT] = {} if known is None else known
        foreign = isinstance(executor, concurrent.futures.Executor)
        self._own = None if foreign else LocalExecutor(executor)  # type: ignore[arg-type]
        self._executor: Any = self._own or executor
        self._lock = threading.Lock()
        self._results = {
            cell: self._known[key(cell)] for cell in self.cells if key(cell) in self._known
        }
        self._first = self._done = len(self._results)
        self._todo = deque(cell for cell in self.cells if cell not in self._results)
        self._suspects: deque[CellT] = deque()
        self._deaths: Counter[CellT] = Counter()
        self._failures: dict[CellT, Exception] = {}
        self._broken = 0
        self._under_way: dict[concurrent.futures.Future[list[Answer]], _Batch[CellT]] = {}
        self._news: SimpleQueue[concurrent.futures.Future[list[Answer]] | None] = SimpleQueue()
        self._latest_s: deque[float] = deque(maxlen=LATEST)
        self._cancelled, self._ended_by, self._away_s = False, "", 0.0
        super().__init__(self._compute, name="cells")
        if self._first == len(self.cells):
            self._thread.join()

    @property
    def running(self) -> bool:
        """Whether cells are still to come."""
        return super().running and not self._stopped.is_set()

    @property
    def progress(self) -> RunProgress:
        """How many cells are done, and an estimate of the time left from their mean duration."""
        done, total = self._done, len(self.cells)
        elapsed_s, computed, away = self.elapsed_s, done - self._first, self._away()
        return RunProgress(
            elapsed_s,
            done / total if total else 1.0,
            done,
            total,
            words=f"{away}; {done:,} of {total:,} are kept" if away else "",
            left_s=elapsed_s / computed * (total - done) if computed and not away else None,
        )

    def use(self, workers: int) -> None:
        """Set the number of workers; running cells finish first."""
        if self._own is not None:
            self._own.use(workers)

    def cancel(self) -> None:
        """Stop at once; the results that are complete are kept."""
        self._cancelled = self._cancelled or self.running
        self.close()

    def close(self) -> None:
        """Compute no more cells, and end the run's own workers."""
        self._stopped.set()
        self._news.put(None)
        super().close()
        if self._own is not None:
            self._own.kill()

    def result(self) -> CellsResult[CellT, ResultT]:
        """Return what is complete so far; raise what ``on_results`` raised."""
        super().result()
        with self._lock:
            there, failures = dict(self._results), dict(self._failures)
        results = {cell: there[cell] for cell in self.cells if cell in there}
        return CellsResult(results, len(self.cells), self._cancelled, failures, self._ended_by)

    # -- in the run's thread -----------------------------------------------------------------------

    def _compute(self, stop: Stop, _on_step: object) -> CellsResult[CellT, ResultT]:
        try:
            while not (stop() or self._ended_by):
                self._send()
                if not self._under_way and not self._todo and not self._suspects:
                    break
                self._take(POLL_S)
        finally:
            for future in list(self._under_way):
                future.cancel()
        # What is there at the end, whatever ended the run.
        self._take(0.0 if stop() else 0.01)
        return self.result()

    def _send(self) -> None:
        """Fill the window from what is to do; cells whose worker died come last, each alone."""
        if self._time_is_up() or self._is_away():
            return
        if self._broken >= BROKEN:
            if not self._under_way:
                self._submit(())  # does a worker start at all?
            return
        workers = self._workers()
        while self._todo and len(self._under_way) < WINDOW * workers and not self._ended_by:
            size = min(self._size(), -(-len(self._todo) // workers))
            self._submit(tuple(self._todo.popleft() for _ in range(size)))
        if self._suspects and not self._under_way and not self._ended_by:
            self._submit((self._suspects.popleft(),))

    def _submit(self, batch: _Batch[CellT]) -> None:
        most_s = max(MAX_S, self._task_s())
        try:
            future = self._executor.submit(answer_cells, self._of_cell, self._shared, batch, most_s)
        except (RuntimeError, InputError) as error:  # shut down, or broken
            if not self._stopped.is_set():
                self._ended_by = one_line(str(error))
            return
        self._under_way[future] = batch
        future.add_done_callback(self._news.put)

    def _take(self, timeout_s: float) -> None:
        """Wait for news, and take all there is at once."""
        came: list[tuple[CellT, ResultT]] = []
        try:
            future = self._news.get(timeout=timeout_s)
            while True:
                if future is not None:
                    came += self._taken(future)
                future = self._news.get_nowait()
        except Empty:
            pass
        if came:
            self._keep(came)

    def _taken(
        self, future: concurrent.futures.Future[list[Answer]]
    ) -> list[tuple[CellT, ResultT]]:
        """Sort a batch's cells into results, failures and what is to be computed again."""
        batch = self._under_way.pop(future)
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or isinstance(error, AnswerLost):
            self._todo.extendleft(reversed(batch))
            return []
        if error is not None:
            self._blame(batch, error)
            return []
        came, answers = [], future.result()
        for cell, answer in zip(batch, answers, strict=False):
            self._latest_s.append(answer.wall_s)
            if answer.error is None:
                came.append((cell, answer.result))
            else:
                self._fail(cell, answer.error)
        self._todo.extendleft(reversed(batch[len(answers) :]))
        self._broken = 0
        return came

    def _blame(self, batch: _Batch[CellT], error: BaseException) -> None:
        """Deal with a batch that was not answered."""
        if self._stopped.is_set():
            return
        if isinstance(error, InputError):  # of the executor: cells' own come as answers
            self._ended_by = str(error)
        elif isinstance(error, WorkerDied | concurrent.futures.BrokenExecutor):
            if not batch:
                self._ended_by = "worker processes end as soon as they start"
            self._broken += 1
            died = error if isinstance(error, WorkerDied) else WorkerDied(str(error))
            for cell in batch:
                self._deaths[cell] += died.tries if len(batch) == 1 else 1
                if self._deaths[cell] >= DEATHS:
                    self._fail(cell, WorkerDied(died.how, self._deaths[cell]))
                else:
                    self._suspects.append(cell)
        elif len(batch) > 1:  # one of them cannot be sent, or its result cannot come back
            for cell in batch:
                self._submit((cell,))
        elif not batch or not isinstance(error, Exception):
            self._ended_by = one_line(f"{type(error).__name__}: {error}")
        else:
            self._fail(batch[0], error)

    def _keep(self, came: list[tuple[CellT, ResultT]]) -> None:
        with self._lock:
            for cell, result in came if self._keeps else ():
                self._results[cell] = self._known[self._key(cell)] = result
        self._done += len(came)
        if self._on_results is not None:
            self._on_results(came)

    def _fail(self, cell: CellT, error: Exception) -> None:
        with self._lock:
            self._failures[cell] = error
        self._done += 1

    # -- of time and of the executor ---------------------------------------------------------------

    def _size(self) -> int:
        """Return how many cells make a batch of the wanted duration, by the latest durations."""
        if not self._latest_s:
            return 1
        cells = self._task_s() / max(statistics.median(self._latest_s), 1e-9)
        return max(1, min(MAX_CELLS, round(cells)))

    def _time_is_up(self) -> bool:
        if self._seconds is None:
            return False
        over_s = time.monotonic() - self._began - self._seconds
        if over_s >= GRACE_S or (over_s >= 0 and not self._under_way):
            self._ended_by = f"the time of {self._seconds:g} s is up"
        return over_s >= 0

    def _is_away(self) -> bool:
        away = self._away()
        if not away:
            self._away_s = 0.0
            return False
        self._away_s = self._away_s or time.monotonic()
        if time.monotonic() - self._away_s > AWAY_S:
            self._ended_by = f"{away} for {AWAY_S / 60:g} minutes"
        return True

    def _away(self) -> str:
        return str(getattr(self._executor, "away", ""))

    def _task_s(self) -> float:
        return float(getattr(self._executor, "task_s", TASK_S))

    def _workers(self) -> int:
        return max(1, getattr(self._executor, "workers", 0) or os.cpu_count() or 1)


def futures_run(
    asked: Mapping[CellT, concurrent.futures.Future[ResultT]],
    keep: Callable[[CellT, ResultT], object],
) -> FunctionRun[CellsResult[CellT, ResultT], object]:
    """Return a run that takes answers in as they come, and gives up the others once it is stopped.

    Parameters
    ----------
    asked
        The coming answer of each cell.
    keep
        Called as ``keep(cell, answer)``; of an answer that was under way, when the run was stopped, as well.
    """

    def take(cell: CellT, future: concurrent.futures.Future[ResultT]) -> None:
        if not future.cancelled() and future.exception() is None:
            keep(cell, future.result())

    def collect(stop: Stop, _on_step: object) -> CellsResult[CellT, ResultT]:
        left = dict(asked)
        while left and not stop():
            concurrent.futures.wait(left.values(), FUTURES_S, concurrent.futures.FIRST_COMPLETED)
            for cell in [cell for cell, future in left.items() if future.done()]:
                take(cell, left.pop(cell))
        for cell, future in left.items():
            future.cancel()
            future.add_done_callback(partial(take, cell))
        ended = {k: one for k, one in asked.items() if k not in left and not one.cancelled()}
        errors = {k: error for k, one in ended.items() if (error := one.exception()) is not None}
        results = {k: one.result() for k, one in ended.items() if k not in errors}
        failures = {k: one for k, one in errors.items() if isinstance(one, Exception)}
        return CellsResult(results, len(asked), bool(left), failures)

    def measure(_steps: object, elapsed_s: float) -> RunProgress:
        done, total = sum(one.done() for one in asked.values()), len(asked)
        left_s = elapsed_s / done * (total - done) if done else None
        return RunProgress(elapsed_s, done / total if total else 1.0, done, total, left_s=left_s)

    return FunctionRun(collect, measure, "answers")


def executor_for(scheduler: str | None = None, workers: int | None = None) -> Executor:
    """Return an executor, which the caller ends with ``kill``.

    Parameters
    ----------
    scheduler
        Address of a Dask scheduler; without one that of the environment variable
        ``DASK_SCHEDULER_ADDRESS``, unless ``workers`` are asked for; ``""`` for this machine.
    workers
        Processes on this machine; by default one a core.

    Raises
    ------
    InputError
        If both are given, and as :class:`~topox_core.runs.dask_executor.DaskExecutor` does.
    """
    refuse_if(
        (scheduler and workers, "a scheduler has workers of its own: give one or the other"),
        field="workers",
    )
    if scheduler is None and workers is None:
        scheduler = os.environ.get(SCHEDULER_VARIABLE, "")
    if not scheduler:
        return LocalExecutor(workers)
    from topox_core.runs.dask_executor import DaskExecutor

    return DaskExecutor(scheduler)
