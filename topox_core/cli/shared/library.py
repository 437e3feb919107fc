"""What commands on the run library share: which library, which runs; who computes many points, how far it is, their table."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli.shared.command import ctrl_c_stops
from topox_core.cli.shared.files import write
from topox_core.cli.shared.options import (
    Group,
    Option,
    changes_of,
    of_options,
    options_of,
    positive,
    setting_option,
    value_of,
)
from topox_core.cli.shared.printing import figure, note, percent
from topox_core.errors import refuse_if, visible
from topox_core.fabrics.options import FabricOptions
from topox_core.io.content import record_of
from topox_core.library.rows import CARD, RUNS_ONLY, RunFilter, StoredRun, Value
from topox_core.library.run_library import RunLibrary
from topox_core.model.cluster import Cluster
from topox_core.runs.identity import code_version
from topox_core.runs.run import Throttled, finish
from topox_core.schedule.settings import Settings
from topox_core.text.numbers import plural

if TYPE_CHECKING:
    from topox_core.fabrics.run import FabricRun
    from topox_core.runs.executor import Executor
    from topox_core.schedule.results.result import Result


LIBRARY = Option(
    "--library FILE", str, "the run library (default: TOPOX_LIBRARY, or one in your data folder)"
)


FILTER = Group(
    "which runs",
    (
        *options_of(
            RunFilter,
            *("subject", "kind", "status", "version", "study", "text", "shortest_ms", "longest_ms"),
            written={
                "version": "--code",
                "study": ("--study N", positive),
                "shortest_ms": "--from-ms",
                "longest_ms": "--to-ms",
            },
        ),
        setting_option(
            "--set KEY=VALUE", "with this setting, e.g. cluster.port_gbps=400", "settings"
        ),
    ),
)


def filter_of(options: argparse.Namespace) -> RunFilter:
    """Return which runs the options mean."""
    return of_options(
        RunFilter,
        options,
        without=() if options.kind == CARD else RUNS_ONLY.without,
        settings={key: _plain(text) for key, text in changes_of(options.settings).items()},
    )


def _plain(text: str) -> Value:
    """Return a value: a number, a truth and ``null`` as such, everything else as a word."""
    value = value_of(text)
    return text if isinstance(value, list | dict | str) else value


@contextmanager
def opened(options: argparse.Namespace, to_write: bool = False) -> Iterator[RunLibrary]:
    """Open the library that the options name, and say what must be said of it.

    A file that is named and not there is a slip, unless something is to be written to it; the
    library of one's own is begun.
    """
    path = None if options.library is None else Path(options.library)
    with RunLibrary.open(path, create=to_write or path is None) as library:
        note(*library.notices)
        yield library


def run_record(one: StoredRun) -> dict[str, Any]:
    """Return a run as ``--json`` prints it."""
    record = one.record
    keys = "name kind subject graph cluster status stopped_by message version seed host started wall_s link key"
    return {
        "run": one.id,
        **record_of(record, keys),
        "this_version": record.version == code_version(),
        "settings": dict(record.settings),
        "measures": dict(record.measures),
        "has_result": one.has_result,
    }


def shown(value: object, most: int = 60) -> str:
    """Return a value of a run as a cell of a printed table; a library may come from anybody."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    text = visible(" ".join((value if isinstance(value, str) else json.dumps(value)).split()))
    return text if len(text) <= most else f"{text[: most - 3]}..."


KEEP = (
    Option(
        "--keep NAME",
        str,
        "keep the answer in the run library, under this name if one is given",
        nargs="?",
        const="",
    ),
    LIBRARY,
)


def check_keep(options: argparse.Namespace) -> None:
    """Refuse now a library that could not be written to later.

    Raises
    ------
    InputError
        If there is one to be written to and it cannot be.
    """
    if options.keep is not None:
        with opened(options, to_write=True):
            return
    refuse_if(
        (options.library is not None, "says where to keep the answer: give --keep too"),
        file="command line",
        field="--library",
    )


def keep(
    options: argparse.Namespace,
    cluster: Cluster,
    settings: Settings,
    fabric: FabricOptions,
    found: Result | dict[str, FabricRun],
) -> None:
    """Keep the answer, a solve or the runs of fabrics, if the user said so, and say under which number.

    Raises
    ------
    InputError
        If the library cannot be written to, or the network of the answer cannot be priced.
    """
    if options.keep is None:
        return
    from topox_core.economics.price_sets import SET_BY_SPEED, price_set
    from topox_core.studies.point import KeptRun, record_of_fabric_run, record_of_solve
    from topox_core.studies.subject import resolve, subject_of

    files = {"kind": "files", "graph": options.graph, "cluster": options.cluster}
    resolved = resolve(
        subject_of(files if options.cluster else {"kind": "job", "file": options.graph})
    )
    prices = price_set(SET_BY_SPEED)
    kept = KeptRun(resolved, cluster, settings, fabric, prices, SET_BY_SPEED, name=options.keep)
    made = (
        [record_of_fabric_run(run, kept) for run in found.values()]
        if isinstance(found, dict)
        else [record_of_solve(found, kept)]
    )
    with opened(options, to_write=True) as library:
        library.keep_inputs(resolved.files)
        runs = library.add(made)
        for run in runs if options.keep else ():
            library.rename(run, options.keep)
    numbers = ", ".join(map(str, runs)) or "none"
    note(f"kept in {library.path}: {plural(len(runs), 'run')} ({numbers})")


WORKERS = Option("--workers N", positive, "processes on this machine (default: one per core)")
SCHEDULER = Option("--scheduler ADDRESS", str, "a Dask scheduler, such as tcp://host:8786")
NO_LIBRARY = Option("--no-library", bool, "keep nothing")
CSV = Option("--csv FILE", str, "write the table", over=("study",))
PROGRESS_EVERY_S = 2.0


@contextmanager
def library_of(options: argparse.Namespace, to_write: bool = False) -> Iterator[RunLibrary | None]:
    """Open the library that a command names, None with ``--no-library``."""
    if not getattr(options, "no_library", False):
        with opened(options, to_write) as library:
            yield library
        return
    refuse_if(
        (options.library, "cannot go with --no-library"), file="command line", field="--library"
    )
    yield None


@contextmanager
def executor_of(options: argparse.Namespace) -> Iterator[Executor]:
    """Begin what computes, this machine where a command has no ``--scheduler``, and end it afterwards."""
    from topox_core.runs.cells import executor_for

    executor = executor_for(getattr(options, "scheduler", ""), options.workers)
    try:
        yield executor
    finally:
        executor.kill()


def compute(options: argparse.Namespace, run_on: Callable[[Executor], Any]) -> Any:
    """Return the result of a run on many points; now and then it says how far it is, and Ctrl-C ends it."""
    with executor_of(options) as executor, ctrl_c_stops("what is done is kept") as stop:
        run = run_on(executor)

        def tell() -> bool:
            now = run.progress
            left = "" if now.left_s is None else f", {figure(round(now.left_s, 1), 's')} left"
            words = f"; {now.words}" if now.words else ""
            note(f"{now.done} of {now.total} ({percent(now.share)}){left}{words}")
            return False

        now_and_then = Throttled(tell, PROGRESS_EVERY_S, next_s=time.monotonic() + PROGRESS_EVERY_S)
        return finish(run, lambda: now_and_then() or stop())


def write_rows(path: str | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows that have the same columns as a table, where a file was named."""
    from topox_core.io.tables import table_bytes

    write(path, lambda: table_bytes(tuple(rows[0]) if rows else (), rows))
