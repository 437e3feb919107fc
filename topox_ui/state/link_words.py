"""Words in a link and what they mean: readers of single values, and of all that a link says to one page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Reader = Callable[[str], Any]


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from ``low`` to ``high``; what is none is a ValueError, as for all readers here."""

    def read(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return read


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a reader of numbers from ``low`` to ``high``."""

    def read(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(text)
        return value

    return read


def one_of(words: Iterable[str]) -> Callable[[str], str]:
    """Return a reader that takes only these words."""
    known = frozenset(words)

    def read(text: str) -> str:
        if text not in known:
            raise ValueError(text)
        return text

    return read


def yes(text: str) -> bool:
    """Read ``yes`` or ``no``; anything else is a KeyError."""
    return {"yes": True, "no": False}[text]


def told(value: Any) -> str:
    """Return a value as a link writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def understood(
    readers: Mapping[str, Reader], prefix: str, query: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return what a link says to one page, by name, and what in it could not be understood, as ``key=value``."""
    made: dict[str, Any] = {}
    ignored = []
    for key, text in query.items():
        if not key.startswith(prefix):
            continue
        name = key.removeprefix(prefix)
        try:
            made[name] = readers[name](text)
        except (KeyError, ValueError, OverflowError):  # an InputError is a ValueError
            ignored.append(f"{key[:40]}={text[:40]}")
    return made, ignored


def ignored_line(ignored: list[str]) -> str:
    """Return the warning about what could not be understood."""
    more = f" and {len(ignored) - 5} more" if len(ignored) > 5 else ""
    return f"Ignored in the link: {', '.join(ignored[:5])}{more}"
