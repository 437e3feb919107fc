"""Task graphs as JSON: ``*.taskgraph.json``, format ``topox-taskgraph`` version 1."""

from __future__ import annotations

import json
from typing import Any

from topox_core.errors import Mistakes, printable, shown, unknown
from topox_core.io.json import FileFormat, count_of, read_object
from topox_core.io.limits import TASK_GRAPH
from topox_core.io.task_graph_rules import CheckedTasks
from topox_core.model.task_graph import Task, TaskGraph

FORMAT = "topox-taskgraph"
VERSION = 1
_FORM = FileFormat(FORMAT, VERSION, ("name", "tasks"), TASK_GRAPH)
# The order in which a task's keys are written: what it is, what it needs, what is noted about it.
KEYS = (
    "id",
    "kind",
    "server",
    "device",
    "duration_ms",
    "source",
    "destination",
    "size_bytes",
    "members",
    "root",
    "dependencies",
    "parallelism",
    "group",
    "microbatch",
    "stage",
    "layer",
    "job",
)
_KNOWN, _NEEDED = frozenset(KEYS), frozenset(("id", "kind"))


def read_graph_json(data: bytes, file: str, name: str = "") -> TaskGraph:
    """Read a task graph; ``name`` is used if the file gives none.

    Raises
    ------
    InputError
        If the file is not a valid task graph; the task and the field are named.
    """
    findings = Mistakes(file)
    tasks = CheckedTasks(file, findings=findings)
    right: set[tuple[str, ...]] = set()

    def take(number: int, entry: Any) -> None:
        task = _task(number, entry, findings, right)
        if task is not None:
            tasks.add(task, number)

    record = read_object(data, file, _FORM, {"tasks": take})
    count_of(record, "tasks", "tasks", file)
    return tasks.graph(record.get("name", name))


def _task(number: int, entry: Any, findings: Mistakes, right: set[tuple[str, ...]]) -> Task | None:
    """Return an entry as an unchecked task, or None after noting why it is none."""
    if not isinstance(entry, dict):
        findings.add(f"must be an object (got {shown(entry)})", item=f"entry {number}")
        return None
    keys = tuple(entry)
    if keys not in right:
        if _KNOWN >= entry.keys() >= _NEEDED:
            right.add(keys)
            return _task(number, entry, findings, right)
        name = entry.get("id")
        readable = isinstance(name, str) and name.strip()
        item = f"task {printable(str(name))}" if readable else f"entry {number}"
        for key in sorted(_NEEDED - entry.keys()):
            findings.add("is missing", item=item, field=key)
        for key in entry:
            if key not in _KNOWN:
                findings.add(unknown(key, KEYS), item=item, field=printable(key))
        return None
    for key in ("members", "dependencies"):
        if type(entry.get(key)) is list:
            entry[key] = tuple(entry[key])
    if entry.get("dependencies") is None:
        entry["dependencies"] = ()
    return Task(**entry)


def dump_graph_json(graph: TaskGraph) -> bytes:
    """Write a task graph, one task a line; reading it back gives an equal graph."""
    lines = []
    for task in graph.tasks:
        record = task.as_record()
        lines.append(
            json.dumps({key: record[key] for key in KEYS if key in record}, ensure_ascii=False)
        )
    head = f'{{"format": "{FORMAT}", "version": {VERSION}, "name": {json.dumps(graph.name, ensure_ascii=False)},\n "tasks": [\n  '
    return (head + ",\n  ".join(lines) + "\n ]}\n").encode()
