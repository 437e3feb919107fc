"""Words that several pages and commands share: lists, "and 3 more", is or are."""

from __future__ import annotations

from collections.abc import Sequence


def enumeration(words: Sequence[object], joint: str = "and") -> str:
    """Return words as a sentence lists them: a; a and b; a, b and c."""
    *first, last = map(str, words)
    return f"{', '.join(first)} {joint} {last}" if first else last


def and_more(count: int, listed: int) -> str:
    """Return what follows the first ``listed`` of ``count`` things: nothing, or `` and 3 more``."""
    return f" and {count - listed:,} more" if count > listed else ""


def is_or_are(count: int) -> str:
    """Return the verb that goes with a count."""
    return "is" if count == 1 else "are"


def words_of(name: str) -> str:
    """Return the name of a field as words: ``microbatch_size`` is ``Microbatch size``."""
    return name.replace("_", " ").capitalize()
