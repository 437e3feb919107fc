"""Task graphs as JSON: ``*.taskgraph.json``, format ``topox-taskgraph`` version 1."""

import json
from typing import Any, Literal

from msgspec import UNSET, MsgspecError, Struct, UnsetType
from msgspec.json import Decoder, encode, format as on_one_line

from topox_core.errors import Mistakes, printable, shown, unknown
from topox_core.io.content import whole
from topox_core.io.json import FileFormat, check_values, entries_of, read_object
from topox_core.io.limits import MB, TASK_GRAPH
from topox_core.io.task_graph_rules import graph_of
from topox_core.model.task_graph import Task, TaskGraph

FORMAT = "topox-taskgraph"
VERSION = 1
_FORM = FileFormat(FORMAT, VERSION, ("name", "tasks"), TASK_GRAPH)
# The order in which a task's keys are written: what it is, what it needs, what is noted about it.
KEYS = (
    *("id", "kind", "server", "device", "duration_ms", "source", "destination", "size_bytes"),
    *("members", "root", "dependencies"),
    *("parallelism", "group", "microbatch", "stage", "layer", "job"),
)
_KNOWN, _NEEDED = frozenset(KEYS), frozenset(("id", "kind"))
# Below this size a person may have written the file, and given a key twice.
_BY_HAND = 1 * MB


class _File(Struct, forbid_unknown_fields=True):
    format: Literal["topox-taskgraph"]
    version: Literal[1]
    tasks: list[Task]
    name: str | UnsetType = UNSET


_decode = Decoder(_File).decode


def read_graph_json(data: bytes, file: str, name: str = "") -> TaskGraph:
    """Read a task graph; ``name`` is used if the file gives none.

    Half a million tasks take a second. Where anything is wrong, or the file is small enough to be written
    by hand, it is read again entry by entry, which finds what to say.

    Raises
    ------
    InputError
        If the file is not a valid task graph; the task and the field are named.
    """
    content = whole(data, file, TASK_GRAPH)
    check_values(content, TASK_GRAPH, file)
    if len(content) > _BY_HAND:
        try:
            read = _decode(content)
        except (MsgspecError, RecursionError, ValueError):
            return _entry_by_entry(data, file, name)
        title = name if isinstance(read.name, UnsetType) else read.name
        return graph_of(title, read.tasks, file, in_range=True)
    return _entry_by_entry(data, file, name)


def _entry_by_entry(data: bytes, file: str, name: str) -> TaskGraph:
    findings = Mistakes(file)
    record = read_object(data, file, _FORM)
    entries = enumerate(entries_of(record, "tasks", "tasks", _FORM, file), 1)
    made = [_task(number, entry, findings) for number, entry in entries]
    tasks = [task for task in made if task is not None]
    findings.stop()
    return graph_of(record.get("name", name), tasks, file)


def _task(number: int, entry: Any, findings: Mistakes) -> Task | None:
    """Return an entry as an unchecked task, or None after noting why it is none."""
    if not isinstance(entry, dict):
        findings.add(f"must be an object (got {shown(entry)})", item=f"entry {number}")
        return None
    if not _KNOWN >= entry.keys() >= _NEEDED:
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
        ordered = encode({key: record[key] for key in KEYS if key in record})
        lines.append(on_one_line(ordered, indent=0))
    head = f'{{"format": "{FORMAT}", "version": {VERSION}, "name": {json.dumps(graph.name, ensure_ascii=False)},\n "tasks": [\n  '
    return head.encode() + b",\n  ".join(lines) + b"\n ]}\n"
