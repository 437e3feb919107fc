"""The task graph as given: compute tasks, transfers and collectives with predecessors."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from msgspec import Struct, field, to_builtins

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
    server: Server | None = None
    device: Annotated[int, setting(ge=0, le=MAX_PORTS - 1)] | None = None
    duration_ms: Annotated[float, setting("", "ms", ge=0, le=1e12)] | None = None
    source: Server | None = None
    destination: Server | None = None
    size_bytes: Annotated[float, setting("", "bytes", ge=0, le=MAX_SIZE_BYTES)] | None = None
    members: tuple[Server, ...] | None = None
    root: Server | None = None
    # What a factory of ours makes is written even if it is empty.
    dependencies: tuple[str, ...] = field(default_factory=lambda: ())
    parallelism: Annotated[str, setting(choices=PARALLELISMS)] | None = None
    group: Label | None = None
    microbatch: Index | None = None
    stage: Index | None = None
    layer: Index | None = None
    job: Label | None = None


KEYS = Task.__struct_fields__
_MANY = 1_024  # tasks that are records at once: what is used again need not be asked of the system


def records_of(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """Yield tasks as a file has them: only the keys that are set, dependencies always, in the order of KEYS."""
    for at in range(0, len(tasks), _MANY):
        part = tasks[at : at + _MANY]
        for task, record in zip(part, to_builtins(part), strict=True):
            if isinstance(size_bytes := task.size_bytes, float) and size_bytes.is_integer():
                record["size_bytes"] = int(size_bytes)
            yield record


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
    def group_sizes(self) -> dict[str, set[int]]:
        """How many members groups have, by the kind of their tasks; those of one member are left out."""
        sizes: dict[str, set[int]] = {}
        for task in self.tasks:
            if (size := len(task.members or ())) > 1:
                sizes.setdefault(task.kind, set()).add(size)
        return sizes

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON bytes of the tasks (the name does not count)."""
        written = hashlib.sha256(b"[")
        for at in range(0, len(self.tasks), _MANY):
            records = list(records_of(self.tasks[at : at + _MANY]))
            part = json.dumps(records, sort_keys=True, separators=(",", ":"))[1:-1]
            written.update((f",{part}" if at else part).encode())
        written.update(b"]")
        return written.hexdigest()
