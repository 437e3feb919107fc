"""Keys of a lab for a seed: nothing is stored, each is computed when it is asked for, the same on every machine.

And a lab tried on many seeds before class: every key exists, no feedback is idle, no text says an answer, nothing is slow.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from topox_core.economics.price_sets import load_parts
from topox_core.errors import InputError, errors_at, refuse_if
from topox_core.io.cluster_file import load_cluster
from topox_core.io.content import read
from topox_core.io.limits import check_whole
from topox_core.io.task_graph_file import load_graph
from topox_core.labs.calls import InstanceFiles, call_value
from topox_core.labs.generators.catalogue import drawn_by, generator
from topox_core.labs.generators.generator import SEEDS, GivenTable, Matrix, Value
from topox_core.labs.lab import (
    CHOSEN,
    CLASS,
    CLASS_SEED,
    PLACE,
    STUDENT,
    Call,
    Feedback,
    Lab,
    Question,
    Screen,
    Source,
    SourceFiles,
    Texts,
    texts_in,
)
from topox_core.labs.lab_file import texts_of
from topox_core.rails.window_lengths import load_windows
from topox_core.tdm.model.jobs_file import load_job_sample, load_jobs
from topox_core.workloads.samples import load_sample

FORMAT, VERSION = "topox-lab-keys", 1
SAMPLE = "sample:"
KEPT_INSTANCES, KEPT_KEYS = 600, 2_000
# A misconception is said only where it differs from the truth by more than so many tolerances.
APART = 2.0
_DIGITS, _UNITS = 6, {"schedule": "ms", "grouping": "s"}


def check_seed(seed: int) -> None:
    """Refuse what is no seed; raises InputError."""
    check_whole(seed, 0, SEEDS - 1, field="seed")


def seed_for(source: Source, seed: int) -> int:
    """Return the seed of an instance for a student who has ``seed``."""
    if isinstance(source.seed, int):
        return source.seed
    return CLASS_SEED if source.seed == CLASS else seed


def depends_on_student(lab: Lab, question: Question) -> bool:
    """Return whether students have different instances of a question."""
    source = lab.instances.get(lab.screens[lab.screen_of(question.id)].instance)
    return source is not None and bool(source.generator) and source.seed == STUDENT


def instance_of(lab: Lab, screen: Screen, seed: int) -> Any:
    """Return the drawn instance of a screen, None where it has none or one from files.

    Raises
    ------
    InputError
        If the seed is out of range.
    """
    source = lab.instances.get(screen.instance)
    if source is None or not source.generator:
        return None
    return _drawn(source.generator, seed_for(source, seed))


@lru_cache(maxsize=KEPT_INSTANCES)
def _drawn(name: str, seed: int) -> Any:
    check_seed(seed)
    return generator(name).make(seed)


def key_of(lab: Lab, question: Question, seed: int) -> Value:
    """Return the true answer of a question for a seed.

    Raises
    ------
    InputError
        If it has none: a text, or a plan that was not proved best; the question is named.
    """
    screen, key = lab.screens[lab.screen_of(question.id)], question.key
    with errors_at(item=f"lab {lab.id}, question {question.id}"):
        if key is None:
            raise InputError("has no key: a person reads it")
        if isinstance(key, Call):
            return _called(key, lab, screen, seed)
        return _value(lab.instances[screen.instance], key, seed)


def _value(source: Source, name: str, seed: int) -> Value:
    """Return a value of an instance for a student who has ``seed``."""
    return _kept_value(source.generator, name, seed_for(source, seed))


@lru_cache(maxsize=40 * KEPT_KEYS)
def _kept_value(name: str, value: str, seed: int) -> Value:
    return generator(name).value(_drawn(name, seed), value)


def mistakes_of(lab: Lab, question: Question, seed: int) -> Iterator[tuple[Feedback, Value]]:
    """Yield the misconceptions of a question that come to something else than the truth for a seed, and to what."""
    if question.key is None:
        return
    truth = key_of(lab, question, seed)
    screen = lab.screens[lab.screen_of(question.id)]
    for one in question.feedback:
        if one.value is not None:
            value = _value(lab.instances[screen.instance], one.value, seed)
            if value is not None and _apart(question, value, truth):
                yield one, value


def _apart(question: Question, value: Value, truth: Value) -> bool:
    if isinstance(value, int | float) and isinstance(truth, int | float):
        return abs(value - truth) > max(APART * question.tolerance.width(truth), 1e-9)
    return value != truth


def options_of(lab: Lab, question: Question, seed: int) -> tuple[str, ...]:
    """Return the ids of a question's options: the file's, or those of the instance."""
    if question.options or not isinstance(question.key, str):
        return tuple(option.id for option in question.options)
    screen = lab.screens[lab.screen_of(question.id)]
    made = generator(lab.instances[screen.instance].generator).options.get(question.key)
    return made(instance_of(lab, screen, seed)) if made else ()


def option_texts(
    lab: Lab, question: Question, seed: int, words: Texts | None = None
) -> dict[str, str]:
    """Return the options of a question by id, each in its words; those of an instance are named by their ids."""
    screen = lab.screens[lab.screen_of(question.id)]
    if question.options:
        return {one.id: filled(lab, screen, one.text, seed, words) for one in question.options}
    return {one: one for one in options_of(lab, question, seed)}


def matrix_of(lab: Lab, question: Question, seed: int) -> Matrix:
    """Return rows and columns of a question that is answered by a matrix."""
    screen = lab.screens[lab.screen_of(question.id)]
    made = generator(lab.instances[screen.instance].generator).matrices[str(question.key)]
    return made(instance_of(lab, screen, seed))


def given_table(lab: Lab, screen: Screen, seed: int) -> GivenTable | None:
    """Return what a student is given on a screen, as a table; it holds no answer."""
    instance = instance_of(lab, screen, seed)
    table: GivenTable | None = None if instance is None else instance.given()
    return table


def names_a_value(lab: Lab, screen: Screen) -> bool:
    """Return whether a screen's text names a computed value, which is for after its reveal only."""
    drawn = drawn_by(lab.instances.get(screen.instance))
    names = PLACE.findall(texts_in(lab.language).resolved(screen.text))
    return drawn is not None and any(name not in drawn.shown for name in names)


