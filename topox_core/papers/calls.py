"""The calls of a card, run side by side in worker processes."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any

from topox_core.errors import InputError
from topox_core.runs.cells import CellsRun
from topox_core.runs.stopping import Stop

POLL_S = 0.1
CANCELLED = "cancelled"

# Cards take no executor each, for most make no calls: who runs one says who makes those there are.
_computing: ContextVar[concurrent.futures.Executor | int | None] = ContextVar(
    "computing", default=None
)


@contextmanager
def computed_by(executor: concurrent.futures.Executor | int | None) -> Iterator[None]:
    """Have the calls that are made meanwhile, in this thread, made by an executor or so many processes."""
    token = _computing.set(executor)
    try:
        yield
    finally:
        _computing.reset(token)


@dataclass(frozen=True)
class Call:
    """One call: a key to know its answer by, an importable function and its picklable arguments."""

    key: Any
    function: Callable[..., Any] = field(compare=False)
    arguments: tuple[Any, ...] = field(compare=False)


def answers(calls: Sequence[Call], stop: Stop, lost: list[str]) -> Iterator[tuple[Any, Any]]:
    """Yield (key, answer) of each call as soon as it is there; put the longest calls first.

    Worker processes make them, one a core, unless :func:`computed_by` says who does.

    Parameters
    ----------
    stop
        Asked ten times a second; True ends the workers at once.
    lost
        Gets a line for every reason why answers are missing.

    Raises
    ------
    InputError
        If a call raises one.
    """
    came: SimpleQueue[list[tuple[Call, Any]]] = SimpleQueue()
    run = CellsRun(calls, attrgetter("key"), make, None, _computing.get(), came.put)
    try:
        while run.running or not came.empty():
            if stop():
                lost.append(CANCELLED)
                return
            try:
                batch = came.get(timeout=POLL_S)
            except Empty:
                batch = []
            for call, answer in batch:
                yield call.key, answer
            _raise_bad_input(run)
        _raise_bad_input(run)
        result = run.result()
        lost += [f"{call.key}: {error}" for call, error in result.failures.items()]
        lost += [result.stopped] if result.stopped else []
    finally:
        run.close()


def make(call: Call) -> Any:
    """Make a call, in a worker."""
    return call.function(*call.arguments)


def _raise_bad_input(run: CellsRun[Call, Any, Any]) -> None:
    for error in run.result().failures.values():
        if isinstance(error, InputError):
            raise error
