"""Reading and writing the files that a command names; whatever goes wrong is an :class:`InputError`."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import TYPE_CHECKING

from topox_core.errors import InputError, errors_in_file
from topox_core.io.files import read, why

__all__ = ["must_be_writable", "read", "read_graph_and_cluster", "write"]

if TYPE_CHECKING:
    from topox_core.model.cluster import Cluster
    from topox_core.model.task_graph import TaskGraph


def write(path: str, content: bytes) -> None:
    """Write a file whole or not at all, gzipped if its name ends in ``.gz``.

    Raises
    ------
    InputError
        If the folder is missing or the file cannot be written; a file that was there stays as it
        was.
    """
    if path.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    target = Path(os.path.realpath(path))  # a link stays a link
    if target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK)):
        _write_in_place(
            target, content
        )  # a pipe, a device, or a file in a folder that takes no new one
        return
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be written: {why(error)}", file=path) from None
    finally:
        _forget(partial)


def must_be_writable(path: str, inputs: tuple[str, ...] = ()) -> None:
    """Refuse now what could not be written later: a long solve is not lost to a typing slip.

    Raises
    ------
    InputError
        If ``path`` is a folder, has none, is not ours to write, or is one of the ``inputs``.
    """
    target = Path(path)
    for one in inputs:
        if target.exists() and Path(one).exists() and target.samefile(one):
            raise InputError("is an input of this command and would be overwritten", file=path)
    folder = target.parent
    if target.is_dir():
        raise InputError("cannot be written: it is a folder", file=path)
    if not folder.is_dir():
        raise InputError(f"cannot be written: there is no folder {folder}", file=path)
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise InputError("cannot be written: permission denied", file=path)


def read_graph_and_cluster(
    graph_path: str, cluster_path: str, overrides: dict[str, object]
) -> tuple[TaskGraph, Cluster]:
    """Load both files, apply the cluster keys given on the command line, and see that they fit together."""
    from topox_core.io.cluster_file import load_cluster
    from topox_core.io.task_graph_file import check_fits, load_graph

    cluster = load_cluster(read(cluster_path), cluster_path)
    if overrides:
        with errors_in_file("command line"):
            cluster = cluster.changed(**overrides)
    graph = load_graph(read(graph_path), graph_path)
    with errors_in_file(graph_path):
        check_fits(graph, cluster)
    return graph, cluster


def _write_in_place(target: Path, content: bytes) -> None:
    try:
        target.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot be written: {why(error)}", file=str(target)) from None


def _forget(partial: Path) -> None:
    try:
        partial.unlink(missing_ok=True)
    except (OSError, ValueError):
        return
