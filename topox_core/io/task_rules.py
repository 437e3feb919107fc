"""What makes one task valid besides its fields: which keys a kind needs, and what they say together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter, eq
from typing import Any

from topox_core.model.task_graph import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    KINDS,
    MAX_TEXT,
    PARALLELISMS,
    TRANSFER_KINDS,
    Task,
)
from topox_core.schema.fields import WITHOUT_SPACES, fields_of, is_text, problems

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
_AMOUNTS = ("duration_ms", "size_bytes")


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
    if task.members is not None:
        if not task.members:
            yield "members", "must name at least one server"
        elif len(set(task.members)) < len(task.members):
            again = twice(task.members)
            yield "members", f"must name each server once (server {again} is there twice)"
        elif task.root is not None and task.root not in task.members:
            yield "root", f"must be one of members (got {task.root})"
    if task.kind not in TRANSFER_KINDS:
        return
    if task.source == task.destination:
        yield (
            "destination",
            f"must differ from source (both are server {task.source}); use a barrier for mere ordering",
        )
    if task.size_bytes is None and task.duration_ms is None:
        yield "size_bytes", f"is missing ({task.kind} needs size_bytes or duration_ms)"
    if task.size_bytes is not None and task.duration_ms is not None:
        yield "duration_ms", "must not stand beside size_bytes: give one of the two"


def twice(values: Sequence[Any]) -> Any:
    """Return the first value that stood before."""
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def is_id(value: object) -> bool:
    """Return whether a value can be the id of a task."""
    return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and is_text(value, WITHOUT_SPACES)


def all_sound(tasks: Sequence[Task]) -> bool:
    """Return whether tasks whose types and ranges are right are right on their own, a column at a time.

    Half a million take a third of a second; where the answer is no, :func:`wrong_fields` says why.
    """
    ids = [task.id for task in tasks]
    if not is_text("".join(ids), WITHOUT_SPACES):
        return False
    labels = {label for task in tasks for label in (task.group, task.job) if label is not None}
    if not all(label.isprintable() and label == label.strip() for label in labels):
        return False
    kinds: defaultdict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        kinds[task.kind].append(task)
    notes = {task.parallelism for task in tasks}
    return (
        notes <= {None, *PARALLELISMS}
        and kinds.keys() <= FIELDS_OF.keys()
        and all(_kind_sound(kind, group) for kind, group in kinds.items())
    )


def _kind_sound(kind: str, tasks: list[Task]) -> bool:
    must, may = FIELDS_OF[kind]
    columns = {field: [*map(attrgetter(field), tasks)] for field in OWN}
    for field, column in columns.items():
        if (field in must and None in column) or (
            field not in must + may and column.count(None) < len(column)
        ):
            return False
        if field in _AMOUNTS and not math.isfinite(sum(one for one in column if one is not None)):
            return False
    if kind in TRANSFER_KINDS:
        amounts = zip(columns["size_bytes"], columns["duration_ms"], strict=True)
        return not any(map(eq, columns["source"], columns["destination"])) and all(
            (size is None) != (duration is None) for size, duration in amounts
        )
    if kind in COLLECTIVE_KINDS:
        if not all(
            members and len({*members}) == len(members) for members in {*columns["members"]}
        ):
            return False
        roots = zip(columns["root"], columns["members"], strict=True)
        return kind != "broadcast" or all(root in members for root, members in roots)
    return True
