"""One way to compile: cached on disk, free of the interpreter lock."""

import functools
import hashlib
import itertools
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import bytecode, event
from numba.core.dispatcher import Dispatcher

from topox_core.kernel_cache import KernelCache, choose_folder

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE = Path(__file__).parent
COMPILED = (
    "**/kernels/*.py",
    "strategy/kernel.py",
    "training/kernel.py",
    "model/heap.py",
    "model/loads.py",
    "model/passes.py",
)
# Set NUMBA_DISABLE_JIT to answer without the compiler, bit for bit the same: sooner on a small graph
# where nothing is compiled yet.
WITHOUT = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]
# Raised where machine code of the same sources is no longer to be used.
CACHE_FORMAT = b"3"


def number_functions_apart() -> None:
    """Let numba number functions from a place that no other process begins at.

    The number is the only part of a symbol's name that tells two functions of one name and type
    apart, such as the partition step of a sort and that of an argsort. Numba counts from 1 in every
    process: kernels that two processes compiled could share names, and the linker gave both the
    code that was loaded first (numba issue 10486).
    """
    bytecode.FunctionIdentity._unique_ids = itertools.count(secrets.randbits(96))


number_functions_apart()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=number_functions_apart)


@functools.cache
def cache_folder() -> Path:
    """Return the folder of the machine code of just these kernels.

    Numba looks only at the file that a function is in, so that a kernel would go on calling the old
    code of a changed one elsewhere: the folder's name is a digest of all kernels' sources.
    """
    sources = sorted(source for pattern in COMPILED for source in PACKAGE.glob(pattern))
    contents = b"\0".join([CACHE_FORMAT, *(source.read_bytes() for source in sources)])
    digest = hashlib.sha256(contents).hexdigest()[:16]
    return choose_folder(PACKAGE, f"kernels-{digest}")


if "NUMBA_CACHE_DIR" not in os.environ:
    numba.config.CACHE_DIR = str(cache_folder())  # type: ignore[attr-defined]


def forget_old_code() -> None:
    """Delete the machine code of earlier versions of the kernels that lies beside this one's."""
    current = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
    if current.name.startswith("kernels-"):
        for folder in current.parent.glob("kernels-*"):
            if folder != current:
                shutil.rmtree(folder, ignore_errors=True)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with numba; the machine code is cached on disk, so that only the first call on a machine takes long."""
    return _compiled(function)


def compiled_in_place(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that makes no array of its own, and counts no references to those that it is given.

    Whoever calls it holds them. A record of many arrays costs two counts an array whenever it is
    passed on, which took most of the time of short kernels. One that does make an array is refused
    when it is compiled.
    """
    return _compiled(function, _nrt=False)


def written_out(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel of a few lines that is written out wherever it is called.

    A call hands on every extent of every array: more than a few operations on words take.
    """
    return _compiled(function, inline="always")


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    if WITHOUT:
        return function
    dispatcher = numba.njit(nogil=True, **options)(function)
    dispatcher._cache = KernelCache(function)
    return cast("Callable[P, R]", dispatcher)


def at_once(kernel: Callable[P, R]) -> Callable[P, R]:
    """Return a kernel, or the same without the compiler where this machine has not compiled it yet.

    For calls on a few dozen numbers, which compiling would hold up for seconds.
    """
    dispatcher = cast("Any", kernel)
    if WITHOUT or dispatcher.signatures or dispatcher._cache.folder.exists():
        return kernel
    return cast("Callable[P, R]", _plain(dispatcher))


@functools.cache
def _plain(dispatcher: Any) -> Callable[..., Any]:
    """Return what a kernel was made of, with all kernels that it calls made plain too."""
    function = dispatcher.py_func
    known = function.__globals__
    called = {
        name: _plain(known[name])
        for name in function.__code__.co_names
        if isinstance(known.get(name), Dispatcher)
    }
    return FunctionType(function.__code__, known | called, function.__name__, function.__defaults__)


class _Waiting(event.Listener):
    """How long this process has been compiling kernels and loading their machine code, in seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._since, self._before_s = 0, 0.0, 0.0

    def on_start(self, event: event.Event) -> None:  # noqa: ARG002
        """Begin to count with the first thread that compiles."""
        with self._lock:
            if self._depth == 0:
                self._since = time.monotonic()
            self._depth += 1

    def on_end(self, event: event.Event) -> None:  # noqa: ARG002
        """Stop counting with the last thread that compiles."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._before_s += time.monotonic() - self._since

    def working_s(self) -> float:
        """Return a clock that stands still meanwhile."""
        with self._lock:
            now = self._since if self._depth else time.monotonic()
            return now - self._before_s


_WAITING = _Waiting()
event.register("numba:compiler_lock", _WAITING)  # type: ignore[no-untyped-call]


def working_s() -> float:
    """Return a monotonic clock in seconds that stands still while kernels are compiled or loaded.

    A time limit that runs on it gives the same schedule on a machine that has to compile first.
    """
    return _WAITING.working_s()
