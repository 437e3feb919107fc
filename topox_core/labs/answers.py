"""The answers of one student to one lab: predictions that are locked, attempts at worked answers, explanations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Annotated, Any, cast

from topox_core.errors import InputError, shown
from topox_core.labs.generators.generator import SEEDS, seed_of
from topox_core.schema.fields import fields_of, setting

UTC = timezone.utc  # noqa: UP017 (as written since Python 3.2)
_CLOCK = "%Y-%m-%dT%H:%M:%SZ"


_Clock = Annotated[str, setting(max_length=40)]
_Name = Annotated[str, setting(max_length=200)]
_MOMENTS = ("locked", "at", "given_up", "started", "finished")


class _Timed:
    """A record with moments; one that has a default may be empty."""

    def __post_init__(self) -> None:
        fields = fields_of(cast("type", type(self)))
        for name in _MOMENTS:
            if name in fields and (fields[name].required or getattr(self, name)):
                read_clock(getattr(self, name), field=name)


@dataclass(frozen=True)
class Locked(_Timed):
    """An answer, and when it was locked."""

    locked: _Clock
    value: Any


@dataclass(frozen=True)
class Prediction(Locked):
    """A prediction, and its lock after a discussion if there was one."""

    second: Locked | None = None


@dataclass(frozen=True)
class Attempt(_Timed):
    """One attempt at a worked answer; ``points`` are what was shown then."""

    at: _Clock
    value: Any
    points: Annotated[float, setting(ge=0, le=1_000)] = 0.0


@dataclass(frozen=True)
class Worked(_Timed):
    """All attempts at a worked answer; ``given_up`` is when the student asked for the key instead."""

    attempts: Annotated[tuple[Attempt, ...], setting(max_length=100)] = ()
    given_up: _Clock = ""


@dataclass(frozen=True)
class Explained(_Timed):
    """An explanation, as last saved."""

    at: _Clock
    value: Annotated[str, setting(max_length=4_000)]


Given = Prediction | Worked | Explained


@dataclass(frozen=True)
class Answers(_Timed):
    """Everything that one student has answered in one lab.

    Attributes
    ----------
    digest
        Of the lab's file; ``versions`` are those of its generators.
    started, finished
        UTC; ``finished`` is the time of the last answer, empty before the first.
    """

    lab: _Name
    digest: Annotated[str, setting(max_length=200, key="lab_digest")]
    course: _Name
    student: _Name
    seed: Annotated[int, setting(ge=0, le=SEEDS - 1)]
    versions: Annotated[Mapping[str, int], setting(key="generator_versions")]
    started: _Clock
    finished: _Clock = ""
    given: Annotated[Mapping[str, Given], setting(key="answers")] = field(default_factory=dict)

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
        raise InputError(
            f"must be a time such as 2026-10-05T09:00:12Z (got {shown(text)})", **place
        ) from None
