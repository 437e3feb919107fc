"""Where machine code is kept between runs: a folder of our own, whatever happens to it.

Cached code is unpickled, which can run anything, so a folder is used only if nobody may write to it
who could not as well change our sources. A cache that is damaged or cannot be written to costs
time, never an answer.

Numba's own cache has an index of each function and its code in another file, which two processes that
write at once can leave apart. Here what is compiled for one signature is one file, named by all that it
depends on and put in place whole, so that no process waits for another.
"""

import atexit
import hashlib
import inspect
import os
import pickle
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from numba.core import caching, compiler

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
