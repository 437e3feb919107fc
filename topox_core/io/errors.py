"""One clear line for a mistake in a file: values short, near misses named, rest counted."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from topox_core.errors import InputError, visible
from topox_core.io.limits import MAX_MISTAKES


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


class Mistakes:
    """What is wrong with one file: the first mistake is named, the others are counted.

    Whoever reads the file stops at the limit of findings.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.first: InputError | None = None
        self.count = 0

    def add(self, problem: str, *, item: str = "", field: str = "") -> None:
        """Note one finding.

        Raises
        ------
        InputError
            The first finding, once there are as many as may be.
        """
        if self.first is None:
            self.first = InputError(problem, file=self.file, item=item, field=field)
        self.count += 1
        if self.count >= MAX_MISTAKES:
            raise self.error()

    def error(self) -> InputError:
        """Return the first finding, ending in ``(and N more)`` if there are others."""
        first = self.first or InputError("is not valid", file=self.file)
        least = "at least " if self.count >= MAX_MISTAKES else ""
        more = f" (and {least}{self.count - 1:,} more)" if self.count > 1 else ""
        return InputError(first.problem + more, file=first.file, item=first.item, field=first.field)

    def stop(self) -> None:
        """Raise :meth:`error` if anything was found.

        Raises
        ------
        InputError
            The first finding.
        """
        if self.count:
            raise self.error()
