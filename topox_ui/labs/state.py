"""What a link to a lab carries (no answer and no name), and what the page says, by its key, in the link's language."""

from html import escape as html_escape
from typing import Annotated

from pydantic import Field

from topox_core.labs.generators.generator import SEEDS
from topox_core.labs.lab import BASE, Lab, Texts, languages, texts_in
from topox_core.text.foreign import escape_untrusted
from topox_ui.state.page_state import Count, NotNegative, PageState


def texts() -> Texts:
    """Return the texts of the chosen language; English where there is no such file."""
    chosen = LabsState.now().lang
    return texts_in(chosen if chosen in languages() else BASE)


def say(key: str, /, **facts: object) -> str:
    """Return a sentence of the page."""
    return texts().say(f"page.{key}", **facts)


def say_html(key: str, /, **facts: object) -> str:
    """Return a sentence of the page as HTML: what is filled in is text, the sentence is our own."""
    return say(key, **{name: html_escape(str(fact)) for name, fact in facts.items()})


def plural_of(key: str, number: float, name: str = "count", **facts: object) -> str:
    """Return the form of a sentence that suits a number: ``key.one`` or ``key.many``."""
    return say(f"{key}.{'one' if number == 1 else 'many'}", **{name: f"{number:g}"}, **facts)


def points(number: float) -> str:
    """Return points in words."""
    return plural_of("points", number, "points")


def title_of(lab: Lab) -> str:
    """Return a lab's title, in the page's language if it names a text."""
    return texts().resolved(lab.title)


def as_html(text: str) -> str:
    """Return a lab's text, which may be a lecturer's, as HTML."""
    return escape_untrusted(text, "html")


def as_label(text: str) -> str:
    """Return a lab's text as the label of a control."""
    return escape_untrusted(text, "markdown")


class LabsState(PageState):
    """The lab that is open (empty: the cards), the screen from 1, the seed, where the slider stands, the language."""

    prefix = "lab."
    resets = {"id": ("q", "at", "seed"), "q": ("at",)}  # noqa: RUF012

    id: Annotated[str, Field(pattern=r"^([a-z][a-z0-9-]{1,39})?$")] = ""
    seed: Annotated[int, Field(ge=0, lt=SEEDS)] | None = None
    q: Count = 1
    at: NotNegative | None = None
    lang: Annotated[str, Field(pattern=r"^[a-z]{2}(-[A-Z]{2})?$")] = BASE
