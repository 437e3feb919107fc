"""Rounds for the Jobs page: the paper's answer at once, the better ones beside the page, all kept by digest and settings."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import streamlit as st

from topox_core.check.report import CheckReport
from topox_core.check.round import check_round
from topox_core.errors import InputError
from topox_core.tdm.algorithms.portfolio import SMALL_COLUMNS
from topox_core.tdm.bounds.round_bounds import bounded
from topox_core.tdm.exact.milp import too_large
from topox_core.tdm.model.jobs import Jobs, Reading
from topox_core.tdm.model.links import TooFewPortsError
from topox_core.tdm.model.round import Round, RoundTracePoint, TdmSettings
from topox_core.tdm.solve import solve
from topox_ui.jobs.beside import bounded_beside, solve_beside
from topox_ui.schedule.solving import BUSY, places
from topox_ui.shell.page import escape, headline

MOST_KEPT = 24
AT_ONCE = ("non-tdm", "hill-climbing")
# A script waits this long for an answer before it draws a progress bar instead.
FIRST_LOOK_S = 0.35
TIME_LIMIT_S = 60.0
CLOSING_S = 2.0  # how long a search waits for the place of the one before it
# Up to so many jobs, in all and in one pod group, the bound over every ring takes a fraction of a
# second.
SOON_JOBS, SOON_IN_A_GROUP = 256, 14


@dataclass(frozen=True)
class Case:
    """Jobs under one reading: what a round belongs to."""

    jobs: Jobs
    reading: Reading

    def settings(self, algorithm: str) -> TdmSettings:
        """Return what an algorithm is asked for."""
        return TdmSettings(algorithm=algorithm, reading=self.reading, time_limit_s=TIME_LIMIT_S)

    def key(self, algorithm: str) -> str:
        """Everything a round depends on."""
        return f"{self.jobs.digest}|{self.settings(algorithm).as_record()}"


@st.cache_resource(max_entries=96, show_spinner=False)
def _at_once(key: str, _case: Case, algorithm: str) -> Round:  # noqa: ARG001 (the key is what the cache goes by)
    return solve(_case.jobs, _case.settings(algorithm))


def _asks_highs(case: Case, algorithm: str) -> bool:
    """Whether an algorithm solves an integer program, which must not happen in the process that serves pages."""
    if algorithm != "best":
        return algorithm == "milp"
    return not too_large(case.jobs, case.reading, SMALL_COLUMNS)


def at_once(case: Case, algorithm: str) -> Round:
    """Return the round of an algorithm that a slider can wait for; raises InputError where it cannot be."""
    with nullcontext() if len(case.jobs) < 100 else st.spinner("Climbing"):
        return _named(case, _at_once(case.key(algorithm), case, algorithm))


def _named(case: Case, round_: Round) -> Round:
    """Return a round that may have been found for the same jobs under another name with this case's name."""
    return round_ if round_.jobs is case.jobs else replace(round_, jobs=case.jobs)


@st.cache_resource(max_entries=48, show_spinner=False)
def _verdict(key: str, _round: Round) -> CheckReport:  # noqa: ARG001
    return check_round(_round)


def token(case: Case, round_: Round) -> str:
    """Return a key for what is derived from this very round."""
    return f"{case.key(round_.algorithm)}|{round_.round_s}|{round_.bound_s}|{round_.wall_s}"


def verdict(case: Case, round_: Round) -> CheckReport:
    """Return what the independent checker says of a round."""
    return _verdict(token(case, round_), round_)


