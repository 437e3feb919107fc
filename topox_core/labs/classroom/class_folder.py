"""The folder of a class: answers kept whole by rename and signed, named by seed and never by a name, within limits.

What counts stands in a lab's folder: an id belongs to the device that answered under it first, and a
device to two ids. All else is kept apart, in the folder ``apart`` of the lab, until the lecturer says otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from topox_core.errors import InputError, refuse_if
from topox_core.io.content import read, why
from topox_core.io.limits import ANSWERS
from topox_core.labs.classroom.answers import Answers, AnswersFile, dump_answers, load_answers
from topox_core.labs.classroom.folder import ENDING, folded, latest_of_each
from topox_core.labs.classroom.grading import score
from topox_core.labs.lab import Lab

KEY_FILE = "class.key"
KEY_BYTES = 32
MAX_FILES = 2_000
MAX_BYTES = 100 * 1024 * 1024
# Of one seed: somebody began anew, or typed the id of somebody else; nothing is written over.
MAX_OF_A_SEED = 9
APART, DEVICES_FILE, ROSTER_FILE = "apart", "devices.json", "roster.txt"
# Two may share a machine. What is kept apart has room of its own, and no device all of it.
IDS_OF_A_DEVICE, MAX_APART, MAX_APART_OF_A_DEVICE = 2, 500, 20


@dataclass(frozen=True)
class KeptFile:
    """Answers that were kept, or why they were not.

    Attributes
    ----------
    file
        Name below the class folder; empty if nothing was written.
    reason
        ``practice`` (a seed that is not the student's), ``full`` (the folder is), ``restarts`` (there
        are too many beginnings of this seed); kept apart: ``brought`` (not answered here), ``roster``
        (the id is not on it), ``held`` (by another device), ``ids`` (the device has others); or empty.
    """

    file: str
    reason: str = ""


class ClassFolder:
    """A folder with a lab a subfolder; ``class.key`` in it signs what is written and leaves it never."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = threading.Lock()  # who begins a file, and who goes on with one
        self._device_of = _devices(path / DEVICES_FILE)
        self._apart_of: dict[str, int] = {}

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

    def keep(
        self, lab: Lab, answers: Answers, device: str = "", *, brought: bool = False
    ) -> KeptFile:
        """Write the answers of a student, whole or not at all; answers begun at another moment stay beside them.

        Parameters
        ----------
        device
            A secret of the device that they come from; empty for this machine itself.
        brought
            Whether they were, in part, not answered here: they are kept apart and not signed.

        Raises
        ------
        InputError
            If the disk refuses.
        """
        if answers.is_practice:
            return KeptFile("", "practice")
        data = dump_answers(answers, score(lab, answers), None if brought else self.secret)
        folder = self.path / lab.id
        try:
            with self._writing:
                reason = "brought" if brought else self._why_apart(folded(answers.student), device)
                folder = folder / APART if reason else folder
                folder.mkdir(parents=True, exist_ok=True)
                place = _place(folder, answers)
                if place is None:
                    return KeptFile("", "restarts")
                if not place.exists():
                    room = self._has_room_apart(device) if reason else self._has_room(len(data))
                    if not room:
                        return KeptFile("", "full")
                _write_whole(place, data)
        except OSError as error:
            raise InputError(f"cannot be written: {why(error)}", file=str(folder)) from None
        return KeptFile(str(place.relative_to(self.path)), reason)

    def _why_apart(self, student: str, device: str) -> str:
        """Return why an id's answers from a device do not count; empty if they do, and the id is the device's now."""
        roster = self._roster()
        if roster is not None and student not in roster:
            return "roster"
        mine = hashlib.sha256(device.encode()).hexdigest() if device else ""
        holder = self._device_of.get(student)
        if holder is not None:
            return "" if holder == mine else "held"
        if mine and sum(one == mine for one in self._device_of.values()) >= IDS_OF_A_DEVICE:
            return "ids"
        self._device_of[student] = mine
        self._write_devices()
        return ""

    def _roster(self) -> frozenset[str] | None:
        """Return the ids that count, one a line in ``roster.txt``; None where there is no such file."""
        path = self.path / ROSTER_FILE
        if not path.is_file():
            return None
        lines = read(str(path)).decode("utf-8", "replace").splitlines()
        return frozenset(folded(line) for line in lines if line.strip())

    def release(self, student: str) -> None:
        """Let the next device that answers under an id have it."""
        with self._writing:
            self._device_of.pop(folded(student), None)
            self._write_devices()

    def _write_devices(self) -> None:
        _write_whole(self.path / DEVICES_FILE, json.dumps(self._device_of).encode())

    def apart(self) -> tuple[Answers, ...]:
        """Return the answers that are kept apart, of all labs."""
        return _readable(sorted(self.path.glob(f"*/{APART}/*{ENDING}")))

    def answers_to(self, lab: str) -> tuple[Answers, ...]:
        """Return all answers to a lab that can be read; of one student the last."""
        return latest_of_each(_readable(sorted((self.path / lab).glob(f"*{ENDING}"))))

    def count(self) -> tuple[int, int]:
        """Return how many files of answers there are, and their bytes."""
        sizes = [path.stat().st_size for path in self.path.glob(f"*/*{ENDING}")]
        return len(sizes), sum(sizes)

    def _has_room_apart(self, device: str) -> bool:
        known = sum(1 for _ in self.path.glob(f"*/{APART}/*{ENDING}"))
        mine = self._apart_of[device] = self._apart_of.get(device, 0) + 1
        return known < MAX_APART and mine <= MAX_APART_OF_A_DEVICE

    def _has_room(self, more: int) -> bool:
        files, size = self.count()
        return files < MAX_FILES and size + more <= MAX_BYTES


