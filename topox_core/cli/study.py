"""``study``: many what-ifs at once, each kept the moment it is done."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli import study_buy, study_rivals
from topox_core.cli.files import must_be_writable, write
from topox_core.cli.library_options import LIBRARY
from topox_core.cli.long_run import (
    CSV,
    NO_LIBRARY,
    SCHEDULER,
    WORKERS,
    compute,
    library_of,
    write_rows,
)
from topox_core.cli.options import JSON, Option, wrong_option
from topox_core.cli.printing import as_json, cell, note, show, table

if TYPE_CHECKING:
    from topox_core.library.run_library import RunLibrary
    from topox_core.runs.executor import Executor
    from topox_core.studies.study_run import StudyPlan, StudyResult

SHOWN_ROWS = 40
FILE = Option("study STUDY", str, "a study file, or the name of a ready one (study ready)")


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command and its parts to the command line."""
    whole = commands.add_parser(
        "study",
        help="compute many what-ifs: every point kept, gone on with, on this machine or on a cluster",
        description="A study file says what is varied (docs/studies.md). What is done is kept in the run library; a study "
        "that is started again computes only what is missing.",
        allow_abbrev=False,
    )
    parts = whole.add_subparsers(dest="part", metavar="PART", required=True)
    given.add_command(
        parts,
        "run",
        _run,
        "compute a study",
        "Compute the points that the library lacks.",
        FILE,
        WORKERS,
        SCHEDULER,
        LIBRARY,
        NO_LIBRARY,
        CSV,
        JSON,
    )
    given.add_command(
        parts,
        "status",
        _status,
        "how far studies are, and how long the rest takes",
        "Without a file: the studies of the library. With one: its points, which are there, and the time of the rest.",
        Option("study STUDY", str, FILE.help, nargs="?"),
        LIBRARY,
        JSON,
    )
    given.add_command(
        parts,
        "show",
        _show,
        "print the table of a study",
        "Print what the library has of a study.",
        FILE,
        LIBRARY,
        Option("--all-measures", bool, "every measure that was kept"),
        Option("--any-version", bool, "rows of other versions too, marked"),
        CSV,
        JSON,
    )
    given.add_command(
        parts,
        "ready",
        _ready,
        "list studies to begin with, or write one",
        "Without a name: list them. With one: write it as a file, to be changed.",
        Option("name NAME", str, "of a ready study", nargs="?"),
        Option("--sample NAME", str, "the sample that it is about, where it may be"),
        Option("--output FILE", str, "the study file (.study.json)"),
        JSON,
    )
    study_buy.add(parts)
    study_rivals.add(parts)


def _plan(options: argparse.Namespace, library: RunLibrary | None) -> StudyPlan:
    from topox_core.studies.ready import study_given
    from topox_core.studies.study_run import plan_of

    study, folder = study_given(options.study, library)
    return plan_of(study, library, folder)


def _run(options: argparse.Namespace) -> int:
    """Compute a study; 1 if points are missing at the end."""
    if options.csv:
        must_be_writable(options.csv, (options.study,))
    with library_of(options, to_write=True) as library:
        result = _computed(options, library)
    for line in result.lost:
        note(line)
    if not result.complete:
        again = "" if options.no_library else f"; go on with: topox study run {options.study}"
        note(f"{result.done} of {_points(len(result.rows))} are there{again}")
    _print(options, result, everything=False)
    return 0 if result.complete else 1


def _computed(options: argparse.Namespace, library: RunLibrary | None) -> StudyResult:
    from topox_core.studies.study_run import StudyRun, known_rows

    plan = _plan(options, library)
    known = known_rows(plan, library)

    def begun(executor: Executor) -> StudyRun:
        note(
            f"{plan.study.name}: {_points(len(plan.cells))}, {len(plan.keys) - len(known)} to compute"
            + (f", {len(known)} kept" if known else "")
        )
        return StudyRun(plan, library, executor)

    result: StudyResult = compute(options, begun)
    return result


def _points(count: int) -> str:
    from topox_core.text.numbers import plural

    return plural(count, "point")


