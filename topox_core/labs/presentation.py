"""A lab on the projector: its slides in order, one question a slide, with tally and reveal after each question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from topox_core.errors import InputError, unknown
from topox_core.labs.keys import filled, written
from topox_core.labs.lab import Lab, Question
from topox_core.labs.texts_in import Texts, texts_in

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
    """

    place: str
    show: Show = "ask"
    screen: int | None = None


def slides(lab: Lab) -> tuple[Slide, ...]:
    """Return all slides in the order in which *Next* shows them; every question has its reveal."""
    every = [Slide(START)]
    for at, screen in enumerate(lab.screens):
        if not screen.questions:
            every.append(Slide(screen.id, "ask", at))
        for question in screen.questions:
            shows: tuple[Show, ...] = ("ask", "tally", "reveal")
            if question.stage == "explain":
                shows = ("ask", "reveal")
            every += [Slide(question.id, show, at) for show in shows]
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


def planned_until(lab: Lab, slide: Slide) -> float | None:
    """Return the minute at which the plan leaves a slide: the end of the row that names its question.

    A slide that no row names has the end of the one before; None where the plan says nothing.
    """
    if slide.screen is None or not lab.plan:
        return None
    ends = dict(_ends(lab))
    until: float | None = None
    for screen in lab.screens[: slide.screen + 1]:
        for question in screen.questions:
            until = ends.get(question.id, until)
            if question.id == slide.place:
                return until
    return until


def _ends(lab: Lab) -> list[tuple[str, float]]:
    """Return the first row's end of each question that the plan names."""
    words = texts_in(lab.language)
    found: dict[str, float] = {}
    for row in lab.plan:
        for name in re.findall(r"\b[PWE][0-9]{1,2}\b", words.resolved(row.do)):
            found.setdefault(name, row.end)
    return list(found.items())


def key_words(lab: Lab, question: Question, key: object, seed: int, words: Texts) -> str:
    """Return a true answer as a projector says it: options in their words, numbers with their unit."""
    screen = lab.screens[lab.screen_of(question.id)]
    texts = {one.id: filled(lab, screen, one.text, seed, words) for one in question.options}
    if isinstance(key, str):
        return texts.get(key, key)
    if isinstance(key, int | float):
        digits = question.digits if question.type == "number" else None
        return f"{written(key, digits)} {question.unit or _unit(question)}".strip()
    if isinstance(key, tuple) and all(isinstance(one, str) for one in key):
        return ", ".join(texts.get(str(one), str(one)) for one in key)
    return ""


def _unit(question: Question) -> str:
    """Return the unit of a key that the question does not name: schedules end after so many ms."""
    return {"schedule": "ms", "grouping": "s"}.get(question.type, "")
