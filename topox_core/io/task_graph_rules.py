"""What makes a task graph valid: fields by kind, ranges, ids, dependencies, no cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from topox_core.errors import InputError
from topox_core.io.errors import Mistakes, printable, shown
from topox_core.io.ranges import check_text
from topox_core.model.cluster import MAX_PORTS, MAX_SERVERS
from topox_core.model.task_graph import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    KINDS,
    PARALLELISMS,
    TRANSFER_KINDS,
    Task,
    TaskGraph,
)

MAX_TASKS = 500_000
MAX_DEPENDENCIES = 2_000_000
MAX_MEMBERS = 2_000_000
MAX_DURATION_MS = 1e12
MAX_SIZE_BYTES = 1e18
MAX_TEXT = 200
MAX_INDEX = 1_000_000_000
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


def validated(
    name: str,
    tasks: Iterable[Task],
    file: str = "",
    *,
    rows: Sequence[int] | None = None,
    findings: Mistakes | None = None,
) -> TaskGraph:
    """Check tasks and return their graph.

    This is the only place where the values of tasks are checked, whatever file they come from:
    types first, then ranges and what a kind needs, then ids, dependencies and cycles.

    ``device`` defaults to 0, and times and sizes become floats, so that equal graphs have equal
    digests.

    Parameters
    ----------
    name
        Name of the graph; any printable text of at most 200 characters.
    file
        File that errors name.
    rows
        Row of each task in a table, for errors to name.
    findings
        What the reader of the file could not make tasks of; counted with values of a wrong type.

    Raises
    ------
    InputError
        For the first thing that is wrong; ``(and N more)`` counts others of the same pass.
    """
    entries = tuple(tasks)
    types, ranges = findings or Mistakes(file), Mistakes(file)
    sound: set[tuple[type, ...]] = set()
    check_text(name, MAX_TEXT, file=file, field="name")
    for i, task in enumerate(entries):
        checked = types.count
        # Few combinations of types occur: each is looked into once.
        combination = tuple(map(type, _values(task)))
        if combination not in sound or not _sound_lists(task):
            for field, problem in _wrong_types(task):
                types.add(problem, item=_item(i, task.id, rows), field=field)
            if types.count > checked:
                continue
            sound.add(combination)
        for field, problem in _wrong_fields(task):
            ranges.add(problem, item=_item(i, task.id, rows), field=field)
    types.stop()
    _check_counts(entries, file)
    ranges.stop()
    predecessors = _predecessors(entries, file, rows)
    cycle = _cycle(predecessors)
    if cycle:
        raise InputError(
            _cycle_line([entries[i].id for i in cycle]),
            file=file,
            item=_item(cycle[0], entries[cycle[0]].id, rows),
            field="dependencies",
        )
    return TaskGraph(name, tuple(map(_normal, entries)))


def _item(i: int, task_id: object, rows: Sequence[int] | None) -> str:
    named = f"task {printable(str(task_id))}" if _is_id(task_id) else ""
    if rows is not None:
        return f"row {rows[i]}" + (f" ({named})" if named else "")
    return named or f"entry {i + 1}"


def _check_counts(tasks: Sequence[Task], file: str) -> None:
    if not tasks:
        raise InputError("must hold at least one task", file=file, field="tasks")
    for what, count, most in (
        ("tasks", len(tasks), MAX_TASKS),
        ("dependencies", sum(len(t.dependencies) for t in tasks), MAX_DEPENDENCIES),
        ("members", sum(len(t.members or ()) for t in tasks), MAX_MEMBERS),
    ):
        if count > most:
            raise InputError(
                f"holds {count:,} {what}, more than the {most:,} a graph may have", file=file
            )


def _sound_lists(task: Task) -> bool:
    members = {*map(type, task.members)} if task.members else set()
    return members <= {int} and {*map(type, task.dependencies)} <= {str}


def _wrong_types(task: Task) -> Iterator[tuple[str, str]]:
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


def _wrong_fields(task: Task) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) for what is wrong with one task on its own, its types being right."""
    if not _is_id(task.id):
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


