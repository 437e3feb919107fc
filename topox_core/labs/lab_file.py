"""Labs from files: ``*.lab.json``, format ``topox-lab`` version 1 (docs/labs.md).

Nothing in a lab file is code, and no text before a question may say its answer. Eight ship, ordinary
lab files, in the order of a course; a lecturer brings more.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from topox_core.errors import (
    InputError,
    check_known,
    errors_in_file,
    printable,
    refuse_if,
    shown,
    unknown,
)
from topox_core.io.content import FileFormat, named, read, read_object, without_header
from topox_core.io.limits import LAB
from topox_core.labs.calls import check_options
from topox_core.labs.generators.catalogue import drawn_by, generator
from topox_core.labs.lab import (
    CHOSEN,
    FORMAT,
    LETTER_OF,
    MARK,
    MAX_INSTANCES,
    MAX_QUESTIONS,
    MAX_SCREENS,
    PLACE,
    VERSION,
    Band,
    Call,
    Lab,
    Question,
    Screen,
    Source,
    SourceFiles,
    texts_in,
)
from topox_core.model.arrays.groups import by_key
from topox_core.schema.fields import fields_of
from topox_core.schema.records import check_values, from_values

READY = Path(__file__).parent / "ready"
ENDING = ".lab.json"
KEPT_LABS = 100
# A new lab is a file in that folder and a name here.
ORDER = (
    *("six-tasks", "what-binds", "bandwidth-tax", "all-to-all"),
    *("crossover", "windows", "time-division", "price-tag"),
)
_KEYS = tuple(name for name in fields_of(Lab) if name not in ("record", "folder"))
HEAD = ("id", "title", "minutes", "goals")
DRAWN = ("generator", "generator_version", "seed")
_FORM = FileFormat(FORMAT, VERSION, _KEYS, LAB)
_ADDRESS = re.compile(r"https?://|www\.|javascript:", re.IGNORECASE)
_TAG = re.compile(r"<[A-Za-z/!?]")
NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")
_PLACED = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,29}")
# Whose instances have what a question of a type is about.
_DRAWN_FOR = {
    "schedule": ("board", "patience", "fan_out", "turns"),
    "grouping": ("four_jobs",),
}


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
    check_values(Lab, head, file, must=HEAD)
    with errors_in_file(file):
        screens = record.get("screens")
        if not isinstance(screens, list) or not 1 <= len(screens) <= MAX_SCREENS:
            raise InputError(
                f"must be a list of 1 to {MAX_SCREENS} screens in brackets", field="screens"
            )
        instances = _instances(record.get("instances"))
        lab = from_values(
            Lab,
            head,
            file,
            record=record,
            folder=folder,
            instances=instances,
            screens=tuple(
                _screen(entry, named(entry, "id", "screen", number), instances)
                for number, entry in enumerate(screens, 1)
            ),
        )
        _check_whole(lab)
    return lab


# -- piece by piece -------------------------------------------------------------------------------


def _instances(given: Any) -> dict[str, Source]:
    refuse_if(
        (
            not isinstance(given, dict) or not 1 <= len(given) <= MAX_INSTANCES,
            f"must name 1 to {MAX_INSTANCES} instances (got {shown(given)})",
        ),
        field="instances",
    )
    return {name: _source(name, entry) for name, entry in given.items()}


def _source(name: str, entry: Any) -> Source:
    with errors_in_file(item=f"instance {printable(name)}"):
        refuse_if(
            (
                not NAME.fullmatch(name),
                "must be a small letter, then small letters, digits or _, 30 at most",
            )
        )
        of_files = isinstance(entry, dict) and "files" in entry
        check_values(Source, entry, "", must=() if of_files else DRAWN)
        source = from_values(Source, entry, "")
        if of_files:
            refuse_if(
                (len(entry) > 1, f"must be left out beside files: {', '.join(DRAWN)}"),
                (source.files in (None, SourceFiles()), "must name at least one file", "files"),
            )
            return source
        newest = generator(source.generator).version
        refuse_if(
            (
                source.version != newest,
                f"must be {newest}, the version here (got {source.version})",
            ),
            field="generator_version",
        )
    return source


def _screen(entry: Any, item: str, instances: Mapping[str, Source]) -> Screen:
    with errors_in_file(item=item):
        is_object = isinstance(entry, dict)
        given = entry.get("questions", []) if is_object else []
        screen = from_values(Screen, {**entry, "questions": []} if is_object else entry, "")
        refuse_if(
            (
                not isinstance(given, list) or len(given) > MAX_QUESTIONS,
                f"must be a list of at most {MAX_QUESTIONS} questions in brackets",
                "questions",
            ),
            (
                given and screen.stage not in LETTER_OF,
                f"must be empty: a {screen.stage} screen asks nothing",
                "questions",
            ),
        )
        if screen.instance:
            check_known(screen.instance, instances, "instance", field="instance")
        source = instances.get(screen.instance)
        questions = (
            _question(one, f"{item}, {named(one, 'id', 'question', at)}", screen.stage, source)
            for at, one in enumerate(given, 1)
        )
        return replace(screen, questions=tuple(questions))


def _question(entry: Any, item: str, stage: str, source: Source | None) -> Question:
    with errors_in_file(item=item):
        own = {**entry, "key": None} if isinstance(entry, dict) else entry
        question = from_values(Question, own, "")
        letter, kind = LETTER_OF[stage], question.type
        refuse_if(
            (
                not question.id.startswith(letter),
                f"must begin with {letter} on a {stage} screen (got {question.id})",
                "id",
            ),
            (
                (kind == "text") != (stage == "explain"),
                f"cannot be {kind!r} on a {stage} screen: explanations are text, and nothing else is",
                "type",
            ),
        )
        question = replace(question, key=_key(kind, entry.get("key"), source, f"{item}, key"))
        _check_question(question, source, item)
    return question


def _key(kind: str, given: Any, source: Source | None, item: str) -> str | Call | None:
    has, is_object = kind != "text", isinstance(given, dict)
    refuse_if(
        (
            not has and given is not None,
            "must be left out: nobody computes the truth of a text",
            "key",
        ),
        (has and given is None, "is missing", "key"),
        (has and not is_object, f"must be an object in braces (got {shown(given)})", "key"),
        (has and source is None, "needs an instance: name one on the screen", "key"),
    )
    if given is None or source is None:
        return None
    with errors_in_file(item=item):
        if "call" not in given:
            name = from_values(Value, given, "").value
            _check_value(name, source)
            return name
        call = from_values(Call, given, "")
        refuse_if(
            (
                (call.relation == "value") != (call.against is None),
                "must be given together with against: difference, ratio or saving",
            ),
            field="as",
        )
        check_options(call.call, call.options or {}, "with")
        check_options(call.call, call.against or {}, "against")
    return call


# -- what belongs together ------------------------------------------------------------------------


def _check_value(name: str, source: Source) -> None:
    refuse_if(
        (not source.generator, "an instance from files has no values: use a call"), field="value"
    )
    one = generator(source.generator)
    check_known(name, one.values, f"value of generator {one.name}", field="value")


def _check_question(question: Question, source: Source | None, item: str) -> None:
    kind, drawn, ids = question.type, drawn_by(source), [one.id for one in question.options]
    value = question.key if drawn is not None and isinstance(question.key, str) else None
    from_instance = drawn is not None and value in drawn.options
    matrices = drawn.matrices if drawn is not None else ()
    twice = next((one for one in ids if ids.count(one) > 1), "")
    draws = _DRAWN_FOR.get(kind, ())
    drawn_so = drawn is not None and value is not None and drawn.name in draws
    refuse_if(
        (twice, f"has {shown(twice)} twice", "options"),
        (kind in CHOSEN and not ids and not from_instance, "is missing", "options"),
        (kind not in CHOSEN and ids, f"must be left out of a {kind} question", "options"),
        (kind == "matrix" and value not in matrices, "must be a value that is a matrix", "key"),
        (draws and not drawn_so, f"needs an instance of {', '.join(draws)}", "type"),
        (
            question.least > question.most,
            f"must be at most {question.most} (got {question.least})",
            "least",
        ),
    )
    if isinstance(question.key, Call):
        _check_bands(question.key.bands, kind == "choice", ids)
    for one in question.feedback:
        several = [one.value, one.option, one.equation].count(None) != 2
        refuse_if(
            (several, "must have exactly one of value, option and equation"), field="feedback"
        )
        if one.option is not None and not from_instance:
            check_known(one.option, ids, "option", field="feedback")
        if one.value is not None and source is not None:
            with errors_in_file(item=f"{item}, feedback"):
                _check_value(one.value, source)


def _check_bands(bands: Sequence[Band], chosen: bool, ids: list[str]) -> None:
    """Refuse bands that do not turn every number of a call into an option, or are not asked for."""
    for band in bands:
        check_known(band.option, ids, "option", field="key.bands")
    below = [band.below for band in bands]
    rising = [one for one in below if one is not None]
    refuse_if(
        (bool(bands) != chosen, "must be given for a choice, and for nothing else", "key.bands"),
        (
            bands and (rising != below[:-1] or below[-1] is not None),
            "the last band, and only that, has no below",
            "key.bands",
        ),
        (rising != sorted(set(rising)), "must rise from band to band", "key.bands"),
    )


def _check_whole(lab: Lab) -> None:
    names = [f"screen {one.id}" for one in lab.screens]
    names += [f"question {one.id}" for one in lab.questions]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), "")
    refuse_if((twice, "is there twice"), item=twice, field="id")
    for item, field, text in _plain_texts(lab):
        _check_plain(text, item, field)
    for at, screen in enumerate(lab.screens):
        keys = keys_from(lab, at)
        for item, field, text in texts_of(screen):
            _check_plain(text, item, field)
            _check_places(lab, screen, texts_in("en").resolved(text), keys, item, field)


def keys_from(lab: Lab, at: int) -> dict[str, str]:
    """Return the values that are keys on screen ``at`` or later, with the first question that asks for each."""
    asking = by_key(
        (f"{screen.instance}.{question.key}", question.id)
        for screen in lab.screens[at:]
        for question in screen.questions
        if isinstance(question.key, str)
    )
    return {value: questions[0] for value, questions in asking.items()}


def texts_of(screen: Screen) -> Iterator[tuple[str, str, str]]:
    """Yield item, field and text of everything that a screen says."""
    item = f"screen {screen.id}"
    yield item, "text", screen.text
    for question in screen.questions:
        said = [("text", question.text), ("otherwise", question.otherwise)]
        said += [("options", option.text) for option in question.options]
        said += [("feedback", one.say) for one in question.feedback]
        yield from ((f"{item}, question {question.id}", field, text) for field, text in said)


def _plain_texts(lab: Lab) -> Iterator[tuple[str, str, str]]:
    own = {"title": [lab.title], "author": [lab.author], "notes": [lab.notes], "goals": lab.goals}
    own["plan"] = [row.do for row in lab.plan]
    yield from (("", field, text) for field, texts in own.items() for text in texts)
    for question in lab.questions:
        yield from ((f"question {question.id}", "rubric", line) for line in question.rubric)


def _check_plain(text: str, item: str, field: str) -> None:
    """Refuse a text that has tags or addresses, or is the key of a text that is not there."""
    key = text.removeprefix(MARK)
    lost = key != text and key not in texts_in("en").flat
    foreign = _TAG.search(text) or _ADDRESS.search(text)
    refuse_if(
        (lost, f"there is no text {shown(key)}", field),
        (foreign, "must be plain text without tags and addresses", field),
        item=item,
    )


def _check_places(
    lab: Lab, screen: Screen, text: str, keys: Mapping[str, str], item: str, field: str
) -> None:
    """Refuse a text that has a place that names nothing, is code, or says an answer."""
    drawn = drawn_by(lab.instances.get(screen.instance))
    shown_too, values = (drawn.shown, drawn.values) if drawn else ({}, {})
    for name in PLACE.findall(text):
        place, asked = f"{{{name}}}", keys.get(f"{screen.instance}.{name}")
        says = asked and name in values and name not in shown_too
        refuse_if(
            (
                not _PLACED.fullmatch(name),
                f"{shown(place)} is no name of a value; nothing in a text is computed",
                field,
            ),
            (not drawn, f"{place}: has no instance with values", field),
            (says, f"{place} would say the answer of question {asked}", field),
            item=item,
        )
        if name not in shown_too and name not in values:
            problem = unknown(name, (*shown_too, *values), "value")
            raise InputError(f"{place}: {problem}", item=item, field=field)
    rest = PLACE.sub("", text)
    refuse_if(
        ("{" in rest or "}" in rest, "has a brace without its partner"), item=item, field=field
    )


# -- labs that ship, and others -------------------------------------------------------------------


@lru_cache(maxsize=1)
def ready_labs() -> dict[str, Lab]:
    """Return the labs that ship, by id."""
    return {
        name: load_lab((READY / f"{name}{ENDING}").read_bytes(), f"{name}{ENDING}")
        for name in ORDER
    }


def lab_of(name: str) -> Lab:
    """Return a lab by its id, or by the path of its file.

    Raises
    ------
    InputError
        If there is none, or the file cannot be used.
    """
    labs = ready_labs()
    if name in labs:
        return labs[name]
    if not name.endswith(".json"):
        raise InputError(
            f"{unknown(name, labs, 'lab')}, or the path of a {ENDING} file", field="lab"
        )
    return load_lab(read(name), name, Path(name).parent)


# A lab of a folder is the same as long as its file is: what is computed for it is kept with it.
_loaded = lru_cache(maxsize=KEPT_LABS)(load_lab)


def labs_in(folder: Path) -> dict[str, Lab]:
    """Return the labs that ship and those of a folder, by id; a folder's lab wins.

    Raises
    ------
    InputError
        If a file of the folder cannot be used, or two have one id.
    """
    own: dict[str, Lab] = {}
    for path in sorted(folder.glob(f"*{ENDING}")):
        lab = _loaded(read(path), path.name, folder)
        refuse_if(
            (lab.id in own, f"has the id {lab.id!r} of another file"), file=path.name, field="id"
        )
        own[lab.id] = lab
    return {**ready_labs(), **own}
