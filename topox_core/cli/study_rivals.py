"""``study rivals``: the claims of published networks against each other, on six jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.library_options import LIBRARY
from topox_core.cli.long_run import NO_LIBRARY, WORKERS, compute, library_of, write_rows
from topox_core.cli.options import JSON, Option, listed
from topox_core.cli.printing import note, table

if TYPE_CHECKING:
    from topox_core.claims.cells import Cell


@command(
    "rivals",
    "who is right: published claims against each other",
    "Run six jobs on every network at delays from 10 ns to 1 s, two numbers and two speeds of ports, and say which "
    "published claims hold (docs/who-is-right.md).",
    Option("--jobs LIST", listed, "some of the jobs, such as dense,experts (default: all six)"),
    WORKERS,
    LIBRARY,
    NO_LIBRARY,
    Option("--csv FILE", str, "write every cell", over=()),
    JSON,
)
def run(options: Arguments) -> Answer:
    """Compute what is missing and say which claims hold; 1 if points are missing at the end."""
    from topox_core.claims.cells import JOBS, cells_of
    from topox_core.claims.report import as_record, cell_rows
    from topox_core.claims.cells import rivals_run
    from topox_core.io.ranges import check_one_of

    for name in options.jobs or ():
        check_one_of(name, JOBS, file="command line", field="--jobs")
    jobs = tuple(name for name in JOBS if not options.jobs or name in options.jobs)
    with library_of(options, to_write=True) as library:
        results = compute(options, lambda executor: rivals_run(library, executor, jobs))
    note(*dict.fromkeys(line for result in results.values() for line in result.lost))
    cells = cells_of(results)
    complete = all(result.complete for result in results.values())
    write_rows(options.csv, cell_rows(cells))
    return Answer(as_record(cells, complete), _lines(cells, complete), 0 if complete else 1)


def _lines(cells: Sequence[Cell], complete: bool) -> Iterator[str]:
    from topox_core.claims.cells import JOBS
    from topox_core.claims.claims import CLAIMS, argument, tried
    from topox_core.claims.report import crossing_words, measured_words, verdict_words

    yield argument(cells, complete)
    for claim in CLAIMS:
        one = tried(claim, cells)
        yield f"\n{claim.says}\n  {claim.source}{', from the abstract alone' * claim.abstract}"
        yield f"  {verdict_words(one)} ({claim.counted})"
        if measured := measured_words(one):
            printed = f"; printed: {claim.published}" if claim.published else ""
            yield f"  {claim.measured}: {measured}{printed}"
    rows = ((JOBS[job], crossing_words(cells, job)) for job in JOBS)
    yield "\nWhere changing circuits win"
    yield table(("job", "ports and speed, up to a delay of"), *rows)
