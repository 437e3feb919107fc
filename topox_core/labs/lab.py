"""A lab as its file has it: instances, screens, questions with keys, feedback and points (docs/labs.md).

And every sentence of tour and labs by key, in one file a language; English stands in for a key that is missing.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

from topox_core.errors import check_known, look_up, refuse_if
from topox_core.schedule.settings import Settings
from topox_core.schema.fields import setting

FORMAT, VERSION = "topox-lab", 1
STAGES = ("play", "predict", "work", "reveal", "explain")
LETTER_OF = {"predict": "P", "work": "W", "explain": "E"}
# Of the points of a worked answer, by attempt.
SHARES = (1.0, 0.7, 0.4)
# Tried until it is good: every attempt counts in full, the best one is taken.
OFTEN = ("schedule", "grouping")
DEFAULT_ATTEMPTS = 3
CLASS, STUDENT = "class", "student"
CLASS_SEED = 0
# What every lab and the tour run with, so that a better search elsewhere changes no lesson and no key:
# whole slots, planned circuits, one ring, fast rules.
LESSON_SETTINGS = Settings.of(
    clock="slots", iteration="first", switching="planned", tick="slot", engine="list"
)
FIGURES = (
    *("tasks", "hand_gantt", "gantt", "bound", "circuits", "topology_steps", "delay_curve"),
    *("two_lines", "windows", "cdf", "round", "all_rounds", "cost_bars", "tornado", "histogram"),
)
SLIDERS = ("time", "slot_ms", "delay_ms", "ports", "port_gbps", "size_mb", "degree")
CALLS = ("schedule", "compare", "topology", "tdm", "rails_count", "rails_delay", "cost")
RELATIONS = ("value", "difference", "ratio", "saving")
# Types of question whose answer is one or several of its options.
CHOSEN = ("choice", "multi", "order")
TYPES = ("number", *CHOSEN, "matrix", "schedule", "grouping", "text")
MAX_STEPS = 1_000
MAX_INSTANCES, MAX_SCREENS, MAX_QUESTIONS = 8, 40, 8
TEXTS = Path(__file__).parent / "texts"
BASE = "en"
# A text of a lab file that names a key instead of holding the sentence.
MARK = "@"
PLACE = re.compile(r"\{([^{}]*)\}")


def _text(most: int, least: int = 0) -> Any:
    return setting(min_length=least, max_length=most)


def _named(pattern: str, like: str) -> Any:
    return setting(pattern=pattern, like=like)


_Finite = Annotated[float, setting(ge=-1e12, le=1e12)]
_AtLeast0 = Annotated[float, setting(ge=0, le=1e12)]
_FileName = Annotated[
    str,
    _named(
        r"^(sample:[a-z0-9-]{1,90}|[A-Za-z0-9_-][A-Za-z0-9._-]{0,99})$",
        "sample:NAME or the name of a file in the lab's folder",
    ),
]
_Sentence = Annotated[str, _text(300)]


@dataclass(frozen=True)
class Option:
    """One option of a choice."""

    id: Annotated[str, _text(30, 1)]
    text: Annotated[str, _text(200, 1)]


@dataclass(frozen=True)
class Feedback:
    """A sentence for a wrong answer: the one that equals a value, is an option, or breaks an equation."""

    say: Annotated[str, _text(300, 1)]
    value: str | None = None
    option: str | None = None
    equation: str | None = None


@dataclass(frozen=True)
class Band:
    """A number below ``below`` (any, if None) is option ``option``."""

    option: Annotated[str, setting(key="is")]
    below: _Finite | None = None


@dataclass(frozen=True, eq=False)  # itself the key of a cache
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

    call: Annotated[str, setting(choices=CALLS)]
    field: Annotated[str, _text(80, 1)]
    fabric: Annotated[str, _text(30)] | None = None
    options: Annotated[Mapping[str, Any] | None, setting(key="with")] = None
    against: Mapping[str, Any] | None = None
    relation: Annotated[str, setting(choices=RELATIONS, key="as")] = "value"
    bands: Annotated[tuple[Band, ...], setting(max_length=12)] = ()


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be off: ``absolute`` or ``percent`` of the truth."""

    absolute: _AtLeast0 | None = None
    percent: Annotated[float, setting(ge=0, le=100)] | None = None

    def width(self, truth: float) -> float:
        """Return the distance that still counts as right."""
        return max(self.absolute or 0.0, abs(truth) * (self.percent or 0.0) / 100)


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

    id: Annotated[str, _named("^[A-Z][0-9]{1,2}$", "a capital letter and a number, such as P1")]
    type: Annotated[str, setting(choices=TYPES)]
    points: Annotated[float, setting(ge=0, le=20)]
    text: Annotated[str, _text(800, 1)]
    key: str | Call | None = None
    attempts: Annotated[int, setting(ge=1, le=20)] = DEFAULT_ATTEMPTS
    vote: bool = False
    unit: Annotated[str, _text(12)] = ""
    digits: Annotated[int, setting(ge=0, le=6)] = 0
    options: Annotated[tuple[Option, ...], setting(max_length=12)] = ()
    tolerance: Tolerance = Tolerance()
    feedback: Annotated[tuple[Feedback, ...], setting(max_length=8)] = ()
    otherwise: _Sentence = ""
    rubric: Annotated[tuple[_Sentence, ...], setting(max_length=8)] = ()
    least: Annotated[int, setting(ge=0)] = 0
    most: Annotated[int, setting(ge=1, le=4_000)] = 4_000

    @property
    def stage(self) -> str:
        """``predict``, ``work`` or ``explain``."""
        return next(stage for stage, letter in LETTER_OF.items() if self.id.startswith(letter))

    def share(self, attempt: int) -> float:
        """Return the share of points of an attempt, counted from 0."""
        return 1.0 if self.type in OFTEN else SHARES[min(attempt, len(SHARES) - 1)]


