"""Words on screen: three significant digits with units, what was chosen, and the glossary."""

from collections import Counter

import pytest

from topox_core.model.lowering_choices import Lowering
from topox_core.schedule.settings import FREE
from topox_core.text.choices import chosen_words
from topox_core.text.glossary import (
    Entry,
    entry_of,
    entry_of_label,
    glossary,
    occurrences,
)
from topox_core.text.numbers import (
    about_seconds,
    count,
    energy,
    money,
    percent,
    power,
    seconds,
    short,
    size,
    time,
)

THIN = "\u00a0"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7, "7"),
        (0.5, "0.5"),
        (43.04, "43.0"),
        (32.226, "32.2"),
        (185.4, "185"),
        (5274.3, "5,270"),
        (0.0123, "0.0123"),
        (99.96, "100"),
        (-0.25, "-0.25"),
        (float("nan"), "–"),
        (1.234e-7, "1.23e-07"),
    ],
)
def test_three_significant_digits_and_exact_values_bare(value, text):
    assert short(value) == text


def test_what_a_solve_took_has_two_digits_and_keeps_its_order():
    said = [about_seconds(one).replace(THIN, " ") for one in (0.0975, 0.0991, 61.4, 125.6)]
    assert said == ["0.098 s", "0.099 s", "61 s", "2 min 5 s"]


def test_units_are_always_there_and_times_change_theirs_at_a_second():
    times = time(999), time(3944), time(0.0042), seconds(0.0001), seconds(125)
    words = *times, percent(0.0101), size(306_340_000), size(12), count(17604)
    assert [one.replace(THIN, " ") for one in words] == [
        *("999 ms", "3.94 s", "4.2 µs", "< 0.001 s", "2 min 5 s"),
        *("1.01 %", "306 MB", "12 B", "17,604"),
    ]


@pytest.mark.parametrize(
    ("words", "value", "says"),
    [
        (money, 1_289_216, "$1.29 M"),
        (money, 454_656, "$455 k"),
        (money, 12, "$12"),
        (money, 999_990, "$1.00 M"),
        (power, 11_040, "11.0 kW"),
        (power, 850, "850 W"),
        (energy, 126_000, "126 MWh"),
    ],
)
def test_dollars_and_watts_as_people_read_them(words, value, says) -> None:
    assert words(value).replace("\u00a0", " ") == says


def plain(text: str) -> str:
    return text.replace("\u202f", " ").replace("\u00a0", " ")


def test_rings_and_algorithms_are_named_with_the_tensors_they_were_chosen_for() -> None:
    words = {
        "all_reduce:8:2.68e+08": "halving_doubling*2",
        "all_reduce:8:1e+06": "halving_doubling*2",
        "all_to_all:16:3e+04": "two_level(4)",
        "broadcast": "default",
    }
    assert plain(chosen_words(Lowering(rings=2, algorithm=words), FREE)) == (
        "collectives on 2 rings, all-reduces of 1 MB and 268 MB by halving-doubling in 2 parts "
        "and all-to-alls of 30 kB by two levels (in groups of 4, then across them)"
    )


def test_what_was_fixed_is_no_choice() -> None:
    fixed = Lowering(rings=2, algorithm={"all_reduce": "tree"})
    assert chosen_words(fixed, ()) == ""
    assert chosen_words(fixed, ("algorithm",)) == ""
    assert chosen_words(Lowering(), FREE) == ""


ENTRIES = glossary()


def ids(text: str) -> list[str]:
    return list(dict.fromkeys(one.entry.id for one in occurrences(text)))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_an_entry_says_in_a_few_words_what_it_is(entry: Entry) -> None:
    assert len(entry.text.split()) <= 25
    assert len(entry.see) <= 2
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
        ("tables placed round robin", []),
        ("where rounding of a fractional radix helps", []),
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