def filled(lab: Lab, screen: Screen, text: str, seed: int, words: Texts | None = None) -> str:
    """Return a text of a screen with the values that it names; a value that is an option in the option's words.

    The file was refused if it names the answer of a question that is still to come.
    """
    source = lab.instances.get(screen.instance)
    words = words or texts_in(lab.language)

    def place(found: Any) -> str:
        assert source is not None  # the file was read: a place has an instance with that value
        return _in_words(lab, screen.instance, found[1], _value(source, found[1], seed), words)

    return PLACE.sub(place, words.resolved(text))


def _in_words(lab: Lab, instance: str, name: str, value: Value, words: Texts) -> str:
    options = {
        option.id: words.resolved(option.text)
        for screen in lab.screens
        for question in screen.questions
        if screen.instance == instance and question.key == name
        for option in question.options
    }
    return options.get(value, value) if isinstance(value, str) else written(value)


def written(value: Value, digits: int | None = None) -> str:
    """Return a value as a text says it: numbers with at most six digits, several things with commas."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        if digits is not None:
            return f"{value:,.{digits}f}"
        return f"{value:,}" if isinstance(value, int) else f"{round(value, 4):,.{_DIGITS}g}"
    if value and isinstance(value[0], tuple):
        rows: Any = value
        return "; ".join(" ".join(f"{cell:g}" for cell in row) for row in rows)
    return ", ".join(map(str, value))


def in_words(question: Question, value: Value, precise: bool = False) -> str:
    """Return a value as the answer to a question: a number with the digits that are asked for, and its unit.

    Parameters
    ----------
    precise
        Whether four digits that count are said where fewer are asked for, as far as there are.
    """
    if not isinstance(value, int | float):
        return f"{written(value)} {question.unit}".strip()
    digits = question.digits if question.type == "number" else None
    if precise:
        digits = _decimals(float(value), question.digits)
    # The file need not name the unit of a schedule or a grouping.
    return f"{written(value, digits)} {question.unit or _UNITS.get(question.type, '')}".strip()


def _decimals(value: float, asked: int) -> int:
    """Return how many digits behind the point are said: those asked for, or four that count, as far as there are."""
    whole, _, rest = f"{value:.{max(3, asked)}f}".rstrip("0").partition(".")
    return min(len(rest), max(asked, 4 - len(whole.lstrip("-"))))


def answer_words(
    lab: Lab, question: Question, value: Any, seed: int, words: Texts, precise: bool = False
) -> str:
    """Return an answer or a key in words: options in theirs, what is placed by name, else as :func:`in_words`; empty of a matrix."""
    if question.type == "matrix" or value is None:
        return ""
    if isinstance(value, int | float):
        return in_words(question, value, precise)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {written(one)}" for name, one in value.items())
    texts = option_texts(lab, question, seed, words)
    return ", ".join(texts.get(one, one) for one in ([value] if isinstance(value, str) else value))


# -- instances from files -------------------------------------------------------------------------


def _called(call: Call, lab: Lab, screen: Screen, seed: int) -> Value:
    if lab.instances[screen.instance].files is not None:
        return _kept_call(lab, screen.instance, call)
    instance = instance_of(lab, screen, seed)
    parts = {
        kind: getattr(instance, kind)()
        for kind in ("graph", "cluster", "jobs")
        if hasattr(instance, kind)
    }
    return call_value(call, InstanceFiles(**parts, windows=getattr(instance, "lengths_ms", None)))


@lru_cache(maxsize=KEPT_KEYS)
def _kept_call(lab: Lab, instance: str, call: Call) -> Value:
    return call_value(call, files_of(lab, lab.instances[instance]))


def files_of(lab: Lab, source: Source) -> InstanceFiles:
    """Return the files of an instance, read.

    Raises
    ------
    InputError
        If one is missing or cannot be used, or a lab that has no folder names one that is no sample.
    """
    found: dict[str, Any] = {}
    every = asdict(source.files or SourceFiles())
    for kind, name in ((kind, name) for kind, name in every.items() if name):
        if name.startswith(SAMPLE) and kind in _SAMPLES:
            found[kind] = _SAMPLES[kind](name.removeprefix(SAMPLE))
        else:
            found[kind] = _READERS[kind](_in_folder(lab.folder, name), name)
    return InstanceFiles(**found)


_SAMPLES: Mapping[str, Callable[[str], Any]] = {
    "graph": lambda name: load_sample(name)[0],
    "cluster": lambda name: load_sample(name)[1],
    "jobs": load_job_sample,
}
_READERS: Mapping[str, Callable[[bytes, str], Any]] = {
    "graph": load_graph,
    "cluster": load_cluster,
    "jobs": load_jobs,
    "parts": load_parts,
    "windows": lambda *file: tuple(one.length_ms for one in load_windows(*file).windows),
}


def _in_folder(folder: Path | None, name: str) -> bytes:
    is_sample = name.startswith(SAMPLE)
    refuse_if(
        (is_sample, "there is no such sample"),
        (not folder, "is not there: this lab has no folder of its own"),
        file=name,
    )
    return read((folder or Path()) / name)


# -- a lab tried on many seeds ---------------------------------------------------------------------

SEEDS_TRIED = range(51)
SLOW_S, TOO_SLOW_S = 2.0, 20.0


@dataclass(frozen=True)
class LabReport:
    """What was found.

    Attributes
    ----------
    errors
        What would spoil a class; ``warnings`` what may.
    slowest_s
        The slowest key, in seconds, and the question that it belongs to.
    """

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    slowest_s: float
    slowest: str

    @property
    def ok(self) -> bool:
        """Whether nothing would spoil a class."""
        return not self.errors


def validate(lab: Lab, seeds: Iterable[int] = SEEDS_TRIED) -> LabReport:
    """Try a lab on seeds."""
    seeds = tuple(seeds)
    errors: list[str] = []
    warnings: list[str] = []
    lasts_s: dict[str, float] = {}
    for question in (one for one in lab.questions if one.key is not None):
        began = time.perf_counter()
        truths: list[Value] = []
        try:
            for seed in seeds:
                truths.append(key_of(lab, question, seed))
                _check_form(lab, question, truths[-1], seed)
        except InputError as error:
            errors.append(f"question {question.id}, seed {seed}: {error.problem}")
            continue
        lasts_s[question.id] = (time.perf_counter() - began) / len(seeds)
        warnings += _idle_feedback(lab, question, seeds)
        errors += _given_away(lab, question, truths, seeds)
    slowest_s, slowest = max(((s, name) for name, s in lasts_s.items()), default=(0.0, ""))
    if slowest_s > SLOW_S:
        lines = errors if slowest_s > TOO_SLOW_S else warnings
        lines.append(f"question {slowest}: its key takes {slowest_s:.1f} s")
    errors += _unfilled(lab, seeds)
    return LabReport(tuple(errors), tuple(warnings), slowest_s, slowest)


def _check_form(lab: Lab, question: Question, truth: Value, seed: int) -> None:
    """Refuse a key that no answer to its question can equal."""
    kind, options = question.type, options_of(lab, question, seed)
    number = isinstance(truth, int | float) and not isinstance(truth, bool)
    named = truth if isinstance(truth, tuple) else (truth,)
    strange = kind in CHOSEN and any(one not in options for one in named)
    alone = kind in ("multi", "order") and not isinstance(truth, tuple)
    refuse_if(
        (kind in ("number", "schedule") and not number, f"its key is {truth!r}, no number"),
        (strange, f"its key {truth!r} is none of the options {', '.join(options)}"),
        (alone, f"its key is {truth!r}, no list of options"),
    )


def _idle_feedback(lab: Lab, question: Question, seeds: tuple[int, ...]) -> list[str]:
    """Name misconceptions that are the truth for every seed, so that nobody is ever told."""
    by_value = {one.value for one in question.feedback if one.value is not None}
    said = {one.value for seed in seeds for one, _ in mistakes_of(lab, question, seed)}
    return [
        f"question {question.id}: feedback for {name} is the truth for every seed"
        for name in sorted(by_value - said)
    ]


def _given_away(
    lab: Lab, question: Question, truths: list[Value], seeds: tuple[int, ...]
) -> list[str]:
    """Name computed values that stand in a text before a question and equal its key for every seed."""
    words = texts_in(lab.language)
    asked: set[tuple[str, object]] = set()  # known by then
    lines = []
    for screen in lab.screens[: lab.screen_of(question.id) + 1]:
        drawn = drawn_by(lab.instances.get(screen.instance))
        texts = texts_of(screen) if drawn else ()
        for item, name in (
            (item, name) for item, _, text in texts for name in PLACE.findall(words.resolved(text))
        ):
            if drawn is None or name in drawn.shown or (screen.instance, name) in asked:
                continue
            if [drawn.value(instance_of(lab, screen, seed), name) for seed in seeds] == truths:
                lines.append(f"{item}: {{{name}}} is the answer of question {question.id}")
        asked |= {(screen.instance, one.key) for one in screen.questions}
    return lines


def _unfilled(lab: Lab, seeds: tuple[int, ...]) -> list[str]:
    lines = []
    for screen in lab.screens:
        for item, field, text in texts_of(screen):
            try:
                for seed in seeds[:3]:
                    filled(lab, screen, text, seed)
            except InputError as error:
                lines.append(f"{item}, {field}: {error.problem}")
    return lines
