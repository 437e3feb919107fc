"""On which cores threads and processes run, and which of them give way.

A process whose threads share one interpreter lock gains nothing from a second core, and loses much
where they wake each other across cores at every message. ``benchmarks/forty_sessions.py``, thirty of
forty moving a slider every 10 s, on a virtual machine of two cores: a median of 11.8 s on both, 0.97 s
on one.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Pages answer sliders while solves run: solves give way.
NICENESS = 10
_THREADS = Path("/proc/self/task")


def _cores() -> frozenset[int]:
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


# What this process was allowed when it began.
ALLOWED = _cores()


def keep_to_one_core() -> None:
    """Keep all threads of this process, and those they start, on one core, where the system can."""
    if len(ALLOWED) < 2 or not _THREADS.is_dir():
        return
    for thread in _THREADS.iterdir():
        with suppress(OSError):  # it may have ended
            os.sched_setaffinity(int(thread.name), {max(ALLOWED)})


@contextmanager
def on_all_cores() -> Iterator[None]:
    """Let the processes and threads that are started meanwhile run on all cores."""
    before = _cores()
    if before == ALLOWED:
        yield
        return
    os.sched_setaffinity(0, ALLOWED)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def give_way() -> None:
    """Let the calling thread run on all cores and give way to the others, where the system can (Linux)."""
    if _THREADS.is_dir():
        with suppress(OSError):
            os.sched_setaffinity(0, ALLOWED)
        lower_priority()


def lower_priority(niceness: int = NICENESS) -> None:
    """Make the calling thread at least so nice; what it starts inherits that, and is made no nicer by a second call."""
    if hasattr(os, "setpriority"):
        here = threading.get_native_id() if _THREADS.is_dir() else 0
        before = os.getpriority(os.PRIO_PROCESS, here)
        os.setpriority(os.PRIO_PROCESS, here, max(before, niceness))
