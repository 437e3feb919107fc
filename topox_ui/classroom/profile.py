"""What ``make class`` tells the server: course, join word and folder of answers; nothing where no class is held."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from topox_core.errors import InputError
from topox_core.labs.class_folder import ClassFolder
from topox_core.labs.lab import Lab
from topox_core.labs.lab_file import labs_in, ready_labs
from topox_core.labs.student import check_name

COURSE, FOLDER, WORD, SHOWN_AT = (
    f"TOPOX_CLASS_{name}" for name in ("COURSE", "FOLDER", "WORD", "SHOWN_AT")
)


@dataclass(frozen=True)
class ClassProfile:
    """One class.

    Attributes
    ----------
    word
        What students type to come in.
    shown_at
        The address that they open.
    """

    course: str
    word: str
    folder: ClassFolder
    shown_at: str = ""


def profile_of(environment: Mapping[str, str]) -> ClassProfile | None:
    """Return the class that an environment describes, None where it describes none; raises InputError."""
    if not environment.get(FOLDER):
        return None
    for name in (COURSE, WORD):
        if not environment.get(name, "").strip():
            raise InputError("is missing", file="environment", field=name)
    check_name(environment[COURSE], COURSE)
    folder = ClassFolder.opened(Path(environment[FOLDER]))
    word = environment[WORD].strip().casefold()
    return ClassProfile(environment[COURSE].strip(), word, folder, environment.get(SHOWN_AT, ""))


@cache
def class_profile() -> ClassProfile | None:
    """Return the class of this server, read once; None where it serves none."""
    return profile_of(os.environ)


def labs_offered() -> dict[str, Lab]:
    """Return the labs of this server by id: those that ship, and in a class those of the lecturer's folder."""
    profile = class_profile()
    return ready_labs() if profile is None else labs_in(profile.folder.path)
