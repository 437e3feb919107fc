"""What a student hands in: the points so far, the file, and whose it is."""

from __future__ import annotations

import streamlit as st

from topox_core.labs.answers import Answers
from topox_core.labs.answers_file import dump_answers
from topox_core.labs.grading import score
from topox_core.labs.lab import Lab
from topox_ui.labs.kept import KEPT_LINE, LINES, forget
from topox_ui.labs.state import LabsState
from topox_ui.labs.words import as_html, say
from topox_ui.shell.downloads import link_menu
from topox_ui.shell.page import button, chart_title, quiet
from topox_ui.state.store import choose


def your_answers(lab: Lab, answers: Answers, to_hand_in: bool = False) -> None:
    """Draw the foot of every screen: points, file, link, and the way back to all labs.

    Parameters
    ----------
    to_hand_in
        Whether nothing is left but to save the file: its button is then the one of the screen.
    """
    now = score(lab, answers)
    so_far = now["predictions"] + now["worked"]
    read_later = sum(q.points for q in lab.questions if q.stage == "explain")
    score_words = say("answers.score", points=f"{so_far:g}", of=f"{lab.points - read_later:g}")
    if read_later:
        score_words += say("answers.read_later", points=f"{read_later:g}")
    st.divider()
    chart_title(say("answers.title"), score_words, beside=True)
    facts = {"course": answers.course, "student": answers.student, "seed": answers.seed}
    quiet(
        f"{as_html(say('answers.who', **facts))}. {as_html(KEPT_LINE.get() or say('answers.kept'))}"
    )
    with st.container(horizontal=True, key="lab_foot"):
        st.download_button(
            say("answers.save"),
            data=lambda: dump_answers(answers, score(lab, answers)),
            file_name=f"{lab.id}-{answers.seed}.answers.json",
            mime="application/json",
            on_click="ignore",
            key="lab_download",
            icon=":material/download:",
            type="primary" if to_hand_in else "secondary",
        )
        button(say("leave"), "lab_leave", "apps", leave)
        if answers.is_practice:
            button(say("again"), "lab_anew", "restart_alt", _anew, lab)
        link_menu(more=f" {say('answers.link')}")


def leave() -> None:
    """Go to all labs."""
    LINES.pop()
    choose(LabsState, id=None)


def _anew(lab: Lab) -> None:
    """Forget the answers of a practice: of a student's own instance no lock is ever taken back."""
    forget(lab)
    choose(LabsState, id=None)
