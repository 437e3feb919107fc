"""The calls of a card, run side by side in worker processes."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from topox_core.errors import InputError
from topox_core.runs.executor import LocalExecutor
from topox_core.runs.stopping import Stop

POLL_S = 0.1
CANCELLED = "cancelled"


@dataclass(frozen=True)
class Call:
    """One call: a key to know its answer by, an importable function and its picklable arguments."""

    key: Any
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def answers(
    calls: Sequence[Call], stop: Stop, lost: list[str], workers: int | None = None
) -> Iterator[tuple[Any, Any]]:
    """Yield (key, answer) of each call as soon as it is there; put the longest calls first.

    Parameters
    ----------
    stop
        Asked ten times a second; True ends the workers at once.
    lost
        Gets a line for every reason why answers are missing.
    workers
        Processes at once; by default one a core.

    Raises
    ------
    InputError
        If a call raises one.
    """
    executor = LocalExecutor(workers)
    waiting = {executor.submit(call.function, *call.arguments): call.key for call in calls}
    try:
        while waiting:
            if stop():
                lost.append(CANCELLED)
                return
            done, _ = concurrent.futures.wait(
                waiting, timeout=POLL_S, return_when=concurrent.futures.FIRST_COMPLETED
            )
            for future in done:
                key = waiting.pop(future)
                error = future.exception()
                if isinstance(error, InputError):
                    raise error
                if error is not None:
                    lost.append(f"{key}: {error}")
                    continue
                yield key, future.result()
    finally:
        executor.kill()
