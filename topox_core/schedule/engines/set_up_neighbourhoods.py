"""Large neighbourhoods of a schedule with set-ups: some tasks change places, all others keep their turns.

Godard, Laborie and Nuijten (2005) call what the others keep a partial order schedule: times move
freely within it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.windows import Windows, clocks, step_of, windows, within
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.best_known import BestKnown
from topox_core.schedule.engines.cpsat_model import Run
from topox_core.schedule.engines.cpsat_turns import TurnModel
from topox_core.schedule.engines.engine import News
from topox_core.schedule.engines.port_turns import Bools
from topox_core.schedule.problem import Int
from topox_core.schedule.source import TraceSource

SOURCE = TraceSource("neighbourhoods", "CP-SAT neighbourhoods with set-ups")
FREE_TASKS, FEWEST, MAX = 40, 10, 400
ROUND_S = 1.0  # at most, for one neighbourhood
GROWS, SHRINKS = 1.1, 0.8


@dataclass(frozen=True)
class SetUpRoot:
    """What is known before a model is built: the best schedule and bound, and each task's head and tail, set-ups counted."""

    known: BestKnown
    head: Int
    tail: Int

    def windows(self, horizon: int) -> Windows:
        """Return the windows of schedules that end by the horizon."""
        problem = self.known.problem
        return within(windows(problem, horizon), problem, self.head, self.tail, horizon)


def search_with_set_ups(root: SetUpRoot, stop: Stop, news: News | None, fruitless: float) -> None:
    """Shorten the best schedule of a root, neighbourhood by neighbourhood, until its time is up or the gap closed.

    ``fruitless``: so many of them that bring nothing one after another end it.
    """
    known, problem = root.known, root.known.problem
    rng = np.random.default_rng(known.limits.seed)
    size = float(FREE_TASKS)
    step = step_of(problem, clocks(problem))
    in_vain = 0
    while not known.close_enough and not stop() and known.left_s > 0 and in_vain < fruitless:
        known.take_news(news)
        horizon = known.makespan - step
        given = root.windows(horizon)
        if (given.earliest > given.latest).any():
            return
        current = Solution(known.start, known.ports)
        free = _neighbours(current, problem.duration, round(size), rng)
        model = TurnModel(problem, given, known.bound, horizon, current, free)
        began, shortest = time.monotonic(), known.makespan
        outcome = model.solve(
            Run(min(ROUND_S, max(0.0, known.left_s)), known.limits.threads, known.limits.seed),
            lambda: stop() or known.left_s <= 0,
        )
        if outcome.start is not None:
            known.offer(outcome.start, SOURCE, ports=outcome.ports)
        decided = outcome.ended in ("infeasible", "optimal")
        in_vain += 1
        if known.makespan < shortest:
            in_vain = 0
        else:
            quick = decided and time.monotonic() - began < ROUND_S / 2
            size = min(MAX, size * GROWS) if quick else max(FEWEST, size * SHRINKS)


def _neighbours(
    current: Solution, duration: np.ndarray, many: int, rng: np.random.Generator
) -> Bools:
    """Return which tasks are free: those nearest in time to one drawn at random."""
    timed = np.flatnonzero(duration > 0)
    middle = 2 * current.start + duration
    centre = middle[rng.choice(timed)]
    nearest = timed[np.argsort(np.abs(middle[timed] - centre), kind="stable")[:many]]
    free = np.zeros(len(duration), np.bool_)
    free[nearest] = True
    return free
