"""Calls in child processes behind the interface of ``concurrent.futures``.

``multiprocessing`` would run a page's script again in each child, so children are plain ``python -m
topox_core.runs.call_worker`` processes: calls go down a pipe and answers come back up, pickled,
each behind its length. Only this package's own processes are at the two ends.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LENGTH = struct.Struct("<Q")
DEATHS = 3  # in a row; then the rest is not tried any more

_Call = tuple["concurrent.futures.Future[Any]", bytes]


class WorkerDied(RuntimeError):
    """The child process ended before the call was answered."""


class ChildProcesses(concurrent.futures.Executor):
    """An executor over child processes; functions and arguments must be picklable, functions importable.

    Parameters
    ----------
    workers
        Children that run at once; by default one a core.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = max(1, workers or os.cpu_count() or 1)
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._killed = threading.Event()
        self._closed = False
        self._lock = threading.Lock()
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._threads: list[threading.Thread] = []

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Process numbers of the children that are there now."""
        with self._lock:
            return tuple(process.pid for process in self._running.values())

    def submit(
        self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[R]:
        """Return the future of a call; its exception is :class:`WorkerDied` if the child ends meanwhile."""
        future: concurrent.futures.Future[R] = concurrent.futures.Future()
        call = pickle.dumps((fn, args, kwargs))
        with self._lock:
            if self._closed:
                raise RuntimeError("these child processes were shut down")
            self._calls.put((future, call))
            if len(self._threads) < self.workers:
                thread = threading.Thread(
                    target=self._serve,
                    args=(len(self._threads),),
                    daemon=True,
                    name="child process",
                )
                self._threads.append(thread)
                thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls and let the children end when they have done theirs."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        if cancel_futures:
            self._cancel_waiting()
        for _ in threads:
            self._calls.put(None)
        if wait:
            for thread in threads:
                thread.join()

    def kill(self) -> None:
        """End the children at once; waiting calls are cancelled, running ones end with :class:`WorkerDied`."""
        self._killed.set()
        self.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for process in self._running.values():
                process.kill()

    def _cancel_waiting(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                call = self._calls.get_nowait()
                if call is not None:
                    call[0].cancel()

    def _serve(self, number: int) -> None:
        """Take call after call to one child, which is started when it is needed; runs in a thread."""
        deaths = 0
        child: subprocess.Popen[bytes] | None = None
        while (call := self._calls.get()) is not None:
            future, sent = call
            if not future.set_running_or_notify_cancel():
                continue
            if self._killed.is_set() or deaths >= DEATHS:
                future.set_exception(
                    WorkerDied("no process was left to run it" if deaths else "it was cancelled")
                )
                continue
            try:
                child = child or self._started(number)
                answered, value = _asked(child, sent)
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                deaths += 1
                future.set_exception(WorkerDied(_how_it_ended(child, error)))
                self._ended(number, child)
                child = None
                continue
            deaths = 0
            if answered:
                future.set_result(value)
            else:
                future.set_exception(value)
        self._ended(number, child)

    def _started(self, number: int) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-m", "topox_core.runs.call_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
        )
        with self._lock:
            self._running[number] = child
        if self._killed.is_set():  # killed between the question and the start
            child.kill()
        return child

    def _ended(self, number: int, child: subprocess.Popen[bytes] | None) -> None:
        with self._lock:
            self._running.pop(number, None)
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        child.kill()
        child.wait()


def send(pipe: IO[bytes], content: bytes) -> None:
    """Write one message behind its length."""
    pipe.write(LENGTH.pack(len(content)) + content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes:
    """Return one message.

    Raises
    ------
    EOFError
        If the other end is gone.
    """
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    length = LENGTH.unpack(head)[0]
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError
    return content


def _asked(child: subprocess.Popen[bytes], call: bytes) -> tuple[bool, Any]:
    """Return (True, value) or (False, exception) as the child answers."""
    assert child.stdin is not None
    assert child.stdout is not None
    send(child.stdin, call)
    answer: tuple[bool, Any] = pickle.loads(receive(child.stdout))
    return answer


def _how_it_ended(child: subprocess.Popen[bytes] | None, error: Exception) -> str:
    if child is None:
        return f"the worker process could not be started ({error})"
    try:
        code = child.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        return f"the worker process answered nonsense ({error!r})"
    how = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
    return f"the worker process ended ({how})"


def _environment() -> dict[str, str]:
    """Return the environment in which a child finds this package wherever the parent was started."""
    package = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": package if not known else package + os.pathsep + known}
