"""``rcpsp``: solve a PSPLIB file with the same engines, to compare the core with published optima."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import read
from topox_core.cli.interrupt import ctrl_c_stops
from topox_core.cli.printing import as_json, ended, figure, note, percent, table

if TYPE_CHECKING:
    from topox_core.schedule.engines.engine import Answer, Progress
    from topox_core.schedule.problem import Problem

ENGINES = ("auto", "list", "highs", "cpsat")


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "rcpsp",
        allow_abbrev=False,
        help="solve a PSPLIB instance with the same engines",
        description="Solve a single-mode PSPLIB file (.sm); print makespan, bound, status.",
    )
    command.add_argument("file", metavar="FILE.sm", help="single-mode PSPLIB instance")
    command.add_argument(
        "--engine", choices=ENGINES, default="auto", metavar="|".join(ENGINES), help="default auto"
    )
    given.add_json(command)
    given.add_limits(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Solve the instance and print what was found; 1 without a schedule."""
    from topox_core.schedule.engines.engine import Limits
    from topox_core.schedule.psplib import read_psplib
    from topox_core.schedule.solve import solve_problem

    chosen = given.settings(options)  # refuses a limit that is none
    limits = Limits(chosen.time_limit_s, chosen.gap, chosen.seed, chosen.threads)
    problem = read_psplib(read(options.file), options.file)
    began = time.perf_counter()

    def tell(line: Progress) -> None:
        makespan = "-" if line.incumbent is None else str(line.incumbent)
        note(
            f"{time.perf_counter() - began:7.1f} s  makespan {makespan}  bound {line.bound}  ({line.source})"
        )

    with ctrl_c_stops() as stop:
        answer = solve_problem(problem, options.engine, limits, stop, tell)
    summary = _summary(options, problem, answer, time.perf_counter() - began)
    if options.json:
        as_json(summary)
    else:
        _print(summary)
    return 0 if answer.start is not None else 1


def _summary(
    options: argparse.Namespace, problem: Problem, answer: Answer, wall_s: float
) -> dict[str, Any]:
    makespan = answer.makespan(problem)
    status = "infeasible" if answer.infeasible else "unknown"
    if makespan is not None:
        status = "optimal" if answer.bound >= makespan else "feasible"
    gap = None if makespan is None else (makespan - answer.bound) / makespan if makespan else 0.0
    return {
        "file": options.file,
        "jobs": problem.n,
        "engine": options.engine,
        "status": status,
        "makespan": makespan,
        "bound": answer.bound,
        "gap": gap,
        "bound_by": answer.bound_by,
        "stopped_by": answer.stopped_by,
        "wall_s": round(wall_s, 3),
        "message": answer.message,
    }


def _print(summary: dict[str, Any]) -> None:
    table(
        [
            ("makespan", figure(summary["makespan"], "periods"), summary["status"]),
            ("bound", figure(summary["bound"], "periods"), summary["bound_by"]),
            ("gap", percent(summary["gap"]), ended(summary["stopped_by"], summary["wall_s"])),
        ]
    )
    if summary["message"]:
        print(summary["message"])
