"""The command line: subcommands on one subject a file, one clear line for every mistake.

Exit status: 0 success, 1 where the answer is no (infeasible, a check failed), 2 bad input or output
that cannot be written, 3 where an assertion of a study or job file failed.
Modules that take long to load are imported inside the commands, so that ``--help`` answers at once.
"""

import argparse
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from topox_core import __version__
from topox_core.cli import (
    compare,
    dashboard,
    demand,
    gallery,
    inputs,
    iteration,
    lab,
    rails,
    runs,
    schedule,
    strategy,
    study,
    tdm,
    topology,
    trace,
)
from topox_core.cli.command import why, write_what_waits
from topox_core.errors import InputError, one_line

# In the order of --help; a new command is one name in the import and one line here.
COMMANDS = (
    dashboard.run,
    schedule.run,
    schedule.check_result,
    compare.run,
    compare.verdict,
    compare.failures,
    topology.run,
    inputs.cluster,
    demand.run,
    demand.collective,
    strategy.run,
    tdm.run,
    tdm.draw,
    rails.COMMANDS,
    study.COMMANDS,
    runs.COMMANDS,
    gallery.run,
    gallery.accuracy,
    iteration.COMMANDS,
    lab.COMMANDS,
    inputs.workload,
    trace.COMMANDS,
    inputs.schema,
    schedule.rcpsp,
)
SUCCESS, BAD_INPUT, INTERRUPTED = 0, 2, 130


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line on standard error, without the usage block."""

    def error(self, message: str) -> NoReturn:
        """Tell the mistake in one line and leave with status 2."""
        _tell(message)
        raise SystemExit(BAD_INPUT)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = OneLineParser(
        prog="python -m topox_core",
        allow_abbrev=False,
        description="Schedule one ML training iteration on optical circuit switches.",
        epilog="Exit status: 0 success, 1 the answer is no (infeasible, a check failed), 2 bad input, 3 an assertion failed.",
    )
    top.add_argument("--version", action="version", version=f"TOPO-X Workbench {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # a terminal that cannot show a letter of an id must not end the command
        sys.stdout.reconfigure(errors="replace")
    status: int = SUCCESS
    try:
        try:
            options = parser().parse_args(arguments)
            with _printing():
                status = options.run(options)
        finally:
            # What was computed is written whether or not it could be printed.
            write_what_waits()
    except InputError as error:
        _tell(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        _tell("interrupted")
        return INTERRUPTED
    except SystemExit as leaving:  # argparse after --help or a mistake
        with suppress(OSError):
            if sys.stdout is not None:  # closed before we began
                sys.stdout.flush()
        return leaving.code if isinstance(leaving.code, int) else BAD_INPUT
    return status


@contextmanager
def _printing() -> Iterator[None]:
    """Flush what is printed in here; a reader who has enough (``| head``) is no error.

    Raises
    ------
    InputError
        If standard output is full or closed.
    """
    if sys.stdout is None:
        sys.stdout = io.StringIO()  # closed before we began (``>&-``)
        yield
        raise InputError("is closed", file="standard output")
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_the_rest()
    except OSError as error:
        if error.filename is not None:
            raise
        _drop_the_rest()
        raise InputError(f"cannot be written: {why(error)}", file="standard output") from None


def _drop_the_rest() -> None:
    """Let what is still buffered go nowhere, quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(message: str) -> None:
    print(f"topox: error: {one_line(message)}", file=sys.stderr)
