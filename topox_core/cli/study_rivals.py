"""``study rivals``: the claims of published networks against each other, on six jobs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, write
from topox_core.cli.library_options import LIBRARY
from topox_core.cli.options import JSON, Option, positive
from topox_core.cli.printing import ctrl_c_stops, note, show, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topox_core.claims.cells import Cell


def _list(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def add(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``study``."""
    given.add_command(
        parts,
        "rivals",
        run,
        "who is right: published claims against each other",
        "Run six jobs on every network at delays from 10 ns to 1 s, two numbers and two speeds of ports, and say which "
        "published claims hold (docs/who-is-right.md).",
        Option("--jobs LIST", _list, "some of the jobs, such as dense,experts (default: all six)"),
        Option("--workers N", positive, "processes on this machine (default: one a core)"),
        LIBRARY,
        Option("--no-library", bool, "keep nothing"),
        Option("--csv FILE", str, "write every cell"),
        JSON,
    )


def run(options: argparse.Namespace) -> int:
    """Compute what is missing and print the verdicts; 1 if points are missing at the end."""
    from topox_core.claims.cells import JOBS, cells_of
    from topox_core.claims.report import as_record, cell_rows
    from topox_core.claims.rivals_run import rivals_run
    from topox_core.cli.study import KEPT, library_of, watch
    from topox_core.io.ranges import check_one_of
    from topox_core.runs.executor import LocalExecutor

    if options.csv:
        must_be_writable(options.csv)
    for name in options.jobs or ():
        with given.settings_as_options(options, {"jobs": "--jobs"}):
            check_one_of(name, JOBS, file="settings", field="jobs")
    jobs = tuple(name for name in JOBS if not options.jobs or name in options.jobs)
    executor = LocalExecutor(options.workers)
    try:
        with library_of(options, to_write=True) as library, ctrl_c_stops(KEPT) as stop:
            one = rivals_run(library, executor, jobs)
            try:
                watch(one, stop)
            finally:
                one.close()
            results = one.result()
    finally:
        executor.kill()
    for line in dict.fromkeys(line for result in results.values() for line in result.lost):
        note(line)
    cells = cells_of(results)
    complete = all(result.complete for result in results.values())
    if options.csv:
        from topox_core.io.tables import table_bytes

        rows = cell_rows(cells)
        write(options.csv, table_bytes(tuple(rows[0]) if rows else (), rows))
    show(options, as_record(cells, complete), lambda: _print(cells, complete))
    return 0 if complete else 1


def _print(cells: Sequence[Cell], complete: bool) -> None:
    from topox_core.claims.cells import JOBS
    from topox_core.claims.claims import CLAIMS, argument, tried
    from topox_core.claims.report import crossing_words, measured_words, verdict_words

    print(argument(cells, complete))
    for claim in CLAIMS:
        one = tried(claim, cells)
        print(f"\n{claim.says}\n  {claim.source}{', from the abstract alone' * claim.abstract}")
        print(f"  {verdict_words(one)} ({claim.counted})")
        if measured := measured_words(one):
            printed = f"; printed: {claim.published}" if claim.published else ""
            print(f"  {claim.measured}: {measured}{printed}")
    print("\nWhere changing circuits win")
    table(
        ("job", "ports and speed, up to a delay of"),
        *((JOBS[job], crossing_words(cells, job)) for job in JOBS),
    )
