"""Worker processes on this machine, behind the interface of ``concurrent.futures``, and what a call of one answers.

The processes are loky's: unlike those of ``multiprocessing`` they do not run the parent's main
module again, which would be a page's script, and they can be killed. Nothing outside this file
depends on loky, so that any other executor can take a run's cells.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import pickle
import re
import signal
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from loky.process_executor import ProcessPoolExecutor, ShutdownExecutorError

from topox_core.errors import InputError
from topox_core.runs.cores import NICENESS, lower_priority, on_all_cores
from topox_core.runs.latest import Latest
from topox_core.runs.run import Stop, Throttled

# What Python says where another thread fills a cached property of what is just being pickled.
CHANGED = "changed size during iteration"
REMEMBERED = 4  # values that a worker holds: several runs, or pages, may share its time


class NotSent(LookupError):
    """A worker was told the digest of a shared value that it has not been sent, or has forgotten."""


@dataclass(frozen=True)
class Shared:
    """The bulky part of a run's cells, which goes to each worker once and not with each cell.

    Attributes
    ----------
    digest
        SHA-256 of the content, or another name that no other value has.
    content
        The pickled value; without it a worker takes the value it knows by the digest.
    """

    digest: str
    content: bytes | None

    @classmethod
    def of(cls, value: object, digest: str = "") -> Shared:
        """Return a value made ready to be sent."""
        while True:
            try:
                content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
                break
            except RuntimeError as error:
                if CHANGED not in str(error):
                    raise
        return cls(digest or hashlib.sha256(content).hexdigest(), content)

    @property
    def size_bytes(self) -> int:
        """How much is sent to each worker."""
        return len(self.content or b"")

    @cached_property
    def named(self) -> Shared:
        """The same for a worker that has the value."""
        return Shared(self.digest, None)

    def value(self) -> Any:
        """Return the value, unpacked once a process; raises NotSent where it is not known."""
        if self.digest in _held:
            return _held[self.digest]
        if self.content is None:
            raise NotSent(self.digest)
        value = _held[self.digest] = pickle.loads(self.content)
        return value


_held: Latest[Any] = Latest(REMEMBERED)  # in a worker: shared values by digest


class Answer(NamedTuple):
    """What one cell gave, and how long it took in seconds; without an error it is a result."""

    result: Any
    error: Exception | None
    wall_s: float


def answer_cells(
    function: Callable[..., Any], shared: Shared | None, cells: Sequence[Any], most_s: float
) -> list[Answer]:
    """Compute cells in order, and begin none after ``most_s`` seconds; those have no answer.

    Raises
    ------
    NotSent
        If the worker does not have the shared value.
    """
    ahead = () if shared is None else (shared.value(),)
    ends_s = time.perf_counter() + most_s
    answers: list[Answer] = []
    for cell in cells:
        began_s = time.perf_counter()
        if answers and began_s >= ends_s:
            break
        result, error = None, None
        try:
            result = function(*ahead, cell)
        except Exception as raised:
            error = _sendable(raised)
        answers.append(Answer(result, error, time.perf_counter() - began_s))
    return answers


def _sendable(error: Exception) -> Exception:
    """Return an error that survives the way back, with where it was raised unless it is bad input."""
    if not isinstance(error, InputError):
        error.add_note(f"In a worker:\n{''.join(traceback.format_exception(error))}")
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


P = ParamSpec("P")
R = TypeVar("R")

IDLE_S = 20.0  # then a worker without work ends and gives its memory back
WATCH_S = 0.5  # between two checks whether the parent still lives
POLL_S = 0.05
TASK_S = 0.1

_Call = tuple["concurrent.futures.Future[Any]", Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class WorkerDied(RuntimeError):
    """The worker process ended before the call was answered.

    Parameters
    ----------
    how
        How it ended: ``signal 9``, ``exit code 1``; empty if that is not known.
    tries
        How many workers ended at this call.
    """

    def __init__(self, how: str = "", tries: int = 1) -> None:
        times = {1: "", 2: " twice at this point"}.get(tries, f" {tries} times at this point")
        super().__init__(f"the worker process ended{times}" + (f" ({how})" if how else ""))
        self.how, self.tries = how, tries

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.how, self.tries)


class AnswerLost(RuntimeError):
    """Whoever computes went away with the call, which may be made again once somebody is there."""


class Executor(concurrent.futures.Executor, ABC):
    """What a run of cells needs to know of an executor beyond the standard library's interface.

    Attributes
    ----------
    workers
        How many calls it works on at once.
    task_s
        How long a call should take, in seconds: long enough to be worth its way, short enough to
        show progress and to be given up.
    away
        In words, why nothing can be computed at the moment; empty if it can.
    """

    workers: int
    task_s: float = TASK_S
    away: str = ""

    @abstractmethod
    def kill(self) -> None:
        """End at once: waiting calls are cancelled, running ones are given up."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 (the interface's)
        """End at once, as :meth:`kill` does."""
        self.kill()


