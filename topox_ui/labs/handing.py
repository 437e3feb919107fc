"""What the one button of a screen does: lock, check, save; and what is said to it, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topox_core.errors import InputError
from topox_core.labs.answers import Answers
from topox_core.labs.lab import Lab
from topox_core.labs.marking import read_answer
from topox_core.labs.student import attempt, closed, explain, give_up, lock
from topox_ui.classroom.answering import in_turn, note_check
from topox_ui.labs.fields import Field, handed_in, is_filled, redraw
from topox_ui.labs.kept import LINES, change, line, now
from topox_ui.labs.state import LabsState
from topox_ui.labs.words import say


def lock_all(lab: Lab, fields: Sequence[Field]) -> None:
    """Lock the predictions of a screen, all of them or none; a field that cannot be read says why."""
    LINES.pop()
    missing = [field for field in fields if not is_filled(field)]
    if missing:
        names = ", ".join(field.asked.id for field in missing)
        line(missing[0].name, "error", say("first", questions=names))
        return
    values = {field.asked.id: _read(lab, field) for field in fields}
    if None in values.values():
        return

    def locked(answers: Answers) -> Answers:
        for name, value in values.items():
            answers = lock(lab, answers, name, value, now())
        return answers

    _changed(lab, locked, fields[0].name)


def check_all(lab: Lab, fields: Sequence[Field]) -> None:
    """Check what is new in the fields of a screen; a value that cannot be read costs no attempt."""
    LINES.pop()
    filled = [field for field in fields if is_filled(field)]
    if not filled:
        line(fields[0].name, "error", say("first", questions=", ".join(f.asked.id for f in fields)))
        return
    try:
        note_check(lab.id)
        checked = in_turn(lambda: [_check(lab, field) for field in filled])
    except InputError as error:
        line(filled[0].name, "error", str(error))
        return
    if not any(checked) and not LINES.there:
        line(filled[0].name, "info", say("nothing_new"))


def _check(lab: Lab, field: Field) -> bool:
    name = field.asked.id
    question, value = lab.question(name), _read(lab, field)
    if value is None:
        return False
    tried: list[bool] = []

    def checked(answers: Answers) -> Answers:
        attempts = answers.worked(name).attempts
        if closed(answers, question) or (attempts and attempts[-1].value == value):
            return answers
        tried.append(True)
        return attempt(lab, answers, name, value, now(), LabsState.now().lang)[0]

    if _changed(lab, checked, field.name) and question.type == "number":
        redraw(field, value)  # as it was rounded
    return bool(tried)


def save_all(lab: Lab, fields: Sequence[Field]) -> None:
    """Save the explanations of a screen."""
    LINES.pop()
    for field in fields:
        name, text = field.asked.id, _read(lab, field)
        if text is None:
            continue

        def saved(answers: Answers, name: str = name, text: str = text) -> Answers:
            return explain(lab, answers, name, text, now())

        _changed(lab, saved, field.name)


def _read(lab: Lab, field: Field) -> Any:
    """Return what stands in a field as it is kept; None, and a line, where it cannot be read."""
    question, given = lab.question(field.asked.id), handed_in(field)
    try:
        return read_answer(lab, question, "" if given is None else given, field.seed)
    except InputError as error:
        line(field.name, "error", f"{question.id}: {error.problem}")
        return None


def show_answers(lab: Lab, names: Sequence[str]) -> None:
    """Close worked answers: their keys are shown, and no attempt is left."""
    LINES.pop()

    def given_up(answers: Answers) -> Answers:
        for name in names:
            if not closed(answers, lab.question(name)):
                answers = give_up(lab, answers, name, now())
        return answers

    _changed(lab, given_up, names[0])


def go(screen: int) -> None:
    """Go to a screen, counted from 1."""
    LINES.pop()
    LabsState.choose(q=screen)


def _changed(lab: Lab, by: object, place: str) -> bool:
    try:
        change(lab, by)  # type: ignore[arg-type]
    except InputError as error:
        line(place, "error", str(error))
        return False
    return True