def _is_id(value: object) -> bool:
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
    for member in value:
        if problem := _wrong_server(member):
            return f"server {problem}"
    if len(set(value)) < len(value):
        return f"must name each server once (server {_twice(value)} is there twice)"
    return ""


def _twice(values: Sequence[Any]) -> Any:
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
_values = attrgetter(*(name for name, _ in _TYPES))
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


def _predecessors(tasks: Sequence[Task], file: str, rows: Sequence[int] | None) -> list[list[int]]:
    """Return the positions each task waits for; ids must be unique and known."""
    findings = Mistakes(file)
    position: dict[str, int] = {}
    for i, task in enumerate(tasks):
        first = position.setdefault(task.id, i)
        if first != i:
            place = f"row {rows[first]}" if rows is not None else f"entry {first + 1}"
            findings.add(
                f"is used twice (the first time by {place})",
                item=f"{_item(i, task.id, rows)}"
                + ("" if rows is not None else f" (entry {i + 1})"),
                field="id",
            )
    findings.stop()
    predecessors: list[list[int]] = []
    for i, task in enumerate(tasks):
        waits = [position.get(name, -1) for name in task.dependencies]
        predecessors.append(waits)
        if waits and (-1 in waits or i in waits or len(set(waits)) < len(waits)):
            findings.add(
                _dependency_line(task, waits, i, rows is not None),
                item=_item(i, task.id, rows),
                field="dependencies",
            )
    findings.stop()
    return predecessors


def _dependency_line(task: Task, waits: list[int], own: int, table: bool) -> str:
    if -1 in waits:
        name = task.dependencies[waits.index(-1)]
        hint = (
            "; ids in a cell are separated by spaces"
            if table and ("," in name or ";" in name)
            else ""
        )
        return f"names {shown(name)}, which is not the id of a task{hint}"
    if own in waits:
        return "names the task itself"
    return f"names {printable(_twice(task.dependencies))} twice"


def _cycle(predecessors: list[list[int]]) -> list[int]:
    """Return the positions along one cycle, each waiting for the one before; or none."""
    waiting = [len(p) for p in predecessors]
    successors: list[list[int]] = [[] for _ in predecessors]
    for i, waits in enumerate(predecessors):
        for j in waits:
            successors[j].append(i)
    ready = [i for i, count in enumerate(waiting) if count == 0]
    done = 0
    while ready:
        j = ready.pop()
        done += 1
        for i in successors[j]:
            waiting[i] -= 1
            if waiting[i] == 0:
                ready.append(i)
    if done == len(predecessors):
        return []
    # Whatever still waits has a predecessor that still waits: walking back must come round.
    at = next(i for i, count in enumerate(waiting) if count)
    seen: dict[int, int] = {}
    walk: list[int] = []
    while at not in seen:
        seen[at] = len(walk)
        walk.append(at)
        at = next(j for j in predecessors[at] if waiting[j])
    cycle = walk[seen[at] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _cycle_line(ids: list[str], most: int = 8) -> str:
    names = [printable(name, 40) for name in ids]
    if len(names) > most:
        names = [*names[: most - 2], f"... {len(names) - most + 1} more ...", names[-1]]
    return f"is in a cycle of {len(ids)} tasks, each waiting for the one before: {' -> '.join([*names, names[0]])}"


def _normal(task: Task) -> Task:
    """Return the task with its default device, times and sizes as floats (-0 as 0)."""
    changes: dict[str, Any] = {}
    if task.device is None and task.kind in COMPUTE_KINDS:
        changes["device"] = 0
    for field in ("duration_ms", "size_bytes"):
        value = getattr(task, field)
        if value is not None and (type(value) is int or value == 0):
            changes[field] = float(value) + 0.0
    return replace(task, **changes) if changes else task
