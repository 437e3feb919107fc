"""Answers graded anew: nothing that a file says of its own points counts, and what is odd in it is said beside them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from time import monotonic
from typing import Any

from topox_core.errors import InputError, refuse_if
from topox_core.labs.classroom.answers import (
    Answers,
    AnswersFile,
    Attempt,
    Given,
    Prediction,
    Worked,
    is_signed,
    read_clock,
)
from topox_core.labs.classroom.marking import mark, points_of, read_answer
from topox_core.labs.keys import depends_on_student, key_of
from topox_core.labs.lab import Lab, Question

# Of one file, once its keys are there.
MAX_S = 5.0
# Points of explanations, given by a person: by student as written in the file, and question.
Explanations = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class QuestionGrade:
    """One question of one student.

    Attributes
    ----------
    points
        None of an explanation that nobody has read yet.
    right
        Of the answer that stands; None without one or without a key.
    say
        The sentence of its misconception, as the lab file has it.
    """

    question: str
    points: float | None
    right: bool | None
    answer: Any
    say: str = ""


@dataclass(frozen=True)
class Grade:
    """One student in one lab.

    Attributes
    ----------
    predictions, worked
        Points; ``explanation`` is None while one is unread, and then not in ``total``.
    minutes
        From the first to the last moment that the file names; None where it names none.
    remarks
        What is odd: ``edited``, ``other seed``, ``clock`` and the like. None of them takes points.
    """

    file: str
    lab: str
    course: str
    student: str
    seed: int
    predictions: float
    worked: float
    explanation: float | None
    total: float
    of: float
    minutes: float | None
    remarks: tuple[str, ...]
    questions: tuple[QuestionGrade, ...]
    finished: str

    @property
    def doubtful(self) -> bool:
        """Whether a person should look at it."""
        return bool(self.remarks)


def score(lab: Lab, answers: Answers) -> dict[str, Any]:
    """Return what a page shows of the points so far, as an answers file keeps it."""
    graded = [_graded(lab, answers, question, {}, []) for question in lab.questions]
    return {
        "predictions": _sum(lab, graded, "predict"),
        "worked": _sum(lab, graded, "work"),
        "explanation": None,
        "of": lab.points,
    }


def grade(
    lab: Lab,
    file: AnswersFile,
    name: str,
    explanations: Explanations | None = None,
    secret: bytes | None = None,
    clock: Callable[[], float] = monotonic,
) -> Grade:
    """Grade one file, in at most :data:`MAX_S` and one question: no file holds up a folder.

    Parameters
    ----------
    name
        Of the file, for the table.
    explanations
        Points of explanations.
    secret
        Of the lecturer's machine, where answers were given on it.
    clock
        Seconds.

    Raises
    ------
    InputError
        If it takes longer.
    """
    answers = file.answers
    remarks = _remarks(lab, file, secret)
    for question in lab.questions:  # their time is the lab's, not that of a file
        with suppress(InputError):  # told of the question, in its turn
            key_of(lab, question, answers.seed)
    until_s = clock() + MAX_S
    graded: list[QuestionGrade] = []
    for question in lab.questions:
        refuse_if(
            (clock() > until_s, f"takes longer to grade than the {MAX_S:g} s that a file may"),
            file=name,
            item=f"question {question.id}",
        )
        graded.append(_graded(lab, answers, question, explanations or {}, remarks))
    known = {question.id for question in lab.questions}
    remarks += [f"no question {one[:20]}" for one in answers.given if one not in known]
    predictions, worked = _sum(lab, graded, "predict"), _sum(lab, graded, "work")
    read = _points(lab, graded, "explain")
    explanation = None if None in read else round(sum(one or 0 for one in read), 2)
    return Grade(
        name,
        lab.id,
        answers.course,
        answers.student,
        answers.seed,
        predictions,
        worked,
        explanation,
        round(predictions + worked + (explanation or 0), 2),
        lab.points,
        _minutes(answers),
        tuple(remarks),
        tuple(graded),
        answers.finished,
    )


def _remarks(lab: Lab, file: AnswersFile, secret: bytes | None) -> list[str]:
    answers = file.answers
    drawn = any(depends_on_student(lab, question) for question in lab.questions)
    odd = {
        "edited": file.edited,
        "signature": secret is not None and not is_signed(file, secret),
        "other lab text": answers.digest != lab.digest,
        "older generator": dict(answers.versions) != lab.generator_versions,
        "other seed": drawn and answers.is_practice,
        "clock": not _in_order(answers),
    }
    return [remark for remark, is_so in odd.items() if is_so]


def _graded(
    lab: Lab,
    answers: Answers,
    question: Question,
    explanations: Explanations,
    remarks: list[str],
) -> QuestionGrade:
    if question.stage != "explain":
        return _tried(lab, answers, question, remarks)
    text = answers.explained(question.id)
    points: float | None = explanations.get((answers.student, question.id))
    if points is not None and not 0 <= points <= question.points:
        remarks.append(f"{question.id}: {points:g} points of {question.points:g}")
        points = None
    return QuestionGrade(question.id, points if text or points else 0.0, None, text or None)


def _tried(lab: Lab, answers: Answers, question: Question, remarks: list[str]) -> QuestionGrade:
    """Grade a prediction, which is worth its points once it can be read, or the best of the attempts that count."""
    predicted = answers.prediction(question.id)
    if question.stage == "predict":
        values = [] if predicted is None else [predicted.value]
    else:
        values = [one.value for one in _that_count(answers.worked(question.id), question, remarks)]
    best, right, say, last = 0.0, None, "", None
    for number, given in enumerate(values):
        try:
            last = read_answer(lab, question, given, answers.seed)
        except InputError as error:
            remarks.append(f"{question.id}: {error.problem}")
            continue
        marked = mark(lab, question, last, answers.seed)
        right, say = marked.right or bool(right), say or marked.say
        points = points_of(question, marked.share, number)
        best = max(best, question.points if question.stage == "predict" else points)
    return QuestionGrade(question.id, best, right, last, say)


def _that_count(given: Worked, question: Question, remarks: list[str]) -> Sequence[Attempt]:
    own = [one for one in given.attempts if not given.given_up or one.at <= given.given_up]
    odd = {
        "an attempt after the key was shown": len(own) < len(given.attempts),
        f"{len(own)} attempts, {question.attempts} count": len(own) > question.attempts,
    }
    remarks += [f"{question.id}: {what}" for what, is_so in odd.items() if is_so]
    return own[: question.attempts]


def _points(lab: Lab, graded: Sequence[QuestionGrade], stage: str) -> list[float | None]:
    """Return the points of the questions of a stage; ``graded``: all questions in the lab's order."""
    both = zip(lab.questions, graded, strict=True)
    return [one.points for question, one in both if question.stage == stage]


def _sum(lab: Lab, graded: Sequence[QuestionGrade], stage: str) -> float:
    return round(sum(points or 0.0 for points in _points(lab, graded, stage)), 2)


def _in_order(answers: Answers) -> bool:
    """Return whether times rise: attempts one after another, all between start and end."""
    rows = [_moments(given) for given in answers.given.values()]
    every = [answers.finished or answers.started, *chain(*rows)]
    rise = all(row == sorted(row) for row in rows)
    return rise and answers.started <= min(every) and max(every) == every[0]


def _moments(given: Given) -> list[str]:
    if isinstance(given, Worked):
        return [one.at for one in given.attempts]
    if isinstance(given, Prediction):
        return [given.locked, *([given.second.locked] if given.second else [])]
    return [given.at]


def _minutes(answers: Answers) -> float | None:
    if not answers.finished:
        return None
    lasted = read_clock(answers.finished) - read_clock(answers.started)
    return round(lasted.total_seconds() / 60, 1)
