"""List schedules in processes of their own, so that many who ask at once do not share one interpreter."""

from __future__ import annotations

import io
import pickle
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import cast

from topox_core.fabrics.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.executor import LocalExecutor
from topox_core.schedule.result import Result
from topox_core.schedule.settings import Settings

IDLE_S = 600.0  # then a worker without work ends and gives its memory back
GRAPHS = 4  # that a worker remembers
_GRAPH = "graph"  # stands for the task graph of a result on its way


def _nothing() -> None:
    """Load nothing."""


class UnknownGraph(LookupError):
    """A worker was asked for a schedule of a graph that it has not been sent, or has forgotten."""


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
                one.add_done_callback(self._started)

    def schedule(self, graph: TaskGraph, cluster: Cluster, settings: Settings) -> Future[Result]:
        """Return the coming list schedule of :func:`topox_core.fabrics.scheduled.schedule`.

        What that raises, the future raises, and :class:`topox_core.runs.executor.WorkerDied` besides.
        It can be cancelled until a worker has taken it.
        """
        future: Future[Result] = Future()
        self._ask(future, graph, cluster, settings, None)
        return future

    def close(self) -> None:
        """End the processes at once."""
        self._executor.kill()

    def _started(self, loaded: Future[object]) -> None:
        if not loaded.cancelled() and loaded.exception() is None:
            self._answered_s = time.monotonic()

    def _ask(
        self,
        future: Future[Result],
        graph: TaskGraph,
        cluster: Cluster,
        settings: Settings,
        packed: bytes | None,
    ) -> None:
        key = f"{graph.digest}|{graph.name}"
        try:
            answer = self._executor.submit(_schedule_in_worker, key, packed, cluster, settings)
        except RuntimeError:  # closed meanwhile
            future.cancel()
            return
        future.add_done_callback(lambda asked: answer.cancel() if asked.cancelled() else None)
        again = partial(self._ask, future, graph, cluster, settings)
        answer.add_done_callback(partial(self._take, future, graph, again))

    def _take(
        self,
        future: Future[Result],
        graph: TaskGraph,
        again: Callable[[bytes], None],
        answer: Future[bytes],
    ) -> None:
        """Pass an answer on, or ask again with the graph; called in a thread of the executor."""
        try:
            packed = answer.result()
        except CancelledError:
            future.cancel()
            return
        except UnknownGraph:
            if not future.cancelled():
                again(pickle.dumps(graph, pickle.HIGHEST_PROTOCOL))
            return
        except Exception as error:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
            return
        self._answered_s = time.monotonic()
        if future.set_running_or_notify_cancel():
            future.set_result(_unpacked(packed, graph))


# -- in a worker -----------------------------------------------------------------------------------


_graphs: OrderedDict[str, TaskGraph] = OrderedDict()


def _schedule_in_worker(
    key: str, packed: bytes | None, cluster: Cluster, settings: Settings
) -> bytes:
    """Schedule a graph that this process knows, or is sent; return the result without the graph."""
    if packed is not None:
        _graphs[key] = pickle.loads(packed)
    if key not in _graphs:
        raise UnknownGraph(key)
    _graphs.move_to_end(key)
    while len(_graphs) > GRAPHS:
        _graphs.popitem(last=False)
    return _packed(schedule(_graphs[key], cluster, settings), _graphs[key])


class _Packer(pickle.Pickler):
    """Leaves out the task graph, which whoever asked has."""

    def __init__(self, file: io.BytesIO, graph: TaskGraph) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._graph = graph

    def persistent_id(self, value: object) -> str | None:
        return _GRAPH if value is self._graph else None


class _Unpacker(pickle.Unpickler):
    """Puts in the task graph of whoever asked."""

    def __init__(self, file: io.BytesIO, graph: TaskGraph) -> None:
        super().__init__(file)
        self._graph = graph

    def persistent_load(self, _name: str) -> TaskGraph:
        return self._graph


def _packed(result: Result, graph: TaskGraph) -> bytes:
    file = io.BytesIO()
    _Packer(file, graph).dump(result)
    return file.getvalue()


def _unpacked(packed: bytes, graph: TaskGraph) -> Result:
    return cast("Result", _Unpacker(io.BytesIO(packed), graph).load())
