"""The task graph as given: compute tasks, transfers and collectives with predecessors."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from msgspec import Struct, to_builtins

from topox_core.model.cluster import MAX_PORTS, MAX_SERVERS
from topox_core.schema.fields import WITHOUT_OUTER_SPACES, WITHOUT_SPACES, setting

COMPUTE_KINDS = ("forward", "backward", "update")
TRANSFER_KINDS = ("communication", "nominal_communication")
COLLECTIVE_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
KINDS = (*COMPUTE_KINDS, "barrier", *TRANSFER_KINDS, *COLLECTIVE_KINDS)
PARALLELISMS = ("dp", "fsdp", "tp", "sp", "pp", "cp", "ep", "mp")

MAX_TEXT = 200
MAX_SIZE_BYTES = 1e18
Server = Annotated[int, setting(ge=0, le=MAX_SERVERS - 1)]
Index = Annotated[int, setting(ge=0, le=1_000_000_000)]
Id = Annotated[str, setting(min_length=1, max_length=MAX_TEXT, without=WITHOUT_SPACES)]
Label = Annotated[str, setting(min_length=1, max_length=MAX_TEXT, without=WITHOUT_OUTER_SPACES)]


class Task(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One task of an iteration; ``kind`` decides which fields are set (docs/files.md).

    ``size_bytes`` of a collective is the full tensor of one member: the gathered output, the
    reduced input, an all-to-all's send buffer. A Struct, since a graph may have half a million; what is
    not set is left out by the library when it writes one.
    """

    id: Id
    kind: Annotated[str, setting(choices=KINDS)]
    dependencies: tuple[str, ...] = ()
    server: Server | None = None
    device: Annotated[int, setting(ge=0, le=MAX_PORTS - 1)] | None = None
    duration_ms: Annotated[float, setting("", "ms", ge=0, le=1e12)] | None = None
    source: Server | None = None
    destination: Server | None = None
    size_bytes: Annotated[float, setting("", "bytes", ge=0, le=MAX_SIZE_BYTES)] | None = None
    members: tuple[Server, ...] | None = None
    root: Server | None = None
    parallelism: Annotated[str, setting(choices=PARALLELISMS)] | None = None
    group: Label | None = None
    microbatch: Index | None = None
    stage: Index | None = None
    layer: Index | None = None
    job: Label | None = None

    def as_record(self) -> dict[str, Any]:
        """Return the task as the file has it: only the keys that are set, dependencies always."""
        record: dict[str, Any] = to_builtins(self)
        record["dependencies"] = list(self.dependencies)
        if self.members is not None:
            record["members"] = list(self.members)
        if isinstance(self.size_bytes, float) and self.size_bytes.is_integer():
            record["size_bytes"] = int(self.size_bytes)
        return record


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
    def kinds_of_groups(self) -> frozenset[str]:
        """Kinds of the tasks that have more than one member."""
        return frozenset(task.kind for task in self.tasks if len(task.members or ()) > 1)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON bytes of the tasks (the name does not count)."""
        canonical = json.dumps(
            [t.as_record() for t in self.tasks], sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(canonical.encode()).hexdigest()
