"""Answers that are gone on with: read from a file and marked anew, or given in two tabs and brought together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topox_core.errors import InputError, shown
from topox_core.labs.answers import Answers, Attempt, Explained, Given, Prediction, Worked
from topox_core.labs.keys import check_seed
from topox_core.labs.lab import Lab, Question
from topox_core.labs.marking import mark, read_answer
from topox_core.labs.student import points_of


def taken_up(lab: Lab, answers: Answers, file: str) -> Answers:
    """Return the answers of a file as a student may go on with them: every value read, every attempt marked anew.

    Raises
    ------
    InputError
        If they belong to another lab or another version of it, or an answer cannot be read; the
        line names file, question and what was expected.
    """
    if answers.lab != lab.id:
        problem = f"must be {lab.id!r} (got {shown(answers.lab)})"
        raise InputError(problem, file=file, field="lab")
    if answers.digest != lab.digest or dict(answers.versions) != lab.generator_versions:
        raise InputError(
            "was answered with another version of this lab: hand it in as it is, or begin anew",
            file=file,
        )
    check_seed(answers.seed)
    known = {question.id: question for question in lab.questions}
    given: dict[str, Given] = {}
    for name, one in answers.given.items():
        item = f"question {name[:20]}"
        if name not in known:
            raise InputError("is no question of this lab", file=file, item=item)
        try:
            given[name] = _read(lab, known[name], one, answers.seed)
        except InputError as error:
            raise InputError(error.problem, file=file, item=item, field=error.field) from None
    return replace(answers, given=given)


def _read(lab: Lab, question: Question, given: Given, seed: int) -> Given:
    stages = {Prediction: "predict", Worked: "work", Explained: "explain"}
    if stages[type(given)] != question.stage:
        raise InputError(f"must be the answer of a {question.stage} screen")
    if isinstance(given, Prediction):
        value = read_answer(lab, question, given.value, seed)
        if given.second is None:
            return replace(given, value=value)
        again = read_answer(lab, question, given.second[1], seed)
        return replace(given, value=value, second=(given.second[0], again))
    if isinstance(given, Worked):
        attempts = []
        for number, one in enumerate(given.attempts[: question.attempts]):
            value = read_answer(lab, question, one.value, seed)
            share = mark(lab, question, value, seed).share
            attempts.append(Attempt(one.at, value, points_of(question, share, number)))
        return replace(given, attempts=tuple(attempts))
    return replace(given, value=read_answer(lab, question, given.value, seed))


def together(one: Answers, other: Answers) -> Answers:
    """Return what was answered in either of two places: no lock of either is lost, the earlier one counts.

    Of a worked answer the longer row of attempts is kept, of an explanation the later one.
    """
    names = dict.fromkeys((*one.given, *other.given))
    given: Mapping[str, Given] = {
        name: _joined(one.given.get(name), other.given.get(name)) for name in names
    }
    return replace(
        one,
        given=given,
        started=min(one.started, other.started),
        finished=max(one.finished, other.finished),
    )


def _joined(one: Given | None, other: Given | None) -> Given:
    if one is None or other is None or type(one) is not type(other):
        found = one or other
        assert found is not None
        return found
    if isinstance(one, Prediction) and isinstance(other, Prediction):
        first = min(one, other, key=lambda given: given.locked)
        return replace(first, second=one.second or other.second)
    if isinstance(one, Worked) and isinstance(other, Worked):
        longer = max(one, other, key=lambda given: len(given.attempts))
        return replace(longer, given_up=one.given_up or other.given_up)
    assert isinstance(one, Explained) and isinstance(other, Explained)
    return max(one, other, key=lambda given: given.at)
