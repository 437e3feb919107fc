"""Answers from and to files: ``*.answers.json``, format ``topox-answers`` version 1 (docs/labs.md).

The checksum finds damage and careless edits; it is no secret. A signature is one, where answers were
given on the lecturer's machine.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from topox_core import __version__
from topox_core.errors import InputError, printable, shown, unknown
from topox_core.io.json import FileFormat, read_object
from topox_core.io.limits import ANSWERS
from topox_core.io.ranges import is_number, is_whole
from topox_core.labs.answers import (
    Answers,
    Attempt,
    Explained,
    Given,
    Prediction,
    Worked,
    read_clock,
)
from topox_core.labs.draws import SEEDS
from topox_core.labs.keys import check_seed
from topox_core.labs.lab import Lab, Question, canonical
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


FORMAT, VERSION = "topox-answers", 1
_KEYS = (
    *("program", "lab", "lab_digest", "course", "student", "seed", "generator_versions"),
    *("started", "finished", "answers", "score", "checksum", "signature"),
)
_FORM = FileFormat(FORMAT, VERSION, _KEYS, ANSWERS)
MAX_TEXT, MAX_ATTEMPTS, MAX_ANSWERS = 4_000, 100, 120
MAX_NAME = 200


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
    file = printable(file, MAX_NAME) if file else "answers"
    record = read_object(data, file, _FORM)
    for key in ("lab", "lab_digest", "course", "student", "seed", "answers", "started"):
        if key not in record:
            raise InputError("is missing", file=file, field=key)
    for key in ("lab", "lab_digest", "course", "student"):
        _check_text(record[key], file, "", key, MAX_NAME)
    if not is_whole(record["seed"], 0, SEEDS - 1):
        problem = f"must be a whole number from 0 to {SEEDS - 1:,} (got {shown(record['seed'])})"
        raise InputError(problem, file=file, field="seed")
    versions = record.get("generator_versions", {})
    if not isinstance(versions, dict) or not all(is_whole(one) for one in versions.values()):
        problem = f"must be an object of whole numbers (got {shown(versions)})"
        raise InputError(problem, file=file, field="generator_versions")
    for key in ("started", "finished"):
        if record.get(key):
            read_clock(record[key], file=file, field=key)
    answers = Answers(
        record["lab"],
        record["lab_digest"],
        record["course"],
        record["student"],
        record["seed"],
        dict(versions),
        record["started"],
        record.get("finished") or "",
        _given(record["answers"], file),
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
        "lab": answers.lab,
        "lab_digest": answers.digest,
        "course": answers.course,
        "student": answers.student,
        "seed": answers.seed,
        "generator_versions": dict(answers.versions),
        "started": answers.started,
        "finished": answers.finished,
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
    if isinstance(given, Prediction):
        record = {"locked": given.locked, "value": given.value}
        if given.second is not None:
            record["second"] = {"locked": given.second[0], "value": given.second[1]}
        return record
    if isinstance(given, Worked):
        attempts = [{"at": a.at, "value": a.value, "points": a.points} for a in given.attempts]
        return {"attempts": attempts} | ({"given_up": given.given_up} if given.given_up else {})
    return {"at": given.at, "value": given.value}


def _given(entries: Any, file: str) -> dict[str, Given]:
    if not isinstance(entries, dict) or len(entries) > MAX_ANSWERS:
        problem = f"must be an object of at most {MAX_ANSWERS} answers (got {shown(entries)})"
        raise InputError(problem, file=file, field="answers")
    return {name: _one(name, entry, file) for name, entry in entries.items()}


def _one(name: str, entry: Any, file: str) -> Given:
    item = f"question {printable(name)}"
    if not isinstance(entry, dict):
        raise InputError(f"must be an object (got {shown(entry)})", file=file, item=item)
    if "locked" in entry:
        _check_keys(entry, ("locked", "value", "second"), ("value",), file, item)
        second = entry.get("second")
        if second is not None:
            if not isinstance(second, dict):
                problem = f"must be an object (got {shown(second)})"
                raise InputError(problem, file=file, item=item, field="second")
            _check_keys(second, ("locked", "value"), ("locked", "value"), file, item)
            read_clock(second["locked"], file=file, item=item, field="second.locked")
        read_clock(entry["locked"], file=file, item=item, field="locked")
        again = None if second is None else (second["locked"], second["value"])
        return Prediction(entry["locked"], entry["value"], again)
    if "attempts" in entry:
        _check_keys(entry, ("attempts", "given_up"), (), file, item)
        tried = entry["attempts"]
        if not isinstance(tried, list) or len(tried) > MAX_ATTEMPTS:
            problem = f"must be a list of at most {MAX_ATTEMPTS} attempts (got {shown(tried)})"
            raise InputError(problem, file=file, item=item, field="attempts")
        attempts = tuple(_attempt(one, at, file, item) for at, one in enumerate(tried, 1))
        given_up = entry.get("given_up", "")
        if given_up:
            read_clock(given_up, file=file, item=item, field="given_up")
        return Worked(attempts, given_up)
    _check_keys(entry, ("at", "value"), ("at", "value"), file, item)
    read_clock(entry["at"], file=file, item=item, field="at")
    _check_text(entry["value"], file, item, "value", MAX_TEXT)
    return Explained(entry["at"], entry["value"])


def _attempt(entry: Any, number: int, file: str, item: str) -> Attempt:
    item = f"{item}, attempt {number}"
    if not isinstance(entry, dict):
        raise InputError(f"must be an object (got {shown(entry)})", file=file, item=item)
    _check_keys(entry, ("at", "value", "points"), ("at", "value"), file, item)
    read_clock(entry["at"], file=file, item=item, field="at")
    points = entry.get("points", 0)
    if not is_number(points, 0, 1_000):
        problem = f"must be a number from 0 to 1,000 (got {shown(points)})"
        raise InputError(problem, file=file, item=item, field="points")
    return Attempt(entry["at"], entry["value"], float(points))


def _check_keys(
    entry: Mapping[str, Any], known: tuple[str, ...], needed: tuple[str, ...], file: str, item: str
) -> None:
    for key in entry:
        if key not in known:
            raise InputError(unknown(key, known), file=file, item=item, field=printable(key))
    for key in needed:
        if key not in entry:
            raise InputError("is missing", file=file, item=item, field=key)


def _check_text(value: Any, file: str, item: str, field: str, most: int) -> None:
    if not isinstance(value, str) or len(value) > most:
        problem = f"must be text of at most {most:,} characters (got {shown(value)})"
        raise InputError(problem, file=file, item=item, field=field)
