"""The one error type for anything a user gave us that we cannot use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

# An error is one line of fewer than 400 characters, "topox: error: " before it included.
MOST_LINE = 380
_MOST_PART = 130
# Printable by Unicode's own account, yet nothing is seen: fillers, joiners, variation selectors.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)


def visible(text: str) -> str:
    r"""Return foreign text with every character that cannot be seen escaped as in Python source.

    Control and zero-width characters, broken halves of characters, and marks that stand on nothing
    or in a pile of more than two become ``\\u200b`` and the like.
    """
    if text.isascii() and text.isprintable():
        return text
    seen, pile = [], 3
    for letter in text:
        category = unicodedata.category(letter)
        mark = category in ("Mn", "Me")
        pile = pile + 1 if mark else 3 * (category[0] not in "LMNS")
        hidden = (mark and pile > 2) or not letter.isprintable() or _UNSEEN.match(letter)
        seen.append(letter.encode("unicode_escape").decode() if hidden else letter)
    return "".join(seen)


def one_line(text: str, most: int = MOST_LINE) -> str:
    """Return foreign text on one line of at most ``most`` characters: its middle goes, its end stays."""
    text = text if len(text) <= 4 * most else f"{text[: 2 * most]} {text[-2 * most :]}"
    text = visible(" ".join(text.split()))
    tail = most // 4
    return text if len(text) <= most else f"{text[: most - tail - 5]} ... {text[-tail:]}"


class InputError(ValueError):
    """Bad input, told in one line: which file, which item, which field, what was expected.

    Parameters
    ----------
    problem
        What is wrong and what was expected, e.g. ``must be greater than 0 (got -1)``.
    file
        Name of the file (or ``settings``, ``command line``); empty if unknown.
    item
        The task, row or entry, e.g. ``task f0`` or ``row 3``; empty if the file as a whole.
    field
        The key or column; empty if the item as a whole.
    """

    def __init__(self, problem: str, *, file: str = "", item: str = "", field: str = "") -> None:
        self.problem = " ".join(str(problem).split())
        self.file = file
        self.item = item
        self.field = field
        super().__init__(str(self))

    def __str__(self) -> str:
        return self.located(self.problem)

    def located(self, problem: str) -> str:
        """Return a problem behind the file, item and field that have it, as one short line."""
        parts = (self.file, self.item, self.field and f"field {self.field}")
        place = ", ".join(one_line(part, _MOST_PART) for part in parts if part)
        return one_line(place + (": " if place else "") + problem)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.file, self.item, self.field)

    def in_file(self, file: str) -> InputError:
        """Return the same error with the file named, keeping a name it already has."""
        return _rebuild(type(self), self.problem, self.file or file, self.item, self.field)


def _rebuild(kind: type[InputError], problem: str, file: str, item: str, field: str) -> InputError:
    return kind(problem, file=file, item=item, field=field)


def wrong_setting(field: str, problem: str) -> InputError:
    """Return the error of a setting."""
    return InputError(problem, file="settings", field=field)


@contextmanager
def errors_in_file(file: str) -> Iterator[None]:
    """Name a file in the bad input that names none."""
    try:
        yield
    except InputError as error:
        raise error.in_file(file) from None
