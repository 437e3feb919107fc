"""An execution of any fabric as a rail sees it, to be run again with switching delays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.model.csr import flattened, pointer_of, row_of_entry
from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import COMPUTE as COMPUTE_NODE, TRANSFER, FloatArray
from topox_core.rails.iteration import (
    ALL_REDUCE,
    COMPUTE,
    KINDS,
    SEND,
    UPDATE,
    RailGroup,
    RailIteration,
)
from topox_core.rails.windows import calls_of

Ints = NDArray[np.int64]


def recorded(execution: Execution) -> tuple[RailIteration, FloatArray]:
    """Return an execution as an iteration on one rail, and its nodes' durations in ms.

    A rank is a server, a collective one communication of all its servers, another transfer one of a
    pair; all switches together count as the rail. A collective lasts from when the last of its
    servers has begun its first transfer to the end of the last. Devices go through their tasks, and
    groups through their communications, in the order that was executed.

    Raises
    ------
    InputError
        If the execution has no transfer.
    """
    graph = execution.graph
    transfers = np.flatnonzero(graph.kind == TRANSFER)
    if not len(transfers):
        raise InputError("has no transfer, so no circuit is ever asked for")
    tasks, node_task = np.unique(graph.origin, return_inverse=True)
    n = len(tasks)
    start, end, members = _communications(execution, transfers, node_task, n)
    computes = np.flatnonzero(graph.kind == COMPUTE_NODE)
    start[node_task[computes]], end[node_task[computes]] = (
        execution.start_ms[computes],
        execution.end_ms[computes],
    )
    rank = np.full(n, -1, np.int32)
    rank[node_task[computes]] = graph.server[computes]
    first = np.zeros(n, np.int64)
    first[node_task[::-1]] = np.arange(len(graph))[::-1]
    kind, group, groups = _groups(execution, members, first)
    size = np.zeros(n)
    np.add.at(size, node_task[transfers], np.nan_to_num(graph.size_bytes[transfers]))
    # What takes no time takes no turn on its device; its dependencies order it.
    lasting = computes[execution.end_ms[computes] > execution.start_ms[computes]]
    pred_ptr, pred_idx = _predecessors(execution, node_task, lasting, n)
    ranks = execution.cluster.servers
    issue_ptr, issue_idx = _issued(members, start, ranks)
    label = tuple(graph.ids[i] or graph.task_kind[i] for i in first.tolist())
    iteration = RailIteration(
        name="recorded",
        ranks=ranks,
        stands_for=np.ones(ranks, np.int32),
        stage=np.zeros(ranks, np.int32),
        kind=kind,
        rank=rank,
        duration_ms=np.where(kind == COMPUTE, end - start, 0.0),
        work=np.where(kind == COMPUTE, UPDATE, -1).astype(np.int32),
        group=group,
        size_bytes=size,
        microbatch=np.full(n, -1, np.int32),
        layer=np.full(n, -1, np.int32),
        label=label,
        pred_ptr=pred_ptr,
        pred_idx=pred_idx,
        issue_ptr=issue_ptr,
        issue_idx=issue_idx,
        groups=groups,
    )
    return iteration, end - start


def _communications(
    execution: Execution, transfers: Ints, node_task: Ints, n: int
) -> tuple[FloatArray, FloatArray, list[list[int]]]:
    """Return, by task, when it began and ended, and its servers."""
    graph = execution.graph
    ends = np.stack((graph.source[transfers], graph.destination[transfers]))
    times_ms = execution.start_ms[transfers], execution.end_ms[transfers]
    owner, server, start, end = calls_of(node_task[transfers], ends, times_ms, n)
    members: list[list[int]] = [[] for _ in range(n)]
    for task, one in zip(owner.tolist(), server.tolist(), strict=True):
        members[task].append(one)
    return np.maximum(start, 0.0), np.maximum(end, 0.0), members


def _groups(
    execution: Execution, members: list[list[int]], first: Ints
) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[RailGroup, ...]]:
    """Return the kind and group of every task, and the groups: same parallelism, same servers."""
    graph = execution.graph
    kind, group = np.full(len(members), COMPUTE, np.int32), np.full(len(members), -1, np.int32)
    numbers: dict[tuple[str, bool, tuple[int, ...]], int] = {}
    for task, ranks in enumerate(members):
        if ranks:
            word = graph.task_kind[first[task]]
            send = word not in KINDS[1:]
            kind[task] = (
                SEND if send and len(ranks) == 2 else ALL_REDUCE if send else KINDS.index(word)
            )
            key = (
                graph.parallelism[first[task]] or word or "transfer",
                bool(kind[task] == SEND),
                tuple(ranks),
            )
            group[task] = numbers.setdefault(key, len(numbers))
    groups = tuple(
        RailGroup(
            f"{parallelism}.{'-'.join(map(str, ranks[:4]))}" + ("…" if len(ranks) > 4 else ""),
            parallelism,
            ranks,
            len(ranks),
        )
        for parallelism, _, ranks in numbers
    )
    return kind, group, groups


def _predecessors(
    execution: Execution, node_task: Ints, computes: Ints, n: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the dependencies between tasks, with the order in which each device ran them."""
    graph = execution.graph
    after = node_task[row_of_entry(graph.pred_ptr)]
    before = node_task[graph.pred_idx]
    device = (
        graph.server[computes].astype(np.int64) * execution.cluster.devices_per_server
        + graph.device[computes]
    )
    task = node_task[computes]
    order = np.lexsort((computes, execution.end_ms[computes], execution.start_ms[computes], device))
    same = device[order][1:] == device[order][:-1]
    before = np.concatenate((before, task[order][:-1][same]))
    after = np.concatenate((after, task[order][1:][same]))
    code = np.unique(after[before != after].astype(np.int64) * n + before[before != after])
    return pointer_of(code // n, n), (code % n).astype(np.int32)


def _issued(
    members: list[list[int]], start: FloatArray, ranks: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return every rank's communications in the order in which they began."""
    issued: list[list[int]] = [[] for _ in range(ranks)]
    for task in sorted(
        (task for task, ranks_of in enumerate(members) if ranks_of),
        key=lambda task: (start[task], task),
    ):
        for rank in members[task]:
            issued[rank].append(task)
    return flattened(issued, np.int32)
