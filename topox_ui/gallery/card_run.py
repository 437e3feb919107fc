"""The gallery's runs: which card is open, its switches, the run beside the page, answers by card and switches."""

from __future__ import annotations

import time
from typing import cast

import streamlit as st

from topox_core.papers.card import Answer, Card, Settings, Value
from topox_core.papers.catalogue import CARDS, PAPERS
from topox_core.papers.kept_answers import shipped_answers
from topox_core.papers.rows import same_rows
from topox_core.text.numbers import seconds
from topox_ui.gallery.last_runs import last_runs, took
from topox_ui.runs.owner import Kept, RunKind, run_owner
from topox_ui.runs.panel import run_note, run_panel
from topox_ui.shell.page import button, escape, quiet

MAX_KEPT = 48
CARD = RunKind(
    "card", MAX_KEPT, cancel_help="Stops within a second or two; the rows that are there are kept."
)


Key = tuple[str, frozenset[tuple[str, Value]]]


def key_of(card: Card, settings: Settings) -> Key:
    """Return the key of an answer: the card and every switch."""
    return card.name, frozenset(settings.items())


@st.cache_resource(show_spinner=False)
def complete_answers() -> Kept[Answer]:
    """Return the complete answers of this server, which are the same on every run: all sessions share them."""
    return Kept(MAX_KEPT)


@st.cache_resource(show_spinner=False)
def repeated() -> dict[Key, bool]:
    """Return whether the last run of a card brought the rows of the one before, where there were two."""
    return {}


def answer_of(card: Card, settings: Settings) -> Answer | None:
    """Return what is known of a card under these switches, of this version of the code."""
    key = key_of(card, settings)
    answer = complete_answers().get(key) or run_owner().results(CARD).get(key)
    if answer is None and dict(settings) == card.settings():
        last = last_runs().get(card.name)
        return None if last is None else last.answer
    return answer


def shipped(card: Card, answer: Answer | None) -> bool:
    """Return whether an answer comes with the release, so that it was not computed here."""
    last = shipped_answers().get(card.name)
    return last is not None and answer is last.answer


def start(card: Card, settings: Settings) -> None:
    """Run a card beside the page; one that runs already is ended first."""
    key, complete, partial = key_of(card, settings), complete_answers(), run_owner().results(CARD)
    before, began, same = answer_of(card, settings), time.monotonic(), repeated()

    def keep(answer: Answer) -> None:
        (complete if answer.complete else partial)[key] = answer
        if answer.complete:
            took(card.name, answer, time.monotonic() - began)
            if before is not None and before.complete:
                same[key] = same_rows(answer.rows, before.rows)

    run_owner().start(CARD, key, lambda _slots: card.start(settings), keep)


def run_controls(card: Card, settings: Settings, answer: Answer | None) -> None:
    """Draw the Run button with how long a run takes, or the run's progress with its Cancel button."""
    owner = run_owner()
    run_note(CARD)
    if owner.run(CARD) is not None:
        name, _ = cast("Key", owner.key(CARD))
        run_panel(CARD, CARDS[name].title)
        return
    last = last_runs().get(card.name)
    takes_s = card.takes_s if last is None else last.wall_s
    not_here = answer is None or shipped(card, answer)
    button(
        "Run it here" if not_here else "Run it again",
        "gallery_run",
        "play_arrow" if not_here else "replay",
        start,
        card,
        settings,
        primary=answer is None,
        help=f"About {seconds(takes_s)} on this machine. The same version gives the same rows.",
    )
    if answer is not None and not_here:
        quiet("Computed for this release.")
    same = repeated().get(key_of(card, settings))
    if same is not None:
        quiet("The same rows as before." if same else "✗ Other rows than before: a defect.")


def kicker(card: Card) -> str:
    """Return the line above the headline; its source is a link where it can be read."""
    address = PAPERS[card.paper][1] if card.paper else ""
    source = escape(card.source)
    if address:
        source = f'<a href="{address}">{source}</a>'
    return f"Published results · {source}"
