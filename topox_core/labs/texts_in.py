"""Every sentence of tour and labs by key, in one file a language; English stands in for a key that is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from topox_core.errors import InputError, unknown

TEXTS = Path(__file__).parent / "texts"
BASE = "en"
# A text of a lab file that names a key instead of holding the sentence.
MARK = "@"
PLACE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Texts:
    """The texts of one language.

    Attributes
    ----------
    language
        Name of its file.
    sections
        As the file has them.
    flat
        Sentences by key with dots, such as ``lab.six-tasks.P1.text``.
    """

    language: str
    sections: Mapping[str, Any]
    flat: Mapping[str, str]

    def say(self, key: str, /, **facts: object) -> str:
        """Return a sentence with its places filled in.

        Raises
        ------
        InputError
            If no language has the key.
        """
        if key not in self.flat:
            raise InputError(f"there is no text {key[:80]!r}", file=f"{self.language}.json")
        return self.flat[key].format(**facts) if facts else self.flat[key]

    def resolved(self, text: str) -> str:
        """Return a text of a lab file: the sentence of the key that it names, or itself."""
        return self.say(text.removeprefix(MARK)) if text.startswith(MARK) else text


def languages(folder: Path = TEXTS) -> tuple[str, ...]:
    """Return the languages that there is a file of, English first."""
    names = sorted(path.stem for path in folder.glob("*.json"))
    return (BASE, *(name for name in names if name != BASE))


@lru_cache(maxsize=16)
def texts_in(language: str, folder: Path = TEXTS) -> Texts:
    """Return the texts of a language, English where it lacks a key.

    Raises
    ------
    InputError
        If there is no file of that language.
    """
    known = languages(folder)
    if language not in known:
        raise InputError(unknown(language, known, "language"), field="language")
    own = _read(folder / f"{language}.json")
    if language == BASE:
        return Texts(language, own, _flat(own))
    base = texts_in(BASE, TEXTS)
    return Texts(language, {**base.sections, **own}, {**base.flat, **_flat(own)})


def _read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def _flat(sections: Mapping[str, Any], before: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in sections.items():
        key = f"{before}{name}"
        if isinstance(value, str):
            flat[key] = value
        else:
            inner = dict(enumerate(value)) if isinstance(value, list) else value
            flat |= _flat({str(at): one for at, one in inner.items()}, f"{key}.")
    return flat
