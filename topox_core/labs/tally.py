"""Votes that a lecturer counts in the room, as answers of the class instance: a show of hands, numbers called out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from topox_core.errors import InputError, shown
from topox_core.labs.lab import Lab, Question
from topox_core.labs.lesson import CLASS_SEED
from topox_core.labs.marking import read_answer
from topox_core.labs.statistics import QuestionStatistics, question_statistics

MOST_VOTES = 500
_ONE = re.compile(r"([^\s;x×*]+)(?:\s*[x×*]\s*([0-9]{1,4}))?(?:[;\s]+|,(?:\s+|$)|$)")
# Types whose answers can be counted in the room.
COUNTED = ("choice", "number")

# How many gave each answer.
Votes = Mapping[Any, int]


def read_called_out(lab: Lab, question: Question, text: str) -> dict[Any, int]:
    """Read numbers called out, such as ``9, 10 x5, 12 x3``: each with how many said it.

    Raises
    ------
    InputError
        If something is no number, or there are more than ``MOST_VOTES``.
    """
    votes: dict[Any, int] = {}
    rest = text.strip()
    while rest:
        found = _ONE.match(rest)
        if found is None:
            problem = f"must be numbers such as 9, 10 x5, 12 x3 (got {shown(rest)})"
            raise InputError(problem, item=f"question {question.id}", field="votes")
        value = read_answer(lab, question, found[1].rstrip(","), CLASS_SEED)
        votes[value] = votes.get(value, 0) + int(found[2] or 1)
        rest = rest[found.end() :]
    check_votes(question, votes)
    return votes


def check_votes(question: Question, votes: Votes) -> None:
    """Refuse counts below 0, or more votes than a room has; raises InputError."""
    if min(votes.values(), default=0) < 0 or sum(votes.values()) > MOST_VOTES:
        problem = f"must be 0 to {MOST_VOTES} votes in all (got {sum(votes.values()):,})"
        raise InputError(problem, item=f"question {question.id}", field="votes")


def counted_statistics(
    lab: Lab, question: Question, firsts: Votes, seconds: Votes | None = None
) -> QuestionStatistics:
    """Return the statistics of votes counted in the room, before and after the discussion.

    Raises
    ------
    InputError
        As :func:`check_votes`.
    """
    again = seconds or {}
    check_votes(question, firsts)
    check_votes(question, again)
    return question_statistics(lab, question, _each(firsts), _each(again))


def _each(votes: Votes) -> Iterable[tuple[Any, int]]:
    for value, count in votes.items():
        for _ in range(count):
            yield value, CLASS_SEED
