"""Task graphs as a table: one row a task, the columns named like the keys of the JSON file."""

import re
from typing import Any

from topox_core.errors import Mistakes, shown
from topox_core.io.limits import TASK_GRAPH
from topox_core.io.tables import as_meant, read_table, table_bytes
from topox_core.io.task_graph_json import KEYS
from topox_core.io.task_graph_rules import graph_of
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schema.fields import fields_of

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
        task = _task(number, cells, table.columns, table.delimiter, findings)
        if task is not None:
            tasks.append(task)
            rows.append(number)
    findings.stop()
    return graph_of(name, tasks, file, rows=rows)


def _task(
    number: int, cells: list[str], columns: tuple[str, ...], delimiter: str, findings: Mistakes
) -> Task | None:
    """Return the task of one row, or None after noting what is wrong with it."""
    values: dict[str, Any] = {"id": "", "kind": ""}
    before = findings.count
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
        if not values[column] and findings.count == before:
            findings.add("is missing", item=f"row {number}", field=column)
    return Task(**values) if findings.count == before else None


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
    if "," in cell and delimiter == ";" and column == "duration_ms":
        # Where ; separates cells the comma is the decimal sign. Sizes are whole bytes: a comma
        # there would be a guess.
        if (
            "." not in cell
            and cell.count(",") == 1
            and _NUMBER.fullmatch(point := cell.replace(",", "."))
        ):
            return float(point)
        raise ValueError(f"must be a number such as 3.5 or 3,5 (got {shown(cell)})")
    if _NUMBER.fullmatch(cell):
        return float(cell)
    if _NOT_FINITE.fullmatch(cell):
        raise ValueError(f"must be a finite number (got {shown(cell)})")
    if column == "duration_ms":
        raise ValueError(f"must be a number with a decimal point, such as 3.5 (got {shown(cell)})")
    raise ValueError(f"must be a number without separators, such as 67108864 (got {shown(cell)})")


def dump_graph_csv(graph: TaskGraph) -> bytes:
    """Write a comma-separated table; reading it back gives equal tasks."""
    records = [task.as_record() for task in graph.tasks]
    used = {key for record in records for key in record}
    columns = [key for key in KEYS if key in used]
    return table_bytes(columns, ({k: _cell(v) for k, v in record.items()} for record in records))


def _cell(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list) else value
