"""A task graph as Chakra execution traces: a file per server, and the groups file beside them.

Written so that ASTRA-sim carries it out as it is meant (``docs/astra-sim.md``): it knows no barriers,
no broadcasts, no messages of no bytes, takes what one rank puts into an all-gather for its size, and
comes to a halt where two ranks take the collectives of a group in different orders.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

from topox_core.model.arrays.waiting_order import earliest, order_of
from topox_core.model.task_graph import COLLECTIVE_KINDS, COMPUTE_KINDS, Task, TaskGraph
from topox_core.model.transfer_graph import bytes_per_ms
from topox_core.traces.chakra.nodes import (
    COLLECTIVE,
    COMPUTE,
    ORDER_ONLY,
    RECEIVE,
    SEND,
    global_metadata,
    node_bytes,
)
from topox_core.traces.chakra.reading import DEPENDENCY_BYTES, EXACT_NS, KINDS

Attributes = dict[str, bool | int | str]
# What whoever runs the files will find there and not here.
PEER_NOTES = (
    "in ASTRA-sim a rank has one message or collective under way, the lowest number first; here those that are ready share its ports",
    "in ASTRA-sim without congestion, senders do not slow each other down at one receiver; here they share its ports",
    "in ASTRA-sim a step of a reduction passes memory three times; here it takes no time (give it a memory of 1e9 GB/s)",
)


class ChakraFiles:
    """A task graph as execution traces.

    A node's id is twice the task's position plus one, of a receive plus two. Durations are whole
    microseconds; what rounding takes is given to the next task of the device, and each node tells its
    own nanoseconds as well. Collectives of the same servers follow each other, on all of them, in the
    order in which they could begin if the network were never busy.

    Parameters
    ----------
    nic_gbps
        Speed of a server: sizes of transfers given by duration and times of broadcasts are taken from it.
    drop_dependencies
        Leave out dependencies of tasks that share no server, instead of writing messages for them.

    Attributes
    ----------
    files
        By server.
    groups
        The groups file: name and servers.
    nodes
        How many there are in all files.
    between_servers
        Dependencies of tasks that share no server, written as messages of one byte, or dropped.
    notes
        What could not be written, a sentence each.
    """

    def __init__(
        self, graph: TaskGraph, nic_gbps: float = 400.0, *, drop_dependencies: bool = False
    ) -> None:
        self._graph, self._nic_gbps, self._drop = graph, nic_gbps, drop_dependencies
        self._servers = _servers(graph)
        self._out: dict[int, list[bytes]] = {s: [global_metadata()] for s in range(graph.servers)}
        self._groups: dict[tuple[int, ...], str] = {}
        self._carry: dict[tuple[int, int], float] = defaultdict(float)
        self._extra = 2 * len(graph.tasks) + 3
        # The last collective of these servers.
        self._last: dict[frozenset[int], int] = {}
        self.between_servers = self.nodes = 0
        self.notes: dict[str, None] = {}
        lasts_ms = [
            _sent_ms(task.size_bytes, nic_gbps) if task.duration_ms is None else task.duration_ms
            for task in graph.tasks
        ]
        # By when each task could begin at the earliest, those that wait after what they wait for.
        order, start_ms = earliest(_waits_of(graph), lasts_ms)
        write = {
            **dict.fromkeys(COMPUTE_KINDS, self._compute),
            **dict.fromkeys(COLLECTIVE_KINDS, self._collective),
            "barrier": self._barrier,
        }
        for position in sorted(order, key=start_ms.__getitem__):
            task = graph.tasks[position]
            write.get(task.kind, self._transfer)(position, task, self._waits(position))
        self.files = {server: b"".join(parts) for server, parts in self._out.items()}
        groups = {name: list(servers) for servers, name in self._groups.items()}
        self.groups = (json.dumps(groups, indent=1) + "\n").encode()

    def _waits(self, position: int) -> dict[int, list[int]]:
        """Return, by server, the ids that a task's node there waits for."""
        task, own = self._graph.tasks[position], self._servers[position]
        # A transfer begins where it is sent: what only its receiver has must be known there.
        needed = own[:1] if task.source is not None else own
        waits: dict[int, list[int]] = {server: [] for server in own}
        for name in task.dependencies:
            before = self._graph.position[name]
            there = self._servers[before]
            shared = [server for server in own if server in there]
            for server in shared:
                waits[server].append(self._id(before, server))
            if there and needed and not any(server in there for server in needed):
                self.between_servers += 1
                if not self._drop:
                    known = there[-1]  # of a transfer where it arrives
                    begins = [self._id(before, known)]
                    waits[needed[0]].append(self._message(known, needed[0], begins))
        return waits

    def _id(self, position: int, server: int) -> int:
        task = self._graph.tasks[position]
        receives = task.destination is not None and server == task.destination
        return 2 * position + (2 if receives else 1)

    def _message(
        self, source: int, destination: int, waits: Sequence[int], arrives: int | None = None
    ) -> int:
        """Write a message of one byte that stands for a dependency; return the number of its receive."""
        number = self._extra
        self._extra += 2
        arrives = number + 1 if arrives is None else arrives
        facts: Attributes = {
            "comm_size": DEPENDENCY_BYTES,
            "comm_src": source,
            "comm_dst": destination,
            "comm_tag": number,
        }
        self._put(source, number, f"waits.{number}", SEND, waits, facts)
        self._put(destination, arrives, f"waits.{number}", RECEIVE, [], facts)
        return arrives

    def _group(self, servers: tuple[int, ...]) -> str:
        return self._groups.setdefault(servers, str(len(self._groups) + 1))

    def _put(
        self,
        server: int,
        number: int,
        name: str,
        kind: int,
        waits: Sequence[int],
        facts: Attributes,
        duration_us: int = 0,
        controls: Sequence[int] = (),
    ) -> None:
        """Write a node of one server."""
        attributes = {"is_cpu_op": False, **facts}
        self._out[server].append(
            node_bytes(number, name, kind, waits, duration_us, attributes, controls)
        )
        self.nodes += 1

    def _compute(self, position: int, task: Task, waits: Mapping[int, list[int]]) -> None:
        (server,) = self._servers[position]
        lane = (server, task.device or 0)
        exact = (task.duration_ms or 0.0) * 1000 + self._carry[lane]
        whole = max(0, round(exact))
        self._carry[lane] = exact - whole
        if task.device:
            self.notes["devices of a server are not told apart in a trace"] = None
        # Other tools read whole microseconds; ours takes the time that was rounded.
        facts: Attributes = {EXACT_NS: round((task.duration_ms or 0.0) * 1e6)}
        self._put(server, 2 * position + 1, task.id, COMPUTE, waits[server], facts, whole)

    def _collective(self, position: int, task: Task, waits: Mapping[int, list[int]]) -> None:
        members = task.members or ()
        if task.kind == "broadcast" and task.root is not None:
            # A root has no field: it stands first in its group.
            members = (task.root, *(one for one in members if one != task.root))
        size = task.size_bytes or 0.0
        # Of an all-gather what one rank puts in.
        part = size / len(members) if task.kind == "all_gather" else size
        facts: Attributes = {
            "comm_type": KINDS.index(task.kind),
            "comm_size": max(1, round(part)),
            "pg_name": self._group(members),
        }
        lasts_us = 1000 * _sent_ms(size, self._nic_gbps) if task.kind == "broadcast" else 0.0
        number, before = 2 * position + 1, self._last.get(frozenset(members))
        self._last[frozenset(members)] = number
        controls = [] if before is None else [before]
        if controls:
            facts[ORDER_ONLY] = True
        for server in members:
            waiting = waits[server], facts, round(lasts_us), controls
            self._put(server, number, task.id, COLLECTIVE, *waiting)

    def _transfer(self, position: int, task: Task, waits: Mapping[int, list[int]]) -> None:
        source, destination = task.source or 0, task.destination or 0
        size = task.size_bytes
        if size is None:
            size = (task.duration_ms or 0.0) * bytes_per_ms(self._nic_gbps)
            note = f"transfers given by duration have the bytes of {self._nic_gbps:g} Gbit/s"
            self.notes[note] = None
        facts: Attributes = {
            "comm_size": max(DEPENDENCY_BYTES, round(size)),
            "comm_src": source,
            "comm_dst": destination,
            "comm_tag": position,
        }
        self._put(source, 2 * position + 1, task.id, SEND, waits[source], facts)
        self._put(destination, 2 * position + 2, task.id, RECEIVE, waits[destination], facts)

    def _barrier(self, position: int, task: Task, waits: Mapping[int, list[int]]) -> None:
        """Let the first server hear from all, then all from it."""
        (first, *others), number = self._servers[position] or (0,), 2 * position + 1
        heard = [self._message(one, first, waits[one]) for one in others if waits[one]]
        self._put(first, number, task.id, COMPUTE, [*waits.get(first, []), *heard], {})
        for one in others:
            self._message(first, one, [number], arrives=number)


def _waits_of(graph: TaskGraph) -> list[list[int]]:
    """Return the positions that each task waits for."""
    return [[graph.position[name] for name in task.dependencies] for task in graph.tasks]


def _sent_ms(size_bytes: float | None, nic_gbps: float) -> float:
    return (size_bytes or 0.0) / bytes_per_ms(nic_gbps)


def _servers(graph: TaskGraph) -> list[tuple[int, ...]]:
    """Return the servers that take part in each task; in a barrier those before and after it."""
    tasks, waits = graph.tasks, _waits_of(graph)
    named = ((one.server, one.source, one.destination, *(one.members or ())) for one in tasks)
    own = [dict.fromkeys(server for server in of if server is not None) for of in named]
    order = order_of(waits)
    below = [dict(one) for one in own]
    for at in order:
        for before in waits[at] if tasks[at].kind == "barrier" else ():
            below[at].update(below[before])
    above = [dict(one) for one in own]
    for at in reversed(order):
        for before in waits[at]:
            if tasks[before].kind == "barrier":
                above[before].update(above[at])
    return [
        tuple(sorted({**below[at], **above[at]})) if task.kind == "barrier" else tuple(own[at])
        for at, task in enumerate(tasks)
    ]