@dataclass(frozen=True)
class Slider:
    """What can be moved on a screen: to its values, or from where to where in which steps.

    Raises
    ------
    InputError
        If it has neither, or too many steps.
    """

    key: Annotated[str, setting(choices=SLIDERS)]
    values: Annotated[tuple[_Finite, ...], setting(max_length=50)] = ()
    start: Annotated[_Finite | None, setting(key="from")] = None
    end: Annotated[_Finite | None, setting(key="to")] = None
    step: Annotated[float, setting(gt=0)] | None = None

    def __post_init__(self) -> None:
        if self.values:
            return
        start, end, step = self.start or 0.0, self.end or 0.0, self.step or 1.0
        steps = int((end - start) / step + 1e-9)
        whole = None not in (self.start, self.end, self.step) and start <= end
        refuse_if(
            (not whole, "must have values, or from, to and step with from at most to", "slider"),
            (steps > MAX_STEPS, f"has more than {MAX_STEPS:,} steps", "slider"),
        )
        values = tuple(float(f"{start + k * step:.12g}") for k in range(steps + 1))
        object.__setattr__(self, "values", values)

    def nearest(self, wanted: float | None) -> float:
        """Return the value next to one that is wanted; None: the first."""
        near = self.values[0] if wanted is None else wanted
        return min(self.values, key=lambda value: abs(value - near))


@dataclass(frozen=True)
class Screen:
    """One screen; ``instance`` names one of the lab's, empty for none; ``show`` names its figures."""

    id: Annotated[
        str, _named("^[a-z][a-z0-9-]{0,29}$", "a small letter, then small letters, digits or -")
    ]
    stage: Annotated[str, setting(choices=STAGES)]
    instance: str = ""
    text: Annotated[str, _text(1200)] = ""
    show: tuple[Annotated[str, setting(choices=FIGURES)], ...] = ()
    slider: Slider | None = None
    questions: Annotated[tuple[Question, ...], setting(max_length=MAX_QUESTIONS)] = ()


@dataclass(frozen=True)
class SourceFiles:
    """Files of an instance, by what is in them."""

    graph: _FileName | None = None
    cluster: _FileName | None = None
    jobs: _FileName | None = None
    windows: _FileName | None = None
    parts: _FileName | None = None


@dataclass(frozen=True)
class Source:
    """Where an instance comes from: a generator with a seed, or files by kind."""

    generator: str = ""
    version: Annotated[int, setting(key="generator_version", ge=1)] = 0
    seed: (
        Annotated[str, setting(choices=(STUDENT, CLASS))]
        | Annotated[int, setting(ge=0, le=99_999_999)]
    ) = STUDENT
    files: SourceFiles | None = None


