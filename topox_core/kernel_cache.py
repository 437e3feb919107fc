"""Where machine code is kept between runs: a folder of our own, whatever happens to it.

Cached code is unpickled, which can run anything, so a folder is used only if nobody may write to it
who could not as well change our sources. A cache that is damaged or cannot be written to costs
time, never an answer: it is forgotten once, then this process goes without.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import caching

try:
    import fcntl
except (
    ImportError
):  # Windows: without it, compile with one process first (python -m topox_core.warm_up)
    fcntl = None  # type: ignore[assignment]

numba_cache: Any = caching  # it has no types
P = ParamSpec("P")
R = TypeVar("R")

OTHERS = stat.S_IWGRP | stat.S_IWOTH
MARK = b"sha256:"
# Another process may hold the lock while it writes; one that was stopped meanwhile holds it for good.
LOCK_S = 20.0
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


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock between processes on a cache folder.

    Numba writes a function's index and its code one after the other. Two processes that compile it
    for different types at once could otherwise leave an index that leads to the wrong code.

    Raises
    ------
    TimeoutError
        If another process has not let go of it for ``LOCK_S``.
    """
    if fcntl is None:
        yield
        return
    try:
        lock = (folder / "lock").open("a")
    except OSError:  # a folder that cannot be written to is not written to
        yield
        return
    with lock:
        patience = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > patience:
                    raise TimeoutError(f"{folder} is locked") from None
                time.sleep(0.002)
            except OSError:  # a file system without locks
                break
        yield


class _Locator(numba_cache.UserProvidedCacheLocator):  # type: ignore[misc]
    """Our folder, found without writing to it."""

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func, py_file)

    def ensure_cache_path(self) -> None:
        Path(self.get_cache_path()).mkdir(mode=0o755, parents=True, exist_ok=True)


class _Implementation(numba_cache.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _CheckedFile(numba_cache.IndexDataCacheFile):  # type: ignore[misc]
    """Machine code with its digest behind it: code of which a byte was lost would end the process.

    Code without a digest is that of an earlier version.
    """

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return data + MARK + hashlib.sha256(data).digest()

    def _load_data(self, name: str) -> Any:
        data = Path(self._data_path(name)).read_bytes()
        content, mark, digest = data[:-39], data[-39:-32], data[-32:]
        if mark == MARK and hashlib.sha256(content).digest() != digest:
            raise ValueError(f"{name} is damaged")
        return super()._load_data(name)

    def forget(self) -> None:
        """Forget what is kept of a function; raises OSError."""
        Path(self._index_path).unlink(missing_ok=True)


class KernelCache(numba_cache.FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, for any state of its folder."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file: Any = _CheckedFile(self._cache_path, self._impl.filename_base, stamp)
        self._folder = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
        self._forgotten = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept for a signature; None if there is nothing, or nothing that can be used."""
        known = self._attempt(super().load_overload, sig, target_context)[1]
        if known is None:
            _announce_first_use()
        return known

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if that can be done, and tell whoever listens."""
        if not self._attempt(super().save_overload, sig, data)[0]:
            # What was there before could be at fault, and is forgotten.
            self._attempt(super().save_overload, sig, data)
        for tell in _listeners:
            tell(self._name)

    def _attempt(
        self, access: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[bool, R | None]:
        """Access the folder; after a first trouble forget what is there, after a second go without."""
        if not self._enabled or self._folder in _out_of_reach:
            return False, None
        try:
            with locked(self._folder):
                return True, access(*args, **kwargs)
        except TimeoutError:
            _out_of_reach.add(self._folder)
        except Exception:  # whatever bytes lie there can raise anything
            if self._forgotten:
                self.disable()
            self._forgotten = True
            with suppress(OSError):
                self._cache_file.forget()
        return False, None


_listeners: list[Callable[[str], object]] = []


def tell_compiled(tell: Callable[[str], object]) -> None:
    """Have ``tell`` called with the name of every kernel that this process compiles from now on."""
    _listeners.append(tell)


# Folders whose lock another process does not let go of.
_out_of_reach: set[Path] = set()
_announced = False


def _announce_first_use() -> None:
    """Say once, in a line, why the first answer takes long."""
    global _announced
    if not _announced and sys.stderr is not None:
        _announced = True
        with suppress(OSError, ValueError):
            sys.stderr.write(FIRST_USE)
