"""Task graphs of the FlexNet simulator (TopoOpt's), FlatBuffers files ``*.fbuf``.

Fields are found by their slot in each table's vtable, every offset is checked against the file.
Schema (TopoOpt, ``taskgraph.fbs``), by slot: TaskGraph 0 ngpupernode, 1 nnode, 2 nswitch, 6 conn,
7 ops, 8 tasks, 9 devices; Task 0 type, 1 taskid, 2 deviceid, 3 runtime (ms), 4 xfersize (bytes),
5 nexttasks; Device 0 type, 1 deviceid, 2 nodeid, 3 deviceproperty.
"""

import struct
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from topox_core.errors import InputError, refuse_if, shown
from topox_core.io.content import whole
from topox_core.io.limits import (
    MAX_DEPENDENCIES,
    MAX_FLEXNET_TABLES,
    MAX_TASKS,
    TASK_GRAPH,
    check_count,
)
from topox_core.io.task_graph_rules import validated
from topox_core.model.arrays.groups import by_key
from topox_core.model.task_graph import Task, TaskGraph

FORWARD, BACKWARD, UPDATE, BARRIER, NOMINAL, ALL_REDUCE = 0, 1, 3, 4, 5, 6
_LETTER = {FORWARD: "f", BACKWARD: "b", UPDATE: "u", BARRIER: "j", NOMINAL: "c", ALL_REDUCE: "a"}
_COMPUTE = {FORWARD: "forward", BACKWARD: "backward", UPDATE: "update"}
_NO_NODE = 2**64 - 1
_U16, _I32, _U32 = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I")
_I16, _U64, _F32 = struct.Struct("<h"), struct.Struct("<Q"), struct.Struct("<f")


class _Damaged(Exception):
    """An offset or a length points outside the file."""


class _Buffer:
    """A FlatBuffer whose every read stays inside its bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._slots: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._left = MAX_FLEXNET_TABLES

    def read(self, form: struct.Struct, at: int) -> int:
        if at < 0 or at + form.size > len(self.content):
            raise _Damaged(f"byte {at} is outside its {len(self.content)} bytes")
        value: int = form.unpack_from(self.content, at)[0]
        return value

    def table(self, at: int) -> tuple[int, tuple[int, ...]]:
        """Return (position, offset of each slot) of a table that lies wholly inside the file."""
        where = at - self.read(_I32, at)
        known = self._slots.get(where)
        if known is None:
            size = self.read(_U16, where)
            length = self.read(_U16, where + 2)
            if size < 4 or size % 2:
                raise _Damaged(f"a table description of {size} bytes at byte {where}")
            slots = tuple(self.read(_U16, k) for k in range(where + 4, where + size, 2))
            known = self._slots[where] = length, slots
        length, slots = known
        if at + length > len(self.content):
            raise _Damaged(f"a table at byte {at} ends outside its {len(self.content)} bytes")
        return at, slots

    def place(self, table: tuple[int, tuple[int, ...]], slot: int) -> int:
        """Return where a field of a table stands, 0 if it is absent."""
        at, slots = table
        return at + slots[slot] if slot < len(slots) and slots[slot] else 0

    def scalar(self, table: tuple[int, tuple[int, ...]], slot: int, form: struct.Struct) -> int:
        where = self.place(table, slot)
        return self.read(form, where) if where else 0

    def vector(self, table: tuple[int, tuple[int, ...]], slot: int, size: int) -> tuple[int, int]:
        """Return (position, length) of a vector whose items fit into the file."""
        where = self.place(table, slot)
        if not where:
            return 0, 0
        where += self.read(_U32, where)
        length = self.read(_U32, where)
        if where + 4 + length * size > len(self.content):
            raise _Damaged(
                f"a list of {length:,} entries at byte {where} ends outside its {len(self.content)} bytes"
            )
        return where + 4, length

    def tables(
        self, table: tuple[int, tuple[int, ...]], slot: int
    ) -> list[tuple[int, tuple[int, ...]]]:
        at, length = self.vector(table, slot, 4)
        self._left -= length
        if self._left < 0:
            raise _Damaged(f"lists of more than the {MAX_FLEXNET_TABLES:,} entries we read")
        return [self.table(k + self.read(_U32, k)) for k in range(at, at + 4 * length, 4)]


@dataclass(slots=True)
class _Raw:
    """A task as FlexNet stores it."""

    kind: int
    number: int
    device: int
    runtime_ms: float
    size_bytes: int
    following: tuple[int, ...]


@dataclass(slots=True)
class _Stored:
    """A file's content: nodes, tasks, places of devices, ends of transfers."""

    nodes: int
    tasks: list[_Raw] = field(default_factory=list)
    place: dict[int, tuple[int, int]] = field(default_factory=dict)
    pair: dict[int, tuple[int, int]] = field(default_factory=dict)


def read_graph_flexnet(data: bytes, file: str, name: str = "") -> TaskGraph:
    """Read a FlexNet task graph.

    Forward and backward tasks keep their server; a logical transfer becomes
    ``nominal_communication`` (``mp``), or a ``barrier`` where both ends are one server; an
    all-reduce (``dp``) keeps its members, even a single one. The stored run time of transfers
    includes queueing in FlexNet's own network and is not used. Ids are a letter for the kind and
    the position in the file: f0, b1, c7, a12.

    Raises
    ------
    InputError
        If the file is cut short, damaged, or holds something that a task graph cannot.
    """
    try:
        stored = _stored(_Buffer(whole(data, file, TASK_GRAPH)), file)
    except _Damaged as problem:
        raise InputError(
            f"is not a FlexNet task graph, or is damaged or cut short ({problem})", file=file
        ) from None
    return validated(name, _mapped(stored, file), file)


