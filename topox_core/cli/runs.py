"""``runs``: the run library; here what is in it, one run whole, several side by side, names and deletion."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, write
from topox_core.cli.library_options import (
    LIBRARY,
    add_filter,
    filter_of,
    opened,
    run_numbers,
    run_record,
    shown,
)
from topox_core.cli.options import JSON, Option, positive
from topox_core.cli.printing import as_json, figure, percent, show, table
from topox_core.errors import InputError
from topox_core.text.numbers import plural

if TYPE_CHECKING:
    from topox_core.library.comparison import ComparedValue
    from topox_core.library.rows import StoredRun
    from topox_core.library.run_library import RunLibrary


_NAMES = {"graph": ".taskgraph.json", "cluster": ".cluster.json"}


def add_files_of_runs(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``runs``."""
    given.add_command(
        parts,
        "export",
        _export,
        "runs as CSV, Parquet or a library of their own",
        "Write runs as a table (.csv, .csv.gz, .parquet), a row a run, or as a library (.sqlite) that "
        "`--library` opens.",
        Option("file FILE", str, "what to write"),
        LIBRARY,
        JSON,
        add_filter,
    )


def _export(options: argparse.Namespace) -> int:
    from topox_core.library.exports import runs_csv, runs_parquet

    which, path = filter_of(options), Path(options.file)
    must_be_writable(options.file, (options.library,) if options.library else ())
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    with opened(options) as library:
        count = library.count(which)
        if ending == "csv":
            write(options.file, runs_csv(library, which))
        elif path.suffix.lower() == ".parquet":
            write(options.file, runs_parquet(library, which))
        elif path.suffix.lower() == ".sqlite":
            library.copy_to(path, which)
        else:
            raise InputError("must end in .csv, .csv.gz, .parquet or .sqlite", file=options.file)
    return show(
        options,
        {"runs": count, "output": options.file},
        lambda: print(f"{plural(count, 'run')} in {options.file}"),
    )


def write_inputs(library: RunLibrary, one: StoredRun, folder: Path) -> None:
    """Write the input files that a run names by their digest into a folder.

    Raises
    ------
    InputError
        If none was kept, or the folder is not there.
    """
    kept = [found for digest in sorted(one.digests) if (found := library.input(digest)) is not None]
    if not kept:
        raise InputError(
            "no input file was kept with it", file=str(library.path), item=f"run {one.id}"
        )
    for found in kept:
        # Not the name that the library has: it may come from anybody.
        path = str(folder / f"{found.digest[:12]}{_NAMES.get(found.kind, '.input')}")
        must_be_writable(path)
        write(path, found.content)


