"""What a student may do and see: nothing that is computed from a key is there before the lock that comes first.

A page draws what these functions return and asks for nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from topox_core.errors import refuse_if, shown
from topox_core.labs.classroom.answers import Answers, Attempt, Explained, Given, Locked, Prediction
from topox_core.labs.classroom.marking import Marked, mark, points_of, read_answer
from topox_core.labs.generators.generator import GivenTable, Value, seed_of
from topox_core.labs.hand_schedule import HandVerdict
from topox_core.labs.keys import (
    check_seed,
    filled,
    given_table,
    key_of,
    option_texts,
)
from topox_core.labs.lab import Lab, Option, Question, Screen, Texts, texts_in

MAX_NAME = 40
_LETTERS = frozenset("._@- ")


@dataclass(frozen=True)
class ShownScreen(Screen):
    """A screen as a student sees it: in words, its questions without their keys.

    Attributes
    ----------
    given
        What the instance is, as a table.
    waits_for
        Questions that must be locked or closed first; text and table are then empty.
    """

    given: GivenTable | None = None
    waits_for: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        """Whether no answer before it is missing."""
        return not self.waits_for


@dataclass(frozen=True)
class Reply:
    """What is said to an answer: to the last attempt, or after the reveal.

    Attributes
    ----------
    say
        The sentence of its misconception, or that an attempt is not right yet.
    key
        The truth, once there is no attempt left; None before.
    answer
        The one that stands, after the reveal.
    """

    right: bool
    say: str
    key: Value
    points: float = 0.0
    attempts_left: int = 0
    verdict: HandVerdict | None = None
    answer: Any = None


def check_name(name: str, field: str) -> None:
    """Refuse a course or a student's name that no file and no table should have; raises InputError."""
    good = 1 <= len(name.strip()) <= MAX_NAME and all(
        letter.isalnum() or letter in _LETTERS for letter in name
    )
    refuse_if(
        (
            not good,
            f"must be 1 to {MAX_NAME} letters, digits, spaces or . _ @ - (got {shown(name)})",
        ),
        field=field,
    )


def begin(lab: Lab, course: str, student: str, at: str, seed: int | None = None) -> Answers:
    """Return answers that hold nothing yet.

    Parameters
    ----------
    at
        Now, as :func:`~topox_core.labs.classroom.answers.clock` writes it.
    seed
        For practice; None: that of the student.

    Raises
    ------
    InputError
        If a name or the seed cannot be.
    """
    check_name(course, "course")
    check_name(student, "student")
    chosen = seed_of(course, student) if seed is None else seed
    check_seed(chosen)
    return Answers(lab.id, lab.digest, course, student, chosen, lab.generator_versions, at)


def lock(lab: Lab, answers: Answers, name: str, value: Any, at: str) -> Answers:
    """Return answers with a prediction locked; of a question for a vote once more after the discussion.

    Raises
    ------
    InputError
        If it is no prediction, its value cannot be read, or it is locked already.
    """
    question = _of_stage(lab, name, "predict")
    kept = read_answer(lab, question, value, answers.seed)
    before = answers.prediction(name)
    if before is None:
        return _with(answers, name, Prediction(at, kept), at)
    refuse_if(
        (
            not question.vote or before.second is not None or revealed_at(lab, answers, name),
            "is locked and cannot be changed",
        ),
        item=f"question {name}",
    )
    return _with(answers, name, replace(before, second=Locked(at, kept)), at)


def attempt(
    lab: Lab, answers: Answers, name: str, value: Any, at: str, language: str = ""
) -> tuple[Answers, Reply]:
    """Return answers with one more attempt at a worked answer, and what is said to it.

    Raises
    ------
    InputError
        If it is no such question, its value cannot be read (which costs no attempt), or it is closed.
    """
    question = _of_stage(lab, name, "work")
    waits = waiting_for(lab, answers, lab.screen_of(name))
    refuse_if(
        (waits, f"waits for {', '.join(waits)}"),
        (closed(answers, question), "is closed: there is no attempt left"),
        item=f"question {name}",
    )
    kept = read_answer(lab, question, value, answers.seed)
    before = answers.worked(name)
    share = mark(lab, question, kept, answers.seed).share
    one = Attempt(at, kept, points_of(question, share, len(before.attempts)))
    after = _with(answers, name, replace(before, attempts=(*before.attempts, one)), at)
    reply = reply_to(lab, after, name, language)
    assert reply is not None  # there is an attempt
    return after, reply