def _stored(buffer: _Buffer, file: str) -> _Stored:
    root = buffer.table(buffer.read(_U32, 0))
    stored = _Stored(buffer.scalar(root, 1, _U32))
    ports = stored.nodes + buffer.scalar(root, 2, _U32)
    node_of: dict[int, int] = {}
    _, count = buffer.vector(root, 8, 4)
    refuse_if(
        (count > MAX_TASKS, f"holds {count:,} tasks, more than the {MAX_TASKS:,} a graph may have"),
        file=file,
    )
    # Links and operators are not used, but writers put them last: walking them notices a file cut
    # short.
    buffer.tables(root, 6)
    for operator in buffer.tables(root, 7):
        buffer.vector(operator, 2, 1)
    for device in buffer.tables(root, 9):
        number, node = buffer.scalar(device, 1, _U64), buffer.scalar(device, 2, _U64)
        if node != _NO_NODE:
            node_of[number] = node
        elif ports:
            stored.pair[number] = divmod(buffer.scalar(device, 3, _U64), ports)
    # The devices of each node have numbers from 0, in the order of FlexNet's own.
    numbers_of = by_key((node, number) for number, node in sorted(node_of.items()))
    for node, numbers in numbers_of.items():
        stored.place |= {number: (node, k) for k, number in enumerate(numbers)}
    total = 0
    for table in buffer.tables(root, 8):
        at, length = buffer.vector(table, 5, 8)
        # Many tasks may point at one long list, so the sum is checked before anything is unpacked.
        total += length
        check_count(total, MAX_DEPENDENCIES, "dependencies a graph may have", file)
        following = struct.unpack_from(f"<{length}Q", buffer.content, at) if length else ()
        stored.tasks.append(
            _Raw(
                buffer.scalar(table, 0, _I16),
                buffer.scalar(table, 1, _U64),
                buffer.scalar(table, 2, _U64),
                buffer.scalar(table, 3, _F32),
                buffer.scalar(table, 4, _U64),
                following,
            )
        )
    return stored


def _mapped(stored: _Stored, file: str) -> list[Task]:
    position: dict[int, int] = {}
    for i, raw in enumerate(stored.tasks):
        wrong = partial(InputError, file=file, item=f"task {raw.number} (entry {i + 1})")
        if raw.kind not in _LETTER:
            known = ", ".join(map(str, sorted(_LETTER)))
            raise wrong(f"must be one of {known} (got {raw.kind})", field="type")
        if position.setdefault(raw.number, i) != i:
            first = f"the first time by entry {position[raw.number] + 1}"
            raise wrong(f"is used twice ({first})", field="taskid")
    ids = [f"{_LETTER[raw.kind]}{i}" for i, raw in enumerate(stored.tasks)]
    waits: list[dict[str, None]] = [{} for _ in ids]
    for i, raw in enumerate(stored.tasks):
        if raw.kind == ALL_REDUCE:
            continue  # its list names servers, not tasks
        for number in raw.following:
            after = position.get(number)
            if after is None:
                problem = f"names {number}, which is not the id of a task"
                item = f"task {raw.number} ({ids[i]})"
                raise InputError(problem, file=file, item=item, field="nexttasks")
            waits[after][ids[i]] = None
    return [_task(raw, ids[i], tuple(waits[i]), stored, file) for i, raw in enumerate(stored.tasks)]


def _task(raw: _Raw, name: str, waits: tuple[str, ...], stored: _Stored, file: str) -> Task:
    wrong = partial(InputError, file=file, item=f"task {name}", field="deviceid")
    if raw.kind in _COMPUTE:
        place = stored.place.get(raw.device)
        if place is None or place[0] >= stored.nodes:
            raise wrong(f"must be a device on one of the {stored.nodes} nodes (got {raw.device})")
        return Task(
            name,
            _COMPUTE[raw.kind],
            *place,
            duration_ms=_measured(raw.runtime_ms),
            dependencies=waits,
        )
    if raw.kind == ALL_REDUCE:
        return Task(
            name,
            "all_reduce",
            dependencies=waits,
            members=raw.following,
            size_bytes=float(raw.size_bytes),
            parallelism="dp",
        )
    if raw.kind == BARRIER:
        return Task(name, "barrier", dependencies=waits)
    source, destination = stored.pair.get(raw.device, (-1, -1))
    if not (0 <= source < stored.nodes and 0 <= destination < stored.nodes):
        between = f"between two of the {stored.nodes} nodes"
        raise wrong(f"must be a device {between} (got {shown(raw.device)})")
    if source == destination:
        return Task(name, "barrier", dependencies=waits)
    return Task(
        name,
        "nominal_communication",
        dependencies=waits,
        source=source,
        destination=destination,
        size_bytes=float(raw.size_bytes),
        parallelism="mp",
    )


def _measured(value: float) -> float:
    """Return the shortest decimal that is this 32-bit number: 0.109363, not 0.10936299711465836."""
    return float(str(np.float32(value)))
