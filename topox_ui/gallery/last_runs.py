"""The last answer of every card: of a run on this machine, kept by the server and in the run library, or the release's."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.papers.card import Answer
from topox_core.papers.catalogue import (
    CARDS,
    CardStep,
    KeptAnswer,
    keep,
    kept,
    measured,
    run_cards,
    shipped_answers,
)
from topox_core.runs.executor import call_in_worker
from topox_core.runs.run import FunctionRun, Stop
from topox_ui.answers.run_library import existing_library, keeps_runs, open_library
from topox_ui.runs.owner import RunKind, run_owner

GRACE_S = 2.0
EVERY = RunKind(
    "every_card",
    most_kept=1,
    most_slots=0,
    cancel_help="Stops within a second or two; the cards run so far are kept.",
    cancelled="Stopped. The cards that were run are kept.",
)
Names = tuple[str, ...]


@st.cache_resource(show_spinner=False)
def last_runs() -> dict[str, KeptAnswer]:
    """Return the last complete answer of each card by name, by this version and with every switch in its first position."""
    known = dict(shipped_answers())
    with suppress(InputError):  # the view Kept runs says what is wrong with the library
        library = existing_library()
        known |= {} if library is None else kept(library, CARDS.values())
    return known


def took(name: str, answer: Answer, wall_s: float) -> None:
    """Keep a complete answer of a card, if its switches are in their first positions."""
    card = CARDS[name]
    if not answer.complete or dict(answer.settings) != card.settings():
        return
    last_runs()[name] = KeptAnswer(answer, time.time() - wall_s, wall_s)
    if keeps_runs():
        with suppress(InputError):
            keep(open_library(), card, answer, wall_s)


def start(names: Names) -> None:
    """Run cards beside the page, one after the other in a process of their own."""
    run_owner().start(
        EVERY,
        names,
        lambda _slots: FunctionRun(partial(_work, names), partial(measured, names), "cards"),
        lambda _nothing: "",
    )


def _work(names: Names, stop: Stop, on_step: Callable[[CardStep], None]) -> tuple[()]:
    def take(step: CardStep) -> None:
        if step.answer is not None:
            took(step.card, step.answer, step.wall_s)
        on_step(step)

    call_in_worker(run_cards, names, stop=stop, on_step=take, grace_s=GRACE_S)
    return ()
