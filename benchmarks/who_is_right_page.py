"""The six jobs of Who is right run again, and the tables of their document written from the run.

    python -m benchmarks.who_is_right_page --document docs/who-is-right.md [--check] [--workers N]

Every job has a part of its own; ``claims`` needs all six.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.document_parts import add_options, deliver
from topox_core.claims.cells import JOBS, Cell, cells_of, rivals_run
from topox_core.claims.claims import (
    CLAIMS,
    argument,
    crossing_words,
    measured_words,
    tried,
    verdict_words,
)
from topox_core.runs.run import finish

ALL = "claims"


def computed(jobs: Sequence[str] = tuple(JOBS), workers: int = 2) -> tuple[Cell, ...]:
    """Return the cells of some jobs, computed afresh."""
    results = finish(rivals_run(None, workers, jobs))
    assert results is not None
    assert all(one.complete for one in results.values())
    return cells_of(results)


def job_part(cells: Sequence[Cell], job: str) -> str:
    """Return what the document says of a job: how many cells each side wins, and up to which delay."""
    own = [one for one in cells if one.job == job]
    counts = {side: sum(one.side == side for one in own) for side in ("changing", "fixed", "even")}
    words = ", ".join(f"{side} {counts[side]}" for side in counts)
    return f"**{JOBS[job]}** ({words}). Changing circuits win at {crossing_words(cells, job)}."


def claims_part(cells: Sequence[Cell]) -> str:
    """Return the verdicts as a table."""
    lines = [argument(cells), "", "| claim | from | verdict | measured | printed |"]
    lines.append("| --- " * 5 + "|")
    for claim in CLAIMS:
        one = tried(claim, cells)
        numbers = measured_words(one)
        measured = f"{claim.measured}: {numbers}" if numbers else ""
        source = f"{claim.source}{' alone' * claim.abstract}"
        lines.append(
            f"| {claim.says} | {source} | {verdict_words(one)} | {measured} | {claim.published} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Write the parts, compare or print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    began = time.perf_counter()
    cells = computed(workers=options.workers)
    print(f"{len(cells)} cells in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    parts = {ALL: claims_part(cells), **{job: job_part(cells, job) for job in JOBS}}
    return deliver(options, parts)


if __name__ == "__main__":
    sys.exit(main())
