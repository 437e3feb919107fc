"""The one error type for anything a user gave us that we cannot use, and the words of its line."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

# An error is one line of fewer than 400 characters, "topox: error: " before it included.
MAX_LINE = 380
_MAX_PART = 130
# Reading stops after so many mistakes; the first is named.
MAX_MISTAKES = 1_000
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


def one_line(text: str, most: int = MAX_LINE) -> str:
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
        place = ", ".join(one_line(part, _MAX_PART) for part in parts if part)
        return one_line(place + (": " if place else "") + problem)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.file, self.item, self.field)

    def in_file(self, file: str, item: str = "") -> InputError:
        """Return the same error with file and item named, keeping names that it already has."""
        file, item = self.file or file, self.item or item
        return _rebuild(type(self), self.problem, file, item, self.field)


def _rebuild(kind: type[InputError], problem: str, file: str, item: str, field: str) -> InputError:
    return kind(problem, file=file, item=item, field=field)


def refuse_if(
    *rules: tuple[object, str] | tuple[object, str, str],
    file: str = "",
    item: str = "",
    field: str = "",
    kind: type[InputError] = InputError,
) -> None:
    """Refuse what breaks a rule: each says whether it is broken, the problem, and its field if it has its own.

    Raises
    ------
    InputError
        For the first that is broken, of the kind given.
    """
    for broken, problem, *own in rules:
        if broken:
            raise kind(problem, file=file, item=item, field=own[0] if own else field)


def needed(value: T | None, problem: str, *, file: str = "", item: str = "", field: str = "") -> T:
    """Return what must be there; raises InputError where it is not."""
    if value is None:
        raise InputError(problem, file=file, item=item, field=field)
    return value


def wrong_setting(field: str, problem: str) -> InputError:
    """Return the error of a setting."""
    return InputError(problem, file="settings", field=field)


@contextmanager
def errors_in_file(file: str = "", item: str = "") -> Iterator[None]:
    """Name a file, and an item of it, in the bad input that names none."""
    try:
        yield
    except InputError as error:
        raise error.in_file(file, item) from None


@contextmanager
def errors_at(file: str = "", item: str = "", field: str = "") -> Iterator[None]:
    """Name another place in bad input: file and item as given, its own field unless one is given."""
    try:
        yield
    except InputError as error:
        raise InputError(error.problem, file=file, item=item, field=field or error.field) from None


def shown(value: object, most: int = 60) -> str:
    """Return ``value`` as one short printable piece of an error line."""
    # Only scalars are written out: writing a list could take as much memory and depth as reading it
    # did.
    if isinstance(value, list | tuple):
        return f"a list of {len(value):,} entries"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"
    if isinstance(value, float):
        return f"{value:.15g}"
    text = visible(repr(value[: 2 * most] if isinstance(value, str) else value))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def as_mb(count: int) -> str:
    """Return a number of bytes in megabytes (2^20), as error lines and browsers write it."""
    return f"{count / (1 << 20):,.1f} MB"


def printable(text: str, most: int = 60) -> str:
    """Return ``text`` as it is if it can stand in an error line, else quoted and shortened."""
    return text if 0 < len(text) <= most and visible(text) == text else shown(text, most)


def unknown(key: object, known: Iterable[str], what: str = "key") -> str:
    """Say that a key is unknown: the nearest known one if there is one, else all of them."""
    names = list(known)
    near = difflib.get_close_matches(str(key)[:60].lower(), names, n=1, cutoff=0.6)
    return (
        f"unknown {what} (did you mean {near[0]!r}?)"
        if near
        else f"unknown {what} (expected one of {', '.join(names)})"
    )


def check_known(
    key: object,
    known: Collection[str],
    what: str = "key",
    *,
    file: str = "",
    item: str = "",
    field: str = "",
) -> None:
    """Refuse what is none of the words that are known, in the words of :func:`unknown`; raises InputError."""
    if not isinstance(key, str) or key not in known:
        raise InputError(unknown(key, known, what), file=file, item=item, field=field)


def look_up(key: str, known: Mapping[str, T], what: str = "key", **place: str) -> T:
    """Return what a word stands for; raises InputError as :func:`check_known`, whose ``file``, ``item``, ``field`` may be given."""
    check_known(key, known, what, **place)
    return known[key]


class Mistakes:
    """What is wrong with one file: the first mistake is named, the others are counted.

    Whoever reads the file stops at the limit of findings.
    """

    def __init__(self, file: str) -> None:
        self.file, self.found = file, list[InputError]()

    def add(self, problem: str, *, item: str = "", field: str = "") -> None:
        """Note one finding; once there are as many as may be, raises as :meth:`stop`."""
        self.found.append(InputError(problem, file=self.file, item=item, field=field))
        if len(self.found) >= MAX_MISTAKES:
            self.stop()

    def stop(self) -> None:
        """Raise the first finding, ending in ``(and N more)`` if there are others, if anything was found.

        Raises
        ------
        InputError
            The first finding.
        """
        if self.found:
            first, others = self.found[0], len(self.found) - 1
            least = "at least " if len(self.found) >= MAX_MISTAKES else ""
            more = f" (and {least}{others:,} more)" if others else ""
            raise InputError(
                first.problem + more, file=self.file, item=first.item, field=first.field
            )
