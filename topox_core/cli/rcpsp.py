"""``rcpsp``: solve a PSPLIB file with the same engines, to compare the core with published optima."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import read
from topox_core.cli.options import JSON, Option
from topox_core.cli.printing import ctrl_c_stops, ended, figure, note, percent, show, table

if TYPE_CHECKING:
    from topox_core.schedule.result import TracePoint

ENGINES = ("auto", "list", "highs", "cpsat")


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    given.add_command(
        commands,
        "rcpsp",
        run,
        "solve a PSPLIB instance with the same engines",
        "Solve a single-mode PSPLIB file (.sm); print makespan, bound, status.",
        Option("file FILE.sm", str, "single-mode PSPLIB instance"),
        Option("--engine", ENGINES, "default auto", "auto"),
        JSON,
        given.add_limits,
    )


def run(options: argparse.Namespace) -> int:
    """Solve the instance and print what was found; 1 without a schedule."""
    from topox_core.schedule.engines.waiting_workers import exact_engine, expect_request
    from topox_core.schedule.psplib import read_psplib
    from topox_core.schedule.solve import solve_problem
    from topox_core.warm_up import get_ready

    settings = given.settings(options)
    expect_request([exact_engine(settings.engine)])
    problem = read_psplib(read(options.file), options.file)
    if settings.engine != "list":
        get_ready()
    with ctrl_c_stops() as stop:
        result = solve_problem(problem, settings, stop, _print_point)
    summary = {
        "file": options.file,
        "jobs": problem.n,
        "engine": options.engine,
        "status": result.status,
        "makespan": None if result.makespan_ms is None else round(result.makespan_ms),
        "bound": round(result.bound_ms),
        "gap": result.gap,
        "bound_by": result.bound_by,
        "stopped_by": result.stopped_by,
        "wall_s": round(result.wall_s, 3),
        "message": result.message,
    }
    show(options, summary, lambda: _print(summary))
    return 0 if result.makespan_ms is not None else 1


def _print_point(point: TracePoint) -> None:
    makespan = "-" if point.incumbent_ms is None else f"{point.incumbent_ms:.0f}"
    note(
        f"{point.elapsed_s:7.1f} s  makespan {makespan}  bound {point.bound_ms:.0f}  ({point.source})"
    )


def _print(summary: dict[str, Any]) -> None:
    table(
        ("makespan", figure(summary["makespan"], "periods"), summary["status"]),
        ("bound", figure(summary["bound"], "periods"), summary["bound_by"]),
        ("gap", percent(summary["gap"]), ended(summary["stopped_by"], summary["wall_s"])),
    )
    if summary["message"]:
        print(summary["message"])
