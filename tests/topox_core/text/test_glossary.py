"""The glossary: every entry is short, every word leads to one entry, texts are searched as readers read them."""

from collections import Counter

import pytest

from topox_core.text.glossary import (
    MAX_RELATED,
    MAX_WORDS,
    Entry,
    entry_of,
    entry_of_label,
    glossary,
    occurrences,
)

ENTRIES = glossary()


def ids(text: str) -> list[str]:
    return list(dict.fromkeys(one.entry.id for one in occurrences(text)))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_an_entry_says_in_a_few_words_what_it_is(entry: Entry) -> None:
    assert len(entry.text.split()) <= MAX_WORDS
    assert len(entry.see) <= MAX_RELATED
    assert entry not in map(entry_of, entry.see)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_word_of_an_entry_is_found_alone_and_leads_to_it(entry: Entry) -> None:
    for word in entry.words:
        assert ids(f"So the {word} is that.") == [entry.id], word
    for label in entry.labels:
        assert entry_of_label(label) == entry


@pytest.mark.parametrize("kind", ["words", "labels"])
def test_no_word_leads_to_two_entries(kind: str) -> None:
    words = Counter(w for one in ENTRIES for w in {word.lower() for word in getattr(one, kind)})
    assert [word for word, times in words.items() if times > 1] == []


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        # The longest term wins.
        ("a fat-tree of the same cost", ["equal-cost"]),
        ("the ports of a switch", ["switch-size"]),
        ("a reduce-scatter on a ring", ["gather-scatter", "ring"]),
        # Plurals, capitals and hard spaces are read.
        ("Circuits are cheap", ["circuit"]),
        ("optical circuit switches", ["ocs"]),
        ("the critical&nbsp;path", ["critical-path"]),
        ("the lower\u00a0bound", ["bound"]),
        ("its dependencies", ["dependency"]),
        # A phrase that means something else is left alone, and so are parts of other words.
        ("Move the time window", []),
        ("the window on a rail", ["window", "rail"]),
        ("transport, per-slot, the surroundings, a darkroom", []),
        ("moe-8, an episode, &nbsp;gapless", []),
    ],
)
def test_terms_are_found_as_readers_read_them(text: str, entries: list[str]) -> None:
    assert ids(text) == entries


def test_labels_with_units_find_their_entry() -> None:
    assert entry_of_label("iteration (ms)") == entry_of("makespan")
    assert entry_of_label("Bananas") is None
