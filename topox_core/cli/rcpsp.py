"""``rcpsp``: solve a PSPLIB file with the same engines, to compare the core with published optima."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import read
from topox_core.cli.options import JSON, LIMITS, Option, settings
from topox_core.cli.printing import ctrl_c_stops, ended, figure, note, percent, table

if TYPE_CHECKING:
    from topox_core.schedule.result import TracePoint

ENGINES = ("auto", "list", "highs", "cpsat")


@command(
    "rcpsp",
    "solve a PSPLIB instance with the same engines",
    "Solve a single-mode PSPLIB file (.sm); print makespan, bound, status.",
    Option("file FILE.sm", str, "single-mode PSPLIB instance"),
    Option("--engine", ENGINES, "default auto", "auto"),
    JSON,
    LIMITS,
)
def run(options: Arguments) -> Answer:
    """Solve the instance; 1 without a schedule."""
    from topox_core.schedule.engines.waiting_workers import exact_engine, expect_request
    from topox_core.schedule.psplib import read_psplib
    from topox_core.schedule.solve import solve_problem
    from topox_core.warm_up import get_ready

    asked = settings(options)
    expect_request([exact_engine(asked.engine)])
    problem = read_psplib(read(options.file), options.file)
    if asked.engine != "list":
        get_ready()
    with ctrl_c_stops() as stop:
        result = solve_problem(problem, asked, stop, _note_point)
    makespan = None if result.makespan_ms is None else round(result.makespan_ms)
    record = {
        "file": options.file,
        "jobs": problem.n,
        "engine": options.engine,
        "status": result.status,
        "makespan": makespan,
        "bound": round(result.bound_ms),
        "gap": result.gap,
        "bound_by": result.bound_by,
        "stopped_by": result.stopped_by,
        "wall_s": round(result.wall_s, 3),
        "message": result.message,
    }
    lines = table(
        ("makespan", figure(makespan, "periods"), result.status),
        ("bound", figure(round(result.bound_ms), "periods"), result.bound_by),
        ("gap", percent(result.gap), ended(result.stopped_by, round(result.wall_s, 3))),
    )
    return Answer(record, filter(None, (lines, result.message)), 1 if makespan is None else 0)


def _note_point(point: TracePoint) -> None:
    makespan = "-" if point.incumbent_ms is None else f"{point.incumbent_ms:.0f}"
    note(
        f"{point.elapsed_s:7.1f} s  makespan {makespan}  bound {point.bound_ms:.0f}  ({point.source})"
    )
