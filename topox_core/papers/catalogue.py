"""All cards by name, in the order of the gallery."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from topox_core.errors import InputError, shown, unknown
from topox_core.papers.card import Card

HERE = Path(__file__).parent
GALLERY: dict[str, Any] = tomllib.loads((HERE / "gallery.toml").read_text(encoding="utf-8"))
# Sources in the order of the gallery: what each is called, and its address, empty where it has none.
PAPERS: dict[str, tuple[str, str]] = {
    name: (of, at) for name, (of, at) in GALLERY["papers"].items()
}


def _card(name: str) -> Card:
    """Return the card of a file, its claims and its switches made complete."""
    path = HERE / "cards" / f"{name.replace('-', '_')}.toml"
    record = tomllib.loads(path.read_text(encoding="utf-8"))
    printed = record.get("printed", {})
    for choice in record.get("choices", ()):
        shared = GALLERY["choices"].get(choice.pop("same_as", ""), {})
        choice.update(shared | choice)
        choice.setdefault("default", choice["options"][0][0])
    for claim in record.get("claims", ()):
        claim["printed"] = printed.get(claim.get("printed"), claim.get("printed"))
        claim |= {"card": name, "comparable": "built" not in record}
    return msgspec.convert(record | {"name": name}, Card)


CARDS: dict[str, Card] = {name: _card(name) for name in GALLERY["cards"]}


def card_named(name: str) -> Card:
    """Return a card.

    Raises
    ------
    InputError
        If there is none of that name; the message has the nearest one.
    """
    if name not in CARDS:
        raise InputError(
            f"{shown(name)} is an {unknown(name, CARDS, 'card')}", file="gallery", field="card"
        )
    return CARDS[name]
