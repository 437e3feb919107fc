"""A command: its options, what they ask for before it begins, its files, and its answer, which is printed here and nowhere else.

Whatever goes wrong with a file is an :class:`InputError`; progress goes to standard error.
"""

import argparse
import gzip
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from topox_core.cli.manifest import manifest_of_answer
from topox_core.cli.options import Group, Option, settings_as_options
from topox_core.errors import InputError, errors_in_file, needed, one_line, refuse_if
from topox_core.io.assertions import failures
from topox_core.io.cluster_file import dump_cluster, load_cluster
from topox_core.io.content import read, why
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.text.numbers import ENDED
from topox_core.training.job import is_job, load_design, load_job

__all__ = [
    "cluster_beside",
    "must_be_writable",
    "read",
    "read_graph_and_cluster",
    "why",
    "write",
    "write_graph",
    "write_result",
    "write_what_waits",
]

Arguments = argparse.Namespace
Lines = Iterable[str | None]
# Files that commands handed over.
_waiting: list[tuple[str, bytes]] = []
# Kernels that take longer than this to compile or load are told apart.
TOLD_APART_S = 1.0


@dataclass(frozen=True)
class Answer:
    """What a command found.

    Attributes
    ----------
    record
        What ``--json`` prints; None where a command has lines alone.
    lines
        What it prints for people, made only then: a table, or lines and tables; None is no line.
    status
        Exit status.
    figures
        Where the figures of machines and prices that it rests on are from
        (:func:`~topox_core.studies.buying.offers.sources_of`).
    """

    record: Mapping[str, Any] | None = None
    lines: str | Lines = ()
    status: int = 0
    figures: Mapping[str, str] = field(default_factory=dict)

    def show(self, options: Arguments) -> int:
        """Print the answer as the user asked for it, as one JSON object or for people; return the exit status."""
        if self.record is not None and options.json:
            print(json.dumps(with_manifest(options, self.record, self.figures), allow_nan=False))
        else:
            for line in [self.lines] if isinstance(self.lines, str) else self.lines:
                if line is not None:
                    print(line)
        return self.status


