"""Children that have loaded their engine before there is a request for them, so that loading takes no time of a solve.

Python, compiled code and an engine's library take about a second to load, longer than most proofs of small problems.
"""

import atexit
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from topox_core.runs.cores import on_all_cores

WORKER = (sys.executable, "-m", "topox_core.worker")
LOADED = frozenset(("cpsat", "highs"))
IDLE_S = 600.0  # a child that nobody had a request for is ended after so long

_lock = threading.Lock()
_waiting: dict[str, subprocess.Popen[bytes]] = {}


def start_worker(command: Sequence[str] = WORKER) -> subprocess.Popen[bytes]:
    """Start a child that waits for a request."""
    with on_all_cores():
        return subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )


def expect_request(engine: str) -> subprocess.Popen[bytes] | None:
    """Start a child for an engine that takes long to load, unless one waits already; it loads meanwhile.

    Nearly every solve by ``auto`` asks CP-SAT. Returns the child that waits, None where none need.
    """
    name = "cpsat" if engine == "auto" else engine
    if name not in LOADED:
        return None
    with _lock:
        if name in _waiting and _waiting[name].poll() is None:
            return _waiting[name]
        _waiting[name] = child = start_worker((*WORKER, name))
    idle = threading.Timer(IDLE_S, _end_idle, (name, child))
    idle.daemon = True
    idle.start()
    return child


def wait_until_loaded(engine: str, at_most_s: float) -> None:
    """Start a child for an engine and wait until it has loaded (where a system can wait for a pipe)."""
    child = expect_request(engine)
    if child is not None and child.stdout is not None and os.name == "posix":
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            selector.select(at_most_s)


def worker_of(engine: str) -> subprocess.Popen[bytes]:
    """Return the child that waits with an engine loaded, or a new one."""
    with _lock:
        child = _waiting.pop(engine, None)
    if child is not None and child.poll() is None:
        return child
    return start_worker()


def close_pipe(pipe: IO[bytes] | None) -> None:
    """Close one end of a pipe; what was still to be written has no reader any more."""
    if pipe is not None:
        with suppress(OSError):
            pipe.close()


@atexit.register
def end_all() -> None:
    """End the children that wait."""
    with _lock:
        children = list(_waiting.values())
        _waiting.clear()
    for child in children:
        _end(child)


def _end_idle(name: str, child: subprocess.Popen[bytes]) -> None:
    with _lock:
        if _waiting.get(name) is not child:
            return
        del _waiting[name]
    _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    close_pipe(child.stdin)
    close_pipe(child.stdout)
    child.wait()


def _forget() -> None:
    """Leave the children to the process that started them."""
    global _lock
    _lock = threading.Lock()
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _environment() -> dict[str, str]:
    """Return the environment in which a child finds this package wherever the parent was started."""
    package = str(Path(__file__).resolve().parents[3])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": package if not known else package + os.pathsep + known}
