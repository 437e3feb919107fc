"""One peer's solve in a process of its own: ``python -m benchmarks.side_by_side.peer NAME GRAPH CLUSTER SECONDS CORES``.

Says every better schedule and the end as JSON lines: makespan and bound in slots, seconds since its
solver began, and whether the schedule keeps every rule. Peers see the same reduced problem as our
engines, and nothing else of ours: no bounds, no windows, no schedule to start from.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import load_graph
from topox_core.model.lowering.lowering import lower
from topox_core.schedule.problem import Problem
from topox_core.schedule.rcpsp.feasibility import violation
from topox_core.schedule.rcpsp.reduction import reduce
from topox_core.schedule.settings import Settings

SETTINGS = Settings.of(circuits="per-slot", tick="slot")

Tell = Callable[[Any, float], None]  # start slots (or None) and the bound in slots


def plain_cpsat(
    problem: Problem,
    seconds: float,
    cores: int,
    tell: Tell,
    change: Callable[[Any], None] | None = None,
) -> tuple[Any, float, bool]:
    """Solve the straight interval model: no-overlap on devices and single ports, cumulative elsewhere, nothing more.

    ``change`` is given OR-Tools' parameters, for experiments.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    duration = problem.duration.tolist()
    horizon = sum(duration)
    start = [model.new_int_var(0, horizon - length, "") for length in duration]
    interval = [
        model.new_fixed_size_interval_var(var, length, "")
        for var, length in zip(start, duration, strict=True)
    ]
    for i, j in _precedences(problem):
        model.add(start[j] >= start[i] + duration[i])
    for tasks in _devices(problem):
        model.add_no_overlap([interval[j] for j in tasks])
    for capacity, uses in _resources(problem):
        if capacity == 1:
            model.add_no_overlap([interval[j] for j, _ in uses])
        else:
            model.add_cumulative(
                [interval[j] for j, _ in uses], [amount for _, amount in uses], capacity
            )
    makespan = model.new_int_var(0, horizon, "")
    for j in np.flatnonzero(np.diff(problem.succ_ptr) == 0).tolist():
        model.add(makespan >= start[j] + duration[j])
    model.minimize(makespan)

    class Heard(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            tell([self.value(var) for var in start], self.best_objective_bound)

    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = cores
    if change is not None:
        change(solver.parameters)
    status = solver.solve(model, Heard())
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return (
        [solver.value(var) for var in start] if found else None,
        solver.best_objective_bound,
        status == cp_model.OPTIMAL,
    )


def pyjobshop(problem: Problem, seconds: float, cores: int, _tell: Tell) -> tuple[Any, float, bool]:
    """Solve with PyJobShop's own model: machines, renewable resources, one mode a task."""
    from pyjobshop import Model

    model = Model()
    held: dict[int, list[Any]] = {j: [] for j in range(problem.n)}
    for tasks in _devices(problem):
        machine = model.add_machine()
        for j in tasks:
            held[j].append(
                (machine, 0)
            )  # a machine runs one task at a time; it has no capacity to ask for
    for capacity, uses in _resources(problem):
        resource = model.add_renewable(capacity)
        for j, amount in uses:
            held[j].append((resource, amount))
    free = model.add_renewable(problem.n)  # every mode needs a resource
    tasks = [model.add_task() for _ in range(problem.n)]
    for j, task in enumerate(tasks):
        uses = held[j] or [(free, 1)]
        model.add_mode(
            task,
            [resource for resource, _ in uses],
            int(problem.duration[j]),
            [amount for _, amount in uses],
        )
    for i, j in _precedences(problem):
        model.add_end_before_start(tasks[i], tasks[j])
    result = model.solve(time_limit=seconds, display=False, num_workers=cores)
    found = np.isfinite(result.objective)
    return (
        [task.start for task in result.best.tasks] if found else None,
        result.lower_bound,
        result.status.value == "Optimal",
    )


def printed(problem: Problem, seconds: float, cores: int, tell: Tell) -> tuple[Any, float, bool]:
    """Solve the model as printed, x[j,t] and a[r,x,y,t], with HiGHS."""
    from topox_core.schedule.engines.engine import Limits
    from topox_core.schedule.engines.printed import solve_printed

    answer = solve_printed(
        problem,
        Limits(seconds, threads=cores),
        on_progress=lambda told: tell(told.solution and told.solution.start, told.bound),
    )
    return answer.solution and answer.solution.start, answer.bound, answer.stopped_by == "proof"


PEERS = {"plain-cpsat": plain_cpsat, "pyjobshop": pyjobshop, "printed": printed}
IMPORTS = {
    "plain-cpsat": "ortools.sat.python.cp_model",
    "pyjobshop": "pyjobshop",
    "printed": "topox_core.schedule.engines.printed",
}


def _precedences(problem: Problem) -> list[tuple[int, int]]:
    after = np.repeat(np.arange(problem.n), np.diff(problem.pred_ptr))
    return list(zip(problem.pred_idx.tolist(), after.tolist(), strict=True))


def _devices(problem: Problem) -> list[list[int]]:
    tasks = [
        np.flatnonzero((problem.device == d) & (problem.duration > 0)).tolist()
        for d in range(problem.devices)
    ]
    return [one for one in tasks if len(one) > 1]


def _resources(problem: Problem) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return (capacity, [(task, amount), ...]) of every resource that can be short."""
    owner = np.repeat(np.arange(problem.n), np.diff(problem.demand_ptr))
    found = []
    for r, capacity in enumerate(problem.capacity.tolist()):
        entries = np.flatnonzero((problem.demand_resource == r) & (problem.duration[owner] > 0))
        if int(problem.demand_amount[entries].sum()) > capacity:
            found.append(
                (
                    capacity,
                    list(
                        zip(
                            owner[entries].tolist(),
                            problem.demand_amount[entries].tolist(),
                            strict=True,
                        )
                    ),
                )
            )
    return found


def main() -> int:
    name, graph_path, cluster_path, seconds, cores = sys.argv[1:]
    cluster = load_cluster(Path(cluster_path).read_bytes(), cluster_path)
    graph = load_graph(Path(graph_path).read_bytes(), graph_path)
    problem = reduce(lower(graph, SETTINGS.lowering), cluster, SETTINGS).problem
    import_module(IMPORTS[name])
    began = time.monotonic()

    def tell(start: Any, bound: float, ended: str = "") -> None:
        makespan, wrong = None, None
        if start is not None:
            ticks = np.array(start, np.int64)
            makespan, wrong = (
                int((ticks + problem.duration).max(initial=0)),
                violation(problem, ticks),
            )
        print(
            json.dumps(
                {
                    "makespan": makespan,
                    "bound": int(np.ceil(bound - 1e-6)),
                    "elapsed_s": time.monotonic() - began,
                    "checked": start is None or wrong is None,
                    "ended": ended,
                }
            ),
            flush=True,
        )

    print(json.dumps({"ready": True}), flush=True)
    start, bound, proved = PEERS[name](problem, float(seconds), int(cores), tell)
    tell(
        start,
        max(0.0, bound),
        "optimal" if proved else "feasible" if start is not None else "unknown",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
