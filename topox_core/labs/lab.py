"""A lab as its file has it: instances, screens, questions with keys, feedback and points (docs/labs.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from topox_core.errors import InputError, unknown

FORMAT, VERSION = "topox-lab", 1
STAGES = ("play", "predict", "work", "reveal", "explain")
LETTER_OF = {"predict": "P", "work": "W", "explain": "E"}
# Of the points of a worked answer, by attempt.
SHARES = (1.0, 0.7, 0.4)
# Tried until it is good: every attempt counts in full, the best one is taken.
OFTEN = ("schedule", "grouping")
DEFAULT_ATTEMPTS = 3
CLASS, STUDENT = "class", "student"


@dataclass(frozen=True)
class Option:
    """One option of a choice."""

    id: str
    text: str


@dataclass(frozen=True)
class Feedback:
    """A sentence for a wrong answer: the one that equals a value, is an option, or breaks an equation."""

    say: str
    value: str | None = None
    option: str | None = None
    equation: str | None = None


@dataclass(frozen=True)
class Band:
    """A number below ``below`` (any, if None) is option ``option``."""

    option: str
    below: float | None = None


@dataclass(frozen=True)
class Call:
    """A key that one run of the core gives.

    Attributes
    ----------
    call, fabric
        What runs, and under which fabric where several are compared.
    options, against
        Of the run, and of the run it is related to.
    field
        Of its JSON record; dots go deeper.
    relation
        ``value``, ``difference``, ``ratio`` or ``saving``.
    bands
        Turn the number into an option.
    """

    call: str
    field: str
    fabric: str | None = None
    options: Mapping[str, Any] | None = None
    against: Mapping[str, Any] | None = None
    relation: str = "value"
    bands: tuple[Band, ...] = ()


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be off: ``absolute`` or ``percent`` of the truth."""

    absolute: float | None = None
    percent: float | None = None

    def width(self, truth: float) -> float:
        """Return the distance that still counts as right."""
        wide = [0.0] if self.absolute is None else [self.absolute]
        return max(*wide, 0.0 if self.percent is None else abs(truth) * self.percent / 100)


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes
    ----------
    key
        A value of the screen's generator by name, or a call; None for free text.
    attempts
        That count, of a worked answer.
    vote
        Whether it is asked of the whole class, with a second lock after a discussion.
    least, most
        Characters of a free text.
    """

    id: str
    type: str
    points: float
    text: str
    key: str | Call | None = None
    attempts: int = DEFAULT_ATTEMPTS
    vote: bool = False
    unit: str = ""
    digits: int = 0
    options: tuple[Option, ...] = ()
    tolerance: Tolerance = Tolerance()
    feedback: tuple[Feedback, ...] = ()
    otherwise: str = ""
    rubric: tuple[str, ...] = ()
    least: int = 0
    most: int = 4_000

    @property
    def stage(self) -> str:
        """``predict``, ``work`` or ``explain``."""
        return next(stage for stage, letter in LETTER_OF.items() if self.id.startswith(letter))

    def share(self, attempt: int) -> float:
        """Return the share of points of an attempt, counted from 0."""
        return 1.0 if self.type in OFTEN else SHARES[min(attempt, len(SHARES) - 1)]


@dataclass(frozen=True)
class Slider:
    """What can be moved on a screen."""

    key: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Screen:
    """One screen; ``instance`` names one of the lab's, empty for none; ``show`` names its figures."""

    id: str
    stage: str
    instance: str
    text: str
    show: tuple[str, ...]
    slider: Slider | None
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Source:
    """Where an instance comes from: a generator with a seed, or files by kind."""

    generator: str = ""
    version: int = 0
    seed: str | int = STUDENT
    files: Mapping[str, str] | None = None


@dataclass(frozen=True)
class PlanRow:
    """Minutes of the lecturer's clock, and what happens in them."""

    start: float
    end: float
    do: str


@dataclass(frozen=True)
class Lab:
    """A lab.

    Attributes
    ----------
    record
        What the file holds, as it was read.
    folder
        Where files that it names are looked for; None: samples only.
    """

    id: str
    title: str
    language: str
    minutes: int
    author: str
    needs: tuple[str, ...]
    goals: tuple[str, ...]
    notes: str
    plan: tuple[PlanRow, ...]
    instances: Mapping[str, Source]
    screens: tuple[Screen, ...]
    record: Mapping[str, Any]
    folder: Path | None = None

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """All questions in order."""
        return tuple(question for screen in self.screens for question in screen.questions)

    @property
    def points(self) -> float:
        """What the lab is worth."""
        return sum(question.points for question in self.questions)

    @cached_property
    def digest(self) -> str:
        """First 16 hex digits of SHA-256 of the file in canonical form."""
        return hashlib.sha256(canonical(self.record)).hexdigest()[:16]

    @property
    def generator_versions(self) -> dict[str, int]:
        """Version of every generator that it uses."""
        sources = self.instances.values()
        return {one.generator: one.version for one in sources if one.generator}

    def question(self, name: str) -> Question:
        """Return a question.

        Raises
        ------
        InputError
            If there is none of that id.
        """
        for question in self.questions:
            if question.id == name:
                return question
        known = [question.id for question in self.questions]
        raise InputError(f"{unknown(name, known, 'question')} of lab {self.id}", field="question")

    def screen_of(self, name: str) -> int:
        """Return the place of the screen that a question is on."""
        self.question(name)
        places = enumerate(self.screens)
        return next(at for at, one in places if any(q.id == name for q in one.questions))


def canonical(record: object) -> bytes:
    """Return a record as JSON with sorted keys and without spaces, in UTF-8: what digests are of."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")
