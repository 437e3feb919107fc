"""The gallery's runs: which card is open, its switches, the run beside the page, answers by card and switches."""

from __future__ import annotations

from typing import cast

import streamlit as st

from topox_core.papers.card import Answer, Card, Settings, Value
from topox_core.papers.catalogue import CARDS
from topox_ui.runs.owner import Kept, RunKind, run_owner
from topox_ui.runs.panel import run_note, run_panel
from topox_ui.shell.page import button, escape

MOST_KEPT = 48
CARD = RunKind(
    "card", MOST_KEPT, cancel_help="Stops within a second or two; the rows that are there are kept."
)


Key = tuple[str, frozenset[tuple[str, Value]]]


def key_of(card: Card, settings: Settings) -> Key:
    """Return the key of an answer: the card and every switch."""
    return card.name, frozenset(settings.items())


@st.cache_resource(show_spinner=False)
def complete_answers() -> Kept[Answer]:
    """Return the complete answers of this server, which are the same on every run: all sessions share them."""
    return Kept(MOST_KEPT)


def answer_of(card: Card, settings: Settings) -> Answer | None:
    """Return what is known of a card under these switches."""
    key = key_of(card, settings)
    return complete_answers().get(key) or run_owner().results(CARD).get(key)


def start(card: Card, settings: Settings) -> None:
    """Run a card beside the page; one that runs already is ended first."""
    key, complete, partial = key_of(card, settings), complete_answers(), run_owner().results(CARD)

    def keep(answer: Answer) -> None:
        (complete if answer.complete else partial)[key] = answer

    run_owner().start(CARD, key, lambda _slots: card.start(settings), keep)


def run_controls(card: Card, settings: Settings, answer: Answer | None) -> None:
    """Draw the Run button, or the run's progress with its Cancel button."""
    owner = run_owner()
    run_note(CARD)
    if owner.run(CARD) is not None:
        name, _ = cast("Key", owner.key(CARD))
        run_panel(CARD, CARDS[name].title)
    elif answer is None or not answer.complete:
        button(
            "Run it here" if answer is None else "Run it again",
            "gallery_run",
            "play_arrow",
            start,
            card,
            settings,
            primary=True,
        )


def kicker(card: Card) -> str:
    """Return the line above the headline."""
    return f"Published results · {escape(card.source)}"
