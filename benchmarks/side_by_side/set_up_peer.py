"""CP-SAT on the straight model of set-ups: schedules on real ports, and nothing of ours.

A Boolean for each switch and port that a transfer may hold, one for the order of every two transfers
that may share a port, and a reconfiguration delay between them unless they are one circuit. No
bound, no window, no schedule to start from, no rule against symmetry.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from topox_core.schedule.circuits.held_ports import (
    NOT_CARRIED,
    Solution,
    carried_tasks,
    solution_violation,
)
from topox_core.schedule.problem import Problem


@dataclass(frozen=True)
class PeerSolve:
    """Makespan (None without a schedule) and bound in ticks, seconds to the first schedule and in all."""

    makespan: int | None
    bound: int
    first_s: float | None
    solve_s: float
    proved: bool
    checked: bool


def straight_set_ups(problem: Problem, seconds: float, cores: int) -> PeerSolve:
    """Solve a problem that counts set-ups; seconds include building the model.

    Where eq. 7 can bind, every transfer takes its place on its switch a set-up before its start, as
    if its circuit changed: its schedules hold, its bounds do not and are left out.
    """
    began = time.monotonic()
    model = _Straight(problem)
    found: list[float] = []

    class Heard(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            found.append(time.monotonic() - began)

    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.01, seconds - (time.monotonic() - began))
    solver.parameters.num_workers = cores
    status = solver.solve(model.model, Heard())
    took_s = time.monotonic() - began
    holds = not problem.switch_network.switches_may_fill
    bound = round(solver.best_objective_bound) if status != cp_model.UNKNOWN and holds else 0
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return PeerSolve(None, bound, None, took_s, False, True)
    solution = model.solution(solver)
    makespan = int((solution.start + problem.duration).max(initial=0))
    checked = solution_violation(problem, solution) is None
    proved = status == cp_model.OPTIMAL and holds
    return PeerSolve(makespan, bound, found[0], took_s, proved, checked)


class _Straight:
    """The model and its variables."""

    def __init__(self, problem: Problem) -> None:
        net, dark = problem.switch_network, problem.dark_ticks or 0
        self.problem, self.net, self.dark = problem, net, dark
        self.model = cp_model.CpModel()
        self.lasts = problem.duration.tolist()
        self.carried = carried_tasks(problem).tolist()
        horizon = sum(self.lasts) + (dark + problem.ticks_per_slot) * len(self.carried)
        slot = problem.slot_clock.tolist()
        self.var = [self.model.new_int_var(0, horizon // step, "") for step in slot]
        self.at: list[Any] = [
            var if step == 1 else var * step for var, step in zip(self.var, slot, strict=True)
        ]
        after = np.repeat(np.arange(problem.n), np.diff(problem.pred_ptr))
        for i, j in zip(problem.pred_idx.tolist(), after.tolist(), strict=True):
            self.model.add(self.at[j] >= self.at[i] + self.lasts[i])
        for device in range(problem.devices):
            held = np.flatnonzero((problem.device == device) & (problem.duration > 0)).tolist()
            self.model.add_no_overlap(
                [
                    self.model.new_fixed_size_interval_var(self.at[j], self.lasts[j], "")
                    for j in held
                ]
            )
        self.switch = {j: self._one_of(net.switches) for j in self.carried}
        self.out_port = {j: self._one_of(net.ports_on_switch) for j in self.carried}
        self.in_port = {j: self._one_of(net.ports_on_switch) for j in self.carried}
        self._keep_set_ups()
        if net.switches_may_fill:
            self._keep_switch_limit()
        makespan = self.model.new_int_var(0, horizon, "")
        for j in range(problem.n):
            self.model.add(makespan >= self.at[j] + self.lasts[j])
        self.model.minimize(makespan)

    def _one_of(self, many: int) -> list[Any]:
        if many == 1:
            return [self.model.new_constant(1)]
        literals = [self.model.new_bool_var("") for _ in range(many)]
        self.model.add_exactly_one(literals)
        return literals

    def _same(self, one: list[Any], other: list[Any]) -> list[Any]:
        """Return no literal if two choices always agree, else one that holds where they do."""
        if len(one) == 1:
            return []
        same = self.model.new_bool_var("")
        for a, b in zip(one, other, strict=True):
            self.model.add_bool_or([a.negated(), b.negated(), same])
            self.model.add_bool_or([same.negated(), a.negated(), b])
        return [same]

    def _keep_set_ups(self) -> None:
        net = self.net
        for i, j in itertools.combinations(self.carried, 2):
            ends_i = [(net.source[i], self.out_port[i]), (net.destination[i], self.in_port[i])]
            ends_j = [(net.source[j], self.out_port[j]), (net.destination[j], self.in_port[j])]
            alike = ends_i[0][0] == ends_j[0][0] and ends_i[1][0] == ends_j[1][0]
            meeting = [
                (a, b)
                for (a, (here, _)), (b, (there, _)) in itertools.product(
                    enumerate(ends_i), enumerate(ends_j)
                )
                if here == there and (a == b or net.half_duplex)
            ]
            if not meeting:
                continue
            first, here = self.model.new_bool_var(""), self._same(self.switch[i], self.switch[j])
            at = {(a, b): self._same(ends_i[a][1], ends_j[b][1]) for a, b in meeting}
            for (a, b), port in at.items():
                self._apart(i, j, first, [*here, *port], 0 if alike and a == b else self.dark)
            if alike:  # one circuit on equal ports at both ends, two on equal ports at one
                for end, other in ((0, 1), (1, 0)):
                    for literal in at[other, other]:
                        self._apart(
                            i, j, first, [*here, *at[end, end], literal.negated()], self.dark
                        )

    def _apart(self, i: int, j: int, first: Any, shared: list[Any], dark: int) -> None:
        follows = self.at[j] >= self.at[i] + self.lasts[i] + dark
        leads = self.at[i] >= self.at[j] + self.lasts[j] + dark
        self.model.add(follows).only_enforce_if(first, *shared)
        self.model.add(leads).only_enforce_if(first.negated(), *shared)

    def _keep_switch_limit(self) -> None:
        for r in range(self.net.switches):
            held = [
                self.model.new_optional_fixed_size_interval_var(
                    self.at[j] - self.dark, self.lasts[j] + self.dark, self.switch[j][r], ""
                )
                for j in self.carried
            ]
            self.model.add_cumulative(held, [1] * len(held), self.net.circuits_per_switch)

    def solution(self, solver: cp_model.CpSolver) -> Solution:
        """Return the schedule of the solver with its ports."""
        start = np.array([solver.value(at) for at in self.at], np.int64)
        ports = np.full((3, self.problem.n), NOT_CARRIED, np.int32)
        for j in self.carried:
            for row, choice in enumerate((self.switch, self.out_port, self.in_port)):
                ports[row, j] = [solver.boolean_value(x) for x in choice[j]].index(True)
        return Solution(start, ports)