def _devices(path: Path) -> dict[str, str]:
    """Return the digest of the device of each id; none where the file is gone or damaged."""
    try:
        known = json.loads(read(str(path)))
    except (InputError, ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) else {}


def _readable(paths: Iterable[Path]) -> tuple[Answers, ...]:
    return tuple(one for one in map(_answers_at, paths) if one is not None)


def read_secret(folder: Path) -> bytes:
    """Return the secret of a class folder; raises InputError where there is none or it is damaged."""
    path = folder / KEY_FILE
    refuse_if((path.is_symlink() or not path.is_file(), "is missing"), file=str(path))
    data = read(str(path))
    refuse_if(
        (len(data) != KEY_BYTES, f"must be {KEY_BYTES} bytes (got {len(data):,})"), file=str(path)
    )
    return data


def secret_for(folder: Path) -> bytes | None:
    """Return the secret that signed a folder of answers, its own or that of the class folder it is in."""
    for place in (folder, *folder.parents[:2]):
        if (place / KEY_FILE).is_file():
            return read_secret(place)
    return None


def _place(folder: Path, answers: Answers) -> Path | None:
    """Return where answers go: over their own earlier state, beside everybody else's."""
    extras = ("", *(f"-{number}" for number in range(2, MAX_OF_A_SEED + 1)))
    paths = (folder / f"{answers.seed:08d}{extra}{ENDING}" for extra in extras)
    return next(
        (path for path in paths if not os.path.lexists(path) or _begun_as(path, answers)), None
    )


def _begun_as(path: Path, answers: Answers) -> bool:
    """Return whether a file holds an earlier state of these answers."""
    before = _answers_at(path)
    return before is not None and (before.student, before.started) == (
        answers.student,
        answers.started,
    )


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
    for path in sorted([*folder.glob("*/*"), *folder.glob(f"*/{APART}/*")]):
        ours = path.name.endswith((ENDING, ".part")) and not path.is_symlink()
        if ours and path.is_file() and not path.parent.is_symlink():
            path.unlink()
            gone += 1
    (folder / KEY_FILE).unlink()
    (folder / DEVICES_FILE).unlink(missing_ok=True)
    for place in [*folder.glob(f"*/{APART}"), *folder.iterdir(), folder]:
        if place.is_dir() and not place.is_symlink() and not any(place.iterdir()):
            place.rmdir()
    left = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return gone, left
