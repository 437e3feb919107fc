"""Task graphs as a table: one row a task, the columns named like the keys of the JSON file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from topox_core.errors import InputError
from topox_core.io.errors import Mistakes, printable, shown, unknown
from topox_core.io.limits import text_of
from topox_core.io.task_graph_json import KEYS
from topox_core.io.task_graph_rules import MAX_DEPENDENCIES, MAX_MEMBERS, MAX_TASKS, validated
from topox_core.model.task_graph import Task, TaskGraph

DELIMITERS = (",", ";", "\t")
_WHOLE_COLUMNS = frozenset(
    ("server", "device", "source", "destination", "root", "microbatch", "stage", "layer")
)
_NUMBER_COLUMNS = frozenset(("duration_ms", "size_bytes"))
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_SEP_LINE = re.compile(r'"?sep=(.)"?')
# A join may wait for thousands of tasks in one cell; Python's own limit is 131,072 characters.
csv.field_size_limit(20_000_000)


def read_graph_csv(data: bytes, file: str, name: str = "") -> TaskGraph:
    """Read a table separated by comma, semicolon or tab.

    Raises
    ------
    InputError
        If it is not a valid task graph; row (as a spreadsheet counts) and column are named.
    """
    text = text_of(data, file)
    delimiter = _delimiter(text, file)
    rows = _rows(text, delimiter, file)
    _, header = next(rows, (0, []))
    columns = _columns(header, file)
    tasks: list[Task] = []
    numbers: list[int] = []
    findings = Mistakes(file)
    listed = 0
    for number, cells in rows:
        if not any(cells):
            continue
        listed += sum(cell.count(" ") for cell in cells)
        if listed > MAX_DEPENDENCIES + MAX_MEMBERS:
            raise InputError(
                f"holds more than the {MAX_DEPENDENCIES:,} dependencies a graph may have", file=file
            )
        if len(tasks) >= MAX_TASKS:
            raise InputError(f"holds more than the {MAX_TASKS:,} tasks a graph may have", file=file)
        task = _task(number, cells, columns, delimiter, findings)
        if task is not None:
            tasks.append(task)
            numbers.append(number)
    findings.stop()
    return validated(name, tasks, file, rows=numbers)


def _rows(text: str, delimiter: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (row number, stripped cells), from the header on."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number, begun = 0, False
    while True:
        number += 1
        try:
            cells = [cell.strip() for cell in next(reader)]
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"cannot be read as a table: {error}", file=file, item=f"row {number}"
            ) from None
        if not begun and (
            not any(cells) or (number == 1 and _SEP_LINE.fullmatch(text[:8].split("\n")[0].strip()))
        ):
            continue
        begun = True
        yield number, cells


def _delimiter(text: str, file: str) -> str:
    """Find the delimiter: the one that splits the header into the most names we know."""
    lines = iter(text.splitlines()) if len(text) < 4096 else iter(text[: 1 << 16].splitlines())
    header = next(
        (line for line in lines if line.strip(" ,;\t") and not _SEP_LINE.fullmatch(line.strip())),
        "",
    )

    def names_known(delimiter: str) -> int:
        return len(
            {cell.strip().strip('"').strip() for cell in header.split(delimiter)} & set(KEYS)
        )

    best = max(DELIMITERS, key=names_known)
    if names_known(best) == 0:
        raise InputError(
            "must name the columns, separated by comma, semicolon or tab, such as "
            f"id,kind,server,duration_ms,dependencies (got {shown(header)})",
            file=file,
            item="first row",
        )
    return best


def _columns(header: list[str], file: str) -> list[str]:
    wrong = partial(InputError, file=file, item="first row")
    for column in filter(None, header):
        if column not in KEYS:
            raise wrong(unknown(column, KEYS, "column"), field=printable(column))
        if header.count(column) > 1:
            raise wrong("is the name of two columns", field=column)
    for column in ("id", "kind"):
        if column not in header:
            raise wrong("is missing: every table needs this column", field=column)
    return header


def _task(
    number: int, cells: list[str], columns: list[str], delimiter: str, findings: Mistakes
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
    if column in _WHOLE_COLUMNS:
        return _whole(cell)
    if column in _NUMBER_COLUMNS:
        return _number(column, cell, delimiter)
    if column == "members":
        if any(not _WHOLE.fullmatch(part) for part in cell.split()):
            raise ValueError(f"must be whole numbers separated by spaces (got {shown(cell)})")
        return tuple(_whole(part) for part in cell.split())
    if column == "dependencies":
        return tuple(cell.split())
    return cell


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
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for record in records:
        writer.writerow([_cell(record.get(key, "")) for key in columns])
    return out.getvalue().encode()


def _cell(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
