"""A lab tried on many seeds before class: every key exists, no feedback is idle, no text says an answer, nothing is slow."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from topox_core.errors import InputError
from topox_core.labs.generators.catalogue import drawn_by
from topox_core.labs.generators.generator import Value
from topox_core.labs.keys import filled, instance_of, key_of, mistakes_of, options_of
from topox_core.labs.lab import PLACE, Lab, Question, texts_in
from topox_core.labs.lab_file import texts_of

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
    slowest_s, slowest = 0.0, ""
    for question in lab.questions:
        if question.key is None:
            continue
        began = time.perf_counter()
        truths: list[Value] = []
        try:
            for seed in seeds:
                truths.append(key_of(lab, question, seed))
                _check_form(lab, question, truths[-1], seed)
        except InputError as error:
            errors.append(f"question {question.id}, seed {seed}: {error.problem}")
            continue
        lasted = (time.perf_counter() - began) / len(seeds)
        if lasted > slowest_s:
            slowest_s, slowest = lasted, question.id
        warnings += _idle_feedback(lab, question, seeds)
        errors += _given_away(lab, question, truths, seeds)
    if slowest_s > SLOW_S:
        lines = errors if slowest_s > TOO_SLOW_S else warnings
        lines.append(f"question {slowest}: its key takes {slowest_s:.1f} s")
    errors += _unfilled(lab, seeds)
    return LabReport(tuple(errors), tuple(warnings), slowest_s, slowest)


def _check_form(lab: Lab, question: Question, truth: Value, seed: int) -> None:
    """Refuse a key that no answer to its question can equal."""
    kind = question.type
    if kind in ("number", "schedule"):
        if isinstance(truth, bool) or not isinstance(truth, int | float):
            raise InputError(f"its key is {truth!r}, no number")
    elif kind in ("choice", "multi", "order"):
        options = options_of(lab, question, seed)
        named = truth if isinstance(truth, tuple) else (truth,)
        if any(one not in options for one in named):
            raise InputError(f"its key {truth!r} is none of the options {', '.join(options)}")
        if kind != "choice" and not isinstance(truth, tuple):
            raise InputError(f"its key is {truth!r}, no list of options")


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
