"""The CP-SAT model of a schedule with set-ups in which most tasks keep their turns and switches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ortools.sat.python import cp_model

from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.held_ports import Solution, carried_tasks
from topox_core.schedule.engines.cpsat_model import Choice, Model
from topox_core.schedule.engines.port_turns import Bools, Follows, kept_apart, sides_in_turn
from topox_core.schedule.problem import Int32, Problem


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
        super().__init__(problem, given, bound, horizon, minimise=True)

    def _add_resources(self) -> None:
        problem = self._problem
        if self._switches > 1:
            for j in carried_tasks(problem).tolist():
                if self._free[j]:
                    self._switch[j] = self._one_of(self._switches, self._place[j])
        sides = sides_in_turn(problem, self._known)
        for pair in kept_apart(problem, sides, self._known, self._free, self._given):
            self._keep(pair)

    def _keep(self, pair: Follows) -> None:
        model, at, lasts = self._model, self._at, self._problem.duration
        i, j = pair.first, pair.second
        where: list[Choice] = []
        if pair.on_one_switch and self._switches > 1:
            where = [self._on_one_switch(min(i, j), max(i, j))]
        follows = at[j] >= at[i] + (int(lasts[i]) + pair.apart)
        if not pair.either:
            constraint = model.add(follows)
            if where:
                constraint.only_enforce_if(*where)
            return
        i_first = self._in_order(i, j, self._known.start)
        model.add(follows).only_enforce_if(i_first, *where)
        leads = at[i] >= at[j] + (int(lasts[j]) + pair.apart)
        model.add(leads).only_enforce_if(i_first.negated(), *where)

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

    def ports(self, value: Callable[[cp_model.IntVar], int]) -> Int32:
        """Return the ports that a solution says."""
        assert self._known.ports is not None
        ports = self._known.ports.copy()
        for j, literals in self._switch.items():
            ports[0, j] = int(np.argmax([value(literal) for literal in literals]))
        return ports
