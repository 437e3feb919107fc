"""The answers of one student to one lab: predictions that are locked, attempts at worked answers, explanations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from topox_core.errors import InputError, shown
from topox_core.labs.draws import seed_of

UTC = timezone.utc  # noqa: UP017 (as written since Python 3.2)
_CLOCK = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Prediction:
    """A prediction: when it was locked, its value, and the lock after a discussion if there was one."""

    locked: str
    value: Any
    second: tuple[str, Any] | None = None


@dataclass(frozen=True)
class Attempt:
    """One attempt at a worked answer; ``points`` are what was shown then."""

    at: str
    value: Any
    points: float


@dataclass(frozen=True)
class Worked:
    """All attempts at a worked answer; ``given_up`` is when the student asked for the key instead."""

    attempts: tuple[Attempt, ...] = ()
    given_up: str = ""


@dataclass(frozen=True)
class Explained:
    """An explanation, as last saved."""

    at: str
    value: str


Given = Prediction | Worked | Explained


@dataclass(frozen=True)
class Answers:
    """Everything that one student has answered in one lab.

    Attributes
    ----------
    digest
        Of the lab's file; ``versions`` are those of its generators.
    started, finished
        UTC; ``finished`` is the time of the last answer, empty before the first.
    """

    lab: str
    digest: str
    course: str
    student: str
    seed: int
    versions: Mapping[str, int]
    started: str
    finished: str = ""
    given: Mapping[str, Given] = field(default_factory=dict)

    @property
    def is_practice(self) -> bool:
        """Whether the seed is another than that of course and student."""
        return self.seed != seed_of(self.course, self.student)

    def prediction(self, question: str) -> Prediction | None:
        """Return the prediction of a question, None before it is locked."""
        found = self.given.get(question)
        return found if isinstance(found, Prediction) else None

    def worked(self, question: str) -> Worked:
        """Return the attempts at a question."""
        found = self.given.get(question)
        return found if isinstance(found, Worked) else Worked()

    def explained(self, question: str) -> str:
        """Return the explanation of a question; empty if there is none."""
        found = self.given.get(question)
        return found.value if isinstance(found, Explained) else ""


def clock(moment: datetime) -> str:
    """Return a moment as answers keep it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime(_CLOCK)


def read_clock(text: object, **place: str) -> datetime:
    """Return the moment that an answer names.

    Raises
    ------
    InputError
        If it is none; ``place`` names file, item and field.
    """
    try:
        return datetime.strptime(str(text), _CLOCK).replace(tzinfo=UTC)
    except ValueError:
        problem = f"must be a time such as 2026-10-05T09:00:12Z (got {shown(text)})"
        raise InputError(problem, **place) from None
