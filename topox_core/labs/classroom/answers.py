"""The answers of one student to one lab: predictions that are locked, attempts at worked answers, explanations.

Their files are ``*.answers.json``, format ``topox-answers`` version 1 (docs/labs.md). The checksum finds
damage and careless edits; it is no secret. A signature is one, where answers were given on the
lecturer's machine.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from operator import attrgetter
from typing import Annotated, Any, cast

from topox_core import __version__
from topox_core.errors import InputError, errors_at, printable, refuse_if, shown
from topox_core.io.content import FileFormat, read_object
from topox_core.io.limits import ANSWERS, is_whole
from topox_core.labs.classroom.marking import mark, points_of, read_answer
from topox_core.labs.generators.generator import SEEDS, seed_of
from topox_core.labs.keys import check_seed
from topox_core.labs.lab import Lab, Question, canonical
from topox_core.schema.fields import fields_of, setting
from topox_core.schema.records import from_values

UTC = timezone.utc  # noqa: UP017 (as written since Python 3.2)
_CLOCK = "%Y-%m-%dT%H:%M:%SZ"


# A day that its month has not (30 February) is told where time is counted.
_DAY = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_HOUR = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"


def _moment(or_none: str = "") -> Any:
    pattern = f"^({_DAY}T{_HOUR}Z{or_none})$"
    return setting(max_length=40, pattern=pattern, like="a time such as 2026-10-05T09:00:12Z")


_Clock = Annotated[str, _moment()]
_Name = Annotated[str, setting(max_length=200)]


@dataclass(frozen=True)
class Locked:
    """An answer, and when it was locked."""

    locked: _Clock
    value: Any


@dataclass(frozen=True)
class Prediction(Locked):
    """A prediction, and its lock after a discussion if there was one."""

    second: Locked | None = None


@dataclass(frozen=True)
class Attempt:
    """One attempt at a worked answer; ``points`` are what was shown then."""

    at: _Clock
    value: Any
    points: Annotated[float, setting(ge=0, le=1_000)] = 0.0


@dataclass(frozen=True)
class Worked:
    """All attempts at a worked answer; ``given_up`` is when the student asked for the key instead."""

    attempts: Annotated[tuple[Attempt, ...], setting(max_length=100)] = ()
    given_up: _Clock = ""


@dataclass(frozen=True)
class Explained:
    """An explanation, as last saved."""

    at: _Clock
    value: Annotated[str, setting(max_length=4_000)]


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

    lab: _Name
    digest: Annotated[str, setting(max_length=200, key="lab_digest")]
    course: _Name
    student: _Name
    seed: Annotated[int, setting(ge=0, le=SEEDS - 1)]
    versions: Annotated[Mapping[str, int], setting(key="generator_versions")]
    started: _Clock
    finished: Annotated[str, _moment("|")] = ""
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


def read_clock(text: str) -> datetime:
    """Return the moment that an answer names; raises InputError if it is none."""
    try:
        return datetime.strptime(text, _CLOCK).replace(tzinfo=UTC)
    except ValueError:
        raise InputError(
            f"must be a time such as 2026-10-05T09:00:12Z (got {shown(text)})"
        ) from None


def taken_up(lab: Lab, answers: Answers, file: str) -> Answers:
    """Return the answers of a file as a student may go on with them: every value read, every attempt marked anew.

    Raises
    ------
    InputError
        If they belong to another lab or another version of it, or an answer cannot be read; the
        line names file, question and what was expected.
    """
    same = answers.digest == lab.digest and dict(answers.versions) == lab.generator_versions
    refuse_if(
        (answers.lab != lab.id, f"must be {lab.id!r} (got {shown(answers.lab)})", "lab"),
        (
            not same,
            "was answered with another version of this lab: hand it in as it is, or begin anew",
        ),
        file=file,
    )
    check_seed(answers.seed)
    known = {question.id: question for question in lab.questions}
    given: dict[str, Given] = {}
    for name, one in answers.given.items():
        item = f"question {name[:20]}"
        refuse_if((name not in known, "is no question of this lab"), file=file, item=item)
        with errors_at(file, item):
            given[name] = _read(lab, known[name], one, answers.seed)
    return replace(answers, given=given)


def _read(lab: Lab, question: Question, given: Given, seed: int) -> Given:
    stages = {Prediction: "predict", Worked: "work", Explained: "explain"}
    refuse_if(
        (stages[type(given)] != question.stage, f"must be the answer of a {question.stage} screen")
    )
    if isinstance(given, Worked):
        attempts = []
        for number, one in enumerate(given.attempts[: question.attempts]):
            value = read_answer(lab, question, one.value, seed)
            share = mark(lab, question, value, seed).share
            attempts.append(Attempt(one.at, value, points_of(question, share, number)))
        return replace(given, attempts=tuple(attempts))
    if isinstance(given, Prediction) and given.second is not None:
        again = read_answer(lab, question, given.second.value, seed)
        given = replace(given, second=Locked(given.second.locked, again))
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
        return cast("Given", one or other)
    if isinstance(one, Prediction) and isinstance(other, Prediction):
        first = min(one, other, key=attrgetter("locked"))
        return replace(first, second=one.second or other.second)
    if isinstance(one, Worked) and isinstance(other, Worked):
        longer = max(one, other, key=lambda given: len(given.attempts))
        return replace(longer, given_up=one.given_up or other.given_up)
    return max(one, other, key=attrgetter("at"))


FORMAT, VERSION = "topox-answers", 1
# By key the field of everything but the answers.
_HEAD = {one.key: name for name, one in fields_of(Answers).items() if name != "given"}
_KEYS = ("program", *_HEAD, "answers", "score", "checksum", "signature")
_FORM = FileFormat(FORMAT, VERSION, _KEYS, ANSWERS)
# By a key that no other answer has.
_KIND_BY_KEY: Mapping[str, type[Given]] = {"locked": Prediction, "attempts": Worked}
MAX_ANSWERS = 120


@dataclass(frozen=True)
class AnswersFile:
    """A file that was read.

    Attributes
    ----------
    edited
        Whether something was changed since it was written: its checksum differs.
    signature
        As it says; empty without one.
    checksum
        As it should be.
    """

    answers: Answers
    edited: bool
    checksum: str
    signature: str = ""


def load_answers(data: bytes, file: str) -> AnswersFile:
    """Read answers; a file that was edited is read all the same.

    Raises
    ------
    InputError
        If it cannot be used: one line names file, question and field.
    """
    file = printable(file, 200) if file else "answers"
    record = read_object(data, file, _FORM)
    head = {key: record[key] for key in _HEAD if record.get(key) is not None}
    answers = from_values(Answers, head, file, given=_given(record.get("answers"), file))
    refuse_if(
        (
            not all(is_whole(one) for one in answers.versions.values()),
            f"must be an object of whole numbers (got {shown(answers.versions)})",
        ),
        file=file,
        field="generator_versions",
    )
    checksum = checksum_of(record)
    signature = record.get("signature", "")
    return AnswersFile(
        answers,
        record.get("checksum") != checksum,
        checksum,
        signature if isinstance(signature, str) else "",
    )


def dump_answers(answers: Answers, score: Mapping[str, Any], secret: bytes | None = None) -> bytes:
    """Write answers.

    Parameters
    ----------
    score
        What the page showed; grading never reads it.
    secret
        Of the machine they were given on; None: the file gets no signature.
    """
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "program": __version__,
        **{key: getattr(answers, name) for key, name in _HEAD.items()},
        "answers": {name: _as_record(one) for name, one in answers.given.items()},
        "score": dict(score),
    }
    record["checksum"] = checksum_of(record)
    if secret is not None:
        record["signature"] = signature_of(record["checksum"], secret)
    return (json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def checksum_of(record: Mapping[str, Any]) -> str:
    """Return SHA-256 of everything in a file but checksum and signature."""
    rest = {key: value for key, value in record.items() if key not in ("checksum", "signature")}
    return hashlib.sha256(canonical(rest)).hexdigest()


def signature_of(checksum: str, secret: bytes) -> str:
    """Return the signature of a checksum by a secret of this machine."""
    return hmac.new(secret, checksum.encode(), hashlib.sha256).hexdigest()


def is_signed(file: AnswersFile, secret: bytes) -> bool:
    """Return whether a file has not been changed since it was written on this machine."""
    return hmac.compare_digest(signature_of(file.checksum, secret), file.signature)


def _as_record(given: Given) -> dict[str, Any]:
    """Return an answer as its file has it; what was not done is left out."""
    may_lack = ("second", "given_up")
    return {key: value for key, value in asdict(given).items() if value or key not in may_lack}


def _given(entries: Any, file: str) -> dict[str, Given]:
    refuse_if(
        (
            not isinstance(entries, dict) or len(entries) > MAX_ANSWERS,
            f"must be an object of at most {MAX_ANSWERS} answers (got {shown(entries)})",
        ),
        file=file,
        field="answers",
    )
    return {name: _one(name, entry, file) for name, entry in entries.items()}


def _one(name: str, entry: Any, file: str) -> Given:
    item = f"question {printable(name)}"
    keys = entry if isinstance(entry, dict) else ()
    kind = next((of for key, of in _KIND_BY_KEY.items() if key in keys), Explained)
    return from_values(kind, entry, file, item)
