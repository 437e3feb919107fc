"""The command line: subcommands on one subject a file, one clear line for every mistake.

Exit status: 0 success, 1 where the answer is no (infeasible, a check failed), 2 bad input or output
that cannot be written, 3 where an assertion of a study or job file failed.
The file of a command is loaded when that command is asked for, so that ``--help`` answers at once.
"""

import argparse
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import NoReturn

from topox_core import __version__
from topox_core.cli.shared.files import write_what_waits
from topox_core.errors import InputError, one_line
from topox_core.io.content import why

# By name, in the order of --help: what it is in which file, and its line in the list; a new command is a line here.
COMMANDS = {
    "dashboard": ("dashboard.run", "open the workbench in a browser"),
    "schedule": ("circuits.schedule.run", "schedule a task graph on a cluster"),
    "check": ("circuits.schedule.check_result", "check a schedule against every constraint"),
    "compare": ("circuits.compare.run", "run a task graph under every fabric and controller"),
    "verdict": (
        "circuits.compare.verdict",
        "say up to which delay changing circuits pays for a job",
    ),
    "failures": (
        "circuits.compare.failures",
        "take out a fibre, port, switch or server: forwarding, repair, a new plan",
    ),
    "topology": ("circuits.topology.run", "find circuits to fix before a job"),
    "cluster": ("training.inputs.cluster", "show a cluster, and write it for other tools"),
    "demand": ("circuits.demand.run", "serve one demand matrix with parallel switches"),
    "collective": (
        "circuits.demand.collective",
        "switch inside one collective while other ports send",
    ),
    "strategy": ("training.strategy.run", "search how to split a model over servers"),
    "tdm": ("circuits.tdm.run", "share a fabric among several jobs by time-division multiplexing"),
    "tdm-jobs": (
        "circuits.tdm.draw",
        "write jobs for tdm: Llama 3 models drawn at random and deployed",
    ),
    "rails": (
        "rails.rails.COMMANDS",
        "photonic rails: windows, reconfiguration delay, control plane, cost",
    ),
    "study": (
        "studies.study.COMMANDS",
        "compute many what-ifs: every point kept, gone on with, on this machine or on a cluster",
    ),
    "runs": ("studies.runs.COMMANDS", "the run library: list, show, compare and export runs"),
    "gallery": ("studies.gallery.run", "run published tables and figures and compare"),
    "accuracy": (
        "studies.gallery.accuracy",
        "predictions against what was measured, published or simulated elsewhere",
    ),
    "iteration": (
        "training.iteration.COMMANDS",
        "a training iteration in closed form; predicted against measured",
    ),
    "lab": ("lab.COMMANDS", "labs for a class: show, key, grade, statistics, worksheets"),
    "workload": ("training.inputs.workload", "write a generated task graph and a cluster for it"),
    "trace": ("traces.trace.COMMANDS", "a recorded run: what is in it, as a task graph, and back"),
    "schema": ("training.inputs.schema", "what a kind of file may hold, as JSON Schema"),
    "rcpsp": ("circuits.schedule.rcpsp", "solve a PSPLIB instance with the same engines"),
}
SUCCESS, BAD_INPUT, INTERRUPTED = 0, 2, 130


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line on standard error, without the usage block."""

    def error(self, message: str) -> NoReturn:
        """Tell the mistake in one line and leave with status 2."""
        _tell(message)
        raise SystemExit(BAD_INPUT)


def parser(asked: str = "") -> argparse.ArgumentParser:
    """Return the parser of the command line, with the options of the command that is asked for."""
    top = OneLineParser(
        prog="python -m topox_core",
        allow_abbrev=False,
        description="Schedule one ML training iteration on optical circuit switches.",
        epilog="Exit status: 0 success, 1 the answer is no (infeasible, a check failed), 2 bad input, 3 an assertion failed.",
    )
    top.add_argument("--version", action="version", version=f"TOPO-X Workbench {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (place, brief) in COMMANDS.items():
        command = commands.add_parser(name, allow_abbrev=False, help=brief)
        if name == asked:
            file, _, found = place.rpartition(".")
            getattr(import_module(f"topox_core.cli.{file}"), found).add_to(command)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # a terminal that cannot show a letter of an id must not end the command
        sys.stdout.reconfigure(errors="replace")
    status: int = SUCCESS
    words = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            asked = next((word for word in words if not word.startswith("-")), "")
            options = parser(asked).parse_args(words)
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
