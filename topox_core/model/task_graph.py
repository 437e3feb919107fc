"""The task graph as given: compute tasks, transfers and collectives with predecessors."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

COMPUTE_KINDS = ("forward", "backward", "update")
TRANSFER_KINDS = ("communication", "nominal_communication")
COLLECTIVE_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
KINDS = (*COMPUTE_KINDS, "barrier", *TRANSFER_KINDS, *COLLECTIVE_KINDS)
PARALLELISMS = ("dp", "fsdp", "tp", "sp", "pp", "cp", "ep", "mp")


@dataclass(frozen=True, slots=True)
class Task:
    """One task of an iteration; ``kind`` decides which fields are set (docs/files.md).

    ``size_bytes`` of a collective is the full tensor of one member: the gathered output, the
    reduced input, an all-to-all's send buffer.
    """

    id: str
    kind: str
    dependencies: tuple[str, ...] = ()
    server: int | None = None
    device: int | None = None
    duration_ms: float | None = None
    source: int | None = None
    destination: int | None = None
    size_bytes: float | None = None
    members: tuple[int, ...] | None = None
    root: int | None = None
    parallelism: str | None = None
    group: str | None = None
    microbatch: int | None = None
    stage: int | None = None
    layer: int | None = None
    job: str | None = None

    def as_record(self) -> dict[str, Any]:
        """Return the task as the file has it: only the keys that are set, dependencies always."""
        record: dict[str, Any] = {}
        for name in FIELD_NAMES:
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, tuple):
                value = list(value)
            elif name == "size_bytes" and isinstance(value, float) and value.is_integer():
                value = int(value)
            record[name] = value
        return record


FIELD_NAMES = tuple(
    field.name for field in fields(Task)
)  # asked of 100,000 tasks, too slow to look up each time


@dataclass(frozen=True)
class TaskGraph:
    """A validated, acyclic task graph, from :func:`~topox_core.io.task_graph_rules.validated`."""

    name: str
    tasks: tuple[Task, ...]

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of every task id in ``tasks``."""
        return {task.id: i for i, task in enumerate(self.tasks)}

    @cached_property
    def servers(self) -> int:
        """Servers that the graph needs: highest server number plus one, 0 if none."""
        highest = -1
        for task in self.tasks:
            for value in (task.server, task.source, task.destination, *(task.members or ())):
                if value is not None and value > highest:
                    highest = value
        return highest + 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON bytes of the tasks (the name does not count)."""
        canonical = json.dumps(
            [t.as_record() for t in self.tasks], sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(canonical.encode()).hexdigest()
