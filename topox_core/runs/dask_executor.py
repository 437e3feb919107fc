"""Workers of a Dask scheduler, behind the interface of ``concurrent.futures``: the same cells, on many machines.

Nothing outside this file depends on Dask, which is not installed by default. What the scheduler and
its workers must be started with stands in docs/cluster.md.
"""

import concurrent.futures
import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from topox_core.errors import InputError, one_line, refuse_if
from topox_core.runs.executor import AnswerLost, Executor, Shared, WorkerDied
from topox_core.runs.identity import Identity, identity

P = ParamSpec("P")
R = TypeVar("R")

CONNECT_S = 3.0
TASK_S = 0.2
# A scheduler passes on some 900 tasks a second: many workers need longer ones.
MANY_WORKERS, LONG_TASK_S = 100, 2.0
SCATTERED_BYTES = 100_000  # a larger shared value goes to the workers before the calls
POLL_S = 0.5
COUNT_S = 5.0  # between two counts of the workers
AWAY = "the scheduler is away"
NOBODY = "the scheduler has no workers"
UNREACHABLE = "cannot be reached"
_ADDRESS = re.compile(r"(tcp|tls)://[^\s/:]+:\d{1,5}|(tcp|tls)://\[[0-9a-fA-F:]+\]:\d{1,5}")
# Of an error that a worker sends, whose kind may be lost on the way.
_MISSING = re.compile(r"No module named '([\w.]+)'")

_Call = tuple[Any, "concurrent.futures.Future[Any]"]  # of Dask, of ours


