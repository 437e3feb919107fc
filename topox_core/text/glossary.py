"""The glossary: each term of the field in one sentence or two, and where a text uses one.

The entries lie in ``glossary.json`` beside this file; pages, labels of controls, headers of tables and
the page Glossary all read them here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

_FILE = Path(__file__).with_name("glossary.json")
_WORD = re.compile(r"(?<![\w/&-])\w[\w/-]*")
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)")


@dataclass(frozen=True)
class Entry:
    """One term.

    Attributes
    ----------
    id
        Its name in links and files.
    term, text
        The term as it is headed, and what it means.
    also
        Other words that mean it wherever they stand; with a capital letter only as they are written.
    labels
        Words that mean it only where they are a whole label: of a column, a control, a key figure.
    see
        Ids of related entries.
    """

    id: str
    term: str
    text: str
    also: tuple[str, ...]
    labels: tuple[str, ...]
    see: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words of a text that mean this entry: the term without its abbreviation, and the others."""
        return (_IN_BRACKETS.sub("", self.term), *self.also)


@dataclass(frozen=True)
class Occurrence:
    """Where a text uses a term: from ``start`` to before ``end``."""

    start: int
    end: int
    entry: Entry


def glossary() -> tuple[Entry, ...]:
    """Return all entries, in the order of the file: what belongs together stands together."""
    return _content().entries


def entry_of(name: str) -> Entry:
    """Return an entry by its id."""
    return {one.id: one for one in glossary()}[name]


def occurrences(text: str) -> Iterator[Occurrence]:
    """Yield where a text uses terms, from its beginning; where several begin together, the longest.

    Plurals are found, and any capitalisation of words that are written small. The space within a
    term may be a hard one, in HTML too.
    """
    index, after = _by_first_word(), 0
    for word in _WORD.finditer(text):
        if word.start() < after:
            continue
        for pattern, entry in index.get(_stem(word[0]), ()):
            if found := pattern.match(text, word.start()):
                after = found.end()
                if entry is not None:
                    yield Occurrence(found.start(), after, entry)
                break


@lru_cache(maxsize=1024)
def entry_of_label(label: str) -> Entry | None:
    """Return the entry of a label, such as a column's name with its unit; the first of its terms, if it has one."""
    plain = _IN_BRACKETS.sub("", label).replace("_", " ").strip()
    exact = _by_label().get(plain.lower())
    return exact or next((one.entry for one in occurrences(plain)), None)


def label_help(label: str, more: str | None = None) -> str | None:
    """Return what help a label gets: its entry's text, before what the page itself has to say."""
    entry = entry_of_label(label)
    return " ".join(part for part in (entry.text if entry else None, more) if part) or None


class _File(msgspec.Struct, frozen=True):
    entries: tuple[Entry, ...]
    not_terms: tuple[str, ...]


@lru_cache(maxsize=1)
def _content() -> _File:
    return msgspec.json.decode(_FILE.read_bytes(), type=_File)


@lru_cache(maxsize=1)
def _by_label() -> dict[str, Entry]:
    words = {word.lower(): one for one in glossary() for word in one.words}
    return words | {label.lower(): one for one in glossary() for label in one.labels}


@lru_cache(maxsize=1)
def _by_first_word() -> dict[str, tuple[tuple[re.Pattern[str], Entry | None], ...]]:
    """Return the patterns of all terms by the first word of each, the longest term first.

    One pattern of all terms would try each of them at every word of a text, at milliseconds a text.
    """
    words: list[tuple[str, Entry | None]] = [(w, one) for one in glossary() for w in one.words]
    words += [(word, None) for word in _content().not_terms]
    words.sort(key=lambda word: -len(word[0]))
    index: dict[str, list[tuple[re.Pattern[str], Entry | None]]] = {}
    for word, entry in words:
        pattern = re.compile(_pattern_of(word) + r"(?![\w-])")
        first = _WORD.match(word)
        assert first is not None  # a term begins with a letter or a digit
        index.setdefault(_stem(first[0]), []).append((pattern, entry))
    return {first: tuple(several) for first, several in index.items()}


def _stem(word: str) -> str:
    """Return what a word and its plural share, enough to look it up by."""
    word = word.lower().rstrip("s")
    return word[:-1] if word.endswith("e") else word


def _pattern_of(word: str) -> str:
    spaced = r"(?:\s|&nbsp;)+".join(map(re.escape, word.split()))
    plural = "(?:e?s)?" if word[-1].isalpha() else ""
    flag = "" if word != word.lower() else "i"
    return f"(?{flag}:{spaced}{plural})"
