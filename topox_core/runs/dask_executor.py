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
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

from topox_core.errors import InputError, one_line, refuse_if
from topox_core.runs.executor import AnswerLost, Executor, Shared, WorkerDied
from topox_core.runs.identity import Identity, identity

P = ParamSpec("P")
R = TypeVar("R")

CONNECT_S = 3.0
TASK_S = 0.2
# A scheduler passes on some 900 tasks per second: many workers need longer ones.
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

# What a call ends with where scheduler or worker went away with it.
_LOST = ("FutureCancelledError", "CancelledError", "LostWorkerError")


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
        self._calls: set[concurrent.futures.Future[Any]] = set()
        self._placed: dict[str, Any] = {}
        self._closed = threading.Event()
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
        if self._closed.is_set():
            raise RuntimeError("the connection to the scheduler was closed")
        future: concurrent.futures.Future[R] = concurrent.futures.Future()
        try:
            if self.away:
                raise AnswerLost(self.away)
            # Only deaths are tried again, by the scheduler; what a call raises is its answer.
            asked = self._client.submit(
                _answered,
                identity(),
                fn,
                *map(self._sent, args),
                pure=False,
                retries=0,
                **kwargs,
            )
        except Exception as error:
            future.set_exception(AnswerLost(one_line(str(error))))
            return future
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        future.add_done_callback(lambda ended: asked.release() if ended.cancelled() else None)
        asked.add_done_callback(partial(self._pass_on, future))
        return future

    def kill(self) -> None:
        """Give up all calls and end the connection; workers finish the calls they are at."""
        self._closed.set()
        for future in tuple(self._calls):
            future.cancel()
        self._thread.join(2 * POLL_S)

    def _sent(self, argument: Any) -> Any:
        """Return an argument as it goes to the workers: a large shared value goes once, ahead."""
        if not isinstance(argument, Shared) or argument.size_bytes <= SCATTERED_BYTES:
            return argument
        if argument.digest not in self._placed:
            self._placed[argument.digest] = self._client.scatter(
                argument, broadcast=True, hash=False
            )
        return self._placed[argument.digest]

    def _pass_on(self, future: concurrent.futures.Future[Any], asked: Any) -> None:
        """Pass an answer on at once, for it is gone with its worker; called in Dask's thread for that."""
        if not future.set_running_or_notify_cancel():
            return
        try:
            answer = asked.result()
        except Exception as error:
            future.set_exception(self._in_words(error))
        else:
            future.set_result(answer)

    def _in_words(self, error: Exception) -> Exception:
        """Return what a call raised, or in its place what became of its worker."""
        kind = type(error).__name__
        if kind == "KilledWorker":
            return WorkerDied(tries=error.allowed_failures + 1)  # type: ignore[attr-defined]
        if kind in _LOST or self._client.status != "running":
            self.away = AWAY
            return AnswerLost(AWAY)
        if _MISSING.search(str(error)):
            try:
                self._meet()
            except InputError as problem:
                return problem
        return error

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

    def _attend(self) -> None:
        """Count the workers now and then, and come back to a scheduler that was lost; in the executor's thread."""
        counted_s = time.monotonic()
        while not self._closed.wait(POLL_S):
            there = not self.away and self._client.status == "running"
            if not there or time.monotonic() - counted_s > COUNT_S:
                self.away = self._why_away()
                counted_s = time.monotonic()
        _end(self._client)

    def _why_away(self) -> str:
        """Return in words why nothing can be computed now; empty if it can."""
        try:
            if self._client.status == "closed":
                self._client = _connected(self.address)
            threads = sum(self._client.nthreads().values())
            if self.away and threads:  # others may have come
                self._placed.clear()
                self._meet()
        except InputError as error:
            return AWAY if UNREACHABLE in error.problem else str(error)
        except Exception:
            return AWAY  # gone again while it was asked
        self.workers = threads or self.workers
        return "" if threads else NOBODY


# -- in a worker -----------------------------------------------------------------------------------


def _answered(asking: Identity, function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Return the answer of a worker that runs what whoever asks does; raises InputError otherwise."""
    from distributed import get_worker

    difference = asking.difference(identity())
    refuse_if((difference, difference), file=f"worker {get_worker().address}")
    return function(*args, **kwargs)


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
