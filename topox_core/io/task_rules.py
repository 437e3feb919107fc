"""What makes one task valid: types, fields by kind, ranges; alone, and many of one shape at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, ne
from typing import Any

from topox_core.errors import shown
from topox_core.io.limits import MAX_DURATION_MS, MAX_INDEX, MAX_SIZE_BYTES, MAX_TEXT
from topox_core.model.cluster import MAX_PORTS, MAX_SERVERS
from topox_core.model.task_graph import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    KINDS,
    PARALLELISMS,
    TRANSFER_KINDS,
    Task,
)

MOST_BITS = 1023  # whole numbers beyond are no floats

# For each kind: the keys it must have, the keys it may have.
FIELDS_OF: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(COMPUTE_KINDS, (("server", "duration_ms"), ("device",))),
    "barrier": ((), ()),
    **dict.fromkeys(TRANSFER_KINDS, (("source", "destination"), ("size_bytes", "duration_ms"))),
    **dict.fromkeys(COLLECTIVE_KINDS, (("members", "size_bytes"), ())),
    "broadcast": (("members", "size_bytes", "root"), ()),
}
_ALLOWED = {kind: frozenset(must + may) for kind, (must, may) in FIELDS_OF.items()}
_REQUIRED = {kind: frozenset(must) for kind, (must, _) in FIELDS_OF.items()}


def wrong_types(task: Task) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) for values of a type that the field cannot have."""
    for field, wrong in _TYPES:
        value = getattr(task, field)
        if value is None and field not in ("id", "kind"):
            continue
        if field not in ("members", "dependencies"):
            if problem := wrong(value):
                yield field, problem
        elif not isinstance(value, tuple):
            yield field, f"must be a list in brackets (got {shown(value)})"
        else:
            for k, one in enumerate(value):
                if problem := wrong(one):
                    yield f"{field}[{k}]", problem


def wrong_fields(task: Task) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) for what is wrong with one task on its own, its types being right."""
    if not is_id(task.id):
        yield (
            "id",
            f"must be 1 to {MAX_TEXT} printable characters without spaces (got {shown(task.id)})",
        )
    if task.kind not in FIELDS_OF:
        yield "kind", f"must be one of {', '.join(KINDS)} (got {shown(task.kind)})"
        return
    allowed, required = _ALLOWED[task.kind], _REQUIRED[task.kind]
    for (field, wrong), value in zip(_OWN_FIELDS, _own_values(task), strict=True):
        if value is None:
            if field in required:
                yield field, f"is missing ({task.kind} needs {', '.join(FIELDS_OF[task.kind][0])})"
        elif field not in allowed:
            yield field, f"is not a key of kind {task.kind} ({_keys_line(task.kind)})"
        elif problem := wrong(value):
            yield field, problem
    if task.kind in TRANSFER_KINDS:
        yield from _wrong_transfer(task)
    elif (
        task.root is not None
        and task.kind == "broadcast"
        and task.members
        and task.root not in task.members
    ):
        yield "root", f"must be one of members (got {shown(task.root)})"
    for (field, wrong), value in zip(_NOTES, _note_values(task), strict=True):
        if value is not None and (problem := wrong(value)):
            yield field, problem


def _wrong_transfer(task: Task) -> Iterator[tuple[str, str]]:
    if task.source is not None and task.source == task.destination:
        yield (
            "destination",
            f"must differ from source (both are server {shown(task.source)}); use a barrier for mere ordering",
        )
    if task.size_bytes is None and task.duration_ms is None:
        yield "size_bytes", f"is missing ({task.kind} needs size_bytes or duration_ms)"
    if task.size_bytes is not None and task.duration_ms is not None:
        yield "duration_ms", "must not stand beside size_bytes: give one of the two"


def _keys_line(kind: str) -> str:
    must, may = FIELDS_OF[kind]
    return f"it has {', '.join(must + may)}" if must else "it has none of its own"


def is_id(value: object) -> bool:
    """Return whether a value can be the id of a task."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_TEXT
        and " " not in value
        and value.isprintable()
    )


def _not_text(value: object) -> str:
    return "" if isinstance(value, str) else f"must be text in quotes (got {shown(value)})"


def _not_whole(value: object) -> str:
    if type(value) is int:
        return ""
    if isinstance(value, float) and value.is_integer():
        return f"must be a whole number without a decimal point (got {value})"
    return f"must be a whole number (got {shown(value)})"


def _not_number(value: object) -> str:
    return "" if type(value) in (int, float) else f"must be a number (got {shown(value)})"


def _wrong_text(value: str) -> str:
    if 0 < len(value) <= MAX_TEXT and value.isprintable() and value == value.strip():
        return ""
    return f"must be 1 to {MAX_TEXT} printable characters without outer spaces (got {shown(value)})"


def _whole(most: int) -> Callable[[Any], str]:
    def wrong(value: int) -> str:
        return "" if 0 <= value <= most else f"must be from 0 to {most:,} (got {shown(value)})"

    return wrong


def _amount(most: float) -> Callable[[Any], str]:
    def wrong(value: float) -> str:
        if 0 <= value <= most:
            return ""
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            return f"must be a number (got {shown(value)})"
        if not math.isfinite(value):
            return f"must be a finite number (got {value})"
        return (
            f"must be at least 0 (got {shown(value)})"
            if value < 0
            else f"must be at most {most:g} (got {shown(value)})"
        )

    return wrong


_wrong_server = _whole(MAX_SERVERS - 1)


def _wrong_members(value: tuple[int, ...]) -> str:
    if not value:
        return "must name at least one server"
    if min(value) < 0 or max(value) >= MAX_SERVERS:
        return f"server {next(filter(None, map(_wrong_server, value)))}"
    if len(set(value)) < len(value):
        return f"must name each server once (server {twice(value)} is there twice)"
    return ""


