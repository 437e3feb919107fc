"""Rounds for the page Sharing: the paper's at once, better ones and the bound over every ring beside the page, all kept."""

import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import streamlit as st

from topox_core.check.report import CheckReport
from topox_core.check.round import check_round
from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import same_time
from topox_core.runs.run import FunctionRun, RunProgress
from topox_core.tdm.algorithms.catalogue import ALGORITHMS, solve
from topox_core.tdm.algorithms.round_bounds import bounded
from topox_core.tdm.model.jobs import (
    Jobs,
    Reading,
    Round,
    RoundTracePoint,
    TdmSettings,
)
from topox_core.tdm.model.round_words import lasting
from topox_core.tdm.model.rounds import alone_s, an_iteration_of, iterations_alike, per_iteration
from topox_core.tdm.model.traffic import Floats, TooFewPortsError
from topox_ui.runs.limits import server_limits
from topox_ui.runs.owner import RunKind, once, run_owner, worker_run
from topox_ui.runs.slots import SolverPlaces


@st.cache_resource(show_spinner=False)
def bound_places() -> SolverPlaces:
    """Return the places of bounds on this server, beside those of solves: nobody asked for them, and no proof waits for one."""
    return SolverPlaces(server_limits().solver_places)


ROUND = RunKind("round", cancel_help="Stops within a second or two; the best round so far is kept.")
BOUND = RunKind(
    "bound",
    places=bound_places,
    cancel_help="Stops at once; the round and its own bound are kept.",
)
# A script waits this long for an answer before it draws a progress bar instead.
FIRST_LOOK_S = 0.35
TIME_LIMIT_S = 60.0
# Past its time limit a search gets this long; a worker has to start first.
LATE_S = 15.0
# Up to so many jobs, in all and in one pod group, the bound over every ring takes a fraction of a
# second.
SOON_JOBS, SOON_IN_A_GROUP = 256, 14


def time_limit_s() -> float:
    """Return how long the search for a round may take on this server."""
    return server_limits().allowed_s(TIME_LIMIT_S)


@dataclass(frozen=True)
class Case:
    """Jobs under one reading: what a round belongs to."""

    jobs: Jobs
    reading: Reading

    def settings(self, algorithm: str) -> TdmSettings:
        """Return the settings of a solve by an algorithm."""
        return TdmSettings(algorithm=algorithm, reading=self.reading, time_limit_s=time_limit_s())

    def key(self, algorithm: str) -> str:
        """Everything a round depends on."""
        return f"{self.jobs.digest}|{self.settings(algorithm)!r}"


def round_and_bound(
    case: Case, algorithm: str, at_once: Round | None
) -> tuple[Round | None, Round | None]:
    """Return a case's round and the same with the bound over every ring, as far as they are known.

    What is not known is searched beside the page, and waited for until a user would notice.

    Parameters
    ----------
    at_once
        The round, if the page has it already.
    """
    owner, key = run_owner(), case.key(algorithm)
    until = time.monotonic() + FIRST_LOOK_S
    rounds, bounds = owner.results(ROUND), owner.results(BOUND)
    if at_once is None and key not in rounds and key not in owner.refusals(ROUND):
        if owner.run(ROUND, key) is None:
            search_round(case, algorithm)
        owner.wait(ROUND, until - time.monotonic())
    round_ = at_once or rounds.get(key)
    if round_ is None:
        return None, None
    if key not in bounds and round_.stopped_by != "cancelled" and not bound_stopped(key):
        if soon(round_.jobs):
            bounds[key] = bounded(round_)
        elif owner.run(BOUND, key) is None:
            search_bound(key, round_)
        owner.wait(BOUND, until - time.monotonic())
    return round_, bounds.get(key)


def bound_stopped(key: str) -> bool:
    """Return whether the bound of a round was stopped by the reader, or failed."""
    owner = run_owner()
    return owner.cancelled(BOUND, key) or key in owner.refusals(BOUND)


def search_round(case: Case, algorithm: str) -> None:
    """Search a round; what runs for another case is ended."""
    run_owner().end(BOUND)
    run_owner().start(
        ROUND,
        case.key(algorithm),
        lambda _slots: FunctionRun(
            partial(solve, case.jobs, case.settings(algorithm)),
            partial(_measure, case, algorithm),
            "share the fabric",
        ),
        at_most_s=TIME_LIMIT_S + LATE_S,
    )


def search_again(case: Case, algorithm: str) -> None:
    """Search once more (after a cancel)."""
    key = case.key(algorithm)
    for kind in (ROUND, BOUND):
        run_owner().results(kind).pop(key, None)
    search_round(case, algorithm)


