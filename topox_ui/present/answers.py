"""The answers of a class that the page Present counts: from the class folder, from files, from hands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from topox_core.labs.answers import Answers
from topox_core.labs.folder import Unreadable, answers_from, latest_of_each
from topox_core.labs.lab import Lab, Question
from topox_core.labs.presentation import COUNTED, Votes, counted_statistics
from topox_core.labs.statistics import QuestionStatistics, lab_statistics
from topox_ui.classroom.profile import class_profile
from topox_ui.present.state import source
from topox_ui.state.session import Lasting

MAX_FILES = 200
# Files by name, and what reads each.
Given = Sequence[tuple[str, Callable[[], bytes]]]


@dataclass
class Handed:
    """Files that were given to the page: answers, and what was none."""

    answers: tuple[Answers, ...] = ()
    refused: list[Unreadable] = field(default_factory=list)


_HANDED = Lasting[Handed]("present_handed")
# By lab, question and vote (1, 2): how many gave each answer, and numbers called out as they were typed.
_HANDS = Lasting[dict[tuple[str, str, int], tuple[Votes, str]]]("present_hands")


def handed() -> Handed:
    """Return the files that were given."""
    return _HANDED.get_or(Handed)


def take_files(files: Given) -> None:
    """Take files in place of those before; beyond ``MAX_FILES`` none is read."""
    found, refused = answers_from(files[:MAX_FILES])
    for name, _ in files[MAX_FILES:]:
        refused.append(Unreadable(name, f"is beyond the {MAX_FILES} files that are read"))
    _HANDED.set(Handed(tuple(file.answers for _, file in found), refused))


def answers_to(lab: Lab) -> tuple[Answers, ...]:
    """Return the answers to a lab: of the class folder, or of the files that were given; one a student."""
    profile = class_profile()
    if profile is not None and source() == "folder":
        return profile.folder.answers_to(lab.id)
    return latest_of_each(one for one in handed().answers if one.lab == lab.id)


def hands(lab: Lab, question: Question, vote: int) -> Votes:
    """Return the votes that were counted by hand."""
    return _HANDS.get_or(dict).get((lab.id, question.id, vote), ({}, ""))[0]


def count_hands(lab: Lab, question: Question, vote: int, votes: Votes, text: str = "") -> None:
    """Take votes counted by hand in place of those before; of numbers called out also as they were typed."""
    counted = {k: n for k, n in votes.items() if n}
    _HANDS.get_or(dict)[lab.id, question.id, vote] = (counted, text)


def called_out(lab: Lab, question: Question, vote: int) -> str:
    """Return the numbers called out, as they were typed."""
    return _HANDS.get_or(dict).get((lab.id, question.id, vote), ({}, ""))[1]


def by_hand(lab: Lab, question: Question) -> bool:
    """Return whether a question is counted by hand: that was chosen, or there are hands and no answers."""
    if question.type not in COUNTED:
        return False
    if source() == "hands":
        return True
    return bool(hands(lab, question, 1)) and not answers_to(lab)


def statistics_of(lab: Lab, question: Question) -> QuestionStatistics:
    """Return what the class answered to one question."""
    if by_hand(lab, question):
        return counted_statistics(lab, question, hands(lab, question, 1), hands(lab, question, 2))
    every = lab_statistics(lab, answers_to(lab))
    return next(one for one in every if one.question == question.id)


def second_votes(lab: Lab, question: Question) -> list[int] | None:
    """Return how many chose each option after the discussion; None where nobody voted again."""
    if question.type != "choice":
        return None
    again: dict[Any, int] = {}
    if by_hand(lab, question):
        again = dict(hands(lab, question, 2))
    else:
        for one in answers_to(lab):
            given = one.prediction(question.id)
            if given is not None and given.second is not None:
                again[given.second.value] = again.get(given.second.value, 0) + 1
    if not again:
        return None
    return [again.get(option.id, 0) for option in question.options]
