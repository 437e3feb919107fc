"""What costs proofs: one change at a time between the straight CP-SAT model and our exact engine, on small projects.

    python -m benchmarks.proofs [--files FOLDER] [--made 12] [--seconds 5] [--cores 2] [--ways straight,auto]

Instances are the PSPLIB files (``.sm``) of a folder, and projects made as ProGen makes them (Kolisch, Sprecher and
Drexl, Management Science 1995) at its hardest setting of 30 jobs: every job asks for all four resources, of which there
is a fifth of the way between the least that is needed and all that an early schedule takes. Each is solved in every way
in turn, in a process of its own on the same cores. Prints a line for each instance with makespan, bound and the seconds
to the proof, and how many every way proved.

Ways: ``straight`` (the model alone, as a peer writes it), ``one-worker`` (the same with one), ``four`` (with two a
core), ``learning`` (a worker that learns from conflicts without linear programmes beside OR-Tools' first),
``one-learning`` (that worker alone), ``plain-learning`` (as ``learning``, and without disjunctive reasoning on pairs in
cumulatives, which is how we solve small problems). Then our model, its work divided as OR-Tools does: ``no-symmetry``
(which looks for less symmetry, in windows that end with a rule's schedule), ``hint`` (that schedule as a hint),
``horizon`` (only shorter schedules are looked for), ``windows`` (after propagation), ``shaved`` (after shaving). And
``auto`` (our whole solve).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.side_by_side.solves import ROOT
from topox_core.schedule.problem import Problem
from topox_core.schedule.rcpsp.psplib import read_psplib
from topox_core.schedule.settings import Settings

JOBS, RESOURCES, MAX_DURATION, MAX_DEMAND = 30, 4, 10, 10
ARCS_A_JOB, STRENGTH = 1.5, 0.2  # network complexity, resource strength


def made(seed: int) -> str:
    """Return a project of 30 jobs in the format of PSPLIB.

    Jobs stand in three layers of numbers; each job but the first follows an earlier one and random arcs are added up to
    the network complexity. A resource holds ``least + strength * (peak - least)`` units, where ``peak`` is what the
    schedule that starts everything at once asks for.
    """
    draw = np.random.default_rng(seed)
    arcs = {(int(draw.integers(max(0, j - 10), j)), j) for j in range(3, JOBS)}
    while len(arcs) < ARCS_A_JOB * JOBS:
        i, j = sorted(draw.choice(JOBS, 2, replace=False).tolist())
        arcs.add((i, j))
    duration = draw.integers(1, MAX_DURATION + 1, JOBS)
    demand = draw.integers(1, MAX_DEMAND + 1, (JOBS, RESOURCES))
    start = np.zeros(JOBS, np.int64)
    for i, j in sorted(arcs, key=lambda arc: arc[1]):
        start[j] = max(start[j], start[i] + duration[i])
    moments = np.arange(int((start + duration).max()))
    running = (start[:, None] <= moments) & (moments < (start + duration)[:, None])
    peak = (running[:, :, None] * demand[:, None, :]).sum(axis=0).max(axis=0)
    least = demand.max(axis=0)
    capacity = np.ceil(least + STRENGTH * (peak - least)).astype(int)
    after: list[list[int]] = [
        [j + 2 for i, j in sorted(arcs) if i == job] or [JOBS + 2] for job in range(JOBS)
    ]
    first = [job + 2 for job in range(JOBS) if all(j != job for _, j in arcs)]
    rows = [first, *after, []]
    lines = [
        f"jobs (incl. supersource/sink ):  {JOBS + 2}",
        f"  - renewable                 :  {RESOURCES}   R",
        "  - nonrenewable              :  0   N",
        "  - doubly constrained        :  0   D",
        "PRECEDENCE RELATIONS:",
        "jobnr.    #modes  #successors   successors",
        *(f"{k + 1} 1 {len(row)} {' '.join(map(str, row))}" for k, row in enumerate(rows)),
        "*" * 20,
        "REQUESTS/DURATIONS:",
        "jobnr. mode duration  R 1  R 2  R 3  R 4",
        "-" * 20,
        "1 1 0 0 0 0 0",
        *(f"{k + 2} 1 {duration[k]} {' '.join(map(str, demand[k]))}" for k in range(JOBS)),
        f"{JOBS + 2} 1 0 0 0 0 0",
        "*" * 20,
        "RESOURCEAVAILABILITIES:",
        "  R 1  R 2  R 3  R 4",
        " ".join(map(str, capacity)),
        "*" * 20,
    ]
    return "\n".join(lines) + "\n"


Found = tuple[int | None, int, float]  # makespan, bound, seconds


def straight(
    problem: Problem,
    seconds: float,
    cores: int,
    change: Callable[[Any], None] | None = None,
) -> Found:
    """Solve the straight model, with OR-Tools' parameters as ``change`` leaves them."""
    from benchmarks.side_by_side.peer import plain_cpsat

    began = time.monotonic()
    start, bound, _ = plain_cpsat(problem, seconds, cores, lambda _start, _bound: None, change)
    took = time.monotonic() - began
    makespan = None if start is None else int((np.array(start) + problem.duration).max(initial=0))
    return makespan, int(np.ceil(bound - 1e-6)), took


def one_worker(problem: Problem, seconds: float, cores: int) -> Found:  # noqa: ARG001 - one core is the point
    """Solve the straight model on one core."""
    return straight(problem, seconds, 1)


def learning(problem: Problem, seconds: float, cores: int, disjunctive: bool) -> Found:
    """Solve the straight model with our division of work among the workers, with disjunctive reasoning or without."""
    from topox_core.schedule.engines.cpsat_model import divide_work

    def change(parameters: Any) -> None:
        divide_work(parameters, cores, disjunctive=disjunctive)

    return straight(problem, seconds, cores, change)


