"""Exact solves with HiGHS of problems that count set-ups.

Without presolve: with it HiGHS 1.15.1 called 6 slots optimal where 4 are (three transfers 1 -> 0 of
4, 1 and 3 slots on one switch with two ports, delay 2; its own relaxation says 4).
"""

from __future__ import annotations

import math

from topox_core.errors import InputError
from topox_core.runs.stopping import Stop
from topox_core.schedule.circuits.held_ports import Solution, held_back, solution_violation
from topox_core.schedule.engines import mip
from topox_core.schedule.engines.best_known import TOLERANCE
from topox_core.schedule.engines.engine import Answer, Limits, News, OnProgress, StoppedBy
from topox_core.schedule.engines.on_ports import SetUpRoot
from topox_core.schedule.engines.step_model import StepModel
from topox_core.schedule.engines.step_set_ups import MOST_COLUMNS, SetUpStepModel
from topox_core.schedule.problem import Problem
from topox_core.schedule.source import ENGINES

SOURCE = ENGINES["highs"]
BOUND_BY = "branch and bound with set-ups (HiGHS, step formulation)"


def solve_on_ports(
    problem: Problem,
    limits: Limits,
    stop: Stop,
    on_progress: OnProgress | None,
    news: News | None,
) -> Answer:
    """Solve a problem that counts set-ups, from a schedule with ports.

    The model holds the schedule at hand, so that it cannot be infeasible, and no bound of it can be
    higher: where HiGHS says otherwise, nothing that it says is believed.

    Raises
    ------
    InputError
        If the model would be large.
    """
    root = SetUpRoot.of(problem, limits, stop, on_progress)
    known, tick = root.known, root.tick
    if known.close_enough or stop() or known.left_s <= 0:
        return known.answer("cancelled" if stop() else "time_limit")
    model = SetUpStepModel(StepModel(root.coarse, root.windows(), root.bound, root.horizon))
    if model.columns > MOST_COLUMNS:
        raise InputError(
            f"with set-up times the model would have {model.columns:,} columns (limit {MOST_COLUMNS:,}): use cpsat or list",
            file="settings",
            field="engine",
        )
    unit, before = model.steps.step * tick, (known.bound, known.bound_by, known.bound_source)
    contradiction = ""

    def on_values(values: mip.Float) -> None:
        solution = model.solution(values)
        solution = held_back(problem, Solution(solution.start * tick, solution.ports))
        if solution_violation(problem, solution) is None:
            known.offer(solution.start, SOURCE, ports=solution.ports)

    def on_dual(dual: float) -> bool:
        nonlocal contradiction
        if math.isfinite(dual) and math.ceil(dual - TOLERANCE) * unit > known.makespan:
            contradiction = "HiGHS gave a bound above a schedule at hand"
            return True
        known.raise_dual(dual, unit, SOURCE, BOUND_BY)
        known.take_news(news)
        return known.close_enough

    assert known.ports is not None
    run = mip.Run(known.left_s, limits.gap, 1.0, limits.threads, limits.seed, presolve=False)
    start = model.known(Solution(known.start // tick, known.ports))
    outcome = mip.solve(model.build(), run, start, stop, on_values, on_dual)
    if outcome.ended == "infeasible":
        contradiction = "HiGHS called a model infeasible that holds a schedule at hand"
    elif not contradiction:
        if outcome.values is not None:
            on_values(outcome.values)
        on_dual(outcome.dual)
    if contradiction:
        known.bound, known.bound_by, known.bound_source = before
        return Answer(
            known.start,
            known.bound,
            known.bound_by,
            "failed",
            message=f"{contradiction}: its bounds are not believed",
            bound_source=known.bound_source,
            ports=known.ports,
        )
    ended: StoppedBy = "cancelled" if stop() else "time_limit"
    return known.answer(ended)
