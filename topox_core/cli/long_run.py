"""What commands share that compute many points: who computes, where the points are kept, how far it is, the table."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from topox_core.cli.files import write
from topox_core.cli.library_options import opened
from topox_core.cli.options import Option, positive, wrong_option
from topox_core.cli.printing import ctrl_c_stops, figure, note, percent

if TYPE_CHECKING:
    from topox_core.library.run_library import RunLibrary
    from topox_core.runs.executor import Executor

WORKERS = Option("--workers N", positive, "processes on this machine (default: one a core)")
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
    if options.library:
        raise wrong_option("--library", "cannot go with --no-library")
    yield None


@contextmanager
def executor_of(options: argparse.Namespace) -> Iterator[Executor]:
    """Begin what computes, this machine where a command has no ``--scheduler``, and end it afterwards."""
    from topox_core.runs.executor import executor_for

    executor = executor_for(getattr(options, "scheduler", ""), options.workers)
    try:
        yield executor
    finally:
        executor.kill()


def compute(options: argparse.Namespace, run_on: Callable[[Executor], Any]) -> Any:
    """Return the result of a run on many points; now and then it says how far it is, and Ctrl-C ends it."""
    from topox_core.runs.run import finish

    with executor_of(options) as executor, ctrl_c_stops("what is done is kept") as stop:
        run = run_on(executor)
        said = time.monotonic()

        def stop_or_note() -> bool:
            nonlocal said
            if time.monotonic() - said >= PROGRESS_EVERY_S:
                said, now = time.monotonic(), run.progress
                left = "" if now.left_s is None else f", {figure(round(now.left_s, 1), 's')} left"
                words = f"; {now.words}" if now.words else ""
                note(f"{now.done} of {now.total} ({percent(now.share)}){left}{words}")
            return stop()

        return finish(run, stop_or_note)


def write_rows(path: str | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows that have the same columns as a table, where a file was named."""
    from topox_core.io.tables import table_bytes

    write(path, lambda: table_bytes(tuple(rows[0]) if rows else (), rows))
