"""The Gallery page's sidebar: which card, and the switches that change its reading."""

from __future__ import annotations

from functools import partial

import streamlit as st

from topox_core.papers.card import Card, Settings
from topox_core.papers.catalogue import CARDS
from topox_ui.gallery.measured import TITLE as MEASURED_TITLE
from topox_ui.gallery.state import MEASURED, GalleryState, turn
from topox_ui.shell.page import escape, quiet
from topox_ui.state.store import state_of
from topox_ui.state.widgets import menu


def chosen_card() -> Card | str:
    """Draw the list of cards in the sidebar and return the one that is open, or the name of what is none."""
    with st.sidebar:
        titles = {"": "All cards"} | {name: card.title for name, card in CARDS.items()}
        name = menu("Card", GalleryState, "card", titles | {MEASURED: MEASURED_TITLE})
        if name not in CARDS:
            return name
        quiet(f"{escape(CARDS[name].source)}")
    return CARDS[name]


def switches(card: Card) -> Settings:
    """Draw the switches of a card in the sidebar and return their positions."""
    positions = dict(state_of(GalleryState).switches)
    with (
        st.sidebar,
        st.expander(
            "Settings of this card",
            key="gallery_switches",
            expanded=True,
            type="compact",
        ),
    ):
        for choice in card.choices:
            menu(
                choice.name,
                GalleryState,
                f"{card.name}_{choice.key}",
                [value for value, _ in choice.options],
                words=choice.words,
                value=positions.get(choice.key, choice.default),
                take=partial(turn, card, choice.key),
                help=choice.meaning,
            )
        if not card.choices:
            quiet("This card has none.")
    return card.settings(positions)
