"""``runs``: the run library; here what is in it, one run whole, several side by side, names and deletion."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from topox_core.cli.shared.command import Answer, Arguments, Commands, Lines, command
from topox_core.cli.shared.files import must_be_writable, write
from topox_core.cli.shared.library import (
    FILTER,
    LIBRARY,
    filter_of,
    opened,
    run_record,
    shown,
)
from topox_core.cli.shared.manifest import manifest_of_run
from topox_core.cli.shared.options import JSON, Option, numbered, positive
from topox_core.cli.shared.printing import figure, percent, table
from topox_core.errors import InputError, refuse_if
from topox_core.io.content import loaded, record_of
from topox_core.io.limits import SCHEDULE
from topox_core.library.rows import StoredRun
from topox_core.library.run_library import RunLibrary, StoredStudy
from topox_core.library.tables import (
    ComparedValue,
    alike,
    compare_runs,
    compared,
    different,
    flat,
    runs_csv,
    runs_parquet,
)
from topox_core.runs.identity import code_version
from topox_core.text.numbers import plural, when

_NAMES = {"graph": ".taskgraph.json", "cluster": ".cluster.json"}
_ASIDE = 3  # settings of a list that are shown, of those in which its runs differ
_HEAD = ("run", "started", "subject", "kind", "status", "iteration", "gap", "name", "settings")
NUMBER = Option("number RUN", positive, "its number")
NUMBERS = Option("runs RUN", numbered, "numbers of runs, such as 7 9 or 7-12", nargs="+")


def _runs(options: Arguments) -> list[int]:
    """Return the numbers of runs that a command names, each once."""
    return list(dict.fromkeys(run for several in options.runs for run in several))


@command(
    "Write runs as a table (.csv, .csv.gz, .parquet), a row a run, or as a library (.sqlite) that "
    "`--library` opens.",
    Option("file FILE", str, "what to write", over=("library",)),
    LIBRARY,
    JSON,
    FILTER,
)
def export(options: Arguments) -> Answer:
    """Write runs as a file."""
    which, path = filter_of(options), Path(options.file)
    ending = path.suffix.lower()
    with opened(options) as library:
        count = library.count(which)
        if path.name.lower().removesuffix(".gz").rpartition(".")[2] == "csv":
            write(options.file, runs_csv(library, which))
        elif ending == ".parquet":
            write(options.file, runs_parquet(library, which))
        elif ending == ".sqlite":
            library.copy_to(path, which)
        else:
            raise InputError("must end in .csv, .csv.gz, .parquet or .sqlite", file=options.file)
    return Answer(
        {"runs": count, "output": options.file}, f"{plural(count, 'run')} in {options.file}"
    )


@command(
    "List runs, newest first. A star marks another version of the code.",
    Option("--limit N", positive, "at most so many (default 50)", 50),
    Option("--before RUN", positive, "only those older than this run: the next page"),
    LIBRARY,
    JSON,
    FILTER,
)
def list_runs(options: Arguments) -> Answer:
    """Return runs and the studies of a library."""
    which = filter_of(options)
    with opened(options) as library:
        before = None if options.before is None else library.get(options.before).place
        runs = library.runs(which, before, min(options.limit, 100_000))
        in_all, studies = library.count(which), library.studies()
    kept = "id name points kept created version state"
    record = {
        "library": str(library.path),
        "in_all": in_all,
        "runs": [run_record(one) for one in runs],
        "studies": [record_of(one, kept) for one in studies],
    }
    return Answer(record, _list_lines(record, runs, () if which.study else studies))


def _list_lines(
    record: Mapping[str, Any], runs: list[StoredRun], studies: Iterable[StoredStudy]
) -> Lines:
    yield table(_HEAD, *_rows(runs)) if runs else None
    yield f"{len(runs):,} of {plural(record['in_all'], 'run')} in {record['library']}"
    older = runs and len(runs) < record["in_all"]
    yield f"older ones: --before {runs[-1].id}" if older else None
    for one in studies:
        there = f"{one.kept:,} of {one.points:,} points"
        yield f"study {one.id}: {shown(one.name)}, {there}, {one.state}"


def _rows(runs: list[StoredRun]) -> Iterator[tuple[str, ...]]:
    settings = compared([flat(one.record.settings) for one in runs])
    differing = [row for row in settings if not row.equal][:_ASIDE]
    for at, one in enumerate(runs):
        record = one.record
        yield (
            f"{one.id}{'' if record.version == code_version() else '*'}",
            when(record.started),
            shown(record.subject, 30),
            shown(record.kind),
            shown(record.status),
            figure(record.measures.get("iteration_ms"), "ms"),
            percent(record.measures.get("gap")),
            shown(record.name, 30),
            " ".join(f"{row.name}={shown(row.values[at], 20)}" for row in differing),
        )


@command(
    "Print one run: its inputs, settings and results.",
    NUMBER,
    Option("--output FILE", str, "write its result file", over=()),
    Option("--inputs FOLDER", str, "write the input files that were kept with it"),
    LIBRARY,
    JSON,
)
def show(options: Arguments) -> Answer:
    """Return one run, and write what was kept of it."""
    with opened(options) as library:
        one = library.get(options.number)
        if options.output:
            result = library.result(one.id)
            if result is None:
                raise InputError("has no result file", file=str(library.path), item=f"run {one.id}")
            whole = loaded(result, str(library.path), SCHEDULE)
            refuse_if(
                (not isinstance(whole, dict), "its result is damaged"),
                file=str(library.path),
                item=f"run {one.id}",
            )
            whole["manifest"] = manifest_of_run(one.record, whole)
            write(options.output, f"{json.dumps(whole)}\n".encode())
        if options.inputs:
            _write_inputs(library, one, Path(options.inputs))
    record = run_record(one)
    return Answer(record, _run_lines(record))


def _write_inputs(library: RunLibrary, one: StoredRun, folder: Path) -> None:
    """Write the input files that a run names by their digest into a folder.

    Raises
    ------
    InputError
        If none was kept, or the folder is not there.
    """
    kept = [found for digest in sorted(one.digests) if (found := library.input(digest)) is not None]
    refuse_if(
        (not kept, "no input file was kept with it"), file=str(library.path), item=f"run {one.id}"
    )
    for found in kept:
        # Not the name that the library has: it may come from anybody.
        path = str(folder / f"{found.digest[:12]}{_NAMES.get(found.kind, '.input')}")
        must_be_writable(path)
        write(path, found.content)


def _run_lines(record: Mapping[str, Any]) -> Iterator[str]:
    words = {"started": when(record["started"]), "wall_s": figure(record["wall_s"], "s")}
    own = {
        key: one for key, one in {**record, **words}.items() if key not in ("settings", "measures")
    }
    values = (
        *((key, value) for key, value in own.items() if value not in ("", None)),
        *record["measures"].items(),
        *flat(record["settings"]).items(),
    )
    yield table(*((key, shown(value, 200)) for key, value in values))


@command(
    "Print in what two or more runs differ: settings, then outcome.",
    NUMBERS,
    LIBRARY,
    JSON,
)
def compare(options: Arguments) -> Answer:
    """Return in what runs differ."""
    with opened(options) as library:
        runs = compare_runs([library.get(run) for run in _runs(options)])
    settings, outcome = different(runs.settings), different(runs.outcome)
    return Answer(
        {
            "runs": [one.id for one in runs.runs],
            "different_settings": {row.name: list(row.values) for row in settings},
            "different_outcome": {row.name: list(row.values) for row in outcome},
            "equal_settings": alike(runs.settings),
            "equal_outcome": alike(runs.outcome),
        },
        (
            table(
                ("", *(f"run {one.id}" for one in runs.runs)),
                *((row.name, *map(shown, row.values)) for row in settings),
                *((row.name, *_with_ratios(row)) for row in outcome),
            ),
            f"equal: {plural(len(alike(runs.settings)), 'setting')}, "
            f"{plural(len(alike(runs.outcome)), 'measure')} of the outcome",
        ),
    )


def _with_ratios(row: ComparedValue) -> list[str]:
    """Return values of an outcome, those after the first also as a multiple of it."""
    return [
        shown(value) if at == 0 or ratio is None else f"{shown(value)} ({ratio:.3g}x)"
        for at, (value, ratio) in enumerate(zip(row.values, row.ratios, strict=True))
    ]


@command(
    'Give a run a name; "" takes it away.',
    NUMBER,
    Option("name NAME", str),
    LIBRARY,
    JSON,
)
def name(options: Arguments) -> Answer:
    """Name a run."""
    with opened(options) as library:
        library.rename(options.number, options.name)
    return Answer({"run": options.number, "name": options.name})


@command(
    "Delete runs for good, with their results; `runs export` keeps a copy of them.",
    NUMBERS,
    LIBRARY,
    JSON,
)
def delete(options: Arguments) -> Answer:
    """Delete runs."""
    runs = _runs(options)
    with opened(options) as library:
        count = len(library.delete(runs)["runs"])
        refuse_if(
            (not count, "there is no such run"), file=str(library.path), item=f"run {runs[0]}"
        )
    return Answer({"deleted": count}, f"deleted {plural(count, 'run')}")


COMMANDS = Commands(
    "The run library: what studies and kept solves computed, on this machine or elsewhere.",
    {
        "list": (list_runs, "runs, newest first"),
        "show": (show, "one run whole"),
        "compare": (compare, "runs side by side"),
        "name": (name, "name a run"),
        "delete": (delete, "delete runs"),
        "export": (export, "runs as CSV, Parquet or a library of their own"),
    },
)
