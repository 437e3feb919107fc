"""List schedules in processes of their own, so that many who ask at once do not share one interpreter."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from topox_core.fabrics.planning.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.executor import REMEMBERED, LocalExecutor, Shared
from topox_core.runs.latest import Latest
from topox_core.schedule.results.result import Result
from topox_core.schedule.settings import Settings

IDLE_S = 600.0  # then a worker without work ends and gives its memory back


def _nothing() -> None:
    """Load nothing."""


class ScheduleWorkers:
    """Worker processes that make list schedules; each is sent a task graph once and remembers the last few.

    Parameters
    ----------
    workers
        Processes at once.
    niceness
        How far they give way to other processes.
    load
        Called first in each of them, so that an answer does not wait for what it loads; importable.
    plainly
        Whether they do without the compiler: sooner for a small graph where nothing is compiled yet.
    """

    def __init__(
        self,
        workers: int,
        niceness: int = 0,
        load: Callable[[], object] = _nothing,
        plainly: bool = False,
    ) -> None:
        self._load = load
        env = {"NUMBA_DISABLE_JIT": "1"} if plainly else None
        self._executor = LocalExecutor(workers, niceness=niceness, idle_s=IDLE_S, env=env)
        self._lock = threading.Lock()
        self._starting: list[Future[object]] = []
        self._answered_s = float("-inf")
        self._shared = Latest[Shared](REMEMBERED)  # graphs ready to be sent

    @property
    def ready(self) -> bool:
        """Whether a worker has loaded what it needs, so that an answer does not wait for that."""
        return time.monotonic() - self._answered_s < IDLE_S / 2

    def start(self) -> None:
        """Start the workers, and have them load what they need; does nothing where that is under way."""
        with self._lock:
            if any(not one.done() for one in self._starting) or self.ready:
                return
            self._starting = [
                self._executor.submit(self._load) for _ in range(self._executor.workers)
            ]
            for one in self._starting:
                one.add_done_callback(self._answered)

    def schedule(
        self, graph: TaskGraph, cluster: Cluster, settings: Settings, quickly: bool = False
    ) -> Future[Result]:
        """Return the coming list schedule of :func:`topox_core.fabrics.planning.scheduled.schedule`.

        What that raises, the future raises, and :class:`topox_core.runs.executor.WorkerDied` besides.
        It can be cancelled until a worker has taken it.
        """
        key = f"{graph.digest}|{graph.name}"
        with self._lock:
            shared = self._shared.get(key) or Shared.of(graph, key)
            self._shared[key] = shared
        try:
            future = self._executor.submit(_schedule_in_worker, shared, cluster, settings, quickly)
        except RuntimeError:  # closed meanwhile
            future = Future()
            future.cancel()
            return future
        future.add_done_callback(self._answered)
        return future

    def close(self) -> None:
        """End the processes at once."""
        self._executor.kill()

    def _answered(self, future: Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            self._answered_s = time.monotonic()


def _schedule_in_worker(
    shared: Shared, cluster: Cluster, settings: Settings, quickly: bool
) -> Result:
    graph: TaskGraph = shared.value()
    return schedule(graph, cluster, settings, quickly=quickly)
