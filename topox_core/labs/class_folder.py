"""The folder of a class: answers kept whole by rename and signed, named by seed and never by a name, within limits."""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from topox_core.errors import InputError
from topox_core.io.content import read, why
from topox_core.io.limits import ANSWERS
from topox_core.labs.answers import Answers
from topox_core.labs.answers_file import AnswersFile, dump_answers, load_answers
from topox_core.labs.folder import ENDING, latest_of_each
from topox_core.labs.grading import score
from topox_core.labs.lab import Lab

KEY_FILE = "class.key"
KEY_BYTES = 32
MAX_FILES = 2_000
MAX_BYTES = 100 * 1024 * 1024
# Of one seed: somebody began anew, or typed the id of somebody else; nothing is written over.
MAX_OF_A_SEED = 9


@dataclass(frozen=True)
class KeptFile:
    """Answers that were kept, or why they were not.

    Attributes
    ----------
    file
        Name below the class folder; empty if nothing was written.
    reason
        ``practice`` (a seed that is not the student's), ``full`` (the folder is) or empty.
    """

    file: str
    reason: str = ""


class ClassFolder:
    """A folder with a lab a subfolder; ``class.key`` in it signs what is written and leaves it never."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = threading.Lock()  # who begins a file, and who goes on with one

    @classmethod
    def opened(cls, path: Path) -> ClassFolder:
        """Return a folder, made where there is none, with its secret.

        Raises
        ------
        InputError
            If it cannot be made or written to.
        """
        folder = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            _make_secret(path / KEY_FILE)
        except OSError as error:
            raise InputError(f"cannot be written: {why(error)}", file=str(path)) from None
        return folder

    @property
    def secret(self) -> bytes:
        """What signs the files; raises InputError where there is none."""
        return read_secret(self.path)

    def keep(self, lab: Lab, answers: Answers) -> KeptFile:
        """Write the answers of a student, whole or not at all; answers begun at another moment stay beside them.

        Raises
        ------
        InputError
            If the disk refuses.
        """
        if answers.is_practice:
            return KeptFile("", "practice")
        data = dump_answers(answers, score(lab, answers), self.secret)
        folder = self.path / lab.id
        try:
            with self._writing:
                folder.mkdir(exist_ok=True)
                place = _place(folder, answers)
                if place is None or not (place.exists() or self._has_room(len(data))):
                    return KeptFile("", "full")
                _write_whole(place, data)
        except OSError as error:
            raise InputError(f"cannot be written: {why(error)}", file=str(folder)) from None
        return KeptFile(f"{lab.id}/{place.name}")

    def answers_to(self, lab: str) -> tuple[Answers, ...]:
        """Return all answers to a lab that can be read; of one student the last."""
        every = map(_answers_at, sorted((self.path / lab).glob(f"*{ENDING}")))
        return latest_of_each(one for one in every if one is not None)

    def count(self) -> tuple[int, int]:
        """Return how many files of answers there are, and their bytes."""
        sizes = [path.stat().st_size for path in self.path.glob(f"*/*{ENDING}")]
        return len(sizes), sum(sizes)

    def _has_room(self, more: int) -> bool:
        files, size = self.count()
        return files < MAX_FILES and size + more <= MAX_BYTES


def read_secret(folder: Path) -> bytes:
    """Return the secret of a class folder; raises InputError where there is none or it is damaged."""
    path = folder / KEY_FILE
    if path.is_symlink() or not path.is_file():
        raise InputError("is missing", file=str(path))
    data = read(str(path))
    if len(data) != KEY_BYTES:
        raise InputError(f"must be {KEY_BYTES} bytes (got {len(data):,})", file=str(path))
    return data


def secret_for(folder: Path) -> bytes | None:
    """Return the secret that signed a folder of answers, its own or that of the class folder it is in."""
    for place in (folder, folder.parent):
        if (place / KEY_FILE).is_file():
            return read_secret(place)
    return None


def _place(folder: Path, answers: Answers) -> Path | None:
    """Return where answers go: over their own earlier state, beside everybody else's."""
    for number in range(1, MAX_OF_A_SEED + 1):
        extra = "" if number == 1 else f"-{number}"
        path = folder / f"{answers.seed:08d}{extra}{ENDING}"
        if not os.path.lexists(path):
            return path
        before = _answers_at(path)
        own = (answers.student, answers.started)
        if before is not None and (before.student, before.started) == own:
            return path
    return None


def _answers_at(path: Path) -> Answers | None:
    """Return the answers of a file; None of a link, and of a file that is too large or cannot be read."""
    try:
        state = path.lstat()
        if path.is_symlink() or state.st_size > ANSWERS.file_bytes:
            return None
        return _read(str(path), state.st_mtime_ns, state.st_size).answers
    except (InputError, OSError):
        return None  # half a file cannot be there; a foreign one is named by `lab grade`


@lru_cache(maxsize=MAX_FILES)
def _read(path: str, *_state: int) -> AnswersFile:
    """Return answers; the file's time and size are of the key only."""
    return load_answers(read(path), Path(path).name)


def _make_secret(path: Path) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file under another name, and rename it: whoever reads finds the old or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def clean(folder: Path) -> tuple[int, list[str]]:
    """Delete what a class left in a folder; return how many files went, and the names of those that are not the class's.

    Raises
    ------
    InputError
        If it is no class folder: it has no secret of one.
    """
    read_secret(folder)
    gone = 0
    for path in sorted(folder.glob("*/*")):
        ours = path.name.endswith((ENDING, ".part")) and not path.is_symlink()
        if ours and path.is_file() and not path.parent.is_symlink():
            path.unlink()
            gone += 1
    (folder / KEY_FILE).unlink()
    for place in [*folder.iterdir(), folder]:
        if place.is_dir() and not place.is_symlink() and not any(place.iterdir()):
            place.rmdir()
    left = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return gone, left