class LocalExecutor(Executor):
    """Worker processes, each with one call at a time, so that a dead worker costs one call only.

    Functions must be importable, arguments picklable. A call whose worker ends raises
    :class:`WorkerDied`; its successor gets a new worker. An argument that is a
    :class:`~topox_core.runs.executor.Shared` is sent to each worker once.

    Parameters
    ----------
    workers
        Processes at once; by default one a core.
    niceness
        How far they give way to other processes.
    idle_s
        After how long without work a process ends and gives its memory back.
    env
        What its environment has besides this one's.
    """

    def __init__(
        self,
        workers: int | None = None,
        niceness: int = NICENESS,
        idle_s: float = IDLE_S,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.workers = max(1, workers or os.cpu_count() or 1)
        self._pool = partial(_pool, niceness=niceness, idle_s=idle_s, env=env)
        self._waiting: deque[_Call] = deque()
        self._idle: list[ProcessPoolExecutor] = []
        self._busy: list[ProcessPoolExecutor] = []
        self._sent: WeakKeyDictionary[ProcessPoolExecutor, set[str]] = WeakKeyDictionary()
        self._closed = False
        self._lock = threading.RLock()

    def submit(
        self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[R]:
        """Return the future of a call."""
        future: concurrent.futures.Future[R] = concurrent.futures.Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("these worker processes were shut down")
            self._waiting.append((future, fn, args, kwargs))
        self._feed()
        return future

    def use(self, workers: int) -> None:
        """Have at most so many processes work from now on; calls that are being answered are finished."""
        if workers != self.workers:
            self.workers = max(1, workers)
            self._feed()

    def kill(self) -> None:
        """End the workers at once: waiting calls are cancelled, running ones raise WorkerDied."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = list(self._waiting), deque()
            running = [*self._busy, *self._idle]
        for future, *_ in waiting:
            future.cancel()
        for pool in running:
            pool.shutdown(wait=False, kill_workers=True)

    def _feed(self) -> None:
        """Give waiting calls to idle workers, and start workers where there are fewer than allowed."""
        with self._lock:
            while self._waiting and len(self._busy) < self.workers and not self._closed:
                future, function, args, kwargs = self._waiting.popleft()
                if not future.set_running_or_notify_cancel():
                    continue
                pool = self._idle.pop() if self._idle else self._pool()
                self._busy.append(pool)
                self._ask(pool, (future, function, args, kwargs))

    def _ask(self, pool: ProcessPoolExecutor, call: _Call) -> None:
        """Send a call to a worker, what it was sent before by name only."""
        _, function, args, kwargs = call
        sent = self._sent.setdefault(pool, set())
        told = [
            one.named if isinstance(one, Shared) and one.digest in sent else one for one in args
        ]
        sent.update(one.digest for one in args if isinstance(one, Shared))
        try:
            with on_all_cores():
                answer = pool.submit(function, *told, **kwargs)
        except concurrent.futures.BrokenExecutor:  # it ended while it had nothing to do
            self._busy.remove(pool)
            self._busy.append(successor := self._pool())
            self._ask(successor, call)
            return
        except RuntimeError:  # this process is ending, and nobody waits for an answer any more
            self._closed = True
            return
        answer.add_done_callback(partial(self._take, pool, call))

    def _take(
        self,
        pool: ProcessPoolExecutor,
        call: _Call,
        answer: concurrent.futures.Future[Any],
    ) -> None:
        """Pass an answer on; called in the thread in which loky attends the worker."""
        future, error = call[0], answer.exception()
        died = isinstance(error, concurrent.futures.BrokenExecutor | ShutdownExecutorError)
        with self._lock:
            # A worker's successor has not been sent it.
            unknown = isinstance(error, NotSent) and self._sent.pop(pool, set())
            if (unknown or CHANGED in str(error and error.__cause__)) and not self._closed:
                self._ask(pool, call)
                return
            self._busy.remove(pool)
            if not died:
                self._idle.append(pool)
        if died:
            future.set_exception(WorkerDied(_how_it_ended(error)))
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer.result())
        self._feed()


def call_in_worker(
    function: Callable[..., R],
    *args: Any,
    stop: Stop,
    on_step: Callable[[Any], None] | None = None,
    grace_s: float = 0.0,
    limit_s: float = float("inf"),
) -> R:
    """Return what one call gives in a worker process of its own, and wait for it.

    Parameters
    ----------
    on_step
        If it is given, the function is called as ``function(*args, stop, on_step)``: its steps
        come back through a pipe, and it is told to stop through it. Without, ``function(*args)``.
    grace_s
        How long a function that was told to stop may take before its process is killed.
    limit_s
        After how many seconds it is killed in any case.

    Raises
    ------
    WorkerDied
        If the process was killed or died; whatever the function raises besides.
    """
    ours, theirs = Pipe()
    pool = _pool(theirs)
    with on_all_cores():
        future = pool.submit(*((_with_steps, function) if on_step else (function,)), *args)
    ends, stopping = time.monotonic() + limit_s, False
    try:
        while not future.done():
            if ours.poll(POLL_S) and on_step is not None:
                on_step(ours.recv())
            if stop() and not stopping:
                stopping = True
                ours.send(None)
                ends = min(ends, time.monotonic() + grace_s)
            if time.monotonic() > ends:
                raise WorkerDied("it did not stop in time")
        while on_step is not None and ours.poll():
            on_step(ours.recv())
        answer: R = future.result()
        return answer
    except (concurrent.futures.BrokenExecutor, EOFError, OSError) as error:
        raise WorkerDied(_how_it_ended(error)) from None
    finally:
        pool.shutdown(wait=False, kill_workers=True)
        ours.close()
        theirs.close()


_pipe: Connection | None = None  # in a worker of call_in_worker: to the caller


def _pool(
    pipe: Connection | None = None,
    niceness: int = NICENESS,
    idle_s: float = IDLE_S,
    env: Mapping[str, str] | None = None,
) -> ProcessPoolExecutor:
    begin = {"initializer": _begin, "initargs": (pipe, niceness)}
    return ProcessPoolExecutor(1, timeout=idle_s, env=dict(env or {}), **begin)


def _begin(pipe: Connection | None, niceness: int) -> None:
    """Prepare a worker: lower its priority, and end it with its parent, however that ends."""
    global _pipe
    _pipe = pipe
    # The parent decides about an interrupt from the terminal, and about SIGTERM to its whole group.
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, signal.SIG_IGN)
    lower_priority(niceness)
    # Whatever a library prints goes to standard error: standard output belongs to the command.
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_S)
    os._exit(1)


def _with_steps(function: Callable[..., R], *args: Any) -> R:
    """Call a function that reports steps and asks whether to stop, in a worker."""
    assert _pipe is not None
    return function(*args, Throttled(_pipe.poll), _pipe.send)


def _how_it_ended(error: BaseException | None) -> str:
    """Return how a process ended, as far as loky tells: it has the number in its message only."""
    if isinstance(error, ShutdownExecutorError):
        return "it was ended"
    code = re.search(r"\{\w+\((-?\d+)\)", str(error))
    if code is None:
        return str(error)
    number = int(code[1])
    return f"signal {-number}" if number < 0 else f"exit code {number}"