@dataclass
class RoundDesk:
    """One session's search for a better round: what it told so far, and the rounds that were found.

    The search runs in a thread that asks whether to stop; exact solves wait there for a child
    process. The bound over every ring comes after it: where that takes long it has a child of its
    own, which is ended with the search, and it holds no place of a solver.

    Attributes
    ----------
    refused
        Why an algorithm has no round: it refuses the size, or ports are too few.
    unbounded
        Keys of the rounds whose bound was stopped by the reader.
    """

    places: threading.BoundedSemaphore
    bounding: threading.BoundedSemaphore
    rounds: dict[str, Round] = field(default_factory=dict)
    certified: dict[str, Round] = field(default_factory=dict)
    refused: dict[str, InputError] = field(default_factory=dict)
    unbounded: set[str] = field(default_factory=set)
    told: list[RoundTracePoint] = field(default_factory=list)
    key: str = ""
    note: str = ""
    began: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _failed: Exception | None = None

    def wanted(self, key: str) -> bool:
        """Whether there is still something to find out that the reader did not stop."""
        if key in self.refused or key in self.certified:
            return False
        found = self.rounds.get(key)
        return found is None or (found.stopped_by != "cancelled" and key not in self.unbounded)

    def start(self, case: Case, algorithm: str) -> None:
        """Start a search, or only the bound of a round that is there; what runs for another case is ended."""
        self._stop.set()
        self.note, key = "", case.key(algorithm)
        known = self.rounds.get(key)
        if known is None and not self.places.acquire(timeout=CLOSING_S):
            self.note, self.key = BUSY, ""
            return
        self.unbounded.discard(key)
        self.key, self.told, self._stop, self._failed = key, [], threading.Event(), None
        self.began = time.monotonic()
        self._thread = threading.Thread(
            target=self._work,
            args=(case, algorithm, known, self.told.append, self._stop),
            daemon=True,
            name="share the fabric",
        )
        self._thread.start()

    def _work(
        self,
        case: Case,
        algorithm: str,
        known: Round | None,
        tell: Callable[[RoundTracePoint], None],
        stop: threading.Event,
    ) -> None:
        key = case.key(algorithm)
        try:
            round_ = known or self._solved(case, algorithm, tell, stop)
            if self.key != key and round_.stopped_by == "cancelled":
                return  # the reader had moved on; half an answer would be taken for the whole one
            if known is None:
                _put(self.rounds, key, round_)
            if not stop.is_set():
                self._bound(key, round_, stop)
        except InputError as error:
            self.refused[key] = error
        except Exception as error:
            if self.key == key:
                self._failed = error

    def _solved(
        self,
        case: Case,
        algorithm: str,
        tell: Callable[[RoundTracePoint], None],
        stop: threading.Event,
    ) -> Round:
        try:
            run = solve_beside if _asks_highs(case, algorithm) else solve
            return run(case.jobs, case.settings(algorithm), stop.is_set, tell)
        finally:
            self.places.release()

    def _bound(self, key: str, round_: Round, stop: threading.Event) -> None:
        """Keep the round with its bound over every ring, unless that is stopped."""
        if soon(round_.jobs):
            _put(self.certified, key, bounded(round_))
            return
        while not self.bounding.acquire(timeout=0.1):
            if stop.is_set():
                return
        try:
            found = bounded_beside(round_, stop.is_set)
        finally:
            self.bounding.release()
        if found is not None:
            _put(self.certified, key, found)
        elif self.key == key:
            self.unbounded.add(key)

    def running(self, case: Case, algorithm: str) -> bool:
        """Whether the search for this very round goes on."""
        return (
            self.key == case.key(algorithm) and self._thread is not None and self._thread.is_alive()
        )

    def wait(self, seconds: float) -> None:
        """Wait a little for the end of the search; a defect of ours is raised here and stays loud."""
        if self._thread is not None:
            self._thread.join(seconds)
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def again(self, case: Case, algorithm: str) -> None:
        """Search once more (after a cancel)."""
        self.rounds.pop(case.key(algorithm), None)
        self.certified.pop(case.key(algorithm), None)
        self.start(case, algorithm)

    def cancel(self) -> None:
        """Ask the search to stop; it answers with the best so far."""
        if self.key in self.rounds:
            self.unbounded.add(self.key)
        self._stop.set()

    def close(self) -> None:
        """End the search: the tab was closed."""
        self._stop.set()


def soon(jobs: Jobs) -> bool:
    """Whether the bound over every ring is there before a child process could start."""
    each = [0] * jobs.network.pod_groups
    for job in jobs.jobs:
        each[job.pod_group] += 1
    return len(jobs) <= SOON_JOBS and max(each) <= SOON_IN_A_GROUP


def _put(kept: dict[str, Round], key: str, round_: Round) -> None:
    kept[key] = round_
    while len(kept) > MOST_KEPT:
        kept.pop(next(iter(kept)))


