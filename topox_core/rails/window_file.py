"""A list of windows as a file: JSON or a table, measured on a cluster or made by hand."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from topox_core.errors import InputError
from topox_core.io.errors import Mistakes, printable, shown, unknown
from topox_core.io.json import check_header, json_object
from topox_core.io.limits import text_of, unpacked
from topox_core.rails.iteration import Window

FORMAT, VERSION = "topox-windows", 1
MAX_WINDOWS = 200_000
COLUMNS = ("rank", "rail", "before", "after", "operation", "begin_ms", "length_ms", "size_bytes")
TOP = ("format", "version", "name", "iteration_ms", "windows")
_DEFAULTS: dict[str, Any] = {
    "rank": 0,
    "rail": 0,
    "before": "",
    "after": "",
    "operation": "",
    "begin_ms": None,
    "size_bytes": 0.0,
}


@dataclass(frozen=True)
class WindowList:
    """The windows of one iteration.

    Attributes
    ----------
    iteration_ms
        How long the iteration lasted; without one in the file the end of the last window.
    timed
        Whether the file says when each window begins; if not, windows stand end to end.
    """

    name: str
    iteration_ms: float
    windows: tuple[Window, ...]
    timed: bool


def load_windows(data: bytes, file: str) -> WindowList:
    """Read a list of windows from JSON or a table (comma, semicolon or tab), gzipped or not.

    Raises
    ------
    InputError
        If it is not such a file, a value is missing or out of range, or there is no window in it.
    """
    data = unpacked(data, file)
    if data.lstrip().startswith((b"{", b"\xef\xbb\xbf{")):
        return _of_json(json_object(data, file), file)
    return _of_table(text_of(data, file), file)


def _of_json(record: dict[str, Any], file: str) -> WindowList:
    check_header(record, FORMAT, VERSION, file)
    for key in record:
        if key not in TOP:
            raise InputError(unknown(key, TOP), file=file, field=printable(str(key)))
    rows = record.get("windows")
    if not isinstance(rows, list):
        raise InputError(
            f"must be a list of windows (got {shown(rows)})", file=file, field="windows"
        )
    name = record.get("name", "")
    if not isinstance(name, str) or len(name) > 200 or (name and not name.isprintable()):
        raise InputError(
            f"must be text of at most 200 characters (got {shown(name)})", file=file, field="name"
        )
    iteration = record.get("iteration_ms")
    if iteration is not None:
        iteration = _number(iteration, "iteration_ms", file, least=0.0)
    for k, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise InputError(
                f"must be an object in braces (got {shown(row)})", file=file, item=f"window {k}"
            )
    return _made(rows, name or _stem(file), iteration, file, "window")


def _of_table(text: str, file: str) -> WindowList:
    lines = [line for line in text.splitlines() if line.strip()]
    delimiter = max(
        ",;\t",
        key=lambda d: len({cell.strip().strip('"') for cell in lines[0].split(d)} & set(COLUMNS)),
    )
    try:
        reader = csv.DictReader(io.StringIO("\n".join(lines)), delimiter=delimiter, restkey="")
        heads = [head.strip() for head in reader.fieldnames or ()]
        reader.fieldnames = heads
        rows = [
            {
                key: _cell(key, value.strip(), delimiter)
                for key, value in row.items()
                if isinstance(value, str) and value.strip()
            }
            for row in reader
        ]
        wide = next(
            (
                k
                for k, row in enumerate(csv.reader(lines, delimiter=delimiter))
                if len(row) > len(heads)
            ),
            0,
        )
    except csv.Error as error:
        raise InputError(f"is not a table ({error})", file=file) from None
    if "length_ms" not in heads:
        raise InputError("needs a column length_ms (the first row names the columns)", file=file)
    for head in heads:
        if head not in COLUMNS:
            field = printable(head) if head else "unnamed"
            raise InputError(unknown(head, COLUMNS, "column"), file=file, field=field)
    if wide:
        problem = f"has more cells than the first row names ({len(heads)})"
        raise InputError(problem, file=file, item=f"row {wide + 1}")
    return _made(rows, _stem(file), None, file, "row", first=2)


def _cell(column: str, text: str, delimiter: str) -> str:
    """Return a cell; unless commas separate columns, 3,5 is three and a half."""
    numeric = column.endswith("_ms") and delimiter != ","
    return text.replace(",", ".") if numeric and text.count(",") == 1 and "." not in text else text


def _made(
    rows: list[Any], name: str, iteration: float | None, file: str, word: str, first: int = 1
) -> WindowList:
    if not rows:
        raise InputError("holds no window", file=file)
    if len(rows) > MAX_WINDOWS:
        raise InputError(
            f"holds {len(rows):,} windows, more than the {MAX_WINDOWS:,} a file may have", file=file
        )
    wrong = Mistakes(file)
    read = []
    for k, row in enumerate(rows, first):
        try:
            read.append(_values(row, file, f"{word} {k}"))
        except InputError as error:
            wrong.add(error.problem, item=error.item, field=error.field)
    wrong.stop()
    begins = [one["begin_ms"] for one in read]
    timed = all(begin is not None for begin in begins)
    if not timed and any(begin is not None for begin in begins):
        item = f"{word} {begins.index(None) + first}"
        problem = "is missing, but other windows have one"
        raise InputError(problem, file=file, item=item, field="begin_ms")
    at = 0.0
    for one in read:
        if not timed:
            one["begin_ms"] = at
            at += max(0.0, one["length_ms"])
    windows = tuple(Window(**one) for one in read)
    ends = max(one.begin_ms + max(0.0, one.length_ms) for one in windows)
    if iteration is not None and iteration < ends - 1e-6:
        problem = f"must be at least {ends:.15g}, where the last window ends (got {iteration:.15g})"
        raise InputError(problem, file=file, field="iteration_ms")
    return WindowList(name, ends if iteration is None else iteration, windows, timed)


def _values(row: Mapping[str, Any], file: str, item: str) -> dict[str, Any]:
    for key in row:
        if key not in COLUMNS:
            raise InputError(unknown(key, COLUMNS), item=item, field=printable(str(key)))
    if row.get("length_ms") is None:
        raise InputError("is missing", item=item, field="length_ms")
    values = dict(_DEFAULTS)
    for key, value in row.items():
        if value is None:
            continue
        if key in ("before", "after", "operation"):
            if not isinstance(value, str) or len(value) > 80 or not value.isprintable():
                problem = f"must be text of at most 80 characters (got {shown(value)})"
                raise InputError(problem, item=item, field=key)
            values[key] = value
        elif key in ("rank", "rail"):
            whole = _number(value, key, file, item=item, least=0.0)
            if whole != int(whole) or whole > 1e7:
                problem = f"must be a whole number from 0 (got {shown(value)})"
                raise InputError(problem, item=item, field=key)
            values[key] = int(whole)
        else:
            least = 0.0 if key in ("begin_ms", "size_bytes") else -math.inf
            values[key] = _number(value, key, file, item=item, least=least)
    return values


def _number(value: Any, field: str, file: str, *, item: str = "", least: float) -> float:
    """Return a number from JSON or a cell; only lengths may be negative (an overlap)."""
    wrong = partial(InputError, file=file, item=item, field=field)
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError):
        raise wrong(f"must be a number (got {shown(value)})") from None
    if not math.isfinite(number) or not least <= number <= 1e15:
        words = "of at least 0" if least == 0 else "below 1e15"
        raise wrong(f"must be a finite number {words} (got {shown(value)})")
    return number


def _stem(file: str) -> str:
    return file.rpartition("/")[2].partition(".")[0] or "windows"


def _record(window: Window) -> dict[str, Any]:
    return {column: getattr(window, column) for column in COLUMNS}


def dump_windows_json(name: str, iteration_ms: float, windows: Iterable[Window]) -> bytes:
    """Return windows as the file :func:`load_windows` reads."""
    record = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "iteration_ms": iteration_ms,
        "windows": [_record(one) for one in windows],
    }
    return json.dumps(record, allow_nan=False).encode()


def dump_windows_csv(windows: Iterable[Window]) -> bytes:
    """Return windows as a table that :func:`load_windows` reads."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_record(one) for one in windows)
    return text.getvalue().encode()
