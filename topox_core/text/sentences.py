"""Words that several pages and commands share: lists, "and 3 more", why something stopped."""

from __future__ import annotations

from collections.abc import Sequence

# Why a solve stopped, as a label and as it ends a line.
STOPPED_BY = {
    "proof": "proof",
    "time_limit": "time limit",
    "gap": "gap reached",
    "cancelled": "cancelled",
    "heuristic": "list schedule",
    "failed": "solver failed",
}
ENDED = {
    "proof": "proved",
    "time_limit": "stopped by the time limit",
    "gap": "stopped at the gap asked for",
    "cancelled": "cancelled",
    "heuristic": "no exact engine ran",
    "failed": "the solver failed",
}


def enumeration(words: Sequence[object]) -> str:
    """Return words as a sentence lists them: a; a and b; a, b and c."""
    *first, last = map(str, words)
    return f"{', '.join(first)} and {last}" if first else last


def and_more(count: int, listed: int) -> str:
    """Return what follows the first ``listed`` of ``count`` things: nothing, or `` and 3 more``."""
    return f" and {count - listed:,} more" if count > listed else ""


def is_or_are(count: int) -> str:
    """Return the verb that goes with a count."""
    return "is" if count == 1 else "are"
