"""The screens of a lab as a row of dots, each with words for those who do not see it."""

from __future__ import annotations

import streamlit as st

from topox_core.labs.answers import Answers
from topox_core.labs.lab import Lab
from topox_core.labs.student import closed, waiting_for
from topox_ui.labs.words import say_html


def strip(lab: Lab, answers: Answers, at: int) -> None:
    """Draw the row; ``at`` is the screen in view, counted from 0."""
    items = []
    for k, screen in enumerate(lab.screens):
        state = state_of_screen(lab, answers, k)
        stage = say_html(f"stage.{screen.stage}")
        said = say_html(f"state.{state}") + (f", {say_html('state.here')}" if k == at else "")
        words = say_html("strip_screen", at=k + 1, count=len(lab.screens), stage=stage, state=said)
        mark = "✓" if state in ("done", "locked") and k != at else str(k + 1)
        look = "here" if k == at else state
        here = ' aria-current="step"' if k == at else ""
        items.append(
            f'<li class="{look}"{here}><i aria-hidden="true">{mark}</i>'
            f'<span aria-hidden="true">{stage}</span><b class="unseen">{words}</b></li>'
        )
    st.html(f'<ol class="lab-strip" aria-label="{say_html("strip")}">{"".join(items)}</ol>')


def state_of_screen(lab: Lab, answers: Answers, at: int) -> str:
    """Return where a screen stands: ``waits``, ``open``, ``locked`` (predictions), or ``done``."""
    screen = lab.screens[at]
    if waiting_for(lab, answers, at):
        return "waits"
    if screen.stage == "explain":
        return "done" if all(answers.explained(q.id) for q in screen.questions) else "open"
    if not all(closed(answers, question) for question in screen.questions):
        return "open"
    return "locked" if screen.stage == "predict" else "done"
