"""Labs from files: ``*.lab.json``, format ``topox-lab`` version 1 (docs/labs.md).

Nothing in a lab file is code, and no text before a question may say its answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from topox_core.errors import InputError, printable, shown, unknown
from topox_core.io.json import FileFormat, read_object, without_header
from topox_core.io.limits import LAB
from topox_core.labs.calls import check_options
from topox_core.labs.generators.catalogue import GENERATORS, generator
from topox_core.labs.lab import (
    FORMAT,
    LETTER_OF,
    VERSION,
    Call,
    Lab,
    Question,
    Screen,
    Source,
    SourceFiles,
)
from topox_core.labs.texts_in import MARK, PLACE, texts_in
from topox_core.schema.fields import fields_of
from topox_core.schema.records import check_values, from_values

_KEYS = tuple(name for name in fields_of(Lab) if name not in ("record", "folder"))
_HEAD = ("id", "title", "minutes", "goals")
_FORM = FileFormat(FORMAT, VERSION, _KEYS, LAB)
MAX_INSTANCES, MAX_SCREENS, MAX_QUESTIONS = 8, 40, 8
_ADDRESS = re.compile(r"https?://|www\.|javascript:", re.IGNORECASE)
_TAG = re.compile(r"<[A-Za-z/!?]")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")
_PLACED = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,29}")
# What an instance must have for a question of a type.
_DRAWS_A_SCHEDULE = ("board", "patience", "fan_out", "turns")
_DRAWS_JOBS = ("four_jobs",)


@dataclass(frozen=True)
class Value:
    """A key that is a value of the generator."""

    value: str


def load_lab(data: bytes, file: str, folder: Path | None = None) -> Lab:
    """Read a lab.

    Parameters
    ----------
    folder
        Where the files of its instances lie; None if it has none of its own.

    Raises
    ------
    InputError
        If the file cannot be used: one line names file, screen, question and field.
    """
    file = printable(file, 200) if file else "lab"
    record = read_object(data, file, _FORM)
    head = without_header(record, "instances", "screens")
    check_values(Lab, head, file, must=_HEAD)
    screens = record.get("screens")
    if not isinstance(screens, list) or not 1 <= len(screens) <= MAX_SCREENS:
        problem = f"must be a list of 1 to {MAX_SCREENS} screens in brackets"
        raise InputError(problem, file=file, field="screens")
    instances = _instances(record.get("instances"), file)
    lab = from_values(
        Lab,
        head,
        file,
        record=record,
        folder=folder,
        instances=instances,
        screens=tuple(
            _screen(entry, number, file, instances) for number, entry in enumerate(screens, 1)
        ),
    )
    _check_whole(lab, file)
    return lab


# -- piece by piece -------------------------------------------------------------------------------


def _instances(given: Any, file: str) -> dict[str, Source]:
    if not isinstance(given, dict) or not 1 <= len(given) <= MAX_INSTANCES:
        problem = f"must name 1 to {MAX_INSTANCES} instances (got {shown(given)})"
        raise InputError(problem, file=file, field="instances")
    return {name: _source(name, entry, file) for name, entry in given.items()}


def _source(name: str, entry: Any, file: str) -> Source:
    item = f"instance {printable(name)}"
    if not _NAME.fullmatch(name):
        problem = "must be a small letter, then small letters, digits or _, 30 at most"
        raise InputError(problem, file=file, item=item)
    if isinstance(entry, dict) and "files" in entry:
        return _of_files(entry, file, item)
    check_values(Source, entry, file, item, must=("generator", "generator_version", "seed"))
    source = from_values(Source, entry, file, item)
    if source.generator not in GENERATORS:
        problem = unknown(source.generator, GENERATORS, "generator")
        raise InputError(problem, file=file, item=item, field="generator")
    newest = generator(source.generator).version
    if source.version != newest:
        problem = f"must be {newest}, the version here (got {source.version})"
        raise InputError(problem, file=file, item=item, field="generator_version")
    return source


def _of_files(entry: dict[str, Any], file: str, item: str) -> Source:
    for key in entry:
        if key != "files":
            raise InputError(unknown(key, ("files",)), file=file, item=item, field=printable(key))
    check_values(SourceFiles, entry["files"], file, item)
    files = {kind: name for kind, name in entry["files"].items() if name is not None}
    if not files:
        raise InputError("must name at least one file", file=file, item=item, field="files")
    return Source(files=files)


def _screen(entry: Any, number: int, file: str, instances: Mapping[str, Source]) -> Screen:
    name = entry.get("id") if isinstance(entry, dict) else None
    item = f"screen {printable(name) if isinstance(name, str) and name else number}"
    given = {} if not isinstance(entry, dict) else entry.get("questions", [])
    if not isinstance(given, list) or len(given) > MAX_QUESTIONS:
        problem = f"must be a list of at most {MAX_QUESTIONS} questions in brackets"
        raise InputError(problem, file=file, item=item, field="questions")
    own = {key: value for key, value in entry.items() if key != "questions"}
    screen = from_values(Screen, own, file, item)
    if screen.instance and screen.instance not in instances:
        problem = unknown(screen.instance, instances, "instance")
        raise InputError(problem, file=file, item=item, field="instance")
    if screen.stage in ("reveal", "play") and given:
        problem = f"must be empty: a {screen.stage} screen asks nothing"
        raise InputError(problem, file=file, item=item, field="questions")
    source = instances.get(screen.instance)
    questions = (
        _question(one, at, (file, item), screen.stage, source) for at, one in enumerate(given, 1)
    )
    return replace(screen, questions=tuple(questions))


def _question(
    entry: Any, number: int, place: tuple[str, str], stage: str, source: Source | None
) -> Question:
    file, screen = place
    name = entry.get("id") if isinstance(entry, dict) else None
    title = printable(name) if isinstance(name, str) and name else str(number)
    item = f"{screen}, question {title}"
    own = entry
    if isinstance(entry, dict):
        own = {key: value for key, value in entry.items() if key != "key"}
    question = from_values(Question, own, file, item)
    letter = LETTER_OF[stage]
    if not question.id.startswith(letter):
        problem = f"must begin with {letter} on a {stage} screen (got {question.id})"
        raise InputError(problem, file=file, item=item, field="id")
    if (question.type == "text") != (stage == "explain"):
        problem = f"cannot be {question.type!r} on a {stage} screen: explanations are text, and nothing else is"
        raise InputError(problem, file=file, item=item, field="type")
    question = replace(question, key=_key(question.type, entry.get("key"), source, file, item))
    _check_question(question, source, file, item)
    return question


def _key(kind: str, given: Any, source: Source | None, file: str, item: str) -> str | Call | None:
    if kind == "text":
        if given is not None:
            problem = "must be left out: nobody computes the truth of a text"
            raise InputError(problem, file=file, item=item, field="key")
        return None
    if given is None:
        raise InputError("is missing", file=file, item=item, field="key")
    if not isinstance(given, dict):
        problem = f"must be an object in braces (got {shown(given)})"
        raise InputError(problem, file=file, item=item, field="key")
    if source is None:
        problem = "needs an instance: name one on the screen"
        raise InputError(problem, file=file, item=item, field="key")
    where = f"{item}, key"
    if "call" not in given:
        name = from_values(Value, given, file, where).value
        _check_value(name, source, file, where)
        return name
    call = from_values(Call, given, file, where)
    if (call.relation == "value") != (call.against is None):
        problem = "must be given together with against: difference, ratio or saving"
        raise InputError(problem, file=file, item=where, field="as")
    for field, options in (("with", call.options), ("against", call.against)):
        try:
            check_options(call.call, options or {})
        except InputError as error:
            wrong = f"{field}.{error.field}"
            raise InputError(error.problem, file=file, item=where, field=wrong) from None
    return call


# -- what belongs together ------------------------------------------------------------------------


def _check_value(name: str, source: Source, file: str, item: str) -> None:
    if not source.generator:
        problem = "an instance from files has no values: use a call"
        raise InputError(problem, file=file, item=item, field="value")
    one = generator(source.generator)
    if name not in one.values:
        problem = (
            f"{unknown(name, one.values, 'value')} of generator {one.name} (got {shown(name)})"
        )
        raise InputError(problem, file=file, item=item, field="value")


def _check_question(question: Question, source: Source | None, file: str, item: str) -> None:
    drawn = generator(source.generator) if source and source.generator else None

    def wrong(field: str, problem: str) -> InputError:
        return InputError(problem, file=file, item=item, field=field)

    ids = [one.id for one in question.options]
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise wrong("options", f"has {shown(twice)} twice")
    named = drawn is not None and isinstance(question.key, str)
    from_instance = named and question.key in drawn.options  # type: ignore[union-attr]
    if question.type in ("choice", "multi", "order") and not ids and not from_instance:
        raise wrong("options", "is missing")
    if question.type not in ("choice", "multi", "order") and ids:
        raise wrong("options", f"must be left out of a {question.type} question")
    if question.type == "matrix" and not (named and question.key in drawn.matrices):  # type: ignore[union-attr]
        raise wrong("key", "must be a value that is a matrix")
    if question.type == "schedule" and (not named or drawn.name not in _DRAWS_A_SCHEDULE):  # type: ignore[union-attr]
        raise wrong("type", f"needs an instance of {', '.join(_DRAWS_A_SCHEDULE)}")
    if question.type == "grouping" and (not named or drawn.name not in _DRAWS_JOBS):  # type: ignore[union-attr]
        raise wrong("type", f"needs an instance of {', '.join(_DRAWS_JOBS)}")
    if question.least > question.most:
        raise wrong("least", f"must be at most {question.most} (got {question.least})")
    _check_bands(question, ids, wrong)
    for one in question.feedback:
        if [one.value, one.option, one.equation].count(None) != 2:
            raise wrong("feedback", "must have exactly one of value, option and equation")
        if one.option is not None and one.option not in ids and not from_instance:
            raise wrong("feedback", unknown(one.option, ids, "option"))
        if one.value is not None and source is not None:
            _check_value(one.value, source, file, f"{item}, feedback")


def _check_bands(question: Question, ids: list[str], wrong: Any) -> None:
    if not isinstance(question.key, Call):
        return
    bands = question.key.bands
    if bool(bands) != (question.type == "choice"):
        raise wrong("key.bands", "must be given for a choice, and for nothing else")
    for at, band in enumerate(bands):
        if band.option not in ids:
            raise wrong("key.bands", unknown(band.option, ids, "option"))
        if (band.below is None) != (at == len(bands) - 1):
            raise wrong("key.bands", "the last band, and only that, has no below")
    below = [band.below for band in bands if band.below is not None]
    if below != sorted(set(below)):
        raise wrong("key.bands", "must rise from band to band")


def _check_whole(lab: Lab, file: str) -> None:
    ids: set[str] = set()
    for kind, names in (
        ("screen", [screen.id for screen in lab.screens]),
        ("question", [question.id for question in lab.questions]),
    ):
        for name in names:
            if (found := f"{kind} {name}") in ids:
                raise InputError("is there twice", file=file, item=found, field="id")
            ids.add(found)
    for item, field, text in _plain_texts(lab):
        _check_plain(text, file, item, field)
    for at, screen in enumerate(lab.screens):
        keys = keys_from(lab, at)
        source = lab.instances.get(screen.instance)
        for item, field, text in texts_of(screen):
            _check_plain(text, file, item, field)
            _check_places(lab, text, source, keys, (file, item, field))


def keys_from(lab: Lab, at: int) -> dict[str, str]:
    """Return the values that are keys on screen ``at`` or later, with the first question that asks for each."""
    keys: dict[str, str] = {}
    for screen in lab.screens[at:]:
        for question in screen.questions:
            if isinstance(question.key, str):
                keys.setdefault(f"{screen.instance}.{question.key}", question.id)
    return keys


def texts_of(screen: Screen) -> Iterator[tuple[str, str, str]]:
    """Yield item, field and text of everything that a screen says."""
    item = f"screen {screen.id}"
    yield item, "text", screen.text
    for question in screen.questions:
        where = f"{item}, question {question.id}"
        yield where, "text", question.text
        yield where, "otherwise", question.otherwise
        for option in question.options:
            yield where, "options", option.text
        for one in question.feedback:
            yield where, "feedback", one.say


def _plain_texts(lab: Lab) -> Iterator[tuple[str, str, str]]:
    yield "", "title", lab.title
    yield "", "author", lab.author
    yield "", "notes", lab.notes
    for goal in lab.goals:
        yield "", "goals", goal
    for row in lab.plan:
        yield "", "plan", row.do
    for question in lab.questions:
        for line in question.rubric:
            yield f"question {question.id}", "rubric", line


def _check_plain(text: str, file: str, item: str, field: str) -> None:
    """Refuse tags, addresses, and the key of a text that is not there."""
    if text.startswith(MARK) and text.removeprefix(MARK) not in texts_in("en").flat:
        problem = f"there is no text {shown(text.removeprefix(MARK))}"
        raise InputError(problem, file=file, item=item, field=field)
    if _TAG.search(text) or _ADDRESS.search(text):
        problem = "must be plain text without tags and addresses"
        raise InputError(problem, file=file, item=item, field=field)


def _check_places(
    lab: Lab,
    text: str,
    source: Source | None,
    keys: Mapping[str, str],
    place: tuple[str, str, str],
) -> None:
    """Refuse a place in a text that names nothing, is code, or says an answer."""
    file, item, field = place
    text = texts_in("en").resolved(text)
    for name in PLACE.findall(text):
        if not _PLACED.fullmatch(name):
            problem = (
                f"{shown('{' + name + '}')} is no name of a value; nothing in a text is computed"
            )
            raise InputError(problem, file=file, item=item, field=field)
        drawn = generator(source.generator) if source and source.generator else None
        names = (*drawn.shown, *drawn.values) if drawn else ()
        if name not in names:
            problem = unknown(name, names, "value") if names else "has no instance with values"
            raise InputError(f"{{{name}}}: {problem}", file=file, item=item, field=field)
        here = next(key for key, one in lab.instances.items() if one is source)
        if drawn is not None and name not in drawn.shown and (asked := keys.get(f"{here}.{name}")):
            problem = f"{{{name}}} would say the answer of question {asked}"
            raise InputError(problem, file=file, item=item, field=field)
    if "{" in PLACE.sub("", text) or "}" in PLACE.sub("", text):
        problem = "has a brace without its partner"
        raise InputError(problem, file=file, item=item, field=field)
