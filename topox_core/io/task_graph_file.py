"""Task graphs from and to files: JSON, CSV and FlexNet, each with or without gzip."""

from topox_core.errors import InputError, Mistakes, printable
from topox_core.io.content import bare_name, first_letter, gc_paused
from topox_core.io.limits import TASK_GRAPH
from topox_core.io.task_graph_csv import dump_graph_csv, read_graph_csv
from topox_core.io.task_graph_flexnet import read_graph_flexnet
from topox_core.io.task_graph_json import dump_graph_json, read_graph_json
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import MAX_TEXT, TaskGraph

__all__ = ["check_fits", "dump_graph_csv", "dump_graph_json", "load_graph"]

_READERS = {
    ".json": read_graph_json,
    ".csv": read_graph_csv,
    ".tsv": read_graph_csv,
    ".txt": read_graph_csv,
    ".fbuf": read_graph_flexnet,
}


def load_graph(data: bytes, file: str) -> TaskGraph:
    """Read a task graph; the ending of ``file`` says how, gzip is recognised by its bytes.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, item and field.
    """
    file = printable(file, MAX_TEXT) if file else "task graph"
    stem, ending = _ending(file)
    reader = _READERS.get(ending)
    if reader is None:
        if first_letter(data, file, TASK_GRAPH) not in ("{", ""):
            raise InputError(
                "is of no type we read (expected .json, .csv or .fbuf, each also with .gz; "
                "save a spreadsheet as CSV)",
                file=file,
            )
        reader = read_graph_json
    with gc_paused():
        return reader(data, file, stem.removesuffix(".taskgraph")[:MAX_TEXT])


def _ending(file: str) -> tuple[str, str]:
    """Return the file's bare name and its ending, folders and ``.gz`` taken off."""
    name = bare_name(file)
    if name.lower().endswith(".gz"):
        name = name[:-3]
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending.lower()) if dot else (ending, "")


def check_fits(graph: TaskGraph, cluster: Cluster, file: str = "") -> None:
    """Check that the cluster has every server and device that the tasks name.

    Raises
    ------
    InputError
        For the first task that names one it lacks; ``(and N more)`` counts the others.
    """
    findings = Mistakes(file)
    devices = _numbered(cluster.devices_per_server, "device")
    for task in graph.tasks:
        places = [
            ("server", task.server),
            ("source", task.source),
            ("destination", task.destination),
            ("root", task.root),
        ]
        if task.members:
            places.append(("members", max(task.members)))
        for field, server in places:
            if server is not None and server >= cluster.servers:
                findings.add(
                    f"names server {server}, which the cluster lacks ({_numbered(cluster.servers, 'server')})",
                    item=f"task {task.id}",
                    field=field,
                )
        if task.device is not None and task.device >= cluster.devices_per_server:
            findings.add(
                f"names device {task.device}, which the cluster's servers lack (each: {devices})",
                item=f"task {task.id}",
                field="device",
            )
    findings.stop()


def _numbered(count: int, what: str) -> str:
    return f"it has 1 {what}: 0" if count == 1 else f"it has {count:,} {what}s: 0 to {count - 1}"