class DaskExecutor(Executor):
    """The workers of a scheduler, each checked to run this very code.

    Calls that are under way when the scheduler is lost raise
    :class:`~topox_core.runs.executor.AnswerLost`; a call at which workers ended as often as the
    scheduler allows raises :class:`~topox_core.runs.executor.WorkerDied`; an answer of a worker that
    runs other code raises InputError.

    Parameters
    ----------
    address
        Of the scheduler: ``tcp://host:8786``.

    Raises
    ------
    InputError
        If Dask is not installed, the address is none, nobody answers within three seconds, there
        are no workers, or one of them runs other code.
    """

    def __init__(self, address: str) -> None:
        self.address = _checked(address)
        self._client = _connected(self.address)
        try:
            self._meet()
        except BaseException:
            _end(self._client)
            raise
        self._name, self._numbers = f"topox-{uuid4().hex[:12]}", count()
        self._lock = threading.RLock()
        self._calls: dict[str, _Call] = {}
        self._placed: dict[str, Any] = {}
        self._closed = self._lost = False
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._attend, name="dask", daemon=True)
        self._thread.start()

    @property
    def task_s(self) -> float:  # type: ignore[override]
        """How long a call should take, in seconds: longer where there are many workers."""
        return LONG_TASK_S if self.workers > MANY_WORKERS else TASK_S

    def submit(
        self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[R]:
        """Return the future of a call."""
        future: concurrent.futures.Future[R] = concurrent.futures.Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the connection to the scheduler was closed")
            key = f"{self._name}-{next(self._numbers)}"
            try:
                if self.away:
                    raise AnswerLost(self.away)
                # Only deaths are tried again, by the scheduler; what a call raises is its answer.
                asked = self._client.submit(
                    _answered,
                    fn,
                    *(self._sent(one) for one in args),
                    key=key,
                    pure=False,
                    retries=0,
                    **kwargs,
                )
            except Exception as error:
                future.set_exception(AnswerLost(one_line(str(error))))
                return future
            self._calls[key] = asked, future
        future.add_done_callback(lambda ended: asked.release() if ended.cancelled() else None)
        asked.add_done_callback(self._done.put)
        return future

    def kill(self) -> None:
        """Give up all calls and end the connection; workers finish the calls they are at."""
        with self._lock:
            self._closed = True
            calls, self._calls = list(self._calls.values()), {}
        for _, future in calls:
            future.cancel()
        self._done.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join(2 * POLL_S)
        _end(self._client)

    def _sent(self, argument: Any) -> Any:
        """Return an argument as it goes to the workers: a large shared value goes once, ahead."""
        if not isinstance(argument, Shared) or argument.size_bytes <= SCATTERED_BYTES:
            return argument
        if argument.digest not in self._placed:
            self._placed[argument.digest] = self._client.scatter(
                argument, broadcast=True, hash=False
            )
        return self._placed[argument.digest]

    # -- in the executor's thread ------------------------------------------------------------------

    def _attend(self) -> None:
        """Take results at once, for they are gone with their worker; come back after a loss."""
        counted_s = time.monotonic()
        while not self._closed:
            done = []
            with contextlib.suppress(Empty):
                done.append(self._done.get(timeout=POLL_S))
                while True:
                    done.append(self._done.get_nowait())
            self._take([one for one in done if one is not None])
            if self._lost or self._client.status != "running":
                self._return()
            elif time.monotonic() - counted_s > COUNT_S:
                counted_s = time.monotonic()
                with contextlib.suppress(Exception):  # then the next look finds it lost
                    threads = sum(self._client.nthreads().values())
                    self.workers, self.away = threads or self.workers, "" if threads else NOBODY

    def _take(self, done: Iterable[Any]) -> None:
        """Pass answers on. A future of a lost scheduler looks done and is cancelled: only ``finished`` counts."""
        finished = []
        for asked in done:
            if asked.status == "finished":
                finished.append(asked)
            elif asked.status == "error":
                self._fail(asked.key, asked.exception())
            elif asked.key in self._calls:
                self._lost = self._lost or not self._calls[asked.key][1].cancelled()
                self._fail(asked.key, AnswerLost(AWAY))
        try:
            answers = self._client.gather(finished) if finished else []
        except Exception:
            answers = [self._one(asked) for asked in finished]
        for asked, answer in zip(finished, answers, strict=True):
            self._answer(asked.key, answer)

    def _one(self, asked: Any) -> Any:
        """Return one answer, or why it cannot be had."""
        try:
            return asked.result()
        except Exception as error:
            return error if self._client.status == "running" else AnswerLost(AWAY)

    def _answer(self, key: str, answer: Any) -> None:
        if isinstance(answer, Exception):
            self._fail(key, answer)
            return
        worker, theirs, result = answer
        if difference := identity().difference(theirs):
            self._fail(key, InputError(difference, file=f"worker {worker}"))
        elif (future := self._future(key)) is not None:
            future.set_result(result)

    def _fail(self, key: str, error: Exception) -> None:
        future = self._future(key)
        if future is None:
            return
        kind = type(error).__name__
        if kind == "KilledWorker":
            error = WorkerDied(tries=error.allowed_failures + 1)  # type: ignore[attr-defined]
        elif _MISSING.search(str(error)):
            try:
                self._meet()
            except InputError as problem:
                error = problem
        elif kind in ("FutureCancelledError", "CancelledError", "LostWorkerError"):
            error = AnswerLost(AWAY)
        future.set_exception(error)

    def _future(self, key: str) -> concurrent.futures.Future[Any] | None:
        """Return the future of a call that is over, if somebody still waits for it."""
        with self._lock:
            _, future = self._calls.pop(key, (None, None))
        return future if future is not None and future.set_running_or_notify_cancel() else None

    # -- connections -------------------------------------------------------------------------------

    def _meet(self) -> None:
        """Count the workers, and see that all of them run this code; raises InputError otherwise."""
        threads = self._client.nthreads()
        refuse_if((not threads, "has no workers"), file=f"scheduler {self.address}")
        for worker, theirs in self._client.run(identity, on_error="return").items():
            if isinstance(theirs, Identity):
                problem = identity().difference(theirs)
            elif missing := _MISSING.search(str(theirs)):
                problem = f"has no {missing[1]}"
            else:
                problem = f"does not say what it runs ({type(theirs).__name__}: {theirs})"
            refuse_if((problem, problem), file=f"worker {worker}")
        self.workers = sum(threads.values())

    def _return(self) -> None:
        """Give up what was under way, and wait until scheduler and workers are there again."""
        with self._lock:
            self.away = AWAY
            lost, self._calls = list(self._calls.values()), {}
            self._placed.clear()
        for _, future in lost:
            if future.set_running_or_notify_cancel():
                future.set_exception(AnswerLost(AWAY))
        while not self._closed:
            try:
                if self._client.status == "closed":
                    self._client = _connected(self.address)
                if self._client.status == "running":
                    self._meet()
                    break
            except InputError as error:
                self.away = AWAY if UNREACHABLE in error.problem else str(error)
            except Exception:
                self.away = AWAY  # gone again while it was asked
            time.sleep(POLL_S)
        with self._lock:
            self._lost, self.away = False, ""
        if self._closed:
            _end(self._client)


# -- in a worker -----------------------------------------------------------------------------------


def _answered(function: Callable[..., R], *args: Any, **kwargs: Any) -> tuple[str, Identity, R]:
    """Return which worker answers, what it runs, and the answer."""
    from distributed import get_worker

    return get_worker().address, identity(), function(*args, **kwargs)


# -- connections -----------------------------------------------------------------------------------


def _checked(address: str) -> str:
    refuse_if(
        (
            not (_ADDRESS.fullmatch(address) and 0 < int(address.rpartition(":")[2]) < 65_536),
            f"address must look like tcp://host:8786 (got {address!r})",
        ),
        file="scheduler",
    )
    refuse_if((find_spec("distributed") is None, "dask is not installed: pip install .[dask]"))
    return address


def _connected(address: str) -> Any:
    from distributed import Client

    # A scheduler that goes is told in the run's own words.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        return Client(address, timeout=CONNECT_S, set_as_default=False, name="topox")
    except (OSError, TimeoutError):
        problem = f"{UNREACHABLE} ({CONNECT_S:g} s)"
        raise InputError(problem, file=f"scheduler {address}") from None


def _end(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.close(timeout=1)