def reply_to(lab: Lab, answers: Answers, name: str, language: str = "") -> Reply | None:
    """Return what is said to the last attempt at a worked answer, or None before the first.

    Raises
    ------
    InputError
        If it is no worked answer.
    """
    question, given = _of_stage(lab, name, "work"), answers.worked(name)
    over = closed(answers, question)
    key = key_of(lab, question, answers.seed) if over else None
    if not given.attempts:
        return Reply(False, "", key) if given.given_up else None
    last = given.attempts[-1]
    marked = mark(lab, question, last.value, answers.seed)
    words = texts_in(language or lab.language)
    say = "" if marked.right else said_to(lab, question, marked.say, answers.seed, words)
    left = 0 if over else question.attempts - len(given.attempts)
    return Reply(marked.right, say, key, last.points, left, marked.verdict)


def said_to(lab: Lab, question: Question, say: str, seed: int, words: Texts) -> str:
    """Return the sentence for a wrong answer with its values filled in; "Not yet" where the lab has none."""
    if not say:
        return words.say("answers.not_yet")
    return filled(lab, lab.screens[lab.screen_of(question.id)], say, seed, words)


def give_up(lab: Lab, answers: Answers, name: str, at: str) -> Answers:
    """Return answers with a worked answer closed: its key may be shown, further attempts are none.

    Raises
    ------
    InputError
        If it is no worked answer.
    """
    _of_stage(lab, name, "work")
    before = answers.worked(name)
    if before.given_up:
        return answers
    return _with(answers, name, replace(before, given_up=at), at)


def explain(lab: Lab, answers: Answers, name: str, value: str, at: str) -> Answers:
    """Return answers with an explanation, in place of an earlier one.

    Raises
    ------
    InputError
        If it is no such question, or too short or too long.
    """
    question = _of_stage(lab, name, "explain")
    return _with(answers, name, Explained(at, read_answer(lab, question, value, 0)), at)


def closed(answers: Answers, question: Question) -> bool:
    """Return whether an answer can be changed no more: locked, right, given up, or out of attempts."""
    if question.stage == "predict":
        return answers.prediction(question.id) is not None
    if question.stage == "explain":
        return False
    given = answers.worked(question.id)
    if given.given_up or len(given.attempts) >= question.attempts:
        return True
    return any(one.points >= points_of(question, 1.0, at) for at, one in enumerate(given.attempts))


def waiting_for(lab: Lab, answers: Answers, at: int) -> tuple[str, ...]:
    """Return the questions that must be answered before a screen opens.

    Every prediction before it, and every worked answer before a reveal that it is or that it follows: what
    comes after a reveal may speak of what was revealed.
    """
    settled = max((k for k in range(at + 1) if lab.screens[k].stage == "reveal"), default=0)
    return tuple(
        question.id
        for place, screen in enumerate(lab.screens[:at])
        for question in screen.questions
        if question.stage == "predict" or (question.stage == "work" and place < settled)
        if not closed(answers, question)
    )


def revealed_at(lab: Lab, answers: Answers, name: str) -> bool:
    """Return whether the key of a question may be shown: the reveal after it is open, or all is answered."""
    place = lab.screen_of(name)
    question = lab.question(name)
    if question.stage == "explain" or not closed(answers, question):
        return False
    after = (at for at in range(place + 1, len(lab.screens)) if lab.screens[at].stage == "reveal")
    reveal = next(after, None)
    if reveal is not None:
        return not waiting_for(lab, answers, reveal)
    return all(closed(answers, one) for one in lab.questions if one.stage != "explain")


