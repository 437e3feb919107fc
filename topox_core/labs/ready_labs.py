"""The eight labs that ship, ordinary lab files, in the order of a course; and labs that a lecturer brings."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from topox_core.errors import InputError, unknown
from topox_core.io.content import read
from topox_core.labs.lab import Lab
from topox_core.labs.lab_file import load_lab

READY = Path(__file__).parent / "ready"
ENDING = ".lab.json"
KEPT_LABS = 100
# A new lab is a file in that folder and a name here.
ORDER = (
    *("six-tasks", "what-binds", "bandwidth-tax", "all-to-all"),
    *("crossover", "windows", "time-division", "price-tag"),
)


@lru_cache(maxsize=1)
def ready_labs() -> dict[str, Lab]:
    """Return the labs that ship, by id."""
    return {
        name: load_lab((READY / f"{name}{ENDING}").read_bytes(), f"{name}{ENDING}")
        for name in ORDER
    }


def lab_of(name: str) -> Lab:
    """Return a lab by its id, or by the path of its file.

    Raises
    ------
    InputError
        If there is none, or the file cannot be used.
    """
    labs = ready_labs()
    if name in labs:
        return labs[name]
    if not name.endswith(".json"):
        problem = unknown(name, labs, "lab")
        raise InputError(f"{problem}, or the path of a {ENDING} file", field="lab")
    return load_lab(read(name), name, Path(name).parent)


@lru_cache(maxsize=KEPT_LABS)
def _loaded(data: bytes, file: str, folder: Path) -> Lab:
    """Return a lab of a folder, the same as long as its file is: what is computed for it is kept with it."""
    return load_lab(data, file, folder)


def labs_in(folder: Path) -> dict[str, Lab]:
    """Return the labs that ship and those of a folder, by id; a folder's lab wins.

    Raises
    ------
    InputError
        If a file of the folder cannot be used, or two have one id.
    """
    own: dict[str, Lab] = {}
    for path in sorted(folder.glob(f"*{ENDING}")):
        lab = _loaded(read(path), path.name, folder)
        if lab.id in own:
            raise InputError(f"has the id {lab.id!r} of another file", file=path.name, field="id")
        own[lab.id] = lab
    return {**ready_labs(), **own}
