"""``runs export``: runs as tables and as a library of their own, and the input files of one run."""

from __future__ import annotations

import argparse
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
    """Add the command to those of ``runs``."""
    command = given.add_command(
        parts,
        "export",
        _export,
        "runs as CSV, Parquet or a library of their own",
        "Write runs as a table (.csv, .csv.gz, .parquet), a row a run, or as a library (.sqlite) that "
        "`--library` opens.",
    )
    add_options(command, Option("file FILE", str, "what to write"), LIBRARY, JSON)
    add_filter(command)


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
    if options.json:
        as_json({"runs": count, "output": options.file})
    else:
        print(f"{plural(count, 'run')} in {options.file}")
    return 0


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