def shown_screen(lab: Lab, answers: Answers, at: int, language: str = "") -> ShownScreen:
    """Return a screen as the student may see it now; before its time it says only what it waits for."""
    screen = lab.screens[at]
    waits = waiting_for(lab, answers, at)
    if waits:
        return ShownScreen(screen.id, screen.stage, waits_for=waits)
    words, seed = texts_in(language or lab.language), answers.seed
    return ShownScreen(
        screen.id,
        screen.stage,
        screen.instance,
        filled(lab, screen, screen.text, seed, words),
        screen.show,
        screen.slider,
        tuple(_asked(lab, screen, question, seed, words) for question in screen.questions),
        given_table(lab, screen, seed),
    )


def revealed(lab: Lab, answers: Answers, name: str, language: str = "") -> Reply:
    """Return the truth of a question beside its answer.

    Raises
    ------
    InputError
        If its reveal is still to come.
    """
    refuse_if(
        (not revealed_at(lab, answers, name), "its reveal is still to come"),
        item=f"question {name}",
    )
    question = lab.question(name)
    key = key_of(lab, question, answers.seed)
    answer = last_answer(answers, name)
    marked = Marked(False, 0.0) if answer is None else mark(lab, question, answer, answers.seed)
    words = texts_in(language or lab.language)
    say = marked.say and said_to(lab, question, marked.say, answers.seed, words)
    return Reply(marked.right, say, key, answer=answer)


def revealed_on(lab: Lab, answers: Answers, at: int) -> tuple[str, ...]:
    """Return the questions whose truth a reveal screen shows: those since the reveal before it."""
    if lab.screens[at].stage != "reveal" or waiting_for(lab, answers, at):
        return ()
    before = [k for k in range(at) if lab.screens[k].stage == "reveal"]
    since = before[-1] + 1 if before else 0
    asked = (question for screen in lab.screens[since:at] for question in screen.questions)
    return tuple(question.id for question in asked if revealed_at(lab, answers, question.id))


def still_asked(lab: Lab, answers: Answers, instance: str) -> frozenset[str]:
    """Return the values of an instance that no figure may show yet: keys whose reveal is still to come."""
    return frozenset(
        str(question.key)
        for screen in lab.screens
        if screen.instance == instance
        for question in screen.questions
        if isinstance(question.key, str) and not revealed_at(lab, answers, question.id)
    )


def may_compute(lab: Lab, answers: Answers, at: int) -> bool:
    """Return whether figures of a screen may show computed values: on a reveal, or after one of its instance."""
    screen = lab.screens[at]
    reveals = [
        k
        for k in range(at + 1)
        if lab.screens[k].stage == "reveal" and lab.screens[k].instance == screen.instance
    ]
    return bool(reveals) and not any(waiting_for(lab, answers, k) for k in (at, reveals[-1]))


def last_answer(answers: Answers, name: str) -> Any:
    """Return the answer that stands: the second lock, else the first; the last attempt; the explanation."""
    prediction, attempts = answers.prediction(name), answers.worked(name).attempts
    if prediction is not None:
        return (prediction.second or prediction).value
    return attempts[-1].value if attempts else answers.explained(name) or None


def _asked(lab: Lab, screen: Screen, question: Question, seed: int, words: Texts) -> Question:
    """Return a question as a student sees it: its words and its form, never its key or what would tell it."""
    options = option_texts(lab, question, seed, words)
    return replace(
        question,
        text=filled(lab, screen, question.text, seed, words),
        key=None,
        options=tuple(Option(name, text) for name, text in options.items()),
        feedback=(),
        otherwise="",
        rubric=(),
    )


def _of_stage(lab: Lab, name: str, stage: str) -> Question:
    question = lab.question(name)
    refuse_if(
        (question.stage != stage, f"belongs to a {question.stage} screen, not to a {stage} screen"),
        item=f"question {name}",
    )
    return question


def _with(answers: Answers, name: str, given: Given, at: str) -> Answers:
    kept: Mapping[str, Given] = {**answers.given, name: given}
    return replace(answers, given=kept, finished=at)