def _print(options: argparse.Namespace, result: StudyResult, everything: bool) -> None:
    from topox_core.studies.table import records

    rows = records(result, everything)
    write_rows(options.csv, rows)
    if options.json:
        as_json({"study": result.study.name, "complete": result.complete, "points": rows})
        return
    if not rows:
        return
    axes = [axis.key.name for axis in result.study.axes]
    if result.study.design.kind == "one_at_a_time":
        rows = [_moved(row, axes) for row in rows]
    head = [key for key in rows[0] if key not in ("message", "run", "version")]
    shown = [tuple(cell(row[key]) for key in head) for row in rows[:SHOWN_ROWS]]
    table(tuple(key.rpartition(".")[2] for key in head), *shown)
    if len(rows) > SHOWN_ROWS:
        print(f"... {len(rows) - SHOWN_ROWS:,} more (--json or --csv has all)")
    failed = [row for row in rows if row["status"] == "failed"]
    for row in failed[:3]:
        print(f"point {row['point']}: {row['message']}")


def _moved(row: dict[str, Any], axes: list[str]) -> dict[str, Any]:
    """Return a row of one axis at a time with the axis that moved and its value in place of all axes."""
    key = next((key for key in axes if row[key] is not None), "")
    rest = {name: value for name, value in row.items() if name not in (*axes, "point")}
    return {"point": row["point"], "moved": key or "nothing", "to": row.get(key), **rest}


def _status(options: argparse.Namespace) -> int:
    """Print how far studies are."""
    with library_of(options) as library:
        assert library is not None
        if options.study is None:
            return _list(options, library)
        record = _standing(_plan(options, library), library)
    return show(
        options, record, lambda: table(*((key, str(value)) for key, value in record.items()))
    )


def _standing(plan: StudyPlan, library: RunLibrary) -> dict[str, Any]:
    from topox_core.studies.study_run import known_rows, probe_s

    known = known_rows(plan, library)
    missing = len(plan.keys) - len(known)
    return {
        "study": plan.study.name,
        "points": len(plan.cells),
        "different": len(plan.keys),
        "kept": len(known),
        "missing": missing,
        "expected_s": probe_s(plan, known) if missing else 0.0,
        "digest": plan.study.digest,
    }


def _list(options: argparse.Namespace, library: RunLibrary) -> int:
    from topox_core.runs.identity import code_version

    studies = library.studies()
    if options.json:
        as_json(
            {
                "studies": [
                    {
                        "id": one.id,
                        "name": one.name,
                        "points": one.points,
                        "kept": one.kept,
                        "state": one.state,
                        "this_version": one.version == code_version(),
                    }
                    for one in studies
                ]
            }
        )
        return 0
    if not studies:
        print("no study yet; study ready lists some to begin with")
        return 0
    rows = [
        (
            str(one.id),
            one.name,
            f"{one.kept} of {one.points}",
            one.state,
            "" if one.version == code_version() else "another version",
        )
        for one in studies
    ]
    table(("id", "name", "points", "state", ""), *rows)
    return 0


def _show(options: argparse.Namespace) -> int:
    """Print what the library has of a study; 1 if points are missing."""
    from topox_core.studies.study_run import StudyResult, known_rows

    if options.csv:
        must_be_writable(options.csv, (options.study,))
    with library_of(options) as library:
        plan = _plan(options, library)
        rows = plan.rows(known_rows(plan, library, options.any_version))
    result = StudyResult(plan.study, rows)
    _print(options, result, options.all_measures)
    return 0 if result.complete else 1


def _ready(options: argparse.Namespace) -> int:
    """List ready studies, or write one."""
    import json

    from topox_core.errors import InputError, shown, unknown
    from topox_core.studies.ready import READY

    if options.name is None:
        return show(
            options,
            {"ready": {name: one.question for name, one in READY.items()}},
            lambda: table(*((name, one.question) for name, one in READY.items())),
        )
    if options.name not in READY:
        raise InputError(f"{shown(options.name)} is an {unknown(options.name, READY, 'study')}")
    one = READY[options.name]
    subject = None
    if options.sample is not None:
        if "sample" not in one.kinds:
            raise wrong_option("--sample", f"is not for {options.name}")
        subject = {"kind": "sample", "name": options.sample}
        one.study(subject)
    text = json.dumps(one.record(subject), indent=1) + "\n"
    if options.output:
        must_be_writable(options.output, ())
        write(options.output, text.encode())
    else:
        print(text, end="")
    return 0
