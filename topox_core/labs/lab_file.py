"""Labs from files: ``*.lab.json``, format ``topox-lab`` version 1 (docs/labs.md).

Nothing in a lab file is code, and no text before a question may say its answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from topox_core.errors import InputError, printable, shown, unknown
from topox_core.io.json import FileFormat, read_object, read_record
from topox_core.io.limits import LAB
from topox_core.io.ranges import evenly
from topox_core.labs.calls import check_options
from topox_core.labs.generators.catalogue import GENERATORS, generator
from topox_core.labs.lab import (
    FORMAT,
    LETTER_OF,
    VERSION,
    Band,
    Call,
    Feedback,
    Lab,
    Option,
    PlanRow,
    Question,
    Screen,
    Slider,
    Source,
    Tolerance,
)
from topox_core.labs.lab_records import (
    CallRecord,
    DrawnRecord,
    FilesRecord,
    LabRecord,
    QuestionRecord,
    ScreenRecord,
    SliderRecord,
    ValueRecord,
)
from topox_core.labs.texts_in import MARK, PLACE, texts_in

_KEYS = tuple(field.alias or name for name, field in LabRecord.model_fields.items())
_FORM = FileFormat(FORMAT, VERSION, _KEYS, LAB)
MOST_INSTANCES, MOST_STEPS = 8, 1_000
_ADDRESS = re.compile(r"https?://|www\.|javascript:", re.IGNORECASE)
_TAG = re.compile(r"<[A-Za-z/!?]")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")
_PLACED = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,29}")
# What an instance must have for a question of a type.
_DRAWS_A_SCHEDULE = ("board", "patience", "fan_out", "turns")
_DRAWS_JOBS = ("four_jobs",)


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
    body = {key: value for key, value in record.items() if key not in ("format", "version")}
    head = read_record(LabRecord, body, file)
    instances = _instances(head.instances, file)
    screens = tuple(
        _screen(entry, number, file, instances) for number, entry in enumerate(head.screens, 1)
    )
    lab = Lab(
        head.id,
        head.title,
        head.language,
        head.minutes,
        head.author,
        tuple(head.needs),
        tuple(head.goals),
        head.notes,
        tuple(PlanRow(row.start, row.end, row.do) for row in head.plan),
        instances,
        screens,
        record,
        folder,
    )
    _check_whole(lab, file)
    return lab


# -- piece by piece -------------------------------------------------------------------------------


def _instances(given: Mapping[str, Any], file: str) -> dict[str, Source]:
    if not 1 <= len(given) <= MOST_INSTANCES:
        problem = f"must name 1 to {MOST_INSTANCES} instances (got {len(given)})"
        raise InputError(problem, file=file, field="instances")
    return {name: _source(name, entry, file) for name, entry in given.items()}


def _source(name: str, entry: Any, file: str) -> Source:
    item = f"instance {printable(name)}"
    if not _NAME.fullmatch(name):
        problem = "must be a small letter, then small letters, digits or _, 30 at most"
        raise InputError(problem, file=file, item=item)
    if isinstance(entry, dict) and "files" in entry:
        files = read_record(FilesRecord, entry, file, item).files
        named = {kind: name for kind, name in files.model_dump().items() if name is not None}
        if not named:
            raise InputError("must name at least one file", file=file, item=item, field="files")
        return Source(files=named)
    drawn = read_record(DrawnRecord, entry, file, item)
    if drawn.generator not in GENERATORS:
        problem = unknown(drawn.generator, GENERATORS, "generator")
        raise InputError(problem, file=file, item=item, field="generator")
    newest = generator(drawn.generator).version
    if drawn.generator_version != newest:
        problem = f"must be {newest}, the version here (got {drawn.generator_version})"
        raise InputError(problem, file=file, item=item, field="generator_version")
    return Source(drawn.generator, drawn.generator_version, drawn.seed)


def _screen(entry: Any, number: int, file: str, instances: Mapping[str, Source]) -> Screen:
    name = entry.get("id") if isinstance(entry, dict) else None
    item = f"screen {printable(name) if isinstance(name, str) and name else number}"
    record = read_record(ScreenRecord, entry, file, item)
    if record.instance and record.instance not in instances:
        problem = unknown(record.instance, instances, "instance")
        raise InputError(problem, file=file, item=item, field="instance")
    if record.stage in ("reveal", "play") and record.questions:
        problem = f"must be empty: a {record.stage} screen asks nothing"
        raise InputError(problem, file=file, item=item, field="questions")
    source = instances.get(record.instance)
    questions = tuple(
        _question(one, at, (file, item), record.stage, source)
        for at, one in enumerate(record.questions, 1)
    )
    slider = None if record.slider is None else _slider(record.slider, file, item)
    return Screen(
        record.id,
        record.stage,
        record.instance,
        record.text,
        tuple(record.show),
        slider,
        questions,
    )


def _slider(record: SliderRecord, file: str, item: str) -> Slider:
    if record.values is not None:
        return Slider(record.key, tuple(record.values))
    start, end, step = record.start, record.end, record.step
    if start is None or end is None or step is None or start > end:
        problem = "must have values, or from, to and step with from at most to"
        raise InputError(problem, file=file, item=item, field="slider")
    steps = int((end - start) / step + 1e-9)
    if steps > MOST_STEPS:
        problem = f"has more than {MOST_STEPS:,} steps"
        raise InputError(problem, file=file, item=item, field="slider")
    return Slider(record.key, evenly(start, start + steps * step, steps + 1))


def _question(
    entry: Any, number: int, place: tuple[str, str], stage: str, source: Source | None
) -> Question:
    file, screen = place
    name = entry.get("id") if isinstance(entry, dict) else None
    title = printable(name) if isinstance(name, str) and name else str(number)
    item = f"{screen}, question {title}"
    record = read_record(QuestionRecord, entry, file, item)
    letter = LETTER_OF[stage]
    if not record.id.startswith(letter):
        problem = f"must begin with {letter} on a {stage} screen (got {record.id})"
        raise InputError(problem, file=file, item=item, field="id")
    if (record.type == "text") != (stage == "explain"):
        problem = f"cannot be {record.type!r} on a {stage} screen: explanations are text, and nothing else is"
        raise InputError(problem, file=file, item=item, field="type")
    question = Question(
        record.id,
        record.type,
        record.points,
        record.text,
        _key(record, source, file, item),
        record.attempts,
        record.vote,
        record.unit,
        record.digits,
        tuple(Option(one.id, one.text) for one in record.options),
        Tolerance() if record.tolerance is None else Tolerance(**record.tolerance.model_dump()),
        tuple(Feedback(one.say, one.value, one.option, one.equation) for one in record.feedback),
        record.otherwise,
        tuple(record.rubric),
        record.least,
        record.most,
    )
    _check_question(question, source, file, item)
    return question


def _key(record: QuestionRecord, source: Source | None, file: str, item: str) -> str | Call | None:
    if record.type == "text":
        if record.key is not None:
            problem = "must be left out: nobody computes the truth of a text"
            raise InputError(problem, file=file, item=item, field="key")
        return None
    if record.key is None:
        raise InputError("is missing", file=file, item=item, field="key")
    if source is None:
        problem = "needs an instance: name one on the screen"
        raise InputError(problem, file=file, item=item, field="key")
    if "call" not in record.key:
        name = read_record(ValueRecord, record.key, file, f"{item}, key").value
        _check_value(name, source, file, f"{item}, key")
        return name
    call = read_record(CallRecord, record.key, file, f"{item}, key")
    bands = tuple(Band(one.option, one.below) for one in call.bands or ())
    made = Call(
        call.call, call.field, call.fabric, call.options, call.against, call.relation, bands
    )
    if (made.relation == "value") != (made.against is None):
        problem = "must be given together with against: difference, ratio or saving"
        raise InputError(problem, file=file, item=f"{item}, key", field="as")
    for field, options in (("with", made.options), ("against", made.against)):
        try:
            check_options(made.call, options or {})
        except InputError as error:
            where = f"{field}.{error.field}"
            raise InputError(error.problem, file=file, item=f"{item}, key", field=where) from None
    return made


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
    if not 0 < question.attempts <= 20:
        raise wrong("attempts", "must be 1 to 20")


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
