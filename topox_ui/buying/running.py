"""The answer, worked out beside the page in worker processes, watched, stopped, kept."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from topox_core.studies.buying import Question
from topox_core.studies.buying_run import Answer, buying_run
from topox_core.studies.study_run import PointRow
from topox_ui.answers.run_library import writable_library
from topox_ui.buying.question import key_of
from topox_ui.runs.owner import Kept, RunKind, run_owner
from topox_ui.runs.panel import run_note, watched
from topox_ui.runs.slots import shared_workers
from topox_ui.shell.page import button
from topox_ui.shell.preparing import prepared

# Larger graphs are worked out at a click.
MAX_TASKS = 20_000
AUTOMATIC = True
BUY = RunKind(
    "buy",
    most_slots=0,
    cancel_help="Stops at once; the networks computed so far are kept.",
    cancelled="Stopped. The networks that were computed are kept; computing goes on from there.",
)
MAX_POINTS = 5_000


@st.cache_resource(show_spinner=False)
def known_points() -> Kept[PointRow]:
    """Return the points that were computed, for all sessions: a key says all that a point depends on."""
    return Kept(MAX_POINTS)


def _start(question: Question) -> None:
    library, known, workers = writable_library(), known_points(), shared_workers()
    run_owner().start(
        BUY,
        key_of(question),
        lambda _slots: buying_run(question, library, workers, known),
        note=lambda answer: f"Points are missing. {answer.lost[0]}." if answer.lost else "",
    )


def answered(question: Question, draw: Callable[[Answer], None]) -> Answer | None:
    """Return the answer if it is there; else start it, and draw what is there of it while it is worked out."""
    owner, key = run_owner(), key_of(question)
    answer: Answer | None = owner.results(BUY).get(key)
    if answer is not None and answer.complete:
        run_note(BUY)
        return answer
    small = question.resolved.graph is None or len(question.resolved.graph.tasks) <= MAX_TASKS
    if answer is None and AUTOMATIC and prepared() and small and owner.run(BUY, key) is None:
        _start(question)
        owner.wait(BUY, 0.3)
    if watched(BUY, "Computing", lambda run: draw(run.result()), key):
        return None
    answer = owner.results(BUY).get(key)
    if answer is None:
        draw(Answer(question))
    if answer is None or not answer.complete:
        button(
            "Compute" if answer is None else "Go on",
            "work_out",
            "play_arrow",
            _start,
            question,
            primary=answer is None,
            help="Runs the job on each network beside this page, by list scheduling. Results that exist are not computed again.",
        )
    return answer
