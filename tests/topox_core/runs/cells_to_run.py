"""Cells that workers of tests compute; they note who computed them."""

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

from topox_core.errors import InputError


def noted(folder: str, cell: int) -> float:
    """Return a number after a moment; cells 1000 and up end their worker, 2000 is bad input, 3000 is stuck."""
    with (Path(folder) / "begun").open("a") as notes:
        notes.write(f"{cell} {os.getpid()}\n")
    if cell == 3000:
        time.sleep(600)
    if cell == 2000:
        raise InputError("is unlucky", field="cell")
    if 1000 <= cell < 2000:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return number(cell)


def number(cell: int) -> float:
    """What a cell gives: a float that shows whether one bit is lost."""
    return (cell + 0.1) ** 0.5 / 3


def scaled(factor: float, cell: int) -> float:
    return factor * number(cell)


def cannot_come_back(cell: int) -> object:
    """Return something that cannot be sent, for one cell."""
    time.sleep(0.002)
    return threading.Lock() if cell == 7 else number(cell)


def fails_in_its_own_way(cell: int) -> float:
    raise TwoWords("cell", str(cell))


class TwoWords(Exception):
    """An error that cannot be unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


class Deadly:
    """What ends the process that unpacks it."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (3,)


class Unpacked:
    """What notes the process that unpacks it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return unpacked, (self.folder,)


def unpacked(folder: str) -> float:
    with (Path(folder) / "unpacked").open("a") as notes:
        notes.write(f"{os.getpid()}\n")
    return 2.0


def begun(folder: Path) -> list[tuple[int, int]]:
    """Every (cell, process) that began, in order."""
    lines = (folder / "begun").read_text().splitlines()
    return [(int(line.split()[0]), int(line.split()[1])) for line in lines if line.count(" ") == 1]


def times_begun(folder: Path) -> Counter[int]:
    return Counter(cell for cell, _ in begun(folder))
