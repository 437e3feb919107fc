"""``study rivals``: the claims of published networks against each other, on six jobs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable
from topox_core.cli.library_options import LIBRARY
from topox_core.cli.long_run import NO_LIBRARY, WORKERS, compute, library_of, write_rows
from topox_core.cli.options import JSON, Option, listed
from topox_core.cli.printing import note, show, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topox_core.claims.cells import Cell


def add(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``study``."""
    given.add_command(
        parts,
        "rivals",
        run,
        "who is right: published claims against each other",
        "Run six jobs on every network at delays from 10 ns to 1 s, two numbers and two speeds of ports, and say which "
        "published claims hold (docs/who-is-right.md).",
        Option("--jobs LIST", listed, "some of the jobs, such as dense,experts (default: all six)"),
        WORKERS,
        LIBRARY,
        NO_LIBRARY,
        Option("--csv FILE", str, "write every cell"),
        JSON,
    )


def run(options: argparse.Namespace) -> int:
    """Compute what is missing and print the verdicts; 1 if points are missing at the end."""
    from topox_core.claims.cells import JOBS, cells_of
    from topox_core.claims.report import as_record, cell_rows
    from topox_core.claims.rivals_run import rivals_run
    from topox_core.io.ranges import check_one_of

    if options.csv:
        must_be_writable(options.csv)
    for name in options.jobs or ():
        with given.settings_as_options(options, {"jobs": "--jobs"}):
            check_one_of(name, JOBS, file="settings", field="jobs")
    jobs = tuple(name for name in JOBS if not options.jobs or name in options.jobs)
    with library_of(options, to_write=True) as library:
        results = compute(options, lambda executor: rivals_run(library, executor, jobs))
    for line in dict.fromkeys(line for result in results.values() for line in result.lost):
        note(line)
    cells = cells_of(results)
    complete = all(result.complete for result in results.values())
    write_rows(options.csv, cell_rows(cells))
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