def search_bound(key: str, round_: Round) -> None:
    """Work out the bound of a round over every ring."""
    missing = "the bound over every ring is missing"
    run_owner().start(BOUND, key, worker_run(missing, "", bounded, round_))


def _measure(
    case: Case, algorithm: str, points: tuple[RoundTracePoint, ...], elapsed_s: float
) -> RunProgress:
    points = per_iteration(points, iterations_alike(case.jobs) or 1.0)
    rounds = [point.round_s for point in points if point.round_s is not None]
    bound_s = max((point.bound_s for point in points), default=0.0)
    words = [ALGORITHMS[algorithm].title]
    if rounds:
        words.append(f"best {lasting(min(rounds))}")
        if bound_s > 0:
            words.append(f"bound {lasting(bound_s)}")
    return RunProgress(elapsed_s, min(1.0, elapsed_s / time_limit_s()), words=", ".join(words))


def soon(jobs: Jobs) -> bool:
    """Whether the bound over every ring is there before a worker process could start."""
    fullest = max(Counter(job.pod_group for job in jobs.jobs).values(), default=0)
    return len(jobs) <= SOON_JOBS and fullest <= SOON_IN_A_GROUP


AT_ONCE = ("non-tdm", "hill-climbing")


def at_once(case: Case, algorithm: str) -> Round:
    """Return the round of an algorithm that a slider can wait for; raises InputError where it cannot be."""
    with nullcontext() if len(case.jobs) < 100 else st.spinner("Climbing"):
        found = once(
            "round", case.key(algorithm), lambda: solve(case.jobs, case.settings(algorithm))
        )
        return _named(case, found)


def _named(case: Case, round_: Round) -> Round:
    """Return a round that may have been found for the same jobs under another name with this case's name."""
    return round_ if round_.jobs is case.jobs else replace(round_, jobs=case.jobs)


def token(case: Case, round_: Round) -> str:
    """Return a key for what is derived from this very round."""
    return f"{case.key(round_.algorithm)}|{round_.round_s}|{round_.bound_s}|{round_.wall_s}"


def verdict(case: Case, round_: Round) -> CheckReport:
    """Return what the independent checker says of a round."""
    return once("checked round", token(case, round_), lambda: check_round(round_))


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
    each
        How many iterations of each job a round has, where times are of one of them.
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
    each: float = 1.0

    def by_iteration(self) -> Self:
        """Return the same with times of an iteration, where all jobs do equally many in a round; else of a round."""
        rounds = {
            name: getattr(self, name) for name in ("together", "paper", "chosen", "certified")
        }
        halves = {name: one and an_iteration_of(one) for name, one in rounds.items()}
        return replace(self, **halves, each=iterations_alike(self.case.jobs) or 1.0)

    @property
    def unit(self) -> str:
        """What times are of: an iteration of each job, or a round, in which some jobs train once and others twice."""
        return "iteration" if iterations_alike(self.case.jobs) == self.each else "round"

    @property
    def known(self) -> bool:
        """Whether there is any round yet."""
        return (self.chosen or self.paper) is not None

    @property
    def best(self) -> Round:
        """The chosen round with its best bound, or the paper's until that is known; there is one once any is known."""
        best = self.certified or self.chosen or self.paper
        assert best is not None
        return best

    @property
    def alone_s(self) -> Floats:
        """How long each job takes with the fabric to itself."""
        jobs, reading = self.case.jobs, self.case.reading
        found = once("alone", f"{jobs.digest}|{reading!r}", lambda: alone_s(jobs, reading))
        return found / self.each

    @property
    def beside(self) -> tuple[float, str]:
        """What a time is compared with, in s and words: each job alone where all take as long, else all at once (0 if none)."""
        least, most = float(self.alone_s.min()), float(self.alone_s.max())
        if same_time(least, most):
            return most, "alone"
        return (self.together.round_s if self.together else 0.0), "all at once"

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
    at_once = {"hill-climbing": paper, "non-tdm": together}.get(algorithm)
    chosen, certified = (
        None if round_ is None else _named(case, round_)
        for round_ in round_and_bound(case, algorithm, at_once)
    )
    return Rounds(case, algorithm, together, paper, chosen, certified, crowded)


def _if_any(case: Case, algorithm: str) -> tuple[Round | None, InputError | None]:
    """Return a round, or why ports are too few for one."""
    try:
        return at_once(case, algorithm), None
    except TooFewPortsError as error:
        return None, error
