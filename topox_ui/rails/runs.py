"""Simulations of rails: short ones at once, long ones in a process beside the page, watched, cancelled, kept."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

import streamlit as st

from topox_core.errors import InputError
from topox_core.rails.iteration import RailRun
from topox_core.rails.questions import Answer, Job, Question, answer, iteration_of
from topox_core.runs.child_processes import ChildProcesses, WorkerDied
from topox_ui.runs.attending import attend
from topox_ui.schedule.solving import BUSY, places

# Nodes of an iteration: up to the first, a whole curve is simulated at once; up to the second, one
# run is.
CURVE_AT_ONCE, RUN_AT_ONCE = 700, 8_000
SOON_S = 2.5
MOST_TIMES, MOST_RUNS = 4_000, 24


@dataclass
class RailDesk:
    """One session's simulations: what was answered, and what a child process is answering."""

    places: threading.BoundedSemaphore
    runs: OrderedDict[Question, RailRun] = field(default_factory=OrderedDict)
    times: OrderedDict[Question, tuple[float, float]] = field(default_factory=OrderedDict)
    failed: dict[Question, str] = field(default_factory=dict)
    note: str = ""
    asked: tuple[Question, ...] = ()
    began: float = 0.0
    pace_s: dict[Job, float] = field(default_factory=dict)
    _waiting: dict[Question, Future[Answer]] = field(default_factory=dict)
    _workers: ChildProcesses | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def known(self, question: Question) -> Answer | None:
        """Return an answer that is there."""
        key = question.key
        return self.runs.get(key) or self.times.get(key)

    def keep(self, question: Question, found: Answer) -> None:
        """Keep an answer; the oldest are forgotten."""
        kept, most = (
            (self.runs, MOST_RUNS) if isinstance(found, RailRun) else (self.times, MOST_TIMES)
        )
        cast("OrderedDict[Question, Any]", kept)[question.key] = found
        while len(kept) > most:
            kept.popitem(last=False)

    @property
    def running(self) -> bool:
        """Whether a child process is at work."""
        return bool(self._waiting)

    @property
    def done(self) -> int:
        """Questions of the batch that are answered."""
        return len(self.asked) - len(self._waiting)

    @property
    def elapsed_s(self) -> float:
        """Since the batch began."""
        return time.monotonic() - self.began

    def start(self, questions: Iterable[Question]) -> None:
        """Have what is not known answered, in this order; what runs for another setting is ended first."""
        self.close()
        self.note = ""
        open_ones = [
            one.key for one in questions if self.known(one) is None and one.key not in self.failed
        ]
        if not open_ones:
            return
        if not self.places.acquire(blocking=False):
            self.note = BUSY
            return
        # One process: it keeps the prepared iteration from one question to the next.
        self._workers = workers = ChildProcesses(1)
        self.asked, self.began = tuple(dict.fromkeys(open_ones)), time.monotonic()
        self._waiting = {one: workers.submit(answer, one) for one in self.asked}
        attend(lambda: self._workers is workers, self.poll)

    def poll(self) -> bool:
        """Take in what was answered; return True when the last of it has just come."""
        with self._lock:
            if self._workers is None:
                return False
            for question in [one for one, future in self._waiting.items() if future.done()]:
                self._take(question, self._waiting.pop(question))
            if self._waiting:
                return False
            self._ended()
        return True

    def _take(self, question: Question, future: Future[Answer]) -> None:
        try:
            self.keep(question, future.result())
        except InputError as error:
            self.failed[question] = str(error)
        except (WorkerDied, CancelledError) as error:
            self.failed[question] = self.note = (
                f"{str(error) or 'it was cancelled'}. Try a smaller job."
            )

    def cancel(self) -> None:
        """Stop at once; what was answered is kept."""
        with self._lock:
            self.poll()
            if self._waiting:
                self.note = "Stopped. What was simulated is kept."
            self._waiting = {}
            self._ended()

    def close(self) -> None:
        """End the child: the tab was closed, or other questions are asked."""
        with self._lock:
            self._waiting = {}
            self._ended()

    def _ended(self) -> None:
        if self._workers is not None:
            self._workers.kill()
            self._workers = None
            self.places.release()


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda desk: desk.close())
def rail_desk() -> RailDesk:
    """Return this session's desk; closing the tab ends its simulations."""
    return RailDesk(places())


@st.cache_resource(max_entries=32, show_spinner=False)
def _nodes(_job: Job, key: Any) -> int:  # noqa: ARG001 (the key is what the cache goes by)
    return len(iteration_of(_job)[0])


def nodes_of(job: Job) -> int:
    """Return how many nodes a job's iteration has; raises InputError where there is none."""
    return _nodes(job, str(hash(job)))


def at_once(questions: Sequence[Question]) -> bool:
    """Return whether questions of one job are answered before anybody would look for a progress bar."""
    job = questions[0].job
    pace = rail_desk().pace_s.get(job)
    if pace is not None:
        return pace * len(questions) <= SOON_S
    return nodes_of(job) <= (RUN_AT_ONCE if len(questions) <= 2 else CURVE_AT_ONCE)


def answered(questions: Sequence[Question]) -> bool:
    """Have questions answered if that is quick; return whether all of them are. Raises InputError where one cannot be."""
    desk = rail_desk()
    left = [one for one in questions if desk.known(one) is None]
    for one in left:
        if one.key in desk.failed:
            raise InputError(desk.failed[one.key])
    if not left:
        return True
    if not at_once(left):
        return False
    large = nodes_of(questions[0].job) > CURVE_AT_ONCE
    with st.spinner("Simulating the rail", show_time=True) if large else nullcontext():
        for one in left:
            began = time.monotonic()
            desk.keep(one, answer(one))
            desk.pace_s[one.job] = time.monotonic() - began
    return True


def run_of(question: Question) -> RailRun:
    """Return the run that answers a question which is known to be answered."""
    found = rail_desk().known(question)
    assert isinstance(found, RailRun)
    return found


def times_of(question: Question) -> tuple[float, float] | None:
    """Return the iteration on demand and provisioned, if they are known."""
    found = rail_desk().known(question)
    return None if isinstance(found, RailRun) else found
