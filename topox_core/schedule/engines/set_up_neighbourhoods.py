"""Large neighbourhoods of a schedule with set-ups: some tasks change places, all others keep their turns.

Godard, Laborie and Nuijten (2005) call what the others keep a partial order schedule: times move
freely within it.
"""

import time

import numpy as np

from topox_core.runs.run import never
from topox_core.schedule.bounds.windows import Windows, windows
from topox_core.schedule.circuits.disjunctions import Bools, pairs_in_turn
from topox_core.schedule.circuits.held_ports import Solution, carried_tasks
from topox_core.schedule.engines.best_known import BestKnown
from topox_core.schedule.engines.cpsat_model import Choice, Model, Value
from topox_core.schedule.problem import Int32, Problem
from topox_core.schedule.settings import TIME
from topox_core.schedule.source import TraceSource

SOURCE = TraceSource("neighbourhoods", "CP-SAT neighbourhoods with set-ups")
FREE_TASKS, FEWEST, MAX = 40, 10, 400
GROWS, SHRINKS = 1.1, 0.8


class TurnModel(Model):
    """All schedules within windows, tasks that are not free in the order and on the switches of one that is known.

    Parameters
    ----------
    problem
        Counts set-ups; a server has one port on each switch, and no switch may fill (eq. 7).
    known
        Says switches and turns.
    free
        Which tasks may change places and switches.
    """

    whole = False

    def __init__(
        self,
        problem: Problem,
        given: Windows,
        bound: int,
        horizon: int,
        known: Solution,
        free: Bools,
    ) -> None:
        assert known.ports is not None
        self._known, self._free, self._given = known, free, given
        self._switches = problem.switch_network.switches
        self._place = known.ports[0].tolist()
        self._switch: dict[int, list[Choice]] = {}
        self._together: dict[tuple[int, int], Choice] = {}
        super().__init__(problem, given, bound, horizon)

    def _add_resources(self) -> None:
        problem = self._problem
        if self._switches > 1:
            for j in carried_tasks(problem).tolist():
                if self._free[j]:
                    self._switch[j] = self._one_of(self._switches, self._place[j])
        for pair in pairs_in_turn(problem, self._known, self._free, self._given):
            both, where = (pair.first, pair.second), list[Choice]()
            if self._switches > 1 and not pair.anywhere:
                where = [self._on_one_switch(min(both), max(both))]
            self._keep_apart(pair, self._known.start, where)

    def _on_one_switch(self, i: int, j: int) -> Choice:
        """Return a literal that holds where both tasks, at least one of them free, are on one switch."""
        if i not in self._switch:
            return self._switch[j][self._place[i]]
        if j not in self._switch:
            return self._switch[i][self._place[j]]
        if (i, j) not in self._together:
            self._together[i, j] = same = self._model.new_bool_var("")
            for a, b in zip(self._switch[i], self._switch[j], strict=True):
                self._model.add_bool_or([a.negated(), b.negated(), same])
            self._model.add_hint(same, self._place[i] == self._place[j])
        return self._together[i, j]

    def ports(self, value: Value) -> Int32:
        """Return the ports that a solution says."""
        assert self._known.ports is not None
        ports = self._known.ports.copy()
        for j, literals in self._switch.items():
            ports[0, j] = int(np.argmax([value(literal) for literal in literals]))
        return ports


def search_with_set_ups(known: BestKnown, fruitless: float) -> None:
    """Shorten the best schedule, neighbourhood by neighbourhood, until its time is up or the gap closed.

    ``fruitless``: so many of them that bring nothing one after another end it.
    """
    problem, limit_s = known.problem, known.limits.time_limit_s
    rng = np.random.default_rng(known.limits.seed)
    size = float(FREE_TASKS)
    in_vain = 0
    while in_vain < fruitless and known.goes_on(limit_s):
        horizon = known.makespan - known.step
        given = windows(problem, horizon, known.counted)
        if (given.earliest > given.latest).any():
            return
        free = _neighbours(known.solution, problem.duration, round(size), rng)
        model = TurnModel(problem, given, known.bound, horizon, known.solution, free)
        began, shortest = time.monotonic(), known.makespan
        until_s = min(known.elapsed_s + TIME.neighbourhood_s, limit_s)
        ended = known.search(model.solve, horizon, until_s, never, SOURCE, "")
        in_vain += 1
        if known.makespan < shortest:
            in_vain = 0
        else:
            quick = ended != "stopped" and time.monotonic() - began < TIME.neighbourhood_s / 2
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
