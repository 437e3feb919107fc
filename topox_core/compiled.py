"""One way to compile, free of the interpreter lock; and where machine code is kept between runs, a folder of our own.

Cached code is unpickled, which can run anything, so a folder is used only if nobody may write to it
who could not as well change our sources. A cache that is damaged or cannot be written to costs
time, never an answer.

Numba's own cache has an index of each function and its code in another file, which two processes that
write at once can leave apart. Here what is compiled for one signature is one file, named by all that it
depends on and put in place whole, so that no process waits for another.
"""

import atexit
import functools
import hashlib
import inspect
import itertools
import os
import pickle
import secrets
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast
from uuid import uuid4

import numba
from numba.core import bytecode, caching, compiler, event
from numba.core.dispatcher import Dispatcher

numba_cache: Any = caching  # they have no types
CompileResult: Any = compiler.CompileResult

OTHERS = stat.S_IWGRP | stat.S_IWOTH
FIRST_USE = "Compiling for this machine, once: the first answer takes up to two minutes longer.\n"


def choose_folder(package: Path, name: str) -> Path:
    """Return a folder for the machine code of a package that nobody else can have written to.

    The package's own, or one in the user's cache folder; if both are somebody else's or cannot be
    used, a new one for this process alone.
    """
    with suppress(OSError):
        if _usable(folder := package / "__pycache__" / name, 0o755, package):
            return folder
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        if _usable(folder := user_cache() / name, 0o700) and stays_ours(folder):
            return folder
    try:
        folder = Path(tempfile.mkdtemp(prefix="topox-kernels-"))
        safe = stays_ours(folder)
    except OSError:  # nothing can be written anywhere
        safe = False
    if not safe:
        return Path(os.devnull) / name
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)  # the processes that this one starts share it
    return folder


def _usable(folder: Path, mode: int, code: Path | None = None) -> bool:
    """Return whether a folder is ours and holds something or can be written to; make it if there is none."""
    with suppress(FileExistsError, PermissionError):
        folder.mkdir(mode=mode, parents=True)
    return trusted(folder, code) and (os.access(folder, os.W_OK) or any(folder.iterdir()))


def user_cache() -> Path:
    """Return our folder in the user's cache folder."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "topox-workbench"
    local = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_CACHE_HOME")
    return (Path(local) if local else Path.home() / ".cache") / "topox-workbench"


def trusted(folder: Path, code: Path | None = None) -> bool:
    """Return whether nobody but us, or those who own and may write the code beside it, can have written to a folder.

    Raises
    ------
    OSError
        If the folder cannot be looked at.
    """
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    owners, writable = {os.getuid()}, 0
    if code is not None:
        beside = code.stat()
        owners |= {0, beside.st_uid}
        writable = beside.st_mode & OTHERS
        if beside.st_gid != status.st_gid:
            writable &= ~stat.S_IWGRP
    return status.st_uid in owners and not status.st_mode & OTHERS & ~writable


def stays_ours(folder: Path) -> bool:
    """Return whether nobody but us and root can put another folder where this one is, by any folder above it.

    Raises
    ------
    OSError
        If one of them cannot be looked at.
    """
    if not hasattr(os, "getuid"):
        return True
    above = {*folder.absolute().parents, *folder.resolve().parents}
    return all(_nobody_else_may_write(parent.stat()) for parent in above)


def _nobody_else_may_write(status: os.stat_result) -> bool:
    if status.st_uid not in (0, os.getuid()):
        return False
    if (
        status.st_mode & stat.S_ISVTX
    ):  # who does not own what is in it can neither remove nor rename it
        return True
    writable = status.st_mode & OTHERS
    return not writable or (writable == stat.S_IWGRP and _of_one(status.st_gid))


def _of_one(group: int) -> bool:
    """Whether a group has nobody but us: its name is ours, and it lists no other."""
    import grp
    import pwd

    with suppress(KeyError):
        mine, of = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(group)
        return of.gr_name == mine and not set(of.gr_mem) - {mine}
    return False


@cache
def _digest_of_file(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class KernelCache(numba_cache.NullCache):  # type: ignore[misc]
    """What is kept of one function, a file a signature: code with its digest behind it.

    Code of which a byte was lost would end the process.

    Attributes
    ----------
    folder
        Of the function's files; there is none before it was compiled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self.folder = Path(numba.config.CACHE_DIR, self._name.replace("<locals>.", ""))  # type: ignore[attr-defined]
        self._made_of = numba.__version__, sys.version, _digest_of_file(inspect.getfile(function))

    def _file(self, sig: Any, codegen: Any) -> Path:
        """Return the file of a signature, on this kind of machine, in this version of everything."""
        key = repr((self._name, self._made_of, sig, codegen.magic_tuple()))
        return self.folder / hashlib.sha256(key.encode()).hexdigest()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept for a signature; None if there is nothing, or nothing that can be used."""
        target_context.refresh()
        with suppress(Exception):  # whatever bytes lie there can raise anything
            content = self._file(sig, target_context.codegen()).read_bytes()
            if hashlib.sha256(content[:-32]).digest() == content[-32:]:
                made = CompileResult._rebuild(target_context, *pickle.loads(content[:-32]))
                if made.signature.args == tuple(sig):
                    return made
        _announce_first_use()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if that can be done, and tell whoever listens."""
        file = self._file(sig, data.codegen)
        new = file.with_name(uuid4().hex)
        with suppress(Exception):
            if not data.library.has_dynamic_globals:  # addresses in this process
                file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                content = numba_cache.dumps(data._reduce())
                new.write_bytes(content + hashlib.sha256(content).digest())
                new.replace(file)
        with suppress(OSError):  # of a full disk
            new.unlink(missing_ok=True)
        for tell in _listeners:
            tell(self._name)


_listeners: list[Callable[[str], object]] = []


def tell_compiled(tell: Callable[[str], object]) -> None:
    """Have ``tell`` called with the name of every kernel that this process compiles from now on."""
    _listeners.append(tell)


_announced = False


def _announce_first_use() -> None:
    """Say once, in a line, why the first answer takes long."""
    global _announced
    if not _announced and sys.stderr is not None:
        _announced = True
        with suppress(OSError, ValueError):
            sys.stderr.write(FIRST_USE)


P = ParamSpec("P")
R = TypeVar("R")

PACKAGE = Path(__file__).parent
COMPILED = (
    "**/kernels/*.py",
    "strategy/search/kernel.py",
    "training/kernel.py",
    "model/arrays/heap.py",
    "model/arrays/loads.py",
    "model/arrays/passes.py",
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
