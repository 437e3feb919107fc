"""What the one button of a screen does (lock, check, save), and what is said to it, question by question; truths at a reveal."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from topox_core.check.report import equation_words
from topox_core.errors import InputError
from topox_core.labs.classroom.answers import Answers
from topox_core.labs.classroom.marking import read_answer
from topox_core.labs.classroom.student import (
    attempt,
    closed,
    explain,
    give_up,
    lock,
    reply_to,
    revealed,
    revealed_on,
)
from topox_core.labs.keys import answer_words, filled, matrix_of
from topox_core.labs.lab import Lab, Question
from topox_ui.classroom.held import in_turn, note_check
from topox_ui.labs.fields import Field, handed_in, is_filled
from topox_ui.labs.state import (
    LINES,
    LabsState,
    answers_to,
    change,
    line,
    now,
    plural_of,
    points,
    say,
    say_html,
    texts,
)
from topox_ui.shell.charts import escape, frame, html_parts, show_error


def hand_in(lab: Lab, fields: Sequence[Field]) -> None:
    """Lock, check or save what stands in the fields of a screen, in one step.

    Predictions are locked all or none. What was checked already is not checked again, and a value that cannot be read
    says why and costs no attempt.
    """
    LINES.pop()
    stage = fields[0].asked.stage
    missing = [one for one in fields if not is_filled(one) and stage != "explain"]
    if missing and (stage == "predict" or len(missing) == len(fields)):
        names = ", ".join(one.asked.id for one in missing)
        line(missing[0].name, "error", say("first", questions=names))
        return
    filled = [one for one in fields if one not in missing]
    read = [(one, value) for one in filled if (value := _read(lab, one)) is not None]
    if not read or (stage == "predict" and len(read) < len(fields)):
        return
    place = read[0][0].name

    def given(answers: Answers) -> Answers:
        for one, value in read:
            answers = _GIVE[stage](lab, answers, one.asked.id, value, now())
        return answers

    before = answers_to(lab)
    try:
        if stage == "work":
            note_check(lab.id)
            in_turn(partial(change, lab, given))
        else:
            change(lab, given)
    except InputError as error:
        line(place, "error", str(error))
        return
    if answers_to(lab) == before and not LINES.there:
        line(place, "info", say("nothing_new"))


def _check(lab: Lab, answers: Answers, name: str, value: Any, at: str) -> Answers:
    """Return answers with one more attempt, or as they are where it is none."""
    attempts = answers.worked(name).attempts
    if closed(answers, lab.question(name)) or (attempts and attempts[-1].value == value):
        return answers
    return attempt(lab, answers, name, value, at, LabsState.now().lang)[0]


_GIVE = {"predict": lock, "work": _check, "explain": explain}


def _read(lab: Lab, field: Field) -> Any:
    """Return what stands in a field as it is kept; None, and a line, where it cannot be read."""
    question, given = lab.question(field.asked.id), handed_in(field)
    try:
        read = read_answer(lab, question, "" if given is None else given, field.seed)
    except InputError as error:
        line(field.name, "error", f"{question.id}: {error.problem}")
        return None
    if question.type == "number":
        field.write(read)  # as it was rounded
    return read


def show_answers(lab: Lab, names: Sequence[str]) -> None:
    """Close worked answers: their keys are shown, and no attempt is left."""
    LINES.pop()

    def given_up(answers: Answers) -> Answers:
        for name in names:
            if not closed(answers, lab.question(name)):
                answers = give_up(lab, answers, name, now())
        return answers

    change(lab, given_up)


def go(screen: int) -> None:
    """Go to a screen, counted from 1."""
    LINES.pop()
    LabsState.choose(q=screen)


def said_to_field(name: str) -> None:
    """Draw the line that was kept for a field."""
    kept = (LINES.get() or {}).get(name)
    if kept is None:
        return
    kind, text = kept
    if kind == "error":
        show_error(text)
    else:
        status(escape(text))


def status(html: str) -> None:
    """Write a line that a screen reader says at once."""
    st.html(SAID.status(html))


def clock_words(at: str) -> str:
    """Return the time of day of a moment as answers keep it, in UTC."""
    return f"{at[11:19]} UTC"


SAID = html_parts(
    Path(__file__).with_name("said.html"),
    say,
    say_html,
    plural_of,
    points,
    clock_words,
    equation_words,
)


def said_to_question(lab: Lab, answers: Answers, question: Question) -> None:
    """Draw where a question stands: locked, saved, or what is said to the last attempt, its key once there is no other."""
    name, given = question.id, answers.worked(question.id)
    works = question.stage == "work"
    reply = reply_to(lab, answers, name, LabsState.now().lang) if works else None
    told = None if reply is None or reply.right or question.type == "grouping" else reply.key
    html = SAID.standing(
        locked=answers.prediction(name),
        saved=answers.given[name] if answers.explained(name) else None,
        reply=reply,
        given=given,
        best=max((one.points for one in given.attempts), default=0.0),
        over=closed(answers, question),
        key="" if told is None else words_of(lab, question, told, answers.seed),
    )
    if html.strip():
        st.html(f'<div style="display: grid; gap: 1rem">{html}</div>')
    if told is not None:
        _grid(lab, question, told, answers.seed)


def words_of(lab: Lab, question: Question, value: Any, seed: int) -> str:
    """Return an answer or a key in words; of a matrix where it stands."""
    return answer_words(lab, question, value, seed, texts(), precise=True) or say("cells")


def _grid(lab: Lab, question: Question, value: Any, seed: int) -> None:
    """Draw the cells of an answer that is a matrix."""
    if question.type != "matrix" or not value:
        return
    frame(matrix_of(lab, question, seed).as_table(value).by_column())


def _yours(lab: Lab, question: Question, answer: Any, key: Any, seed: int) -> str:
    if answer is None:
        return say_html("revealed.none")
    if question.type == "matrix":
        same = np.equal(answer, key)
        return say_html("revealed.cells", right=int(same.sum()), of=same.size)
    return say_html("revealed.yours", answer=words_of(lab, question, answer, seed))


def truths(lab: Lab, answers: Answers, at: int) -> None:
    """Draw, on a reveal, the truth of every question since the reveal before, beside the answer."""
    seed = answers.seed
    for name in revealed_on(lab, answers, at):
        question, screen = lab.question(name), lab.screens[lab.screen_of(name)]
        found = revealed(lab, answers, name, LabsState.now().lang)
        text = filled(lab, screen, question.text, seed, texts())
        mine = _yours(lab, question, found.answer, found.key, seed)
        key = words_of(lab, question, found.key, seed)
        with st.container(border=True, key=f"lab_truth_{name}"):
            st.html(SAID.truth(question, text, mine, key, found.right))
            _grid(lab, question, found.key, seed)
            if found.say:
                st.html(f'<p class="note">{escape(found.say)}</p>')


_arrive = st.components.v2.component(
    "topox_lab_arriving", js=Path(__file__).with_name("scroll.js").read_text(encoding="utf-8")
)


def begin_at_top(screen: str) -> None:
    """Scroll to the headline, and give it the focus, if the screen in view is another than before."""
    _arrive(key="lab_arriving", data={"screen": screen})
