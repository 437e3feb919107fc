"""A task graph out of tasks: each is checked, then ids, dependencies and cycles."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from topox_core.errors import InputError, Mistakes, printable, refuse_if, shown
from topox_core.io.limits import MAX_DEPENDENCIES, MAX_MEMBERS, MAX_TASKS, check_count, check_text
from topox_core.model.arrays.waiting_order import cycle_of
from topox_core.model.task_graph import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    KINDS,
    MAX_TEXT,
    TRANSFER_KINDS,
    Task,
    TaskGraph,
)
from topox_core.schema.fields import (
    WITHOUT_OUTER_SPACES,
    WITHOUT_SPACES,
    fields_of,
    is_text,
    problems,
)
from topox_core.text.numbers import first_that_holds

# For each kind: the keys it must have, the keys it may have.
FIELDS_OF: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(COMPUTE_KINDS, (("server", "duration_ms"), ("device",))),
    "barrier": ((), ()),
    **dict.fromkeys(TRANSFER_KINDS, (("source", "destination"), ("size_bytes", "duration_ms"))),
    **dict.fromkeys(COLLECTIVE_KINDS, (("members", "size_bytes"), ())),
    "broadcast": (("members", "size_bytes", "root"), ()),
}
# Keys that belong to some kinds; whatever else a task has is a note.
OWN = ("server", "device", "source", "destination", "members", "root", "duration_ms", "size_bytes")
NOTES = ("parallelism", "group", "job", "microbatch", "stage", "layer")


def wrong_fields(task: Task) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) for what is wrong with one task on its own, whatever its values are."""
    fields = fields_of(Task)
    for field in ("id", "kind", "dependencies"):
        yield from problems(fields[field].hint, getattr(task, field), field)
    if task.kind not in KINDS:
        return
    must, may = FIELDS_OF[task.kind]
    sound = True
    for field in OWN:
        value = getattr(task, field)
        found: list[tuple[str, str]] = []
        if value is None:
            if field in must:
                found = [(field, f"is missing ({task.kind} needs {', '.join(must)})")]
        elif field not in must + may:
            has = f"it has {', '.join(must + may)}" if must else "it has none of its own"
            found = [(field, f"is not a key of kind {task.kind} ({has})")]
        else:
            found = list(problems(fields[field].hint, value, field))
        sound = sound and not found
        yield from found
    if sound:
        yield from _wrong_together(task)
    for field in NOTES:
        yield from problems(fields[field].hint, getattr(task, field), field)


