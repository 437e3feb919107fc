"""The tour from its first screen to its last, by buttons and by link; the glossary filtered and linked to."""

import pytest

from tests.conftest import long_after
from tests.topox_ui.conftest import address, control, press, words
from topox_core.labs.tour import screen
from topox_core.text.glossary import entry_of, glossary

LEARN, GLOSSARY = "Learn", "Glossary"


def test_a_link_opens_a_screen_with_its_slider_and_the_line_follows(visit) -> None:
    at = visit(LEARN, **{"learn.step": "4", "learn.ports": "2"})
    sentence = screen("ports").sentences[0]
    assert "With 2 ports the iteration takes 11 ms" in words(at) and sentence in words(at)
    control(at, "learn_ports").set_value(3.0).run()
    assert "With 3 ports the iteration takes 11 ms" in words(at)
    assert address(at)["learn.ports"] == "3"
    assert at.main.button[0].key == "tour_short", "the short version is offered first"
    assert sentence not in words(press(at, "tour_short"))


def test_the_glossary_lists_every_entry_by_letter_and_the_one_of_a_link_first(visit) -> None:
    said = words(visit(GLOSSARY, **{"glossary.term": "tornado"}))
    texts = {entry.id: entry.text for entry in glossary()}
    assert [name for name, text in texts.items() if said.count(text) != 1] == []
    rest = sorted(glossary(), key=lambda entry: entry.term.casefold())
    first = [entry_of("tornado"), *(entry for entry in rest if entry.id != "tornado")]
    places = [said.index(texts[entry.id]) for entry in first]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("find", "is_there"), long_after(1, [("DARK time", True), ("dark", True), ("xyzzy", False)])
)
def test_the_glossary_is_filtered(visit, find: str, is_there: bool) -> None:
    said = words(visit(GLOSSARY, **{"glossary.find": find}))
    assert (entry_of("dark").text in said) == is_there
    assert entry_of("tornado").text not in said
    assert ("No entry has" in said) != is_there
