"""``study``: many what-ifs at once, each kept the moment it is done."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from topox_core.claims.cells import JOBS, Cell, cells_of, rivals_run
from topox_core.claims.claims import (
    CLAIMS,
    argument,
    as_record as claims_record,
    cell_rows,
    crossing_words,
    measured_words,
    tried,
    verdict_words,
)
from topox_core.cli.shared.command import Answer, Arguments, Commands, command
from topox_core.cli.shared.files import write
from topox_core.cli.shared.library import (
    CSV,
    LIBRARY,
    NO_LIBRARY,
    SCHEDULER,
    WORKERS,
    compute,
    library_of,
    write_rows,
)
from topox_core.cli.shared.options import (
    JSON,
    Option,
    listed,
)
from topox_core.cli.shared.printing import cell, columns, note, table
from topox_core.cli.studies.buy import buy
from topox_core.errors import look_up, refuse_if
from topox_core.io.assertions import FAILED
from topox_core.io.content import record_of
from topox_core.io.limits import check_one_of
from topox_core.library.run_library import RunLibrary
from topox_core.runs.executor import Executor
from topox_core.runs.identity import code_version
from topox_core.studies.ready import READY, study_given
from topox_core.studies.slices import failed_assertions, records
from topox_core.studies.study_run import (
    StudyPlan,
    StudyResult,
    StudyRun,
    known_rows,
    plan_of,
    probe_s,
)
from topox_core.text.numbers import plural

SHOWN_ROWS = 40
FILE = Option("study STUDY", str, "a study file, or the name of a ready one (study ready)")


def _plan(options: Arguments, library: RunLibrary | None) -> StudyPlan:

    study, folder = study_given(options.study, library)
    return plan_of(study, library, folder)


@command(
    "Compute the points that the library lacks.",
    FILE,
    WORKERS,
    SCHEDULER,
    LIBRARY,
    NO_LIBRARY,
    CSV,
    JSON,
)
def run(options: Arguments) -> Answer:
    """Compute a study; 1 if points are missing at the end."""
    with library_of(options, to_write=True) as library:
        plan = _plan(options, library)
        known = known_rows(plan, library)

        def begun(executor: Executor) -> StudyRun:
            points, missing = plural(len(plan.cells), "point"), len(plan.keys) - len(known)
            kept = f", {len(known)} kept" if known else ""
            note(f"{plan.study.name}: {points}, {missing} to compute{kept}")
            return StudyRun(plan, library, executor)

        result: StudyResult = compute(options, begun)
    note(*result.lost)
    if not result.complete:
        again = "" if options.no_library else f"; go on with: topox study run {options.study}"
        note(f"{result.done} of {plural(len(result.rows), 'point')} are computed{again}")
    return _answer(options, result, everything=False)


def _answer(options: Arguments, result: StudyResult, everything: bool) -> Answer:
    """Return the table of a study, and write it; 3 if an assertion failed, else 1 if points are missing."""
    rows, failed = records(result, everything), failed_assertions(result)
    write_rows(options.csv, rows)
    note(*failed)
    record = {
        "study": result.study.name,
        "complete": result.complete,
        "failed_assertions": failed,
        "points": rows,
    }
    status = FAILED if failed else 0 if result.complete else 1
    return Answer(record, _lines(result, rows) if rows else (), status)


def _lines(result: StudyResult, rows: list[dict[str, Any]]) -> list[str]:
    axes = [axis.key.name for axis in result.study.axes]
    if result.study.design.kind == "one_at_a_time":
        rows = [_moved(row, axes) for row in rows]
    head = [key for key in rows[0] if key not in ("message", "run", "version")]
    cells = (tuple(cell(row[key]) for key in head) for row in rows[:SHOWN_ROWS])
    lines = [table(tuple(key.rpartition(".")[2] for key in head), *cells)]
    if len(rows) > SHOWN_ROWS:
        lines.append(f"... {len(rows) - SHOWN_ROWS:,} more (--json or --csv has all)")
    failed = [row for row in rows if row["status"] == "failed"]
    return lines + [f"point {row['point']}: {row['message']}" for row in failed[:3]]


def _moved(row: dict[str, Any], axes: list[str]) -> dict[str, Any]:
    """Return a row of one axis at a time with the axis that moved and its value in place of all axes."""
    key = next((key for key in axes if row[key] is not None), "")
    rest = {name: value for name, value in row.items() if name not in (*axes, "point")}
    return {"point": row["point"], "moved": key or "nothing", "to": row.get(key), **rest}


@command(
    "Without a file: the studies of the library. With one: its points, which are computed, and the time of the rest.",
    Option("study STUDY", str, FILE.help, nargs="?"),
    LIBRARY,
    JSON,
)
def status(options: Arguments) -> Answer:
    """Return how far a study is, or all of a library."""
    with library_of(options) as library:
        assert library is not None
        if options.study is None:
            return _list(library)
        plan = _plan(options, library)
        known = known_rows(plan, library)
        missing = len(plan.keys) - len(known)
        record = {
            "study": plan.study.name,
            "points": len(plan.cells),
            "different": len(plan.keys),
            "kept": len(known),
            "missing": missing,
            "expected_s": probe_s(plan, known) if missing else 0.0,
            "digest": plan.study.digest,
        }
    return Answer(record, table(*((key, str(value)) for key, value in record.items())))


def _list(library: RunLibrary) -> Answer:
    """Return the studies of a library."""
    studies = [
        record_of(one, "id name points kept state")
        | {"this_version": one.version == code_version()}
        for one in library.studies()
    ]
    lines = columns(
        studies,
        {
            "id": "id",
            "name": "name",
            "points": lambda one: f"{one['kept']} of {one['points']}",
            "state": "state",
            "": lambda one: "" if one["this_version"] else "another version",
        },
    )
    return Answer(
        {"studies": studies},
        [lines if studies else "no study yet; study ready lists some to begin with"],
    )


@command(
    "Print what the library has of a study.",
    FILE,
    LIBRARY,
    Option("--all-measures", bool, "every measure that was kept"),
    Option("--any-version", bool, "rows of other versions too, marked"),
    CSV,
    JSON,
)
def show(options: Arguments) -> Answer:
    """Return what the library has of a study; 1 if points are missing."""
    with library_of(options) as library:
        plan = _plan(options, library)
        rows = plan.rows(known_rows(plan, library, options.any_version))
    return _answer(options, StudyResult(plan.study, rows), options.all_measures)


@command(
    "Without a name: list them. With one: write it as a file, to be changed.",
    Option("name NAME", str, "of a ready study", nargs="?"),
    Option("--sample NAME", str, "the sample that it is about, where it may be"),
    Option("--output FILE", str, "the study file (.study.json)", over=()),
    JSON,
)
def ready(options: Arguments) -> Answer:
    """Return ready studies, or one as its file."""
    if options.name is None:
        questions = {name: one.question for name, one in READY.items()}
        return Answer({"ready": questions}, table(*questions.items()))
    one, subject = look_up(options.name, READY, "study", file="command line", field="NAME"), None
    if options.sample is not None:
        refuse_if(
            ("sample" not in one.kinds, f"is not for {options.name}"),
            file="command line",
            field="--sample",
        )
        subject = {"kind": "sample", "name": options.sample}
        one.study(subject)
    text = json.dumps(one.record(subject), indent=1)
    write(options.output, f"{text}\n".encode())
    return Answer(lines=() if options.output else [text])


@command(
    "Run six jobs on every network at delays from 10 ns to 1 s, two numbers and two speeds of ports, and say which "
    "published claims hold (docs/who-is-right.md).",
    Option("--jobs LIST", listed, "some of the jobs, such as dense,experts (default: all six)"),
    WORKERS,
    LIBRARY,
    NO_LIBRARY,
    Option("--csv FILE", str, "write every cell", over=()),
    JSON,
)
def rivals(options: Arguments) -> Answer:
    """Compute what is missing and say which claims hold; 1 if points are missing at the end."""
    for name in options.jobs or ():
        check_one_of(name, JOBS, file="command line", field="--jobs")
    jobs = tuple(name for name in JOBS if not options.jobs or name in options.jobs)
    with library_of(options, to_write=True) as library:
        results = compute(options, lambda executor: rivals_run(library, executor, jobs))
    note(*dict.fromkeys(line for result in results.values() for line in result.lost))
    cells = cells_of(results)
    complete = all(result.complete for result in results.values())
    write_rows(options.csv, cell_rows(cells))
    return Answer(
        claims_record(cells, complete), _rivals_lines(cells, complete), 0 if complete else 1
    )


def _rivals_lines(cells: Sequence[Cell], complete: bool) -> Iterator[str]:

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


COMMANDS = Commands(
    "A study file says what is varied (docs/studies.md). What is done is kept in the run library; a study "
    "that is started again computes only what is missing.",
    {
        "run": (run, "compute a study"),
        "status": (status, "how far studies are, and how long the rest takes"),
        "show": (show, "print the table of a study"),
        "ready": (ready, "list studies to begin with, or write one"),
        "buy": (buy, "which optical switch to buy for a job"),
        "rivals": (rivals, "who is right: published claims against each other"),
    },
)
