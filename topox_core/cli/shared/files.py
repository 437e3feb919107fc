"""Files of commands: those that they read, and those that they write once they have printed, whole or not at all."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli.shared.manifest import with_manifest
from topox_core.cli.shared.options import Option
from topox_core.cli.shared.printing import note
from topox_core.errors import InputError, errors_in_file, needed, one_line, refuse_if
from topox_core.io.assertions import failures
from topox_core.io.cluster_file import dump_cluster, load_cluster
from topox_core.io.content import read, why
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.training.job import is_job, load_design, load_job

if TYPE_CHECKING:
    from topox_core.rails.iteration import Window

# Files that commands handed over.
_waiting: list[tuple[str, bytes]] = []


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
    options: argparse.Namespace,
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


def write_windows(
    path: str | None, name: str, iteration_ms: float, windows: tuple[Window, ...]
) -> None:
    """Write windows, as a table where the name says so."""
    if path:
        from topox_core.rails.window_lengths import dump_windows_csv, dump_windows_json

        table_form = path.removesuffix(".gz").endswith(".csv")
        write(
            path,
            dump_windows_csv(windows)
            if table_form
            else dump_windows_json(name, iteration_ms, windows),
        )


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
