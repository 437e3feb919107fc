"""One way to compile: cached on disk, free of the interpreter lock."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import numba
from numba.core import event

try:
    import fcntl
except (
    ImportError
):  # Windows: without it, compile with one process first (python -m topox_core.warm_up)
    fcntl = None  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE = Path(__file__).parent
COMPILED = (
    "**/kernels/*.py",
    "strategy/kernel.py",
    "model/heap.py",
    "model/loads.py",
    "model/passes.py",
)


def cache_folder() -> Path:
    """Return the folder of the machine code of just these kernels.

    Numba looks only at the file that a function is in, so that a kernel would go on calling the old
    code of a changed one elsewhere: the folder's name is a digest of all kernels' sources.
    """
    sources = sorted(source for pattern in COMPILED for source in PACKAGE.glob(pattern))
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    beside = PACKAGE / "__pycache__" / f"kernels-{digest}"
    try:
        beside.mkdir(parents=True, exist_ok=True)
    except OSError:
        beside = (
            Path(tempfile.gettempdir())
            / f"topox-kernels-{os.getuid() if hasattr(os, 'getuid') else 0}-{digest}"
        )
    return (
        beside
        if os.access(beside, os.W_OK) or not beside.exists()
        else Path(tempfile.mkdtemp(prefix="topox-kernels-"))
    )


if "NUMBA_CACHE_DIR" not in os.environ:
    numba.config.CACHE_DIR = str(cache_folder())  # type: ignore[attr-defined]


def forget_old_code() -> None:
    """Delete the machine code of earlier versions of the kernels that lies beside this one's."""
    current = cache_folder()
    for folder in current.parent.glob("kernels-*"):
        if folder != current:
            shutil.rmtree(folder, ignore_errors=True)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with numba; the machine code is cached on disk, so that only the first call on a machine takes long."""
    dispatcher = numba.njit(cache=True, nogil=True)(function)
    cache = dispatcher._cache  # type: ignore[attr-defined]
    cache.load_overload = _one_process_at_a_time(cache.load_overload)
    cache.save_overload = _one_process_at_a_time(cache.save_overload)
    return cast("Callable[P, R]", dispatcher)


def _one_process_at_a_time(access: Callable[P, R]) -> Callable[P, R]:
    """Return the access to the cache under a lock on its folder.

    Numba writes a function's index and its code one after the other. Two processes that compile it
    for different types at once could otherwise leave an index that leads to the wrong code.
    """
    if fcntl is None:
        return access

    @functools.wraps(access)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            lock = (Path(numba.config.CACHE_DIR) / "lock").open("a")  # type: ignore[attr-defined]
        except OSError:  # a folder that cannot be written to is not written to
            return access(*args, **kwargs)
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return access(*args, **kwargs)

    return locked


_COMPILING = event.TimingListener()  # type: ignore[no-untyped-call]
event.register("numba:compile", _COMPILING)  # type: ignore[no-untyped-call]


def working_s() -> float:
    """Return a monotonic clock in seconds that stands still while kernels are being compiled.

    A time limit that runs on it gives the same schedule on a machine that has to compile first.
    """
    return time.monotonic() - (_COMPILING.duration if _COMPILING.done else 0.0)
