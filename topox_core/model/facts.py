"""Facts of a task graph without a solver: tasks, bytes, compute load, critical path."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import KINDS, PARALLELISMS, TaskGraph
from topox_core.model.transfer_graph import (
    BARRIER,
    TRANSFER,
    FloatArray,
    TransferGraph,
    durations_ms,
)


@dataclass(frozen=True)
class GraphSummary:
    """Facts of a graph on a cluster; bytes and paths are those of the lowered graph.

    Attributes
    ----------
    tasks, tasks_by_kind
        Of the graph as given; only kinds that occur, in the order of the file format.
    transfers, dependencies
        Point-to-point transfers after lowering, and edges of the graph as given.
    bytes_total, bytes_by_parallelism
        Bytes that cross the network; transfers given by a time instead of a size count nothing.
        Without a parallelism the key is ``""``.
    servers, devices
        Servers the graph needs, and (server, device) pairs that compute.
    compute_ms_max, compute_ms_mean
        Compute time of the busiest device and the mean over the devices that compute.
    busiest_server, busiest_out_bytes
        The server that sends most (-1 if nothing is sent) and its bytes.
    critical_path_ms, critical_path
        Longest chain, every transfer alone at the speed of one circuit and nothing rounded, and the
        ids of its compute tasks and transfers in order.
    """

    tasks: int
    tasks_by_kind: dict[str, int]
    transfers: int
    dependencies: int
    bytes_total: float
    bytes_by_parallelism: dict[str, float]
    servers: int
    devices: int
    compute_ms_max: float
    compute_ms_mean: float
    busiest_server: int
    busiest_out_bytes: float
    critical_path_ms: float
    critical_path: tuple[str, ...]


def facts(graph: TaskGraph, cluster: Cluster, lowering: Lowering | None = None) -> GraphSummary:
    """Return the facts of ``graph`` on ``cluster``.

    Raises
    ------
    InputError
        If the graph cannot be lowered as asked.
    """
    lowered = lower(graph, lowering)
    path_ms, path = longest_chain(lowered, durations_ms(lowered, cluster))
    counts = Counter(task.kind for task in graph.tasks)
    is_transfer = lowered.kind == TRANSFER
    size = np.nan_to_num(lowered.size_bytes[is_transfer], nan=0.0)
    out = np.bincount(lowered.source[is_transfer], weights=size) if len(size) else np.zeros(0)
    loads = _device_loads(lowered)
    return GraphSummary(
        tasks=len(graph.tasks),
        tasks_by_kind={kind: counts[kind] for kind in KINDS if counts[kind]},
        transfers=int(is_transfer.sum()),
        dependencies=sum(len(task.dependencies) for task in graph.tasks),
        bytes_total=float(size.sum()),
        bytes_by_parallelism=_bytes_by_parallelism(lowered),
        servers=graph.servers,
        devices=len(loads),
        compute_ms_max=float(loads.max(initial=0.0)),
        compute_ms_mean=float(loads.mean()) if len(loads) else 0.0,
        busiest_server=int(out.argmax()) if out.any() else -1,
        busiest_out_bytes=float(out.max(initial=0.0)),
        critical_path_ms=path_ms,
        critical_path=path,
    )


def _bytes_by_parallelism(lowered: TransferGraph) -> dict[str, float]:
    added: dict[str, float] = {}
    sizes = np.nan_to_num(lowered.size_bytes, nan=0.0).tolist()
    for word, size, kind in zip(lowered.parallelism, sizes, lowered.kind.tolist(), strict=True):
        if kind == TRANSFER:
            added[word] = added.get(word, 0.0) + size
    return {word: added[word] for word in (*PARALLELISMS, "") if word in added}


def _device_loads(lowered: TransferGraph) -> FloatArray:
    """Return the compute time of each (server, device) that computes."""
    device, places = lowered.devices()
    held = device >= 0
    return np.bincount(device[held], lowered.duration_ms[held], len(places)).astype(np.float64)


def longest_chain(lowered: TransferGraph, duration_ms: FloatArray) -> tuple[float, tuple[str, ...]]:
    """Return the length of the longest chain in ms and the ids on it; barriers that take no time are left out."""
    if not len(lowered):
        return 0.0, ()
    pred_ptr, pred_idx = lowered.pred_ptr, lowered.pred_idx
    head = lowered.heads(duration_ms)
    end = head + duration_ms
    path, at = [], int(end.argmax()) if end.any() else -1
    while at >= 0:
        if lowered.kind[at] != BARRIER or duration_ms[at] > 0:
            path.append(lowered.ids[at])
        before = pred_idx[pred_ptr[at] : pred_ptr[at + 1]]
        at = int(before[end[before].argmax()]) if head[at] > 0 else -1
    return float(end.max()), tuple(reversed(path))
