"""The glossary: every entry is short, every word leads to one entry, texts are searched as readers read them."""

from __future__ import annotations

from collections import Counter

import pytest

from topox_core.text.glossary import (
    MOST_RELATED,
    MOST_WORDS,
    Entry,
    entry_of,
    entry_of_label,
    first_occurrences,
    glossary,
    label_help,
)

ENTRIES = glossary()


def ids(text: str) -> list[str]:
    return [one.entry.id for one in first_occurrences(text)]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_an_entry_says_in_a_few_words_what_it_is(entry: Entry) -> None:
    assert len(entry.text.split()) <= MOST_WORDS
    assert entry.text.endswith(".")
    assert len(entry.see) <= MOST_RELATED
    assert entry.id not in entry.see
    for other in entry.see:
        entry_of(other)


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


def test_names_that_were_replaced_are_not_heads_of_entries() -> None:
    heads = " ".join(one.term + " " + one.text for one in ENTRIES).lower()
    for word in ("scheduled circuits", "gallery", "taking turns", "turning", "one-shot"):
        assert word not in heads


def test_slots_are_a_choice_since_plans_live_on_continuous_time() -> None:
    for name in ("slot", "rounding"):
        assert "continuous time" in entry_of(name).text


def test_the_longest_term_wins() -> None:
    assert ids("a fat-tree of the same cost") == ["equal-cost"]
    assert ids("the ports of a switch") == ["switch-size"]
    assert ids("a reduce-scatter on a ring") == ["gather-scatter", "ring"]


def test_a_term_is_marked_once_in_a_text() -> None:
    found = first_occurrences("A slot, two slots, the Slot length.")
    assert [(one.start, one.end) for one in found] == [(2, 6)]


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("Circuits are cheap", "circuit"),
        ("optical circuit switches", "ocs"),
        ("the critical&nbsp;path", "critical-path"),
        ("the lower\u00a0bound", "bound"),
        ("its dependencies", "dependency"),
    ],
)
def test_plurals_capitals_and_hard_spaces_are_read(text: str, entry: str) -> None:
    assert ids(text) == [entry]


@pytest.mark.parametrize(
    "text",
    [
        "transport",
        "per-slot",
        "the surroundings",
        "a darkroom",
        "moe-8",
        "an episode",
        "&nbsp;gapless",
    ],
)
def test_parts_of_other_words_are_no_terms(text: str) -> None:
    assert ids(text) == []


def test_a_phrase_that_means_something_else_is_left_alone() -> None:
    assert ids("Move the time window") == []
    assert ids("the window on a rail") == ["window", "rail"]


def test_labels_with_units_find_their_entry() -> None:
    assert entry_of_label("iteration (ms)") == entry_of("makespan")
    assert entry_of_label("Reconfiguration delay") == entry_of("delay")
    assert entry_of_label("Bananas") is None
    assert label_help("Bananas") is None
    assert label_help("Bananas", "Yellow.") == "Yellow."
    assert label_help("Tax", "Here 1.") == f"{entry_of('tax').text} Here 1."
