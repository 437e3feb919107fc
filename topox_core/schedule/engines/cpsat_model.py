"""Constraint models for CP-SAT (OR-Tools): a fixed-length interval a task, inside its time window.

This file, :mod:`topox_core.schedule.engines.cpsat_set_ups`,
:mod:`topox_core.schedule.engines.set_up_neighbourhoods` and :mod:`topox_core.tdm.exact` are the only
ones that know OR-Tools; nothing of it leaves.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from topox_core.errors import refuse_if
from topox_core.model.arrays.csr import row_of_entry
from topox_core.runs.run import Stop
from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.disjunctions import LEARNING_TASKS, Pair
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.engine import Ended, Limits
from topox_core.schedule.problem import Int, Int32, Problem

MAX_INTERVALS = 120_000
ASKING_S = 0.05  # how often a running solve is asked whether to stop

Choice = Any  # a literal of OR-Tools, or the negation of one
Value = Callable[[Any], int]  # of a variable in a solution


def refuse(problem: Problem) -> None:
    """Name the limits before memory is spent.

    Raises
    ------
    InputError
        If the problem has too many tasks, or transfers that share circuits.
    """
    refuse_if(
        (
            problem.n > MAX_INTERVALS,
            f"CP-SAT takes at most {MAX_INTERVALS:,} tasks and lowered transfers (got {problem.n:,}): use the list "
            "engine",
        ),
        (
            problem.shares,
            "CP-SAT has no model of shared circuits (eq. 6 as printed): use highs, or give every transfer its own "
            "circuit",
        ),
        file="settings",
        field="engine",
    )


class Model:
    """A model of all schedules within windows; makespans from ``bound`` to ``horizon`` ticks."""

    whole = True  # not of a neighbourhood, which learning from conflicts decides sooner however many tasks there are

    def __init__(self, problem: Problem, given: Windows, bound: int, horizon: int) -> None:
        self._problem, self._clock = problem, given.clock
        self._model = model = cp_model.CpModel()
        self._intervals: dict[int, cp_model.IntervalVar] = {}
        self._first: dict[tuple[int, int], Choice] = {}
        self._start = [
            model.new_int_var(low // step, high // step, "")
            for low, high, step in zip(
                given.earliest.tolist(), given.latest.tolist(), given.clock.tolist(), strict=True
            )
        ]
        self._at = [
            var if step == 1 else var * step
            for var, step in zip(self._start, given.clock.tolist(), strict=True)
        ]
        self._add_precedence()
        self._add_resources()
        self._makespan = model.new_int_var(bound, horizon, "makespan")
        for j in np.flatnonzero(np.diff(problem.succ_ptr) == 0).tolist():
            model.add(self._makespan >= self._at[j] + int(problem.duration[j]))
        model.minimize(self._makespan)

    def _add_precedence(self) -> None:
        p = self._problem
        duration = p.duration.tolist()
        after = row_of_entry(p.pred_ptr).tolist()
        for j, i in zip(after, p.pred_idx.tolist(), strict=True):
            self._model.add(self._at[j] >= self._at[i] + duration[i])

    def _add_resources(self) -> None:
        p, model, rooms = self._problem, self._model, self._problem.rooms.tolist()
        for r, tasks, amount in p.held_by_row():
            lasts = p.duration[tasks] > 0
            if int(amount[lasts].sum()) <= rooms[r]:
                continue
            intervals = [self._interval(j) for j in tasks[lasts].tolist()]
            if rooms[r] == 1:
                model.add_no_overlap(intervals)
            else:
                model.add_cumulative(intervals, amount[lasts].tolist(), rooms[r])

    def _interval(self, j: int) -> cp_model.IntervalVar:
        """Return the time that a task takes."""
        if j not in self._intervals:
            self._intervals[j] = self._model.new_fixed_size_interval_var(
                self._at[j], int(self._problem.duration[j]), ""
            )
        return self._intervals[j]

    def _one_of(self, many: int, known: int) -> list[Choice]:
        """Return literals of which exactly one holds, hinted as in a known schedule."""
        literals = [self._model.new_bool_var("") for _ in range(many)]
        self._model.add_exactly_one(literals)
        for value, literal in enumerate(literals):
            self._model.add_hint(literal, value == known)
        return literals

    def _in_order(self, i: int, j: int, known: Int) -> Choice:
        """Return a literal that says that ``i`` starts before ``j``; where it is new, hinted as in a known schedule."""
        if (j, i) in self._first:
            return self._first[j, i].negated()
        if (i, j) not in self._first:
            self._first[i, j] = literal = self._model.new_bool_var("")
            self._model.add_hint(literal, bool(known[i] < known[j]))
        return self._first[i, j]

    def _keep_apart(self, pair: Pair, known: Int, condition: list[Choice]) -> None:
        """Where the condition holds, one of two tasks starts some ticks after the other ends, as its window allows.

        If either can, a literal says which, hinted as in a known schedule; if neither can, the
        condition does not hold.
        """
        i, j, model, lasts = pair.first, pair.second, self._model, self._problem.duration
        follows = self._at[j] >= self._at[i] + (int(lasts[i]) + pair.apart)
        leads = self._at[i] >= self._at[j] + (int(lasts[j]) + pair.apart)
        if not pair.may_follow and not pair.may_lead:
            model.add_bool_or([literal.negated() for literal in condition])
        elif not pair.may_lead:
            model.add(follows).only_enforce_if(*condition)
        elif not pair.may_follow:
            model.add(leads).only_enforce_if(*condition)
        else:
            first = self._in_order(i, j, known)
            model.add(follows).only_enforce_if(first, *condition)
            model.add(leads).only_enforce_if(first.negated(), *condition)

    def hint(self, start: Int) -> None:
        """Tell a schedule to start from."""
        for var, value in zip(self._start, (start // self._clock).tolist(), strict=True):
            self._model.add_hint(var, value)
        if self._makespan is not None:
            self._model.add_hint(
                self._makespan, int((start + self._problem.duration).max(initial=0))
            )

    def solve(
        self,
        limits: Limits,
        stop: Stop,
        on_solution: Callable[[Solution], None],
        on_bound: Callable[[int], None],
    ) -> Ended:
        """Solve within the time limit or until ``stop()``; tell schedules and bounds as they come."""

        def on_values(value: Value) -> None:
            on_solution(self.solution(value))

        linear = self.whole and self._problem.n >= LEARNING_TASKS
        ended, bound = run_model(self._model, limits, linear, stop, on_values, on_bound)
        on_bound(bound)
        return ended

    def solution(self, value: Value) -> Solution:
        """Return the schedule that the values of variables say."""
        start = np.array([value(var) for var in self._start], np.int64) * self._clock
        return Solution(start, self.ports(value))

    def ports(self, value: Value) -> Int32 | None:  # noqa: ARG002
        """Return the ports that a solution says; the reduced problem has none."""
        return None


def divide_work(
    parameters: Any, workers: int, linear: bool = False, disjunctive: bool = False
) -> None:
    """Say what each worker does (``benchmarks/proofs.py`` measures it).

    Left alone (``linear``), OR-Tools gives the first of two workers linear programmes, and the second
    looks for schedules only, which the local search does. Without them, learning from conflicts
    decides small problems and neighbourhoods sooner. ``disjunctive`` lets the one that learns reason
    on pairs in cumulatives.
    """
    parameters.num_workers = workers
    if linear:
        return
    if workers == 1:
        parameters.linearization_level = 0
        return
    learning = type(parameters)()
    learning.name = "learning"
    learning.linearization_level = 0
    learning.use_disjunctive_constraint_in_cumulative = disjunctive
    parameters.subsolver_params.append(learning)
    parameters.extra_subsolvers.append(learning.name)
    if workers == 2:
        parameters.num_full_subsolvers = 2


def run_model(
    model: cp_model.CpModel,
    limits: Limits,
    linear: bool,
    stop: Stop,
    on_values: Callable[[Value], None],
    on_bound: Callable[[int], None],
) -> tuple[Ended, int]:
    """Solve a model within the time limit or until ``stop()``; return how that ended, and a bound.

    Parameters
    ----------
    linear
        See :func:`divide_work`.
    on_values
        Told every solution: what gives the value of a variable in it.
    on_bound
        Told every better bound.
    """
    solver, over = cp_model.CpSolver(), threading.Event()
    solver.parameters.max_time_in_seconds = max(0.01, limits.time_limit_s)
    solver.parameters.random_seed = limits.seed
    solver.parameters.symmetry_level = 1
    divide_work(solver.parameters, limits.threads, linear)
    solver.best_bound_callback = lambda bound: on_bound(round(bound))

    def watch() -> None:
        while not over.wait(ASKING_S):
            if stop():
                solver.stop_search()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        status = solver.solve(model, _Listener(on_values))
    finally:
        over.set()
        watching.join()
    if status == cp_model.MODEL_INVALID:
        raise RuntimeError(f"CP-SAT calls the model invalid: {model.validate()}")
    if status == cp_model.INFEASIBLE:
        return "infeasible", 0
    bound = round(solver.best_objective_bound) if status != cp_model.UNKNOWN else 0
    return "optimal" if status == cp_model.OPTIMAL else "stopped", bound


class _Listener(cp_model.CpSolverSolutionCallback):
    """Passes every solution on."""

    def __init__(self, on_values: Callable[[Value], None]) -> None:
        super().__init__()
        self._tell = on_values

    def on_solution_callback(self) -> None:
        self._tell(self.value)
