"""Lists of windows: their lengths, shares above a delay, by the traffic that follows (Fig. 4); and as files, JSON or a table."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Annotated, Any

import numpy as np

from topox_core.errors import InputError, Mistakes, printable, refuse_if
from topox_core.io.content import FileFormat, entries_of, first_letter, read_object
from topox_core.io.limits import WINDOWS, check_count
from topox_core.io.tables import as_meant, read_table, table_bytes
from topox_core.model.arrays.groups import by_key
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.iteration import Window
from topox_core.schema.fields import PRINTABLE, setting
from topox_core.schema.records import check_values, from_values
from topox_core.text.numbers import short

MIB = float(1 << 20)


MAX_CLASSES = 9  # of traffic, as a chart shows them; the rarest share the last


_EPS_MS = 1e-9


@dataclass(frozen=True)
class TrafficClass:
    """Windows in front of traffic of one parallelism, operation and about one size."""

    name: str
    parallelism: str
    windows: tuple[Window, ...]

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.windows)

    @property
    def mean_ms(self) -> float:
        """Mean length; an overlap shortens it."""
        return float(np.mean([one.length_ms for one in self.windows]))

    @property
    def mean_idle_ms(self) -> float:
        """Mean time in which the rail is idle: overlaps count as 0."""
        return float(np.mean([max(0.0, one.length_ms) for one in self.windows]))

    @property
    def min_ms(self) -> float:
        """Shortest length."""
        return min(one.length_ms for one in self.windows)

    @property
    def max_ms(self) -> float:
        """Longest length."""
        return max(one.length_ms for one in self.windows)

    @property
    def mean_bytes(self) -> float:
        """Mean size of the traffic."""
        return float(np.mean([one.size_bytes for one in self.windows]))


def lengths_ms(windows: Iterable[Window | float]) -> FloatArray:
    """Return window lengths as an array.

    Raises
    ------
    InputError
        If there is no window, or a length is not a number.
    """
    lengths = np.array(
        [one.length_ms if isinstance(one, Window) else float(one) for one in windows],
        dtype=np.float64,
    )
    refuse_if(
        (not len(lengths), "at least one window is needed (the list is empty)"),
        (not np.isfinite(lengths).all(), "must be finite numbers"),
        file="settings",
        field="windows",
    )
    return lengths


def share_above(windows: Iterable[Window | float], ms: float) -> float:
    """Return the share of windows longer than ``ms``, 0 to 1.

    Raises
    ------
    InputError
        If there is no window.
    """
    return float((lengths_ms(windows) > ms).mean())


def hides(window: Window, dark_ms: float) -> bool:
    """Return whether a change of ``dark_ms`` fits into a window."""
    return window.length_ms >= dark_ms - _EPS_MS


def share_hiding(windows: Sequence[Window], dark_ms: float) -> float:
    """Return the share of windows that hide a change of ``dark_ms``; 0 where there is none."""
    return sum(hides(one, dark_ms) for one in windows) / len(windows) if windows else 0.0


def median_ms(windows: Iterable[Window]) -> float | None:
    """Return the median length in ms, below 0 where most overlap; None where there is no window."""
    lengths = [one.length_ms for one in windows]
    return float(np.median(lengths)) if lengths else None


def cdf(windows: Iterable[Window | float]) -> tuple[FloatArray, FloatArray]:
    """Return (lengths ascending, share of windows up to each), the curve of Fig. 4a.

    Raises
    ------
    InputError
        If there is no window.
    """
    lengths = np.sort(lengths_ms(windows))
    return lengths, np.arange(1, len(lengths) + 1) / len(lengths)


def by_class(windows: Sequence[Window]) -> tuple[TrafficClass, ...]:
    """Return windows by parallelism, operation and MiB of what follows (Fig. 4b), smallest first.

    Raises
    ------
    InputError
        If there is no window.
    """
    lengths_ms(windows)
    members = by_key(
        ((w.after, w.operation, round(w.size_bytes / MIB) * (w.size_bytes >= MIB)), w)
        for w in windows
    )
    classes = (
        TrafficClass(
            f"{parallelism} {operation.replace('_', '-')}, "
            + (f"{size:,} MiB" if size else "below 1 MiB"),
            parallelism,
            tuple(same),
        )
        for (parallelism, operation, size), same in members.items()
    )
    return tuple(sorted(classes, key=lambda one: (one.mean_bytes, one.name)))


def by_traffic(windows: Sequence[Window]) -> tuple[TrafficClass, ...]:
    """Return windows by the traffic after them, largest first, the rarest in one class.

    Sizes of the same two leading digits are one class, named by its operation; the name is empty
    where that is unknown.
    """
    members = by_key(((w.after, w.operation, f"{w.size_bytes:.2g}"), w) for w in windows)
    if len(members) > MAX_CLASSES:
        often = Counter({key: len(same) for key, same in members.items()})
        kept = [key for key, _ in often.most_common(MAX_CLASSES - 1)]
        rest = [one for key, same in members.items() if key not in kept for one in same]
        members = {key: members[key] for key in kept} | {(rest[0].after, "other traffic", ""): rest}
    classes = [
        TrafficClass(operation.replace("_", " "), parallelism, tuple(same))
        for (parallelism, operation, _), same in members.items()
    ]
    return tuple(sorted(classes, key=lambda one: -one.mean_bytes))


def mib(size_bytes: float) -> str:
    """Return bytes as the paper counts them, in MiB (GiB from ten of them): 64 MiB, < 0.01 MiB."""
    value = size_bytes / MIB
    if value >= 1024 * 10:
        return f"{short(value / 1024)} GiB"
    if value >= 100:
        return f"{value:,.0f} MiB"
    return f"{short(value)} MiB" if value >= 0.01 else "< 0.01 MiB"


FORMAT, VERSION = "topox-windows", 1
MAX_WINDOWS = WINDOWS.entries
COLUMNS = tuple(one.name for one in fields(Window))
_FORM = FileFormat(FORMAT, VERSION, ("name", "iteration_ms", "windows"), WINDOWS)
_WORDS = ("before", "after", "operation")
_DEFAULTS = {"rank": 0, "rail": 0, **dict.fromkeys(_WORDS, ""), "begin_ms": 0.0, "size_bytes": 0.0}


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

    name: Annotated[str, setting(max_length=200, without=PRINTABLE)]
    iteration_ms: Annotated[float, setting("Iteration", "ms", ge=0, le=1e15)]
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
    record = read_object(data, file, _FORM)
    entries = entries_of(record, "windows", "windows", _FORM, file)
    given = {key: record[key] for key in ("name", "iteration_ms") if record.get(key) is not None}
    check_values(WindowList, given, file, must=())
    name = given.get("name") or _stem(file)
    return _listed(enumerate(entries, 1), file, "window", name, given.get("iteration_ms"))


def _of_table(data: bytes, file: str) -> WindowList:
    table = read_table(data, file, WINDOWS, COLUMNS, "length_ms,before,after", ("length_ms",))
    rows = (
        (number, {key: _cell(key, one, table.delimiter) for key, one in row.items() if one})
        for number, row in table.records(file)
    )
    return _listed(rows, file, "row", _stem(file), None)


def _cell(column: str, text: str, delimiter: str) -> str | float:
    """Return a cell; unless commas separate columns, 3,5 is three and a half."""
    if column in _WORDS:
        return as_meant(text)
    if column.endswith("_ms") and delimiter != "," and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _listed(
    rows: Iterable[tuple[int, Any]], file: str, noun: str, name: str, iteration_ms: float | None
) -> WindowList:
    """Return the windows of a file, each checked at once; without begins they stand end to end."""
    wrong, windows, untimed = Mistakes(file), list[Window](), list[int]()
    for number, row in rows:
        check_count(len(windows) + 1, MAX_WINDOWS, "windows a file may have", file)
        if isinstance(row, dict):
            row = {key: one for key, one in row.items() if one is not None}
            if "begin_ms" not in row:
                untimed.append(number)
            row = _DEFAULTS | row
        try:
            windows.append(from_values(Window, row, file, f"{noun} {number}"))
        except InputError as error:
            wrong.add(error.problem, item=error.item, field=error.field)
    wrong.stop()
    refuse_if((not windows, "holds no window"), file=file)
    if untimed:
        if len(untimed) < len(windows):
            item = f"{noun} {untimed[0]}"
            problem = "is missing, but other windows have one"
            raise InputError(problem, file=file, item=item, field="begin_ms")
        lengths_ms = [max(0.0, one.length_ms) for one in windows]
        begins_ms = accumulate(lengths_ms, initial=0.0)
        windows = [replace(one, begin_ms=at) for one, at in zip(windows, begins_ms, strict=False)]
    ends_ms = max(one.begin_ms + max(0.0, one.length_ms) for one in windows)
    whole_ms = ends_ms if iteration_ms is None else float(iteration_ms)
    refuse_if(
        (
            whole_ms < ends_ms - 1e-6,
            f"must be at least {ends_ms:.15g}, where the last window ends (got {whole_ms:.15g})",
        ),
        file=file,
        field="iteration_ms",
    )
    return WindowList(name, whole_ms, tuple(windows), not untimed)


def _stem(file: str) -> str:
    return file.rpartition("/")[2].partition(".")[0] or "windows"


def dump_windows_json(name: str, iteration_ms: float, windows: Iterable[Window]) -> bytes:
    """Return windows as the file :func:`load_windows` reads."""
    record = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "iteration_ms": iteration_ms,
        "windows": [vars(one) for one in windows],
    }
    return json.dumps(record, allow_nan=False).encode()


def dump_windows_csv(windows: Iterable[Window]) -> bytes:
    """Return windows as a table that :func:`load_windows` reads."""
    return table_bytes(COLUMNS, map(vars, windows))
