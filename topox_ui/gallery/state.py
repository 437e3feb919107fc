"""What can be chosen on the page Papers: a card and the positions of its switches."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import AfterValidator

from topox_core.papers.card import Card, Value
from topox_core.papers.catalogue import CARDS, PAPERS
from topox_ui.state.session import PageState, one_of, word_of

# The card of measured iterations, which has no switches and needs no run.
MEASURED = "measured"
# Which cards the wall shows, besides those of one paper.
ALL, DIFFERS = "all", "differs"
_PLAIN = ("card", "paper")


def _known(card: str) -> str:
    if card and card not in (*CARDS, MEASURED):
        raise ValueError(f"must be one of {', '.join((*CARDS, MEASURED))}")
    return card


class GalleryState(PageState):
    """The card that is open, the wall if empty, whose cards it shows, and switches that are not in their first position."""

    prefix = "gallery."
    resets: ClassVar = {"card": ("switches",)}

    card: Annotated[str, AfterValidator(_known)] = ""
    paper: Annotated[str, one_of((ALL, *PAPERS, DIFFERS))] = ALL
    switches: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def owns(cls, key: str) -> bool:
        """Return True for the card and any switch."""
        return key.startswith(cls.prefix)

    def to_query(self) -> dict[str, str]:
        """Return the card with its switches, or whose cards the wall shows, as parameters of a link."""
        switches = {self.prefix + key: word_of(value) for key, value in self.switches}
        if self.card:
            return {self.prefix + "card": self.card, **switches}
        return {self.prefix + "paper": self.paper} if self.paper != ALL else switches

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> "tuple[GalleryState, list[str]]":
        """Return the state that a link describes, and the keys whose values it cannot have."""
        begin, wrong = super().of_query(
            {key: text for key, text in query.items() if key.removeprefix(cls.prefix) in _PLAIN}
        )
        card = CARDS.get(begin.card) or next(iter(CARDS.values()))
        known = {choice.key: choice for choice in card.choices}
        switches = []
        for key in query.keys() - {cls.prefix + name for name in _PLAIN}:
            name = key.removeprefix(cls.prefix)
            words = (
                {word_of(value): value for value, _ in known[name].options} if name in known else {}
            )
            if query[key] in words:
                switches.append((name, words[query[key]]))
            else:
                wrong.append(key)
        # Links of earlier versions name the first card by its switches alone.
        opened = begin.changed(card=card.name) if switches else begin
        return opened.changed(switches=tuple(sorted(switches))), wrong


def turn(card: Card, key: str, value: Value) -> None:
    """Take the position of one switch of a card."""
    default = {choice.key: choice.default for choice in card.choices}
    positions = {**dict(GalleryState.now().switches), key: value}
    changed = {key: value for key, value in positions.items() if value != default[key]}
    GalleryState.choose(switches=tuple(sorted(changed.items())))
