"""The tables of schedule_suite as a page: which solver came to what on every instance, and which goals hold.

    python -m benchmarks.suite_page FILE.csv [FILE.csv ...] --suite FOLDER --output
    docs/schedule-suite.md

Solves of one instance and time limit, in one table or in several, are taken for seeds: a cell shows
the median and the worst of them, and the worst counts for the goals.
Reads what ``schedule_suite --csv`` wrote, on the machine that wrote it: the page names this one.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.schedule_suite import machine
from benchmarks.side_by_side.goals import Run, goals
from benchmarks.side_by_side.instances import Instance, instances
from benchmarks.side_by_side.solves import Solve

Column = tuple[str, float]
INTRODUCTION = """# Whole solves, measured

Written by `benchmarks/suite_page.py` from the tables of `benchmarks/schedule_suite.py`
([how it measures](../benchmarks/README.md#schedule_suite)) on {date}. Machine: {machine}.

Makespans are in slots, with the lower bound in brackets where the two differ. **Bold**: at or below the best value known
from the table beside the instances. Of several
seeds the median stands before a slash, the worst behind it, with the least bound. `plain-cpsat` is
OR-Tools on the straight model; ours are whole solves, reading and checking included.
"""


def solves_of(table: Path) -> Iterator[Solve]:
    """Yield the solves that a table holds."""
    with table.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            makespan = int(row["makespan"]) if row["makespan"] else None
            first_s = float(row["first_s"]) if row["first_s"] else None
            numbers = {
                name: float(row[name]) for name in ("seconds", "solve_s", "command_s", "memory_mb")
            }
            texts = {name: row[name] for name in ("instance", "who", "status", "bound_by")}
            yield Solve(
                makespan=makespan,
                bound=int(row["bound"]),
                first_s=first_s,
                checked=row["checked"] == "True",
                **numbers,
                **texts,
            )


def cell(one: Instance, solves: list[Solve]) -> str:
    """Return a makespan with its bound, or the time of the proof; of several seeds the median, and the worst behind a slash."""
    made = [solve for solve in solves if solve.makespan is not None]
    if len(made) < len(solves) or not made:
        return "none" if solves else ""
    typical, worst = made[len(made) // 2], made[-1]
    assert typical.makespan is not None and worst.makespan is not None
    value = f"{typical.makespan}" + (f"/{worst.makespan}" if len(made) > 1 else "")
    bound = min(solve.bound for solve in made)
    proved = bound >= worst.makespan
    if not proved:
        value = f"{value} ({bound})"
    if one.best_known is not None and typical.makespan <= one.best_known:
        value = f"**{value}**"
    return f"{value}, {median(solve.solve_s for solve in made):.2f} s" if proved else value


def page(run: Run, date: str, note: str) -> Iterator[str]:
    """Yield the lines of the page."""
    columns: list[Column] = sorted(
        {(solve.who, solve.seconds) for solve in run.solves},
        key=lambda one: (one[0] != "auto", one),
    )
    yield INTRODUCTION.format(date=date, machine=machine(2).partition(", load")[0])
    yield (
        "| instance | best known (bound) | "
        + " | ".join(f"{who}, {seconds:g} s" for who, seconds in columns)
        + " |"
    )
    yield "| --- " * (2 + len(columns)) + "|"
    for one in run.instances:
        known = (
            ""
            if one.best_known is None
            else f"{one.best_known}" + (f" ({one.best_bound})" if one.open else "")
        )
        cells = [cell(one, run.seeds_of(one.name, *column)) for column in columns]
        yield f"| {one.name} | {known} | " + " | ".join(cells) + " |"
    if note:
        yield f"\n{note}"
    yield "\n## Goals\n"
    yield "| goal | | why |\n| --- | --- | --- |"
    for verdict in goals(run):
        word = (
            "not measured" if verdict.holds is None else "holds" if verdict.holds else "**missed**"
        )
        yield f"| {' '.join(verdict.goal.split())} | {word} | {verdict.why} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "tables", type=Path, nargs="+", metavar="FILE.csv", help="what schedule_suite --csv wrote"
    )
    parser.add_argument(
        "--suite", type=Path, required=True, metavar="FOLDER", help="the folder that was measured"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.md")
    parser.add_argument(
        "--note",
        default="",
        metavar="TEXT",
        help="what a reader must know of these runs, such as what was measured apart",
    )
    options = parser.parse_args()
    run = Run(
        instances(options.suite), [solve for table in options.tables for solve in solves_of(table)]
    )
    options.output.write_text(
        "\n".join(page(run, datetime.date.today().isoformat(), options.note)) + "\n",
        encoding="utf-8",
    )
    print(f"{len(run.solves)} solves written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