@st.cache_resource(show_spinner=False)
def bounding_places() -> threading.BoundedSemaphore:
    """Return the semaphore that bounds how many bounds are worked out on this machine at once, beside the solves."""
    return threading.BoundedSemaphore(max(1, os.cpu_count() or 1))


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda desk: desk.close())
def round_desk() -> RoundDesk:
    """Return this session's desk; closing the tab ends its search."""
    return RoundDesk(places(), bounding_places())


@dataclass(frozen=True)
class Rounds:
    """What the page sets side by side.

    Attributes
    ----------
    together, paper
        Without time division, and of hill climbing; None where it finds none because ports are too
        few.
    crowded
        Why there is no round of all jobs at once: the pod, what it has and what it needs.
    chosen
        The round of the chosen algorithm; None while it is not known.
    certified
        The same with the bound over every grouping and every ring; None while that is being worked
        out.
    """

    case: Case
    algorithm: str
    together: Round | None
    paper: Round | None
    chosen: Round | None
    certified: Round | None
    crowded: InputError | None = None

    @property
    def known(self) -> bool:
        """Whether there is any round yet."""
        return (self.chosen or self.paper) is not None

    @property
    def best(self) -> Round:
        """The chosen round with its best bound, or the paper's until that is known.

        Raises
        ------
        ValueError
            If there is none yet.
        """
        found = self.certified or self.chosen or self.paper
        if found is None:
            raise ValueError("there is no round yet")
        return found

    @property
    def beside(self) -> list[Round]:
        """The rounds to compare with, the paper's first; none where all jobs at once do not fit."""
        return [round_ for round_ in (self.paper, self.together) if round_ is not None]

    @property
    def saved(self) -> float:
        """Share of the round without sharing that the best one saves, 0 to 1; 0 where there is no such round."""
        return (
            1.0 - self.best.round_s / self.together.round_s
            if self.together and self.together.round_s > 0
            else 0.0
        )


def rounds_of(case: Case, algorithm: str) -> Rounds:
    """Return the rounds of a case, the chosen algorithm's if it is there or comes within the blink of an eye.

    Raises
    ------
    InputError
        If an algorithm refuses the size.
    """
    together, crowded = _if_any(case, "non-tdm")
    paper, _ = _if_any(case, "hill-climbing")
    desk, key = round_desk(), case.key(algorithm)
    if desk.wanted(key) and not desk.running(case, algorithm):
        desk.start(case, algorithm)
    desk.wait(FIRST_LOOK_S if desk.running(case, algorithm) else 0.0)
    searched, certified = (
        None if round_ is None else _named(case, round_)
        for round_ in (desk.rounds.get(key), desk.certified.get(key))
    )
    known = {"hill-climbing": paper, "non-tdm": together}.get(algorithm, searched)
    return Rounds(case, algorithm, together, paper, known, certified, crowded)


def _if_any(case: Case, algorithm: str) -> tuple[Round | None, InputError | None]:
    """Return a round, or why ports are too few for one."""
    try:
        return at_once(case, algorithm), None
    except TooFewPortsError as error:
        return None, error


def with_network(
    jobs: Jobs, ports: int | None, port_gbps: float | None, reconfiguration_ms: float | None
) -> Jobs:
    """Return the jobs on a changed network; the way into a pod keeps its share of what leaves it."""
    network = jobs.network
    changed = replace(
        network,
        ports_per_pod=network.ports_per_pod if ports is None else ports,
        port_gbps=network.port_gbps if port_gbps is None else port_gbps,
        reconfiguration_ms=network.reconfiguration_ms
        if reconfiguration_ms is None
        else reconfiguration_ms,
    )
    share = network.tor_gbps / (network.ports_per_pod * network.port_gbps)
    changed = replace(changed, tor_gbps=share * changed.ports_per_pod * changed.port_gbps)
    return jobs if changed == network else replace(jobs, network=changed)


@contextmanager
def told_here(kicker: str) -> Iterator[None]:
    """Turn bad input, or ports that are too few, into one line on the page, and stop there."""
    try:
        yield
    except InputError as error:
        headline(
            escape(kicker),
            "These jobs <b>cannot share</b> this network. Change a what-if on the left, or take other jobs.",
        )
        st.error(str(error).replace("$", "\\$"), icon="⚠️")
        st.stop()
