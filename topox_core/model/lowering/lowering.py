"""From the task graph to transfers: collectives become transfers between barriers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from topox_core.errors import InputError, refuse_if
from topox_core.model.arrays.csr import row_pointer
from topox_core.model.lowering.algorithm_choice import (
    RING_KINDS,
    Choice,
    Chooser,
    Pattern,
    check_algorithms,
    on_rings,
    pattern,
    ring_strides,
    step_pattern,
    step_transfers,
    transfer_count,
)
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    TRANSFER_KINDS,
    Task,
    TaskGraph,
)
from topox_core.model.transfer_graph import BARRIER, COMPUTE, TRANSFER, TransferGraph

# Named before memory is spent: a stepwise ring of n members has 2n(n-1) transfers, an all-to-all
# n(n-1).
MAX_TRANSFERS = 200_000
MAX_DEPENDENCIES = 4_000_000  # among the transfers of collectives
_NAN = float("nan")
MAX_KEPT = 8  # lowered graphs; one of 100,000 transfers has some 20 MB
Strides = tuple[int, ...]


def lower(
    graph: TaskGraph,
    lowering: Lowering | None = None,
    whole: frozenset[str] = frozenset(),
    strides: Mapping[tuple[int, ...], Strides] | None = None,
) -> TransferGraph:
    """Return the graph of compute tasks, transfers and barriers that ``graph`` becomes.

    The last few are kept by digest and choices: a setting of the cluster does not lower anew.

    Each transfer of a collective waits for all that the collective waited for, and what waited for
    the collective waits for all of its transfers: a closing barrier carries the collective's id,
    and an entry barrier without an id keeps the edges linear where there are several dependencies.

    Parameters
    ----------
    graph
        A validated task graph.
    lowering
        The choices; the default is one fluid ring.
    whole
        Kinds of collective that stay one barrier each, whatever is chosen for them.
    strides
        Of the rings of some groups, instead of what is chosen for them. Such a graph is not kept.

    Raises
    ------
    InputError
        If a choice is out of range, a stride makes no ring of a group, the collectives become more
        than ``MAX_TRANSFERS`` transfers or ``MAX_DEPENDENCIES`` among them, an algorithm does not
        fit a group, or a transfer's id is also the id of one of the user's tasks.
    """
    lowering = lowering or Lowering()
    check_algorithms(lowering)
    if strides is not None:
        return _anew(graph, lowering, whole, strides)
    return _kept(_GraphAndChoices(graph.digest, lowering, whole, graph))


@dataclass(frozen=True)
class _GraphAndChoices:
    """A graph with choices; equal for equal digests, whatever the graph is called."""

    digest: str
    lowering: Lowering
    whole: frozenset[str]
    graph: TaskGraph = field(compare=False)


@lru_cache(maxsize=MAX_KEPT)
def _kept(key: _GraphAndChoices) -> TransferGraph:
    return _anew(key.graph, key.lowering, key.whole, {})


def _anew(
    graph: TaskGraph,
    lowering: Lowering,
    whole: frozenset[str],
    strides: Mapping[tuple[int, ...], Strides],
) -> TransferGraph:
    patterns, algorithm = _patterns(graph, lowering, whole, strides)
    first, own = _places(graph, patterns)
    nodes = _Nodes()
    for i, task in enumerate(graph.tasks):
        waits = [own[graph.position[d]] for d in task.dependencies]
        shape = patterns.get(i)
        if shape is None:
            nodes.add_task(i, task, waits)
        else:
            nodes.add_collective(i, task, shape, waits, first[i])
    _check_ids(graph, nodes)
    choices = [json.dumps(lowering.as_record(), sort_keys=True), *sorted(whole)]
    choices += map(str, strides.items())
    return nodes.transfer_graph(graph, lowering, algorithm, " ".join(choices))


def transfers_of(graph: TaskGraph, lowering: Lowering) -> int:
    """Return how many transfers the collectives of a graph become, without building them.

    Raises
    ------
    InputError
        If an algorithm does not fit a group, or a stride makes no ring of one.
    """
    return _collectives(graph, lowering, frozenset(), {})[1]


# Position in the graph, the task, its algorithm where it is lowered step by step, the strides of its rings.
_Collective = tuple[int, Task, Choice | None, Strides]


def _collectives(
    graph: TaskGraph,
    lowering: Lowering,
    whole: frozenset[str],
    given: Mapping[tuple[int, ...], Strides],
) -> tuple[list[_Collective], int]:
    """Return the collectives that use the network, but the kinds that stay whole, and how many transfers all become."""
    chooser, total = Chooser(lowering), 0
    strides: dict[int, Strides] = {}
    found: list[_Collective] = []
    for i, task in enumerate(graph.tasks):
        members = task.members or ()
        n = len(members)
        if task.kind not in COLLECTIVE_KINDS or task.kind in whole or n < 2:
            continue
        if task.kind == "all_reduce" and not lowering.all_reduce_on_network:
            continue
        name = f"{task.kind} {task.id}" + (f" (group {task.group})" if task.group else "")
        choice = chooser.choice(task.kind, n, task.size_bytes or 0.0, name)
        rides = task.kind != "all_to_all" if choice is None else on_rings(task.kind, choice.name)
        if rides and n not in strides:
            strides[n] = ring_strides(n, lowering, name)
        of_group = strides.get(n, ())
        if rides and task.kind in RING_KINDS:
            of_group = given.get(members, of_group)
        if choice is None:
            total += transfer_count(task.kind, n, len(of_group), lowering)
        else:
            total += step_transfers(task.kind, choice, n, len(of_group))
        found.append((i, task, choice, of_group))
    return found, total


def _patterns(
    graph: TaskGraph,
    lowering: Lowering,
    whole: frozenset[str],
    strides: Mapping[tuple[int, ...], Strides],
) -> tuple[dict[int, Pattern], dict[int, str]]:
    """Return pattern and algorithm of each collective that uses the network, by position in the graph."""
    active, transfers = _collectives(graph, lowering, whole, strides)
    refuse_if(
        (
            transfers > MAX_TRANSFERS,
            f"the collectives become {transfers:,} transfers, more than the limit of {MAX_TRANSFERS:,}: "
            "use fewer rings, the fluid lowering or smaller groups",
        ),
        file="settings",
        field="rings",
    )
    built: dict[tuple[str, int, int, Choice | None, Strides], Pattern] = {}
    result: dict[int, Pattern] = {}
    waits = 0
    for i, task, choice, of_group in active:
        members = task.members or ()
        root = members.index(task.root) if task.kind == "broadcast" and task.root is not None else 0
        key = (task.kind, len(members), root, choice, of_group)
        if key not in built:
            built[key] = (
                pattern(*key[:3], of_group, lowering)
                if choice is None
                else step_pattern(task.kind, choice, len(members), root, of_group)
            )
        result[i] = built[key]
        waits += result[i].dependencies
        if waits > MAX_DEPENDENCIES:
            raise InputError(
                f"the transfers of collectives wait for each other more than {MAX_DEPENDENCIES:,} times: "
                "use the default algorithms or smaller groups",
                file="settings",
                field="algorithm",
            )
    return result, {i: choice.name for i, _, choice, _ in active if choice is not None}


def _places(graph: TaskGraph, patterns: dict[int, Pattern]) -> tuple[list[int], list[int]]:
    """Return of each task its first node and the node that carries its id (a collective's closing barrier)."""
    first, own = [], []
    node = 0
    for i, task in enumerate(graph.tasks):
        first.append(node)
        shape = patterns.get(i)
        if shape is not None:
            node += len(shape) + (len(task.dependencies) > 1)
        own.append(node)
        node += 1
    return first, own


def _check_ids(graph: TaskGraph, nodes: _Nodes) -> None:
    known = graph.position
    for name, _, origin, *_ in nodes.rows:
        if known.get(name, origin) != origin:
            raise InputError(
                f"its id is also that of a transfer that {graph.tasks[origin].id} is lowered to: rename it",
                item=f"task {name}",
                field="id",
            )


# Of a node: id, kind, origin, server, device, source, destination, duration in ms, bytes.
_Row = tuple[str, int, int, int, int, int, int, float, float]


@dataclass
class _Nodes:
    """The nodes, filled task by task: a row each, and what each waits for."""

    rows: list[_Row] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    wait_counts: list[int] = field(default_factory=list)

    def add_task(self, position: int, task: Task, waits: list[int]) -> None:
        """Add a task that stays one node; a collective that moves nothing is a barrier."""
        duration_ms = task.duration_ms
        if task.kind in COMPUTE_KINDS:
            place = task.server or 0, task.device or 0
            row = (task.id, COMPUTE, position, *place, -1, -1, duration_ms or 0.0, _NAN)
        elif task.kind in TRANSFER_KINDS:
            ends = task.source or 0, task.destination or 0
            size = (_NAN, task.size_bytes or 0.0) if duration_ms is None else (duration_ms, _NAN)
            row = (task.id, TRANSFER, position, -1, -1, *ends, *size)
        else:
            row = _barrier(position, task.id)
        self._add(row, waits)

    def add_collective(
        self, position: int, task: Task, shape: Pattern, waits: list[int], first: int
    ) -> None:
        """Add the entry barrier (where there are several dependencies), the transfers and the closing barrier."""
        if len(waits) > 1:
            self._add(_barrier(position, ""), waits)
            waits, first = [first], first + 1
        n, members = len(shape), task.members or ()
        share = (task.size_bytes or 0.0) * shape.numerator / shape.denominator
        sizes = [share * k for k in shape.blocks] or [share] * n
        for suffix, i, j, size in zip(
            shape.suffix, shape.source, shape.destination, sizes, strict=True
        ):
            ends = members[i], members[j]
            self.rows.append((task.id + suffix, TRANSFER, position, -1, -1, *ends, _NAN, size))
        if not shape.after:
            self.waits += waits * n
            self.wait_counts += [len(waits)] * n
        for earlier in shape.after:
            self.waits += [first + e for e in earlier] or waits
            self.wait_counts.append(len(earlier) or len(waits))
        self._add(_barrier(position, task.id), [first + k for k in shape.last])

    def _add(self, row: _Row, waits: list[int]) -> None:
        self.rows.append(row)
        self.waits += waits
        self.wait_counts.append(len(waits))

    def transfer_graph(
        self,
        graph: TaskGraph,
        lowering: Lowering,
        algorithm: dict[int, str],
        choices: str,
    ) -> TransferGraph:
        """Return the rows as arrays."""
        columns = list(zip(*self.rows, strict=True)) or [()] * 9
        ids, kind, origin, server, device, source, destination, duration_ms, size_bytes = columns
        tasks = graph.tasks
        return TransferGraph(
            ids=ids,
            kind=np.array(kind, np.uint8),
            origin=np.array(origin, np.int32),
            server=np.array(server, np.int32),
            device=np.array(device, np.int32),
            source=np.array(source, np.int32),
            destination=np.array(destination, np.int32),
            duration_ms=np.array(duration_ms, np.float64),
            size_bytes=np.array(size_bytes, np.float64),
            pred_ptr=row_pointer(self.wait_counts),
            pred_idx=np.array(self.waits, np.int32),
            task_kind=tuple([tasks[i].kind for i in origin]),
            parallelism=tuple([tasks[i].parallelism or "" for i in origin]),
            lowering=lowering,
            digest=hashlib.sha256(f"{graph.digest} {choices}".encode()).hexdigest(),
            algorithm=algorithm,
            task_graph=graph,
        )


def _barrier(position: int, name: str) -> _Row:
    return name, BARRIER, position, -1, -1, -1, -1, 0.0, _NAN