_ASIDE = 3  # settings of a list that are shown, of those in which its runs differ
_HEAD = ("run", "started", "subject", "kind", "status", "iteration", "gap", "name", "settings")


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command and its subcommands to the command line."""
    command = commands.add_parser(
        "runs",
        allow_abbrev=False,
        help="the run library: list, show, compare and export runs",
        description="The run library: what studies and kept solves computed, on this machine or elsewhere.",
    )
    parts = command.add_subparsers(dest="part", metavar="PART", required=True)
    _add_list(parts)
    _add_show(parts)
    _add_compare(parts)
    _add_name(parts)
    _add_delete(parts)
    add_files_of_runs(parts)


def _add_list(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "list",
        _list,
        "runs, newest first",
        "List runs, newest first. A star marks another version of the code.",
        Option("--limit N", positive, "at most so many (default 50)", 50),
        Option("--before RUN", positive, "only those older than this run: the next page"),
        LIBRARY,
        JSON,
        add_filter,
    )


def _list(options: argparse.Namespace) -> int:
    which = filter_of(options)
    with opened(options) as library:
        before = None if options.before is None else library.get(options.before).place
        runs = library.runs(which, before, min(options.limit, 100_000))
        in_all, studies = library.count(which), library.studies()
    if options.json:
        kept = ("id", "name", "points", "kept", "created", "version", "state")
        as_json(
            {
                "library": str(library.path),
                "in_all": in_all,
                "runs": [run_record(one) for one in runs],
                "studies": [{key: getattr(one, key) for key in kept} for one in studies],
            }
        )
        return 0
    if runs:
        table(_HEAD, *_rows(runs))
    print(f"{len(runs):,} of {plural(in_all, 'run')} in {library.path}")
    if len(runs) < in_all and runs:
        print(f"older ones: --before {runs[-1].id}")
    for study in studies if which.study is None else ():
        print(
            f"study {study.id}: {shown(study.name)}, {study.kept:,} of {study.points:,} points, {study.state}"
        )
    return 0


def _rows(runs: list[StoredRun]) -> list[tuple[str, ...]]:
    from topox_core.library.comparison import compared, flat
    from topox_core.runs.identity import code_version

    settings = compared([flat(one.record.settings) for one in runs])
    differing = [row for row in settings if not row.equal][:_ASIDE]
    rows: list[tuple[str, ...]] = []
    for at, one in enumerate(runs):
        record = one.record
        aside = [f"{row.name}={shown(row.values[at], 20)}" for row in differing]
        star = "" if record.version == code_version() else "*"
        rows.append(
            (
                f"{one.id}{star}",
                _date(record.started),
                shown(record.subject, 30),
                shown(record.kind),
                shown(record.status),
                figure(record.measures.get("iteration_ms"), "ms"),
                percent(record.measures.get("gap")),
                shown(record.name, 30),
                " ".join(aside),
            )
        )
    return rows


def _date(started: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(started))
    except (OverflowError, OSError, ValueError):  # a year that no calendar has
        return "-"


def _add_show(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "show",
        _show,
        "one run whole",
        "Print one run: what it was given, what it came to.",
        Option("number RUN", positive, "its number"),
        Option("--output FILE", str, "write its result file"),
        Option("--inputs FOLDER", str, "write the input files that were kept with it"),
        LIBRARY,
        JSON,
    )


def _show(options: argparse.Namespace) -> int:
    if options.output:
        must_be_writable(options.output)
    with opened(options) as library:
        one = library.get(options.number)
        if options.output:
            result = library.result(one.id)
            if result is None:
                raise InputError("has no result file", file=str(library.path), item=f"run {one.id}")
            write(options.output, result)
        if options.inputs:
            write_inputs(library, one, Path(options.inputs))
    record = run_record(one)
    if options.json:
        as_json(record)
        return 0
    from topox_core.library.comparison import flat

    settings, measures = record.pop("settings"), record.pop("measures")
    record["started"] = _date(one.record.started)
    record["wall_s"] = figure(one.record.wall_s, "s")
    table(
        *((key, shown(value, 200)) for key, value in record.items() if value not in ("", None)),
        *((key, shown(value, 200)) for key, value in measures.items()),
        *((key, shown(value, 200)) for key, value in flat(settings).items()),
    )
    return 0


def _add_compare(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "compare",
        _compare,
        "runs side by side",
        "Print in what two or more runs differ: settings, then outcome.",
        Option("runs RUN", str, "numbers of runs, such as 7 9 or 7-12", nargs="+"),
        LIBRARY,
        JSON,
    )


def _compare(options: argparse.Namespace) -> int:
    from topox_core.library.comparison import compare_runs

    with opened(options) as library:
        runs = compare_runs([library.get(run) for run in run_numbers(options.runs)])
    if options.json:
        as_json(
            {
                "runs": [one.id for one in runs.runs],
                "different_settings": _by_name(runs.different_settings),
                "different_outcome": _by_name(runs.different_outcome),
                "equal_settings": runs.equal_settings,
                "equal_outcome": runs.equal_outcome,
            }
        )
        return 0
    table(
        ("", *(f"run {one.id}" for one in runs.runs)),
        *((row.name, *map(shown, row.values)) for row in runs.different_settings),
        *((row.name, *_with_ratios(row)) for row in runs.different_outcome),
    )
    print(
        f"equal: {plural(len(runs.equal_settings), 'setting')}, "
        f"{plural(len(runs.equal_outcome), 'measure')} of the outcome"
    )
    return 0


def _by_name(rows: tuple[ComparedValue, ...]) -> dict[str, list[Any]]:
    return {row.name: list(row.values) for row in rows}


def _with_ratios(row: ComparedValue) -> list[str]:
    """Return values of an outcome, those after the first also as a multiple of it."""
    return [
        shown(value) if at == 0 or ratio is None else f"{shown(value)} ({ratio:.3g}x)"
        for at, (value, ratio) in enumerate(zip(row.values, row.ratios, strict=True))
    ]


def _add_name(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "name",
        _name,
        "name a run",
        'Give a run a name; "" takes it away.',
        Option("number RUN", positive, "its number"),
        Option("name NAME", str),
        LIBRARY,
        JSON,
    )


def _name(options: argparse.Namespace) -> int:
    with opened(options) as library:
        library.rename(options.number, options.name)
    if options.json:
        as_json({"run": options.number, "name": options.name})
    return 0


def _add_delete(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "delete",
        _delete,
        "delete runs",
        "Delete runs for good, with their results; `runs export` keeps a copy of them.",
        Option("runs RUN", str, "numbers of runs, such as 7 9 or 7-12", nargs="+"),
        LIBRARY,
        JSON,
    )


def _delete(options: argparse.Namespace) -> int:
    runs = run_numbers(options.runs)
    with opened(options) as library:
        count = len(library.delete(runs))
        if not count:
            raise InputError("there is no such run", file=str(library.path), item=options.runs[0])
    return show(options, {"deleted": count}, lambda: print(f"deleted {plural(count, 'run')}"))
