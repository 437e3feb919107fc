"""Task graphs as JSON: ``*.taskgraph.json``, format ``topox-taskgraph`` version 1."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from topox_core.errors import InputError
from topox_core.io.errors import Mistakes, printable, shown, unknown
from topox_core.io.json import check_header, describe_error, json_object
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

_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Named(TypedDict):
    id: str
    kind: str


@with_config(ConfigDict(extra="forbid", strict=True))
class TaskRecord(_Named, total=False):
    """One task as the file has it: types only; :mod:`topox_core.io.task_graph_rules` knows the kinds."""

    server: int | None
    device: int | None
    duration_ms: _Number | None
    source: int | None
    destination: int | None
    size_bytes: _Number | None
    members: list[int] | None
    root: int | None
    dependencies: list[str] | None
    parallelism: str | None
    group: str | None
    microbatch: int | None
    stage: int | None
    layer: int | None
    job: str | None


_RECORD: TypeAdapter[TaskRecord] = TypeAdapter(TaskRecord)
_RECORDS: TypeAdapter[list[TaskRecord]] = TypeAdapter(list[TaskRecord])


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
    try:
        records = _RECORDS.validate_python(entries)
    except ValidationError as error:
        raise _refusal(error.error_count(), entries, file) from None
    return validated(record.get("name", name), map(_task, records), file)


def _task(record: TaskRecord) -> Task:
    values: dict[str, Any] = dict(record)
    values["dependencies"] = tuple(record.get("dependencies") or ())
    members = record.get("members")
    if members is not None:
        values["members"] = tuple(members)
    return Task(**values)


def _refusal(count: int, entries: list[Any], file: str) -> InputError:
    """Return the error for the first of ``count`` findings."""
    findings = Mistakes(file)
    # A file may be wrong in every line and pydantic's full list of that would fill the memory: ask
    # task by task instead.
    for i, entry in enumerate(entries):
        found = _first_error(entry)
        if found is not None:
            findings.add(found[0], item=_item(i, entry), field=found[1])
            break
    findings.count = count
    return findings.error()


def _first_error(entry: Any) -> tuple[str, str] | None:
    try:
        _RECORD.validate_python(entry)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = [
            printable(str(part)) if isinstance(part, str) else f"[{part}]" for part in first["loc"]
        ]
        return describe_error(first, KEYS), "".join(place)
    return None


def _item(i: int, entry: Any) -> str:
    name = entry.get("id") if isinstance(entry, dict) else None
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
