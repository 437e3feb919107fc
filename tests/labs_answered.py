"""Labs as a student answers them: right answers made from the keys, and whole labs answered up to a screen."""

import json
from functools import reduce
from operator import getitem
from typing import Any

from topox_core.labs.classroom.answers import Answers
from topox_core.labs.classroom.student import attempt, begin, explain, lock
from topox_core.labs.generators.catalogue import generator
from topox_core.labs.generators.generator import seed_of
from topox_core.labs.hand_schedule import hand_plans
from topox_core.labs.keys import instance_of, key_of
from topox_core.labs.lab import Lab, Question
from topox_core.labs.lab_file import ready_labs

LABS = ready_labs()


def at(minute: int) -> str:
    """Return a moment of the lesson."""
    return f"2026-10-05T09:{minute:02d}:12Z"


AT = at(0)
EXPLANATION = "The port of server 0 carries one circuit at a time, so the rest of the 10 ms waits."


def changed(content: bytes, path: str, value: Any) -> bytes:
    """Return a JSON file with one entry changed or put at the end of its list; ``...`` takes it away."""
    record = json.loads(content)
    *before, last = (int(part) if part.isdigit() else part for part in path.split("."))
    place = reduce(getitem, before, record)
    if value is ...:
        del place[last]
    elif isinstance(place, list):
        place[last : last + 1] = [value]
    else:
        place[last] = value
    return json.dumps(record).encode()


def right(lab: Lab, question: Question, seed: int) -> Any:
    """Return the right answer to a question, in the form a page hands it in."""
    if question.type == "text":
        return EXPLANATION
    instance = instance_of(lab, lab.screens[lab.screen_of(question.id)], seed)
    if question.type == "schedule":
        best = min(hand_plans(instance), key=lambda plan: plan.makespan_ms)
        return dict(best.starts_ms)
    if question.type == "grouping":
        names = ("amber", "blue", "coral", "denim")
        return dict(
            zip(names, generator("four_jobs").value(instance, "best_grouping"), strict=True)
        )
    key = key_of(lab, question, seed)
    if question.type in ("multi", "order"):
        return list(key)
    if question.type == "matrix":
        return [list(row) for row in key]
    if question.type == "choice" and isinstance(key, tuple):
        return key[0]
    return key


def answered(
    lab: Lab, seed: int, screens: int, course: str = "practice", student: str = "practice"
) -> Answers:
    """Return answers in which everything on the first ``screens`` screens is right."""
    answers = begin(lab, course, student, AT, seed)
    for question in (one for screen in lab.screens[:screens] for one in screen.questions):
        value = right(lab, question, seed)
        if question.stage == "work":
            answers, _ = attempt(lab, answers, question.id, value, AT)
        else:
            put = lock if question.stage == "predict" else explain
            answers = put(lab, answers, question.id, value, AT)
    return answers


def solved(lab: Lab, student: str = "s1234567", course: str = "NET-401") -> Answers:
    """Return a student's answers with everything right, in 40 minutes, explained in words of their own."""
    given = answered(lab, seed_of(course, student), len(lab.screens), course, student)
    for question in (one for one in lab.questions if one.stage == "explain"):
        given = explain(lab, given, question.id, f"{EXPLANATION} {student}", at(40))
    return given
