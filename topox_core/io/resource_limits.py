"""How much memory and time the reading of a foreign file may take: beyond it one line, not a dead process.

Sizes are bounded before memory is spent (:mod:`~topox_core.io.limits`); this is the wall behind those bounds.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from topox_core.errors import InputError, as_mb
from topox_core.io.limits import MB

try:
    import resource
except ImportError:  # Windows has neither these limits nor the timer
    resource = None  # type: ignore[assignment]

# Bytes besides those that the process holds, and seconds of computing by the files' size as they are given:
# recordings take 0.1 CPU s per MB as they are packed (benchmarks/recorded_runs.py), ten times that on a slow machine.
MAX_READING_BYTES = 1_500 * MB
READING_S, READING_S_PER_MB = 10.0, 2.0
_STATUS = Path("/proc/self/status")


class _OutOfTime(BaseException):
    """No reader that goes on with the next file after an error stops it."""


@contextmanager
def limited_reading(file: str, size_bytes: int) -> Iterator[None]:
    """Limit what this process takes while it reads files of a size; only a process's main thread has the time's limit.

    Raises
    ------
    InputError
        If memory or time ran out.
    """
    seconds = READING_S + READING_S_PER_MB * size_bytes / MB
    try:
        with ExitStack() as undo:
            _limit_memory(MAX_READING_BYTES, undo)
            _limit_time(seconds, undo)
            yield
    except MemoryError:
        most = as_mb(MAX_READING_BYTES)
        raise InputError(
            f"needs more than the {most} that reading it may take", file=file
        ) from None
    except _OutOfTime:
        raise InputError(
            f"takes more than {seconds:,.0f} s of computing to be read: given up", file=file
        ) from None


def _limit_memory(most_bytes: int, undo: ExitStack) -> None:
    if resource is None or not _STATUS.exists():
        return
    _, _, held = _STATUS.read_text().partition("VmData:")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = int(held.split()[0]) * 1024 + most_bytes
    if before[1] != resource.RLIM_INFINITY:
        most = min(most, before[1])
    undo.callback(resource.setrlimit, resource.RLIMIT_DATA, before)
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))


def _limit_time(seconds: float, undo: ExitStack) -> None:
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        raise _OutOfTime

    undo.callback(signal.signal, signal.SIGPROF, signal.signal(signal.SIGPROF, end))
    undo.callback(signal.setitimer, signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_PROF, seconds)
