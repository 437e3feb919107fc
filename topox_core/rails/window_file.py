"""A list of windows as a file: JSON or a table, measured on a cluster or made by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from topox_core.errors import InputError, Mistakes, printable, shown, unknown
from topox_core.io.content import first_letter
from topox_core.io.json import FileFormat, count_of, read_object
from topox_core.io.limits import WINDOWS
from topox_core.io.ranges import check_text
from topox_core.io.tables import as_meant, read_table, table_bytes
from topox_core.rails.iteration import Window

FORMAT, VERSION = "topox-windows", 1
MAX_WINDOWS = WINDOWS.entries
COLUMNS = ("rank", "rail", "before", "after", "operation", "begin_ms", "length_ms", "size_bytes")
_FORM = FileFormat(FORMAT, VERSION, ("name", "iteration_ms", "windows"), WINDOWS)
_WORDS = ("before", "after", "operation")
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
    file = printable(file, 200) if file else "windows"
    of = _of_json if first_letter(data, file, WINDOWS) == "{" else _of_table
    return of(data, file)


def _of_json(data: bytes, file: str) -> WindowList:
    windows = _Windows(file, "window")

    def take(number: int, row: Any) -> None:
        if not isinstance(row, dict):
            problem = f"must be an object in braces (got {shown(row)})"
            raise InputError(problem, file=file, item=f"window {number}")
        windows.add(number, row)

    record = read_object(data, file, _FORM, {"windows": take})
    count_of(record, "windows", "windows", file)
    name = record.get("name", "")
    check_text(name, 200, file=file, field="name")
    iteration = record.get("iteration_ms")
    if iteration is not None:
        iteration = _number(iteration, "iteration_ms", file, least=0.0)
    return windows.listed(name or _stem(file), iteration)


def _of_table(data: bytes, file: str) -> WindowList:
    table = read_table(data, file, WINDOWS, COLUMNS, "length_ms,before,after")
    if "length_ms" not in table.columns:
        raise InputError("needs a column length_ms (the first row names the columns)", file=file)
    windows = _Windows(file, "row")
    for number, cells in table.rows:
        if any(cells[len(table.columns) :]):
            problem = f"has more cells than the first row names ({len(table.columns)})"
            raise InputError(problem, file=file, item=f"row {number}")
        named = zip(table.columns, cells, strict=False)
        windows.add(number, {key: _cell(key, one, table.delimiter) for key, one in named if one})
    return windows.listed(_stem(file), None)


def _cell(column: str, text: str, delimiter: str) -> str:
    """Return a cell; unless commas separate columns, 3,5 is three and a half."""
    if column in _WORDS:
        return as_meant(text)
    numeric = column.endswith("_ms") and delimiter != ","
    return text.replace(",", ".") if numeric and text.count(",") == 1 and "." not in text else text


class _Windows:
    """The windows of a file as they are read, each checked at once."""

    def __init__(self, file: str, noun: str) -> None:
        self._file, self._noun = file, noun
        self._wrong = Mistakes(file)
        self._read: list[dict[str, Any]] = []
        self._numbers: list[int] = []

    def add(self, number: int, row: Mapping[str, Any]) -> None:
        """Check one window and keep it."""
        if len(self._read) >= MAX_WINDOWS:
            problem = f"holds more than the {MAX_WINDOWS:,} windows a file may have"
            raise InputError(problem, file=self._file)
        try:
            self._read.append(_values(row, self._file, f"{self._noun} {number}"))
            self._numbers.append(number)
        except InputError as error:
            self._wrong.add(error.problem, item=error.item, field=error.field)

    def listed(self, name: str, iteration: float | None) -> WindowList:
        """Return all windows; without begins they stand end to end."""
        self._wrong.stop()
        file, read = self._file, self._read
        if not read:
            raise InputError("holds no window", file=file)
        begins = [one["begin_ms"] for one in read]
        timed = None not in begins
        if not timed and any(begin is not None for begin in begins):
            item = f"{self._noun} {self._numbers[begins.index(None)]}"
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
            problem = (
                f"must be at least {ends:.15g}, where the last window ends (got {iteration:.15g})"
            )
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
        if key in _WORDS:
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
    return table_bytes(COLUMNS, map(_record, windows))
