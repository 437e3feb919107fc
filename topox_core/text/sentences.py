"""Words that several pages and commands share: lists, "and 3 more", is or are."""

from collections.abc import Sequence

# A schedule's card.
STOPPED_BY = {
    "proof": "proof",
    "lowering": "proof for this lowering",
    "time_limit": "time limit",
    "gap": "gap reached",
    "cancelled": "cancelled",
    "heuristic": "end of its search",
    "failed": "solver failed",
}
# A round of jobs.
ROUND_STOPPED_BY = {**STOPPED_BY, "cancelled": "you"}
# A search for a parallelisation strategy, under the number of strategies tried.
STRATEGY_STOPPED_BY = {
    "budget": "as many as allowed",
    "cancelled": "stopped by you",
    "proof": "then all tried",
    "fixed": "nothing left to choose",
}
# The end of a printed line.
ENDED = {
    "proof": "proved",
    "lowering": "proved for this lowering",
    "time_limit": "stopped by the time limit",
    "gap": "stopped at the gap asked for",
    "cancelled": "cancelled",
    "heuristic": "ended without a proof",
    "failed": "the solver failed",
}


def enumeration(words: Sequence[object], joint: str = "and") -> str:
    """Return words as a sentence lists them: a; a and b; a, b and c."""
    *first, last = map(str, words)
    return f"{', '.join(first)} {joint} {last}" if first else last


def first_that_holds(*rows: tuple[object, str]) -> str:
    """Return the words beside the first condition that holds."""
    return next(words for holds, words in rows if holds)


def and_more(count: int, listed: int) -> str:
    """Return what follows the first ``listed`` of ``count`` things: nothing, or `` and 3 more``."""
    return f" and {count - listed:,} more" if count > listed else ""


def is_or_are(count: int) -> str:
    """Return the verb that goes with a count."""
    return "is" if count == 1 else "are"


def words_of(name: str) -> str:
    """Return the name of a field as words: ``microbatch_size`` is ``Microbatch size``."""
    return name.replace("_", " ").capitalize()


def capitalised(words: str) -> str:
    """Return words with a capital at the beginning, the rest as it is."""
    return words[:1].upper() + words[1:]


def uncapitalised(words: str) -> str:
    """Return words for the middle of a sentence: abbreviations keep their capitals."""
    return words if words[:2].isupper() else words[:1].lower() + words[1:]
