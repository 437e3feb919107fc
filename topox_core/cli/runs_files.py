"""``runs export``, ``import`` and ``rescue``: runs as files of other programs and of other libraries."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, write
from topox_core.cli.library_options import LIBRARY, add_filter, filter_of, opened
from topox_core.cli.options import JSON, Option, add_options
from topox_core.cli.printing import as_json
from topox_core.errors import InputError
from topox_core.text.numbers import plural

if TYPE_CHECKING:
    from topox_core.library.rows import StoredRun
    from topox_core.library.run_library import RunLibrary

_NAMES = {"graph": ".taskgraph.json", "cluster": ".cluster.json"}


def add(parts: argparse._SubParsersAction[Any]) -> None:
    """Add the commands to those of ``runs``."""
    command = given.add_command(
        parts,
        "export",
        _export,
        "runs as CSV, Parquet or a library of their own",
        "Write runs as a table (.csv, .csv.gz, .parquet), a row a run, or as a library (.sqlite) that "
        "`runs import` reads.",
    )
    add_options(command, Option("file FILE", str, "what to write"), LIBRARY, JSON)
    add_filter(command)
    command = given.add_command(
        parts,
        "import",
        _import,
        "take runs over from another library",
        "Take over all runs, results, inputs and studies of another library; what is there already stays.",
    )
    add_options(command, Option("file FILE", str, "the other library: .sqlite"), LIBRARY, JSON)
    command = given.add_command(
        parts,
        "rescue",
        _rescue,
        "take over what a damaged library still holds",
        "Read a damaged library run by run, and take over all that is whole; the damaged file stays as it is.",
    )
    add_options(command, Option("file FILE", str, "the damaged library"), LIBRARY, JSON)


def _export(options: argparse.Namespace) -> int:
    from topox_core.library.exports import runs_csv, runs_parquet
    from topox_core.library.merging import export_library

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
            export_library(library, path, which)
        else:
            raise InputError("must end in .csv, .csv.gz, .parquet or .sqlite", file=options.file)
    if options.json:
        as_json({"runs": count, "output": options.file})
    else:
        print(f"{plural(count, 'run')} in {options.file}")
    return 0


def _import(options: argparse.Namespace) -> int:
    from topox_core.library.merging import merge
    from topox_core.library.run_library import RunLibrary

    with (
        RunLibrary.open(Path(options.file), create=False, read_only=True) as source,
        opened(options, to_write=True) as library,
    ):
        merged = merge(source, library)
    if options.json:
        as_json({**asdict(merged), "library": str(library.path)})
    else:
        studies = plural(merged.studies, "study", "studies")
        print(
            f"{plural(merged.new, 'new run')}, {merged.there:,} already there; {studies}, "
            f"{plural(merged.inputs, 'input file')}"
        )
    return 0


def _rescue(options: argparse.Namespace) -> int:
    from topox_core.library.rescue import rescue

    with opened(options, to_write=True) as library:
        if library.path.resolve() == Path(options.file).resolve():
            raise InputError("is the library itself, which is whole", file=options.file)
        rescued = rescue(Path(options.file), library)
    if options.json:
        as_json({**asdict(rescued), "library": str(library.path)})
    else:
        print(
            f"{plural(rescued.runs, 'run')} read, {rescued.new:,} of them new in {library.path}; "
            f"{rescued.lost:,} lost, and {plural(rescued.results_lost, 'result file')} of those read"
            if rescued.runs or rescued.lost
            else "no run in it can be read"
        )
    return 0 if rescued.runs else 1


def write_inputs(library: RunLibrary, one: StoredRun, folder: Path) -> None:
    """Write the input files that a run names by their digest into a folder.

    Raises
    ------
    InputError
        If none was kept, or the folder is not there.
    """
    from topox_core.library.merging import digests_in

    kept = [
        found for digest in sorted(digests_in(one)) if (found := library.input(digest)) is not None
    ]
    if not kept:
        raise InputError(
            "no input file was kept with it", file=str(library.path), item=f"run {one.id}"
        )
    for found in kept:
        # Not the name that the library has: it may come from anybody.
        path = str(folder / f"{found.digest[:12]}{_NAMES.get(found.kind, '.input')}")
        must_be_writable(path)
        write(path, found.content)
