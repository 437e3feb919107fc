"""Labs as a student answers them: right answers made from the keys, and whole labs answered up to a screen."""

from __future__ import annotations

from typing import Any

from topox_core.labs.answers import Answers
from topox_core.labs.instance_plans import hand_plans
from topox_core.labs.keys import instance_of, key_of
from topox_core.labs.lab import Lab, Question
from topox_core.labs.student import attempt, begin, explain, lock

AT = "2026-10-05T09:00:12Z"
EXPLANATION = "The port of server 0 carries one circuit at a time, so the rest of the 10 ms waits."


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
        return dict(zip(names, instance.best_grouping, strict=True))
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
    for screen in lab.screens[:screens]:
        for question in screen.questions:
            value = right(lab, question, seed)
            if question.stage == "predict":
                answers = lock(lab, answers, question.id, value, AT)
            elif question.stage == "work":
                answers = attempt(lab, answers, question.id, value, AT)[0]
            else:
                answers = explain(lab, answers, question.id, value, AT)
    return answers