@dataclass(frozen=True)
class PlanRow:
    """Minutes of the lecturer's clock, and what happens in them."""

    start: Annotated[_AtLeast0, setting(key="from")]
    end: Annotated[_AtLeast0, setting(key="to")]
    do: _Sentence


@dataclass(frozen=True, eq=False)  # itself the key of a cache
class Lab:
    """A lab.

    Attributes
    ----------
    record
        What the file holds, as it was read.
    folder
        Where files that it names are looked for; None: samples only.
    """

    id: Annotated[
        str, _named("^[a-z][a-z0-9-]{1,39}$", "a small letter, then small letters, digits or -")
    ]
    title: Annotated[str, _text(80, 1)]
    minutes: Annotated[int, setting(ge=1, le=240)]
    goals: Annotated[tuple[Annotated[str, _text(200)], ...], setting(min_length=1, max_length=8)]
    instances: Mapping[str, Source]
    screens: Annotated[tuple[Screen, ...], setting(min_length=1, max_length=MAX_SCREENS)]
    record: Mapping[str, Any]
    folder: Path | None = None
    language: Annotated[str, _named("^[a-z]{2}(-[A-Z]{2})?$", "a language such as en or de-CH")] = (
        "en"
    )
    author: Annotated[str, _text(120)] = ""
    needs: Annotated[tuple[Annotated[str, _text(60)], ...], setting(max_length=10)] = ()
    notes: Annotated[str, _text(4000)] = ""
    plan: Annotated[tuple[PlanRow, ...], setting(max_length=40)] = ()

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
        return {one.generator: one.version for one in self.instances.values() if one.generator}

    def question(self, name: str) -> Question:
        """Return a question.

        Raises
        ------
        InputError
            If there is none of that id.
        """
        known = {question.id: question for question in self.questions}
        return look_up(name, known, f"question of lab {self.id}", field="question")

    def screen_of(self, name: str) -> int:
        """Return the place of the screen that a question is on."""
        self.question(name)
        places = enumerate(self.screens)
        return next(at for at, one in places if any(q.id == name for q in one.questions))


def canonical(record: object) -> bytes:
    """Return a record as JSON with sorted keys and without spaces, in UTF-8: what digests are of."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Texts:
    """The texts of one language.

    Attributes
    ----------
    language
        Name of its file.
    sections
        As the file has them.
    flat
        Sentences by key with dots, such as ``lab.six-tasks.P1.text``.
    """

    language: str
    sections: Mapping[str, Any]
    flat: Mapping[str, str]

    def say(self, key: str, /, **facts: object) -> str:
        """Return a sentence with its places filled in.

        Raises
        ------
        InputError
            If no language has the key.
        """
        refuse_if(
            (key not in self.flat, f"there is no text {key[:80]!r}"), file=f"{self.language}.json"
        )
        return self.flat[key].format(**facts) if facts else self.flat[key]

    def resolved(self, text: str) -> str:
        """Return a text of a lab file: the sentence of the key that it names, or itself."""
        return self.say(text.removeprefix(MARK)) if text.startswith(MARK) else text


def languages(folder: Path = TEXTS) -> tuple[str, ...]:
    """Return the languages that there is a file of, English first."""
    names = sorted(path.stem for path in folder.glob("*.json"))
    return (BASE, *(name for name in names if name != BASE))


@lru_cache(maxsize=16)
def texts_in(language: str, folder: Path = TEXTS) -> Texts:
    """Return the texts of a language, English where it lacks a key.

    Raises
    ------
    InputError
        If there is no file of that language.
    """
    check_known(language, languages(folder), "language", field="language")
    own = json.loads((folder / f"{language}.json").read_text(encoding="utf-8"))
    if language == BASE:
        return Texts(language, own, _flat(own))
    base = texts_in(BASE, TEXTS)
    return Texts(language, {**base.sections, **own}, {**base.flat, **_flat(own)})


def _flat(texts: Any, key: str = "") -> dict[str, str]:
    """Return every sentence in nested objects and lists by its key with dots."""
    if isinstance(texts, str):
        return {key: texts}
    inner = enumerate(texts) if isinstance(texts, list) else texts.items()
    flat = (_flat(one, f"{key}.{name}" if key else str(name)) for name, one in inner)
    return {name: text for part in flat for name, text in part.items()}
