"""Lower bounds of an iteration on a fabric that cost microseconds, and what binds in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.model.cluster import Cluster
from topox_core.model.csr import grouped
from topox_core.model.passes import heads, tails, topological_order
from topox_core.model.transfer_graph import COMPUTE, FloatArray, IntArray, TransferGraph
from topox_core.schedule.kernels.loads import largest_load
from topox_core.text.numbers import short

# Whole ticks, or milliseconds.
Times = NDArray[np.int64] | FloatArray
THRESHOLDS = 200  # head and tail thresholds tried for each device and link


@dataclass(frozen=True)
class Bound:
    """No iteration ends before ``ms``; ``text`` says what binds."""

    ms: float
    text: str


@dataclass(frozen=True)
class Loads:
    """What shared things carry, thing by thing: one at a time, or bytes at a speed.

    Attributes
    ----------
    ptr, node
        The nodes that each thing serves, in compressed rows.
    work_ms
        How long each of them keeps the whole thing busy.
    after_ms
        What follows the work before the node ends (latency).
    name
        The words for a thing, by its number.
    """

    ptr: IntArray
    node: IntArray
    work_ms: FloatArray
    after_ms: FloatArray
    name: Callable[[int], str]


def device_loads(graph: TransferGraph, cluster: Cluster) -> Loads:
    """Return the compute time on each (server, device) that holds one task at a time."""
    compute = np.flatnonzero((graph.kind == COMPUTE) & (graph.duration_ms > 0))
    code = (
        graph.server[compute].astype(np.int64) * cluster.devices_per_server + graph.device[compute]
    )
    unique, number = np.unique(code, return_inverse=True)
    ptr, node = grouped(number, compute.astype(np.int32), len(unique))

    def name(i: int) -> str:
        server, device = divmod(int(unique[i]), cluster.devices_per_server)
        single = cluster.devices_per_server == 1
        return f"the device of server {server}" if single else f"device {device} of server {server}"

    return Loads(ptr, node, graph.duration_ms[node], np.zeros(len(node)), name)


def lower_bound(graph: TransferGraph, length_ms: FloatArray, loads: Sequence[Loads]) -> Bound:
    """Return the best of the critical path and every load, naming the one that binds.

    Parameters
    ----------
    graph
        The lowered graph.
    length_ms
        The least time of every node: a transfer's with the fabric to itself, latency included.
    loads
        Devices, links, ports: for each, ``head + work + tail`` over head and tail thresholds.
    """
    if not length_ms.any():
        return Bound(0.0, "nothing to do")
    succ_ptr, succ_idx = graph.successors
    order = topological_order(graph.pred_ptr, succ_ptr, succ_idx)
    head = heads(order, graph.pred_ptr, graph.pred_idx, length_ms)
    tail = tails(order, succ_ptr, succ_idx, length_ms)
    precedence = (graph.pred_ptr, graph.pred_idx, succ_ptr, succ_idx)
    path = longest_path(precedence, head, length_ms, tail)
    words = path_in_words(path, graph.ids, length_ms)
    best = Bound(float((head + length_ms + tail).max()), words)
    for shared in loads:
        which, bound_ms, first, last = largest_load(
            shared.ptr,
            head[shared.node],
            shared.work_ms,
            tail[shared.node] + shared.after_ms,
            THRESHOLDS,
        )
        # A load that equals the path by another way of adding up is no better than the path.
        if which >= 0 and bound_ms > best.ms * (1 + 1e-12):
            best = Bound(
                bound_ms,
                f"{shared.name(which)}, busy from {short(first)} to {short(bound_ms - last)} ms",
            )
    return best


def longest_path(
    precedence: tuple[IntArray, IntArray, IntArray, IntArray],
    head: Times,
    length: Times,
    tail: Times,
) -> list[int]:
    """Return the tasks of a longest path, first to last; of several the one through the task with the least head.

    Parameters
    ----------
    precedence
        Predecessors and successors in compressed rows: two pointers and two indices.
    head, length, tail
        Of every task, in ticks or milliseconds.
    """
    pred_ptr, pred_idx, succ_ptr, succ_idx = precedence
    through = head + length + tail
    candidates = np.flatnonzero(through >= through.max() * (1 - 1e-12))
    path = [int(candidates[np.argmin(head[candidates])])]
    while len(before := pred_idx[pred_ptr[path[0]] : pred_ptr[path[0] + 1]]):
        path.insert(0, int(before[np.argmax(head[before] + length[before])]))
    while len(after := succ_idx[succ_ptr[path[-1]] : succ_ptr[path[-1] + 1]]):
        path.append(int(after[np.argmax(length[after] + tail[after])]))
    return path


def path_in_words(path: Sequence[int], names: Sequence[str], length: Times) -> str:
    """Say that a critical path binds, and through which tasks that take time; empty if there is none."""
    named = [names[i] for i in path if names[i] and length[i] > 0]
    shown = named if len(named) <= 6 else [*named[:3], "…", *named[-2:]]
    tasks = "1 task" if len(named) == 1 else f"{len(named)} tasks"
    return f"critical path, {tasks}: {' → '.join(shown)}" if named else ""
