"""Task graphs from and to files: JSON, CSV and FlexNet, each with or without gzip."""

import json
import re
from typing import Any, Literal

from msgspec import UNSET, MsgspecError, Struct, UnsetType
from msgspec.json import Decoder, encode, format as on_one_line

from topox_core.errors import Mistakes, printable, refuse_if, shown, unknown
from topox_core.io.content import (
    FileFormat,
    bare_name,
    check_values,
    entries_of,
    first_letter,
    gc_paused,
    read_object,
    whole,
)
from topox_core.io.foreign.flexnet import read_graph_flexnet
from topox_core.io.limits import MB, TASK_GRAPH
from topox_core.io.tables import as_meant, read_table, table_bytes
from topox_core.io.task_graph_rules import graph_of
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import KEYS, MAX_TEXT, Task, TaskGraph, records_of
from topox_core.schema.fields import fields_of
from topox_core.text.numbers import first_that_holds

FORMAT = "topox-taskgraph"
VERSION = 1
_FORM = FileFormat(FORMAT, VERSION, ("name", "tasks"), TASK_GRAPH)
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
    lines = [on_one_line(encode(one), indent=0) for one in records_of(graph.tasks)]
    head = f'{{"format": "{FORMAT}", "version": {VERSION}, "name": {json.dumps(graph.name, ensure_ascii=False)},\n "tasks": [\n  '
    return head.encode() + b",\n  ".join(lines) + b"\n ]}\n"


_EXAMPLE = "id,kind,server,duration_ms,dependencies"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def read_graph_csv(data: bytes, file: str, name: str = "") -> TaskGraph:
    """Read a table separated by comma, semicolon or tab.

    Raises
    ------
    InputError
        If it is not a valid task graph; row (as a spreadsheet counts) and column are named.
    """
    table = read_table(data, file, TASK_GRAPH, KEYS, _EXAMPLE, ("id", "kind"))
    findings = Mistakes(file)
    tasks: list[Task] = []
    rows: list[int] = []
    for number, cells in table.rows:
        task = _task_of_row(number, cells, table.columns, table.delimiter, findings)
        if task is not None:
            tasks.append(task)
            rows.append(number)
    findings.stop()
    return graph_of(name, tasks, file, rows=rows)


def _task_of_row(
    number: int, cells: list[str], columns: tuple[str, ...], delimiter: str, findings: Mistakes
) -> Task | None:
    """Return the task of one row, or None after noting what is wrong with it."""
    values: dict[str, Any] = {"id": "", "kind": ""}
    before = len(findings.found)
    for i, cell in enumerate(cells):
        if not cell:
            continue
        if i >= len(columns) or not columns[i]:
            findings.add(
                f"has {shown(cell)} in cell {i + 1}, for which the first row names no column",
                item=f"row {number}",
            )
            continue
        try:
            values[columns[i]] = _value(columns[i], cell, delimiter)
        except ValueError as error:
            findings.add(str(error), item=f"row {number}", field=columns[i])
    for column in ("id", "kind"):
        if not values[column] and len(findings.found) == before:
            findings.add("is missing", item=f"row {number}", field=column)
    return Task(**values) if len(findings.found) == before else None


def _value(column: str, cell: str, delimiter: str) -> Any:
    kind = fields_of(Task)[column].kind
    if kind is int:
        return _whole(cell)
    if kind is float:
        return _number(column, cell, delimiter)
    if column == "members":
        if any(not _WHOLE.fullmatch(part) for part in cell.split()):
            raise ValueError(f"must be whole numbers separated by spaces (got {shown(cell)})")
        return tuple(_whole(part) for part in cell.split())
    if column == "dependencies":
        return tuple(as_meant(cell).split())
    return as_meant(cell)


def _whole(cell: str) -> int:
    """Return a whole number; ``3.0`` is one, because tables with gaps are often saved so."""
    if not _WHOLE.fullmatch(cell):
        raise ValueError(f"must be a whole number (got {shown(cell)})")
    return int(cell.partition(".")[0])


def _number(column: str, cell: str, delimiter: str) -> float:
    # Where ; separates cells the comma is the decimal sign. Sizes are whole bytes: a comma there
    # would be a guess.
    decimal_comma = delimiter == ";" and column == "duration_ms"
    text = cell.replace(",", ".") if decimal_comma and "." not in cell else cell
    if _NUMBER.fullmatch(text):
        return float(text)
    kind = first_that_holds(
        (decimal_comma and "," in cell, "number such as 3.5 or 3,5"),
        (_NOT_FINITE.fullmatch(cell), "finite number"),
        (column == "duration_ms", "number with a decimal point, such as 3.5"),
        (True, "number without separators, such as 67108864"),
    )
    raise ValueError(f"must be a {kind} (got {shown(cell)})")


def dump_graph_csv(graph: TaskGraph) -> bytes:
    """Write a comma-separated table; reading it back gives equal tasks."""
    records = list(records_of(graph.tasks))
    used = {key for record in records for key in record}
    columns = [key for key in KEYS if key in used]
    return table_bytes(columns, ({k: _cell(v) for k, v in record.items()} for record in records))


def _cell(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


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
        refuse_if(
            (
                first_letter(data, file, TASK_GRAPH) not in ("{", ""),
                "is of no type we read (expected .json, .csv or .fbuf, each also with .gz; "
                "save a spreadsheet as CSV)",
            ),
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
            ("members", max(task.members) if task.members else None),
        ]
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
