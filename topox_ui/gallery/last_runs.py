"""The last answer of every card on this machine: kept by the server and, where it keeps runs, in the run library."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.papers.card import Answer
from topox_core.papers.catalogue import CARDS
from topox_core.papers.every_card import CardStep, measured, run_cards
from topox_core.papers.kept_answers import KeptAnswer, keep, kept
from topox_core.runs.executor import call_in_worker
from topox_core.runs.identity import code_version
from topox_core.runs.run import FunctionRun
from topox_core.runs.stopping import Stop
from topox_ui.answers.run_library import existing_library, keeps_runs, open_library
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.shell.preparing import prepared

# Nobody asks for the quick cards: they are run when the page opens, in a process that gives way.
AUTOMATIC = True
GRACE_S = 2.0
EVERY = RunKind(
    "every_card",
    most_kept=1,
    most_slots=0,
    cancel_help="Stops within a second or two; the cards that are there are kept.",
    cancelled="Stopped. The cards that are there are kept.",
)
Names = tuple[str, ...]


@st.cache_resource(show_spinner=False)
def last_runs() -> dict[str, KeptAnswer]:
    """Return the last complete answer of each card by name, with every switch in its first position."""
    if not keeps_runs():
        return {}
    try:
        library = existing_library()
        return {} if library is None else kept(library, CARDS.values())
    except InputError:
        return {}  # the page Runs says what is wrong with the library


def took(name: str, answer: Answer, wall_s: float) -> None:
    """Keep a complete answer of a card, if its switches are in their first positions."""
    card = CARDS[name]
    if not answer.complete or dict(answer.settings) != card.settings():
        return
    last_runs()[name] = KeptAnswer(answer, time.time() - wall_s, wall_s, code_version())
    if keeps_runs():
        try:
            keep(open_library(), card, answer, wall_s)
        except InputError:
            return


def missing_quick() -> Names:
    """Return the quick cards that this version has not run here."""
    known = last_runs()
    return tuple(
        name
        for name, card in CARDS.items()
        if card.quick and not (name in known and known[name].of_this_version)
    )


def start_quick() -> None:
    """Run the quick cards that are missing, unless this session has run or stopped them before."""
    owner, names = run_owner(), missing_quick()
    if AUTOMATIC and prepared() and names and owner.run(EVERY) is None and not owner.results(EVERY):
        start(names)


def start(names: Names) -> None:
    """Run cards beside the page, one after the other in a process of their own."""
    results = run_owner().results(EVERY)

    def ended(_nothing: tuple[()]) -> str:
        results[names] = True
        return ""

    run_owner().start(EVERY, names, lambda _slots: _run(names), ended)


def _run(names: Names) -> FunctionRun[tuple[()], CardStep]:
    return FunctionRun(partial(_work, names), partial(measured, names), "cards")


def _work(names: Names, stop: Stop, on_step: Callable[[CardStep], None]) -> tuple[()]:
    def take(step: CardStep) -> None:
        if step.answer is not None:
            took(step.card, step.answer, step.wall_s)
        on_step(step)

    call_in_worker(run_cards, names, stop=stop, on_step=take, grace_s=GRACE_S)
    return ()
