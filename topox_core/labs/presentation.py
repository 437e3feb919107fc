"""A lab on the projector: its slides in order, one question a slide, with tally and reveal after each question."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from topox_core.errors import InputError, shown, unknown
from topox_core.labs.keys import option_texts, written
from topox_core.labs.lab import CLASS_SEED, Lab, Question, Texts, texts_in
from topox_core.labs.marking import read_answer
from topox_core.labs.statistics import QuestionStatistics, question_statistics

MAX_VOTES = 500
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
        If something is no number, or there are more than ``MAX_VOTES``.
    """
    votes: dict[Any, int] = {}
    rest = text.strip()
    while rest:
        found = _ONE.match(rest)
        if found is None:
            raise InputError(
                f"must be numbers such as 9, 10 x5, 12 x3 (got {shown(rest)})",
                item=f"question {question.id}",
                field="votes",
            )
        value = read_answer(lab, question, found[1].rstrip(","), CLASS_SEED)
        votes[value] = votes.get(value, 0) + int(found[2] or 1)
        rest = rest[found.end() :]
    check_votes(question, votes)
    return votes


def check_votes(question: Question, votes: Votes) -> None:
    """Refuse counts below 0, or more votes than a room has; raises InputError."""
    if min(votes.values(), default=0) < 0 or sum(votes.values()) > MAX_VOTES:
        raise InputError(
            f"must be 0 to {MAX_VOTES} votes in all (got {sum(votes.values()):,})",
            item=f"question {question.id}",
            field="votes",
        )


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
    return ((value, CLASS_SEED) for value in Counter(votes).elements())


Show = Literal["ask", "tally", "reveal"]
START = "start"


@dataclass(frozen=True)
class Slide:
    """One slide.

    Attributes
    ----------
    place
        ``start``, the id of a question, or of a screen that asks nothing.
    show
        What of it: a question is asked, then counted, then revealed.
    screen
        Which screen of the lab; None for the first slide.
    until
        The minute at which the plan leaves it: the end of the row that names its question, else that of the
        slide before; None where the plan says nothing.
    """

    place: str
    show: Show = "ask"
    screen: int | None = None
    until: float | None = None


def slides(lab: Lab) -> tuple[Slide, ...]:
    """Return all slides in the order in which *Next* shows them; every question has its reveal."""
    every, ends, until = [Slide(START)], _planned_ends(lab), None
    for at, screen in enumerate(lab.screens):
        if not screen.questions:
            every.append(Slide(screen.id, "ask", at, until))
        for question in screen.questions:
            shows: tuple[Show, ...] = ("ask", "tally", "reveal")
            if question.stage == "explain":
                shows = ("ask", "reveal")
            until = ends.get(question.id, until)
            every += [Slide(question.id, show, at, until) for show in shows]
    return tuple(every)


def slide_of(every: Sequence[Slide], place: str, show: str = "ask") -> int:
    """Return the number of a slide; of a place that is not shown so, its first.

    Raises
    ------
    InputError
        If there is no such place.
    """
    numbers = [at for at, one in enumerate(every) if one.place == place]
    if not numbers:
        known = list(dict.fromkeys(one.place for one in every))
        raise InputError(unknown(place, known, "slide"), field="present.q")
    return next((at for at in numbers if every[at].show == show), numbers[0])


def _planned_ends(lab: Lab) -> dict[str, float]:
    """Return for each question that the plan names the end of the first row that does."""
    words = texts_in(lab.language)
    return {
        name: row.end
        for row in reversed(lab.plan)
        for name in re.findall(r"\b[PWE][0-9]{1,2}\b", words.resolved(row.do))
    }


def key_words(lab: Lab, question: Question, key: object, seed: int, words: Texts) -> str:
    """Return a true answer as a projector says it: options in their words, numbers with their unit."""
    texts = option_texts(lab, question, seed, words)
    if isinstance(key, str):
        return texts.get(key, key)
    if isinstance(key, int | float):
        digits = question.digits if question.type == "number" else None
        # The file need not name the unit of a schedule or a grouping.
        unit = question.unit or {"schedule": "ms", "grouping": "s"}.get(question.type, "")
        return f"{written(key, digits)} {unit}".strip()
    if isinstance(key, tuple) and all(isinstance(one, str) for one in key):
        return ", ".join(texts.get(str(one), str(one)) for one in key)
    return ""