def with_manifest(
    options: Arguments,
    record: Mapping[str, Any],
    figures: Mapping[str, str] | None = None,
    found: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a result with its manifest, as it is printed and written.

    Parameters
    ----------
    found
        What the manifest says besides the result, such as the checker's verdict on it.
    """
    return {
        **record,
        "manifest": manifest_of_answer(options, {**record, **(found or {})}, figures or {}),
    }


# One that has printed its answer itself returns its exit status.
Run = Callable[[Arguments], Answer | int]


@dataclass(frozen=True)
class Command:
    """A command with its options.

    Attributes
    ----------
    listing
        What ``--list`` answers.
    flags
        Options of settings that have another name; None where errors do not name settings.
    """

    description: str
    options: tuple[Option | Group, ...]
    run: Run
    listing: Run | None = None
    flags: Mapping[str, str] | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the command's options."""
        written = tuple(one.key for one in self._each() if one.over is not None)
        parser.description = self.description
        parser.set_defaults(run=self.answered, written=written)
        for one in self.options:
            one.add_to(parser)

    def answered(self, options: Arguments) -> int:
        """Run the command, print its answer and return the exit status."""
        if self.listing is not None and options.listing:
            found = self.listing(options)
        else:
            for option in self._each():
                _check(option, options)
            with nullcontext() if self.flags is None else settings_as_options(options, self.flags):
                found = self.run(options)
        return found.show(options) if isinstance(found, Answer) else found

    def _each(self) -> Iterator[Option]:
        for one in self.options:
            yield from one.options if isinstance(one, Group) else (one,)


def command(
    description: str,
    *options: Option | Group,
    listing: Run | None = None,
    flags: Mapping[str, str] | None = None,
) -> Callable[[Run], Command]:
    """Return what makes a command of a function; the attributes of :class:`Command` say what is what."""
    return lambda run: Command(description, options, run, listing, flags)


@dataclass(frozen=True)
class Commands:
    """A command that has commands, by name, each with its line in their list; ``dest`` is what the help calls them."""

    description: str
    parts: Mapping[str, tuple[Command, str]]
    dest: str = "part"

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser these commands."""
        parser.description = self.description
        parts = parser.add_subparsers(dest=self.dest, metavar=self.dest.upper(), required=True)
        for name, (one, brief) in self.parts.items():
            one.add_to(parts.add_parser(name, allow_abbrev=False, help=brief))


def _check(option: Option, options: Arguments) -> None:
    """Refuse now what is left out though it is needed, and a file that could not be written later."""
    value, endings = getattr(options, option.key), option.endings
    ends = not value or not endings or value.removesuffix(".gz").endswith(endings)
    refuse_if(
        (not value and option.needed, option.needed),
        (not ends, f"must end in {' or '.join(endings)}"),
        file="command line",
        field=option.spoken,
    )
    if value and option.over is not None:
        must_be_writable(
            value, [path for name in option.over for path in _paths(getattr(options, name))]
        )


def _paths(value: str | list[str] | None) -> list[str]:
    """Return the files that an option names."""
    return [value] if isinstance(value, str) else value or []


# -- files that a command names -------------------------------------------------------------------


def write(path: str | None, content: bytes | Callable[[], bytes]) -> None:
    """Hand a file over, gzipped if its name ends in ``.gz``, where one is asked for; it is written once the command has printed.

    Parameters
    ----------
    content
        What the file holds, or what returns it.
    """
    if path:
        whole = content if isinstance(content, bytes) else content()
        _waiting.append((path, gzip.compress(whole, mtime=0) if path.endswith(".gz") else whole))


def write_result(
    options: Arguments,
    path: str | None,
    record: Mapping[str, Any],
    found: Mapping[str, Any] | None = None,
    indent: int | None = None,
) -> None:
    """Hand a result over as a JSON file with its manifest; ``found`` as :func:`with_manifest` has it."""

    def content() -> bytes:
        whole = with_manifest(options, record, found=found)
        return (json.dumps(whole, allow_nan=False, indent=indent) + "\n").encode()

    write(path, content)


def write_what_waits() -> None:
    """Write what commands handed over, each file whole or not at all; say so where one is replaced.

    Raises
    ------
    InputError
        If a file cannot be written. One that was there stays as it was, and the content is kept
        elsewhere, in a file that the error names.
    """
    failed: InputError | None = None
    while _waiting:
        path, content = _waiting.pop(0)
        there = Path(path).is_file()
        try:
            _write(path, content)
        except (OSError, ValueError) as error:
            problem = f"cannot be written: {why(error)}{_kept_elsewhere(path, content)}"
            failed = failed or InputError(problem, file=path)
        else:
            if there:
                note(f"replaced {one_line(path, 200)}")
    if failed is not None:
        raise failed


def _write(path: str, content: bytes) -> None:
    target = Path(os.path.realpath(path))  # a link stays a link
    if target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK)):
        # a pipe, a device, or a file in a folder that takes no new one
        target.write_bytes(content)
        return
    partial = target.with_name(f".topox-{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    finally:
        _forget(partial)


def _kept_elsewhere(path: str, content: bytes) -> str:
    """Write what could not be written beside its place, or into the user's data folder, and say where."""
    from topox_core.library.opening import own_folder

    name = Path(path).name
    folders = [Path(path).absolute().parent, Path(tempfile.gettempdir())]
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        (own := own_folder()).mkdir(parents=True, exist_ok=True)
        folders.insert(1, own)
    for folder in folders:
        with suppress(OSError, ValueError):
            handle, place = tempfile.mkstemp(f"-{name[-60:]}", "topox-", folder)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(content)
            except OSError:
                _forget(Path(place))
            else:
                return f"; the result is in {place}"
    return ", nor anywhere else"


def must_be_writable(path: str, inputs: Iterable[str] = ()) -> None:
    """Refuse now what could not be written later: a long solve is not lost to a typing slip.

    Raises
    ------
    InputError
        If ``path`` is a folder, has none, is not ours to write, or is one of the ``inputs``.
    """
    try:
        problem = _not_writable(Path(path), inputs)
    except (OSError, ValueError) as error:  # such as a name of more than 255 characters
        problem = f"cannot be written: {why(error)}"
    refuse_if((problem, problem), file=path)


def _not_writable(target: Path, inputs: Iterable[str]) -> str:
    """Return why a file cannot be written; empty if it can."""
    if not target.parent.is_dir():
        return f"cannot be written: there is no folder {target.parent}"
    with suppress(FileNotFoundError):
        target.lstat()  # refuses a name that no folder takes
    for one in inputs:
        if target.exists() and Path(one).exists() and target.samefile(one):
            return "is an input of this command and would be overwritten"
    if target.is_dir():
        return "cannot be written: it is a folder"
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        return "cannot be written: permission denied"
    return ""


def read_graph_and_cluster(
    graph_path: str, cluster_path: str | None, overrides: dict[str, object]
) -> tuple[TaskGraph, Cluster]:
    """Load both files, apply the cluster keys given on the command line, and see that they fit together.

    Of a training job the task graph is generated, and where no cluster is given the one that it suggests is taken.
    """
    from topox_core.io.task_graph_file import check_fits, load_graph

    cluster = load_cluster(read(cluster_path), cluster_path) if cluster_path else None
    content = read(graph_path)
    if is_job(content):
        from topox_core.training.pipeline.graph import suggested_cluster, task_graph

        job = load_job(content, graph_path)
        graph, cluster = task_graph(job), cluster or suggested_cluster(job)
    else:
        graph = load_graph(content, graph_path)
    problem = "must be given: only a training job suggests one"
    cluster = needed(cluster, problem, file="command line", field="CLUSTER")
    if overrides:
        with errors_in_file("command line"):
            cluster = cluster.changed(**overrides)
    with errors_in_file(graph_path):
        check_fits(graph, cluster)
    return graph, cluster


def failed_assertions(path: str, values: Mapping[str, object]) -> bool:
    """Note each assertion of a job file that some values do not keep, and those on what is not among them; whether one failed."""
    content = read(path)
    asserted = load_design(content, path)[1] if is_job(content) else ()
    failed = list(failures(asserted, values))
    other = [f"assert {one}: not judged here" for one in asserted if one.measure not in values]
    note(*other, *failed)
    return bool(failed)


# Endings of a task graph file, the longest first.
_GRAPH_ENDINGS = (".taskgraph.json", ".taskgraph.csv", ".json", ".csv")


def cluster_beside(path: str) -> str:
    """Return the file for the cluster of a task graph that is written to ``path``; both can be written to.

    Raises
    ------
    InputError
        If ``path`` has another ending than a task graph's, or one of the two cannot be written.
    """
    bare = path.removesuffix(".gz")
    ending = next((one for one in _GRAPH_ENDINGS if bare.endswith(one)), None)
    ending = needed(ending, "must end in .json or .csv, and may be followed by .gz", file=path)
    beside = bare.removesuffix(ending) + ".cluster.json"
    must_be_writable(path)
    must_be_writable(beside)
    return beside


def write_graph(
    path: str, graph: TaskGraph, cluster_path: str | None = None, cluster: Cluster | None = None
) -> None:
    """Write a task graph, as a table where the name says so, and the cluster for it."""
    from topox_core.io.task_graph_file import dump_graph_csv, dump_graph_json

    table_form = path.removesuffix(".gz").endswith(".csv")
    write(path, dump_graph_csv(graph) if table_form else dump_graph_json(graph))
    if cluster_path and cluster is not None:
        write(cluster_path, dump_cluster(cluster))


def _forget(partial: Path) -> None:
    with suppress(OSError, ValueError):
        partial.unlink(missing_ok=True)


FIGURE = Option(
    "--figure FILE",
    str,
    "draw the result: .html, or .png, .svg, .pdf where kaleido and a Chrome are installed",
    over=("graph", "cluster"),
)


def check_figure(options: argparse.Namespace) -> None:
    """Refuse a file that no figure can be written to before anything is computed for it.

    Raises
    ------
    InputError
        Where it is one.
    """
    if options.figure:
        from topox_core.figures.files import check_figure_file

        check_figure_file(options.figure)


def write_figure(options: argparse.Namespace, subject: Any) -> None:
    """Draw what was found, where a figure was asked for.

    Raises
    ------
    InputError
        If there is nothing to draw, or no Chrome that draws a picture.
    """
    if options.figure:
        from topox_core.figures.drawing import figure_of
        from topox_core.figures.files import figure_file

        title = f"{options.command} {Path(options.graph).name.partition('.')[0]}"
        write(options.figure, figure_file(figure_of(subject), options.figure, title))


# -- what commands print --------------------------------------------------------------------------


def table(*rows: tuple[str, ...] | str | bool | None) -> str:
    """Return rows as lines with their columns aligned; the last column is free to be long, and what is no row is left out."""
    shown = [row for row in rows if isinstance(row, tuple)]
    columns = max(map(len, shown))
    widths = [
        max((len(row[i]) for row in shown if i < len(row) - 1), default=0) for i in range(columns)
    ]
    return "\n".join(
        "  ".join([*map(str.ljust, row[:-1], widths), row[-1]]).rstrip() for row in shown
    )


# By heading what stands below it: an attribute or a key of a thing, or what a function makes of it.
Says = Mapping[str, str | Callable[[Any], object]]


def columns(things: Iterable[Any], says: Says) -> str:
    """Return a table with a row for each thing; of numbers that are no words yet six digits."""

    def said(thing: Any, what: str | Callable[[Any], object]) -> object:
        if callable(what):
            return what(thing)
        return thing[what] if isinstance(thing, Mapping) else getattr(thing, what)

    rows = (tuple(cell(said(one, what)) for what in says.values()) for one in things)
    return table(tuple(says), *rows)


def note(*lines: str) -> None:
    """Print lines on standard error."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def ended(stopped_by: str, wall_s: float, working_s: float | None = None) -> str:
    """Return why a solve ended and after how long, in words; what did not count towards its limit is told apart."""
    words = f"{ENDED[stopped_by]}, {figure(round(wall_s, 3), 's')}"
    if working_s is not None and wall_s - working_s >= TOLD_APART_S:
        loading = figure(round(wall_s - working_s, 3), "s")
        words += f", of which {loading} to make the kernels ready"
    return words


def figure(value: float | None, unit: str = "") -> str:
    """Return a number as people read it: up to six significant digits, a dash for none."""
    if value is None:
        return "-"
    text = f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:.6g}"
    return f"{text} {unit}".rstrip()


def cell(value: object) -> str:
    """Return any value as a cell of a table."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return figure(value)
    return "-" if value is None else str(value)


def percent(fraction: float | None) -> str:
    """Return a fraction as a percentage."""
    return "-" if fraction is None else f"{fraction * 100:.3g} %"


@contextmanager
def ctrl_c_stops(
    kept: str = "the best schedule so far is kept",
) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether a stop was asked for; asking again ends the command at once.

    Batch systems ask by SIGTERM, and kill a while later. ``kept`` says what becomes of the work.
    """
    asked = threading.Event()

    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        note(f"stopping; {kept} (Ctrl-C again ends at once)")

    asking = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(one, on_interrupt) for one in asking]
    try:
        yield asked.is_set
    finally:
        for one, handler in zip(asking, before, strict=True):
            signal.signal(one, handler)
