"""Simulations of rails: short ones at once, long ones in a process beside the page, watched, cancelled, kept."""

import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from operator import attrgetter
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.rails.delay import BOTH, Answer, Job, Question, answer, iteration_of
from topox_core.rails.iteration import RailRun
from topox_core.runs.cells import CellsResult, CellsRun
from topox_ui.runs.owner import Kept, RunKind, run_owner
from topox_ui.runs.panel import run_panel
from topox_ui.runs.shared import once
from topox_ui.shell.charts import button

# Nodes of an iteration: up to the first, a whole curve is simulated at once; up to the second, one
# run is.
CURVE_AT_ONCE, RUN_AT_ONCE = 700, 8_000
SOON_S = 2.5
MAX_TIMES, MAX_RUNS = 4_000, 24


RAILS = RunKind("rails", MAX_TIMES, cancelled="Stopped. Finished simulations are kept.")


class RailAnswers(Kept[Answer]):
    """One session's answers by the question's key; of whole runs, which are large, only the latest.

    Attributes
    ----------
    pace_s
        Seconds that the last simulation of a job took.
    """

    def __init__(self) -> None:
        super().__init__(MAX_TIMES)
        self.pace_s: dict[Job, float] = {}

    def __setitem__(self, key: Question, value: Answer) -> None:
        super().__setitem__(key, value)
        for old in [one for one in list(self) if one.what != BOTH][:-MAX_RUNS]:
            self.pop(old, None)


@st.cache_resource(scope="session", show_spinner=False)
def rail_answers() -> RailAnswers:
    """Return this session's answers."""
    return RailAnswers()


def known(question: Question) -> Answer | None:
    """Return an answer that is there."""
    return rail_answers().get(question.key)


def refusal(question: Question) -> InputError | None:
    """Return why a question has no answer, if that is known."""
    return run_owner().refusals(RAILS).get(question.key)


def start(questions: Sequence[Question]) -> None:
    """Have what is not known answered beside the page; what runs for another setting is ended first."""
    owner, answers = run_owner(), rail_answers()
    refusals = owner.refusals(RAILS)
    left = _left(questions)

    def keep(result: CellsResult[Question, Answer]) -> str:
        note = ""
        for question, error in result.failures.items():
            if not isinstance(error, InputError):
                note = f"{error}. Try a smaller job."
                error = InputError(note)
            refusals[question] = error
        return note

    if left:
        # One process: it keeps the prepared iteration from one question to the next.
        key = attrgetter("key")
        owner.start(RAILS, left, lambda slots: CellsRun(left, key, answer, answers, slots), keep)


def begun(questions: Sequence[Question]) -> bool:
    """Return whether something is being answered, or was to be and was stopped or came to nothing: then nothing begins by itself."""
    owner = run_owner()
    stopped = owner.cancelled(RAILS, _left(questions))
    return owner.run(RAILS) is not None or bool(owner.note(RAILS)) or stopped


def _left(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Return the questions that have neither an answer nor a reason why they have none."""
    answers, refusals = rail_answers(), run_owner().refusals(RAILS)
    keys = (one.key for one in questions)
    return tuple(dict.fromkeys(key for key in keys if key not in answers and key not in refusals))


def simulated(questions: Iterable[Question]) -> bool:
    """Return whether one of the questions is being answered beside the page."""
    running: Any = run_owner().key(RAILS) or ()
    return not {one.key for one in questions}.isdisjoint(running)


def simulate(questions: Sequence[Question], doing: str, offer: str, key: str, **more: Any) -> None:
    """Draw how far the simulation of questions is, or the button that starts it."""
    if simulated(questions):
        run_panel(RAILS, doing, place=key)
    else:
        button(offer, key, "play_arrow", start, questions, **more)


def nodes_of(job: Job) -> int:
    """Return how many nodes a job's iteration has; raises InputError where there is none."""
    return once("rail nodes", str(hash(job)), lambda: len(iteration_of(job)[0]))


def at_once(questions: Sequence[Question]) -> bool:
    """Return whether questions of one job are answered before anybody would look for a progress bar."""
    job = questions[0].job
    pace_s = rail_answers().pace_s.get(job)
    if pace_s is not None:
        return pace_s * len(questions) <= SOON_S
    return nodes_of(job) <= (RUN_AT_ONCE if len(questions) <= 2 else CURVE_AT_ONCE)


def answered(questions: Sequence[Question]) -> bool:
    """Have questions answered if that is quick; return whether all of them are. Raises InputError where one cannot be."""
    answers = rail_answers()
    left = [one for one in questions if one.key not in answers]
    for one in left:
        if (error := refusal(one)) is not None:
            raise error
    if not left:
        return True
    if not at_once(left):
        return False
    large = nodes_of(questions[0].job) > CURVE_AT_ONCE
    with st.spinner("Simulating the rail", show_time=True) if large else nullcontext():
        for one in left:
            began = time.monotonic()
            answers[one.key] = answer(one)
            answers.pace_s[one.job] = time.monotonic() - began
    return True


def run_of(question: Question) -> RailRun:
    """Return the run that answers a question which is known to be answered."""
    run = known(question)
    assert isinstance(run, RailRun)
    return run


def times_of(question: Question) -> tuple[float, float] | None:
    """Return the iteration on demand and provisioned, if they are known."""
    times = known(question)
    return None if isinstance(times, RailRun) else times
