"""What a fabric chose by itself, in words: rings and algorithms of collectives."""

import re
from collections.abc import Mapping

from topox_core.model.lowering.algorithm_choice import DEFAULT
from topox_core.model.lowering_choices import Lowering
from topox_core.text.numbers import enumeration, plural, size

_WORD = re.compile(r"([a-z_]+)(?:\((\d+)\))?(?:\*(\d+)|(\[[\d:|]+\]))?")
MAX_LISTED = 3  # algorithms by size of tensor


def kind_words(kind: str) -> str:
    """Return a kind of collective as a sentence has it: all-reduce."""
    return kind.replace("_", "-")


def algorithm_words(word: str) -> str:
    """Return an algorithm as a sentence has it: halving-doubling in 2 parts, two levels (in groups of 4, then across them)."""
    match = _WORD.fullmatch(word)
    if match is None:
        return word
    name, parameter, parts, uneven = match.groups()
    words = "two levels" if name == "two_level" else name.replace("_", "-")
    if parameter and name == "two_level":
        words += f" (in groups of {parameter}, then across them)"
    elif parameter:
        words += f" of {parameter}" + (" chunks" if name == "chain" else "")
    return words + (f" in {parts} parts" if parts else "") + (" in uneven parts" if uneven else "")


def chosen_words(lowering: Lowering, free: tuple[str, ...]) -> str:
    """Return what was chosen of that which was free; empty where that is one ring and the default algorithms."""
    words = []
    if "rings" in free and lowering.rings > 1:
        words.append(f"collectives on {plural(lowering.rings, 'ring')}")
    if "algorithm" in free:
        words += _algorithms(dict(lowering.algorithm))
    return enumeration(words) if words else ""


def chosen_by_all(words_by_name: Mapping[str, str]) -> str:
    """Return what each of several fabrics chose, as one sentence; empty where all took the default."""
    names: dict[str, list[str]] = {}
    for name, words in words_by_name.items():
        if words:
            names.setdefault(words, []).append(name)
    parts = [f"{words} ({enumeration(who)})" for words, who in names.items()]
    return f"Chosen: {'; '.join(parts)}." if parts else ""


def _algorithms(words: Mapping[str, str]) -> list[str]:
    """Return each algorithm once, with the kinds and tensors it was chosen for."""
    tensors: dict[tuple[str, str], list[float]] = {}
    for key, word in words.items():
        kind, _, rest = key.partition(":")
        if word != DEFAULT and rest:
            tensors.setdefault((kind, word), []).append(float(rest.split(":")[-1]))
    result = []
    for (kind, word), sizes in tensors.items():
        listed = sorted(set(sizes))
        of = f" of {enumeration([size(one) for one in listed])}"
        if len(listed) > MAX_LISTED:
            of = f" of {size(listed[0])} to {size(listed[-1])}"
        result.append(f"{kind_words(kind)}s{of} by {algorithm_words(word)}")
    return result
