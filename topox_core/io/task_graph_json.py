"""Task graphs as JSON: ``*.taskgraph.json``, format ``topox-taskgraph`` version 1."""

from __future__ import annotations

import json
from typing import Any

from topox_core.errors import InputError
from topox_core.io.errors import Mistakes, printable, shown, unknown
from topox_core.io.json import check_header, json_object
from topox_core.io.task_graph_rules import MAX_TASKS, validated
from topox_core.model.task_graph import Task, TaskGraph

FORMAT = "topox-taskgraph"
VERSION = 1
_TOP_KEYS = ("format", "version", "name", "tasks")
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
    record = json_object(data, file)
    check_header(record, FORMAT, VERSION, file)
    for key in record:
        if key not in _TOP_KEYS:
            raise InputError(unknown(key, _TOP_KEYS), file=file, field=printable(key))
    entries = record.get("tasks")
    if not isinstance(entries, list):
        got = f"got {shown(entries)}" if "tasks" in record else "is missing"
        raise InputError(f"must be a list of tasks in brackets ({got})", file=file, field="tasks")
    if len(entries) > MAX_TASKS:
        raise InputError(
            f"holds {len(entries):,} tasks, more than the {MAX_TASKS:,} a graph may have", file=file
        )
    findings = Mistakes(file)
    tasks = (_task(i, entry, findings) for i, entry in enumerate(entries))
    readable = [task for task in tasks if task is not None]
    return validated(record.get("name", name), readable, file, findings=findings)


def _task(i: int, entry: Any, findings: Mistakes) -> Task | None:
    """Return an entry as an unchecked task, or None after noting why it is none."""
    if not isinstance(entry, dict):
        findings.add(f"must be an object (got {shown(entry)})", item=f"entry {i + 1}")
        return None
    values = dict(entry)
    if not (_KNOWN >= values.keys() >= _NEEDED):
        for key in sorted(_NEEDED - values.keys()):
            findings.add("is missing", item=_item(i, entry), field=key)
        for key in values.keys() - _KNOWN:
            findings.add(unknown(key, KEYS), item=_item(i, entry), field=printable(key))
        return None
    for key in ("members", "dependencies"):
        if isinstance(values.get(key), list):
            values[key] = tuple(values[key])
    if values.get("dependencies") is None:
        values["dependencies"] = ()
    return Task(**values)


def _item(i: int, entry: dict[str, Any]) -> str:
    name = entry.get("id")
    return f"task {printable(name)}" if isinstance(name, str) and name.strip() else f"entry {i + 1}"


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
