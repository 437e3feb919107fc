"""Rounds for the page Sharing: the paper's answer at once, the better ones beside the page, all kept by digest and settings."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

import streamlit as st

from topox_core.check.report import CheckReport
from topox_core.check.round import check_round
from topox_core.errors import InputError
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.model.round import Round
from topox_core.tdm.model.traffic import TooFewPortsError
from topox_ui.jobs.search import Case, round_and_bound
from topox_ui.runs.shared import once

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
        best = self.certified or self.chosen or self.paper
        if best is None:
            raise ValueError("there is no round yet")
        return best

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
