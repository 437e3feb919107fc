"""Terms in our HTML become buttons that an entry of the glossary describes, and nothing else changes."""

import re

import pytest

from topox_core.text.glossary import glossary
from topox_ui.shell.terms import explanations, with_terms

BUTTON = re.compile(
    r'<button type="button" class="term" aria-describedby="term-([\w-]+)">(.*?)</button>'
)


def terms(html: str) -> list[tuple[str, str]]:
    return BUTTON.findall(with_terms(html))


def test_the_first_use_in_a_block_is_a_button_and_the_words_stay() -> None:
    html = "A <b>slot</b> and another slot end."
    assert terms(html) == [("slot", "slot")]
    assert BUTTON.sub(r"\2", with_terms(html)) == html


@pytest.mark.parametrize(
    "html",
    [
        '<a href="slot">slot</a>',
        "<button>slot</button>",
        '<span style="slot" title="a slot">x</span>',
        "<code>slot</code>",
    ],
)
def test_links_buttons_code_and_attributes_are_left_alone_and_words_after_them_are_not(html):
    assert with_terms(html) == html
    assert terms(f"{html} slot") == [("slot", "slot")]


def test_an_entry_may_leave_its_own_words_alone() -> None:
    assert with_terms("a slot", "slot") == "a slot"


def test_whatever_a_button_names_is_on_the_page() -> None:
    texts = dict(re.findall(r'<span id="term-([\w-]+)">(.*?)</span>', explanations()))
    assert set(texts) == {entry.id for entry in glossary()}
