"""The gallery's desk: which card is open, its switches, the run beside the page, answers kept by card and switches."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import streamlit as st

from topox_core.errors import InputError
from topox_core.papers.card import Answer, Card, Settings
from topox_core.papers.catalogue import CARDS
from topox_core.papers.running import CardRun
from topox_core.text.numbers import plural
from topox_ui.runs.attending import attend
from topox_ui.schedule.solving import BUSY, places
from topox_ui.shell.page import escape

MOST_KEPT = 48


def key_of(card: Card, settings: Settings) -> str:
    """Return the key of an answer: the card and every switch."""
    return f"{card.name}|{sorted(settings.items())}"


@st.cache_resource(show_spinner=False)
def shelf() -> dict[str, Answer]:
    """Return the complete answers of this server; they are the same on every run, so all sessions share them."""
    return {}


@dataclass
class CardDesk:
    """One session's run of a card, and the incomplete answers that it keeps."""

    places: threading.BoundedSemaphore
    shelf: dict[str, Answer]
    run: CardRun | None = None
    partial: dict[str, Answer] = field(default_factory=dict)
    note: str = ""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def start(self, card: Card, settings: Settings) -> None:
        """Run a card; one that runs already is ended first."""
        self.close()
        self.note = ""
        if not self.places.acquire(blocking=False):
            self.note = BUSY
            return
        try:
            self.run = run = CardRun(card, settings)
        except InputError as error:
            self.places.release()
            self.note = str(error)
            return
        attend(lambda: self.run is run, self.poll)

    def poll(self) -> bool:
        """Return True when the run has just ended and its answer was kept."""
        with self._lock:
            if self.run is None or self.run.running:
                return False
            self._keep(self.run)
            self.close()
        return True

    def cancel(self) -> None:
        """Stop the run and keep the rows that are there."""
        if self.run is not None:
            self.run.cancel()
            self.poll()

    def close(self) -> None:
        """End the run at once: the tab was closed, or another card begins."""
        with self._lock:
            run, self.run = self.run, None
            if run is not None:
                run.close()
                self.places.release()

    def answer(self, card: Card, settings: Settings) -> Answer | None:
        """Return what is known of a card under these switches."""
        key = key_of(card, settings)
        return self.shelf.get(key) or self.partial.get(key)

    def _keep(self, run: CardRun) -> None:
        self.note = run.error
        if run.answer is None:
            return
        kept = self.shelf if run.answer.complete else self.partial
        kept[key_of(run.card, run.settings)] = run.answer
        while len(kept) > MOST_KEPT:
            kept.pop(next(iter(kept)))


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda desk: desk.close())
def card_desk() -> CardDesk:
    """Return this session's desk; closing the tab ends its run."""
    return CardDesk(places(), shelf())


def chosen_card() -> Card:
    """Draw the list of cards in the sidebar and return the one that is open."""
    with st.sidebar:
        name = st.selectbox(
            "Card", list(CARDS), key="gallery_card", format_func=lambda name: CARDS[name].title
        )
        st.html(f'<p class="quiet">{escape(CARDS[name].source)}</p>')
    return CARDS[name]


def switches(card: Card) -> Settings:
    """Draw the switches of a card in the sidebar and return their positions."""
    settings = {}
    with (
        st.sidebar,
        st.expander(
            "Switches that change the reading",
            key="gallery_switches",
            expanded=True,
            type="compact",
        ),
    ):
        for choice in card.choices:
            values = [value for value, _ in choice.options]
            settings[choice.key] = st.selectbox(
                choice.name,
                values,
                index=values.index(choice.default),
                key=f"gallery_{card.name}_{choice.key}",
                format_func=choice.words,
                help=choice.meaning,
            )
        if not card.choices:
            st.html('<p class="quiet">This card has none.</p>')
    return card.settings(settings)


def run_controls(card: Card, settings: Settings, answer: Answer | None) -> None:
    """Draw the Run button, or the run's progress with its Cancel button."""
    desk = card_desk()
    if desk.note:
        st.warning(desk.note.replace("$", "\\$"))
    if desk.run is not None:
        _live()
        return
    if answer is None or not answer.complete:
        st.button(
            "Run it here" if answer is None else "Run it again",
            type="primary",
            icon=":material/play_arrow:",
            key="gallery_run",
            on_click=desk.start,
            args=(card, settings),
        )


@st.fragment(run_every=0.5)
def _live() -> None:
    """Poll the run twice a second; redraw the page when it has ended."""
    desk = card_desk()
    if desk.poll() or desk.run is None:
        st.rerun()
        return
    run = desk.run
    rows = run.rows
    last = f", last {rows[-1].item}" if rows else ""
    st.progress(
        run.progress,
        f"{run.card.title}: {plural(len(rows), 'number')} of {run.card.row_count}{last}",
    )
    st.button(
        "Cancel",
        key="gallery_cancel",
        icon=":material/stop_circle:",
        on_click=desk.cancel,
        help="Stops within a second or two; the rows that are there are kept.",
    )


def kicker(card: Card) -> str:
    """Return the line above the headline."""
    return f"Gallery · {escape(card.source)}"