def twice(values: Sequence[Any]) -> Any:
    """Return the first value that stood before."""
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def _wrong_parallelism(value: object) -> str:
    known = ", ".join(PARALLELISMS)
    return "" if value in PARALLELISMS else f"must be one of {known} (got {shown(value)})"


_TYPES: tuple[tuple[str, Callable[[object], str]], ...] = (
    ("id", _not_text),
    ("kind", _not_text),
    ("server", _not_whole),
    ("device", _not_whole),
    ("duration_ms", _not_number),
    ("source", _not_whole),
    ("destination", _not_whole),
    ("size_bytes", _not_number),
    ("members", _not_whole),
    ("root", _not_whole),
    ("dependencies", _not_text),
    *((name, _not_text) for name in ("parallelism", "group", "job")),
    *((name, _not_whole) for name in ("microbatch", "stage", "layer")),
)
checked_values = attrgetter(*(name for name, _ in _TYPES))
_OWN_FIELDS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("server", _wrong_server),
    ("device", _whole(MAX_PORTS - 1)),
    ("source", _wrong_server),
    ("destination", _wrong_server),
    ("members", _wrong_members),
    ("root", _wrong_server),
    ("duration_ms", _amount(MAX_DURATION_MS)),
    ("size_bytes", _amount(MAX_SIZE_BYTES)),
)
_NOTES: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("parallelism", _wrong_parallelism),
    ("group", _wrong_text),
    ("job", _wrong_text),
    ("microbatch", _whole(MAX_INDEX)),
    ("stage", _whole(MAX_INDEX)),
    ("layer", _whole(MAX_INDEX)),
)


_own_values = attrgetter(*(name for name, _ in _OWN_FIELDS))
_note_values = attrgetter(*(name for name, _ in _NOTES))


def sound_lists(task: Task) -> bool:
    """Return whether members are whole numbers and dependencies text."""
    if task.members and {*map(type, task.members)} != {int}:
        return False
    return not task.dependencies or {*map(type, task.dependencies)} == {str}


@dataclass(frozen=True, slots=True)
class Shape:
    """Tasks of one kind with the same keys and types, whose values are checked a column at a time.

    Attributes
    ----------
    columns
        The fields that are set, and the check of each column.
    normal
        Whether times and sizes are floats already and the device is given.
    """

    columns: tuple[tuple[str, Callable[[Sequence[Any]], bool]], ...]
    normal: bool

    @staticmethod
    def of(task: Task) -> Shape | None:
        """Return the shape of a task whose types are right; None if its tasks need a look each."""
        if task.kind not in FIELDS_OF or task.kind == "broadcast":
            return None
        given = [name for name, _ in _OWN_FIELDS if getattr(task, name) is not None]
        if not _REQUIRED[task.kind] <= {*given} <= _ALLOWED[task.kind]:
            return None
        if task.kind in TRANSFER_KINDS and ("size_bytes" in given) == ("duration_ms" in given):
            return None
        notes = [name for name, _ in _NOTES if getattr(task, name) is not None]
        numbers = (getattr(task, name) for name in given if name in _AMOUNTS)
        return Shape(
            tuple((name, _COLUMNS[name]) for name in ("id", "kind", *given, *notes)),
            all(type(number) is float for number in numbers)
            and (task.device is not None or task.kind not in COMPUTE_KINDS),
        )

    def holds(self, tasks: Sequence[Task]) -> bool:
        """Return whether all values are as they must be."""
        getter = attrgetter(*(name for name, _ in self.columns))
        columns = tuple(zip(*map(getter, tasks), strict=True))
        checks = zip(self.columns, columns, strict=True)
        if not all(right(column) for (_, right), column in checks):
            return False
        return tasks[0].kind not in TRANSFER_KINDS or all(
            map(ne, [task.source for task in tasks], [task.destination for task in tasks])
        )


def _ids(column: Sequence[str]) -> bool:
    lengths = set(map(len, column))
    joined = "".join(column)
    return 0 not in lengths and max(lengths) <= MAX_TEXT and is_plain(joined)


def is_plain(text: str) -> bool:
    """Return whether text is printable and without spaces."""
    return " " not in text and text.isprintable()


def _whole_column(most: int) -> Callable[[Sequence[int]], bool]:
    return lambda column: min(column) >= 0 and max(column) <= most


def _amount_column(most: float) -> Callable[[Sequence[float]], bool]:
    def right(column: Sequence[float]) -> bool:
        total = sum(column)  # not equal to itself if any is no number
        return min(column) >= 0 and max(column) <= most and total == total

    return right


def _each(wrong: Callable[[Any], str]) -> Callable[[Sequence[Any]], bool]:
    return lambda column: not any(map(wrong, set(column)))


_AMOUNTS = ("duration_ms", "size_bytes")
_COLUMNS: dict[str, Callable[[Sequence[Any]], bool]] = {
    "id": _ids,
    "kind": lambda _column: True,
    **dict.fromkeys(("server", "source", "destination", "root"), _whole_column(MAX_SERVERS - 1)),
    "device": _whole_column(MAX_PORTS - 1),
    "members": _each(_wrong_members),
    "duration_ms": _amount_column(MAX_DURATION_MS),
    "size_bytes": _amount_column(MAX_SIZE_BYTES),
    "parallelism": _each(_wrong_parallelism),
    **dict.fromkeys(("group", "job"), _each(_wrong_text)),
    **dict.fromkeys(("microbatch", "stage", "layer"), _whole_column(MAX_INDEX)),
}