def _within(
    problem: Problem, seconds: float, cores: int, hint: bool, shorter: bool, narrowed: str
) -> Found:
    """Solve our model from a rule's schedule, in windows of schedules that are no longer or shorter."""
    from topox_core.runs.run import never
    from topox_core.schedule.bounds.propagation import Propagator
    from topox_core.schedule.bounds.windows import windows
    from topox_core.schedule.engines.cpsat_model import Model
    from topox_core.schedule.engines.engine import Limits
    from topox_core.schedule.planning.planner import prepare_problem

    began = time.monotonic()
    prepared = prepare_problem(problem, Settings.of(engine="list", clock="slots"))
    plan, bound = prepared.planner.best_plan(never), prepared.reduction.bound.ticks
    horizon = plan.makespan - int(shorter)
    given = windows(problem, horizon)
    propagator = Propagator(problem)
    narrower = (
        given
        if narrowed == ""
        else (
            propagator.propagated(given, horizon)
            if narrowed == "propagated"
            else propagator.propagated(given, horizon, trials=True)
        )
    )
    if narrower is None:
        return plan.makespan, plan.makespan, time.monotonic() - began
    model = Model(problem, narrower, bound, horizon)
    if hint:
        model.hint(plan.start)
    found, bounds = [plan.start], [bound]
    limits = Limits(seconds - (time.monotonic() - began), threads=cores)
    ended = model.solve(limits, never, lambda one: found.append(one.start), bounds.append)
    took = time.monotonic() - began
    makespan = int((found[-1] + problem.duration).max())
    return makespan, makespan if ended == "infeasible" else max(bounds), took


def auto(problem: Problem, seconds: float, cores: int) -> Found:
    """Solve with everything we have."""
    from topox_core.schedule.solve import solve_problem

    settings = Settings.of(engine="auto", time_limit_s=seconds, threads=cores, clock="slots")
    result = solve_problem(problem, settings)
    assert result.makespan_ms is not None
    return round(result.makespan_ms), round(result.bound_ms), result.wall_s


WAYS: dict[str, Callable[[Problem, float, int], Found]] = {
    "straight": straight,
    "one-worker": one_worker,
    "four": lambda p, s, c: straight(p, s, 2 * c),
    "learning": lambda p, s, c: learning(p, s, c, True),
    "one-learning": lambda p, s, c: learning(p, s, 1, True),  # noqa: ARG005 - one core is the point
    "plain-learning": lambda p, s, c: learning(p, s, c, False),
    "no-symmetry": lambda p, s, c: _within(p, s, c, False, False, ""),
    "hint": lambda p, s, c: _within(p, s, c, True, False, ""),
    "horizon": lambda p, s, c: _within(p, s, c, False, True, ""),
    "windows": lambda p, s, c: _within(p, s, c, False, True, "propagated"),
    "shaved": lambda p, s, c: _within(p, s, c, False, True, "shaved"),
    "auto": auto,
}


def solve(path: str, way: str, seconds: float, cores: int) -> Found:
    """Return what one way finds on one file, in a process of its own on so many cores."""
    there = sorted(os.sched_getaffinity(0))[:cores]
    out = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.proofs",
            "--one",
            way,
            path,
            "--seconds",
            f"{seconds:g}",
            "--cores",
            str(cores),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, there),
    ).stdout
    makespan, bound, took = json.loads(out)
    return makespan, bound, took


def _one(way: str, path: str, seconds: float, cores: int) -> None:
    from topox_core.schedule.engines.waiting_workers import wait_until_loaded
    from topox_core.schedule.race.proof import LOADING_S
    from topox_core.warm_up import get_ready

    problem = read_psplib(Path(path).read_bytes(), path)
    if way not in ("straight", "one-worker"):
        get_ready()
        auto(read_psplib(made(0).encode(), "made"), 0.2, cores)
        wait_until_loaded("cpsat", LOADING_S)
    import ortools.sat.python.cp_model  # noqa: F401 - loaded before the clock starts, as for every way

    print(json.dumps(WAYS[way](problem, seconds, cores)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=Path, help="folder of PSPLIB files (.sm)")
    parser.add_argument("--made", type=int, default=12, help="projects made as ProGen makes them")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--one", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        _one(*options.one, options.seconds, options.cores)
        return 0
    ways = options.ways.split(",")
    with tempfile.TemporaryDirectory() as folder:
        paths = sorted(options.files.glob("*.sm")) if options.files else []
        for seed in range(1, options.made + 1):
            path = Path(folder) / f"made-{seed}.sm"
            path.write_text(made(seed))
            paths.append(path)
        print("instance".ljust(14), *(way.rjust(16) for way in ways))
        proved, shortest = dict.fromkeys(ways, 0), dict.fromkeys(ways, 0)
        for path in paths:
            found = {way: solve(str(path), way, options.seconds, options.cores) for way in ways}
            best = min(makespan for makespan, _, _ in found.values() if makespan is not None)
            cells = []
            for way, (makespan, bound, took) in found.items():
                proved[way] += makespan == bound
                shortest[way] += makespan == best
                cells.append(f"{makespan}/{bound} {took:.2f}".rjust(16))
            print(path.stem.ljust(14), *cells, flush=True)
    print("proved".ljust(14), *(str(proved[way]).rjust(16) for way in ways))
    print("shortest".ljust(14), *(str(shortest[way]).rjust(16) for way in ways))
    return 0


if __name__ == "__main__":
    sys.exit(main())