def _wrong_together(task: Task) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the keys of a kind beside each other."""
    members, moves = task.members or (), task.kind in TRANSFER_KINDS
    again, lacking = twice(members), (task.size_bytes is None) + (task.duration_ms is None)
    rows = (
        (
            task.members is not None and not members,
            "members",
            "must name at least one server",
        ),
        (
            again is not None,
            "members",
            f"must name each server once (server {again} is there twice)",
        ),
        (
            members and again is None and task.root is not None and task.root not in members,
            "root",
            f"must be one of members (got {task.root})",
        ),
        (
            moves and task.source == task.destination,
            "destination",
            f"must differ from source (both are server {task.source}); use a barrier for mere ordering",
        ),
        (
            moves and lacking == 2,
            "size_bytes",
            f"is missing ({task.kind} needs size_bytes or duration_ms)",
        ),
        (
            moves and lacking == 0,
            "duration_ms",
            "must not stand beside size_bytes: give one of the two",
        ),
    )
    yield from ((field, problem) for holds, field, problem in rows if holds)


def twice(values: Iterable[Any]) -> Any:
    """Return the first value that is there more than once."""
    return next((value for value, count in Counter(values).items() if count > 1), None)


def is_id(value: object) -> bool:
    """Return whether a value can be the id of a task."""
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and is_text(value, WITHOUT_SPACES)


def all_sound(tasks: Sequence[Task]) -> bool:
    """Return whether tasks whose types and ranges are right are right on their own: one of each shape is asked.

    Half a million take a quarter of a second; where the answer is no, :func:`wrong_fields` says why.
    """
    labels = {label for task in tasks for label in (task.group, task.job) if label is not None}
    if not is_text("".join([task.id for task in tasks]), WITHOUT_SPACES):
        return False
    if not all(is_text(label, WITHOUT_OUTER_SPACES) for label in labels):
        return False
    shapes = {_shape(task): task for task in tasks}
    return not any(True for task in shapes.values() for _ in wrong_fields(task))


def _shape(task: Task) -> tuple[object, ...]:
    """Return what :func:`wrong_fields` tells tasks apart by, once their ids, labels and ranges are right."""
    members = task.members
    return (
        task.kind,
        task.parallelism,
        task.server is None,
        task.device is None,
        task.duration_ms is None,
        task.size_bytes is None,
        task.source is None,
        task.destination is None,
        task.source == task.destination,
        members and len({*members}) < len(members),
        task.root is None or (members is not None and task.root in members),
        task.root is None,
    )


_MANY = 65_536  # tasks whose types and ranges are checked at once
_decode_tasks = msgspec.json.Decoder(list[Task]).decode


def validated(name: str, tasks: Iterable[Task], file: str = "") -> TaskGraph:
    """Check tasks and return their graph.

    Parameters
    ----------
    name
        Name of the graph; any printable text of at most 200 characters.
    file
        File that errors name.

    Raises
    ------
    InputError
        For the first thing that is wrong; ``(and N more)`` counts others of the same pass.
    """
    return graph_of(name, list(tasks), file)


def graph_of(
    name: str,
    tasks: Sequence[Task],
    file: str,
    *,
    rows: Sequence[int] = (),
    in_range: bool = False,
) -> TaskGraph:
    """Check tasks and return their graph: the only place where tasks are checked, whatever file they come from.

    ``device`` defaults to 0, and times and sizes become floats, so that equal graphs have equal
    digests.

    Parameters
    ----------
    rows
        Of a table: the number of each task's row, which errors name.
    in_range
        Whether types and ranges of all fields are known to be right.

    Raises
    ------
    InputError
        For the first thing that is wrong.
    """
    check_text(name, MAX_TEXT, file=file, field="name")
    check_count(len(tasks), MAX_TASKS, "tasks a graph may have", file)
    refuse_if((not tasks, "must hold at least one task"), file=file, field="tasks")
    places = _Places(file, tasks, rows)
    sound = tasks if in_range else _in_range(tasks)
    if sound is None or not all_sound(sound):
        findings = Mistakes(file)
        for i, task in enumerate(tasks):
            for field, problem in wrong_fields(task):
                findings.add(problem, item=places.item(i), field=field)
        findings.stop()
    waits, members = [map(attrgetter(field), tasks) for field in ("dependencies", "members")]
    check_count(sum(map(len, waits)), MAX_DEPENDENCIES, "dependencies a graph may have", file)
    check_count(sum(map(len, filter(None, members))), MAX_MEMBERS, "members a graph may have", file)
    if cycle := cycle_of(_predecessors(tasks, places))[::-1]:
        first = cycle.index(min(cycle))
        cycle = cycle[first:] + cycle[:first]
        line = _cycle_line([tasks[i].id for i in cycle])
        raise InputError(line, file=file, item=places.item(cycle[0]), field="dependencies")
    return TaskGraph(name, tuple([_normal(task) for task in sound or tasks]))


def _in_range(tasks: Sequence[Task]) -> list[Task] | None:
    """Return tasks with floats where floats belong; None if a type or a range is wrong.

    Written and read again, which is faster than anything that looks at values in Python.
    """
    for task in tasks:  # what is no number would be written as null
        for value in (task.duration_ms, task.size_bytes):
            if isinstance(value, float) and not math.isfinite(value):
                return None
    read: list[Task] = []
    try:
        for at in range(0, len(tasks), _MANY):
            read += _decode_tasks(msgspec.json.encode(tasks[at : at + _MANY]))
    except (msgspec.MsgspecError, TypeError, ValueError):
        return None
    return read


class _Places:
    """What errors call the tasks of a file, by their positions."""

    def __init__(self, file: str, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        self.file, self.tasks, self.rows = file, tasks, rows

    def item(self, i: int) -> str:
        name = self.tasks[i].id
        named = f"task {printable(name)}" if is_id(name) else ""
        if self.rows:
            return f"row {self.rows[i]}" + (f" ({named})" if named else "")
        return named or f"entry {i + 1}"


def _positions(tasks: Sequence[Task], places: _Places) -> dict[str, int]:
    """Return where each id stands; no two tasks may have one id."""
    position = dict(zip([task.id for task in tasks], range(len(tasks)), strict=True))
    if len(position) < len(tasks):
        findings, first = Mistakes(places.file), dict[str, int]()
        for i, task in enumerate(tasks):
            if (before := first.setdefault(task.id, i)) == i:
                continue
            item = places.item(i) if places.rows else f"{places.item(i)} (entry {i + 1})"
            by = f"row {places.rows[before]}" if places.rows else f"entry {before + 1}"
            findings.add(f"is used twice (the first time by {by})", item=item, field="id")
        findings.stop()
    return position


def _predecessors(tasks: Sequence[Task], places: _Places) -> list[list[int]]:
    """Return the positions that each task waits for; none at all if every task waits for earlier ones only."""
    position = _positions(tasks, places)
    findings, in_order = Mistakes(places.file), True
    for i, task in enumerate(tasks):
        names = task.dependencies
        # Most tasks wait for none or for one.
        if not names or (len(names) == 1 and position.get(names[0], i) < i):
            continue
        waits = [position.get(name, -1) for name in names]
        if max(waits) >= i or min(waits) < 0 or len(set(waits)) < len(waits):
            in_order = False
            if -1 in waits or i in waits or len(set(waits)) < len(waits):
                problem = _dependency_line(task, waits, i, bool(places.rows))
                findings.add(problem, item=places.item(i), field="dependencies")
    findings.stop()
    # Tasks that only wait for earlier ones, as most files list them, are in no cycle.
    return [] if in_order else [[position[n] for n in task.dependencies] for task in tasks]


def _dependency_line(task: Task, waits: list[int], own: int, table: bool) -> str:
    name = task.dependencies[waits.index(-1)] if -1 in waits else ""
    hint = "; ids in a cell are separated by spaces" * (table and ("," in name or ";" in name))
    return first_that_holds(
        (-1 in waits, f"names {shown(name)}, which is not the id of a task{hint}"),
        (own in waits, "names the task itself"),
        (True, f"names {printable(str(twice(task.dependencies)))} twice"),
    )


def _cycle_line(ids: list[str], most: int = 8) -> str:
    names = [printable(name, 40) for name in ids]
    if len(names) > most:
        names = [*names[: most - 2], f"... {len(names) - most + 1} more ...", names[-1]]
    return f"is in a cycle of {len(ids)} tasks, each waiting for the one before: {' -> '.join([*names, names[0]])}"


def _normal(task: Task) -> Task:
    """Return the task with its default device, and -0 as 0."""
    if task.duration_ms and task.device is not None:
        return task
    duration_ms, size_bytes = (
        None if value is None else value + 0.0 for value in (task.duration_ms, task.size_bytes)
    )
    device = 0 if task.device is None and task.kind in COMPUTE_KINDS else task.device
    return replace(task, device=device, duration_ms=duration_ms, size_bytes=size_bytes)
