"""How long a transfer takes on a circuit."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from topox_core.model.cluster import Cluster
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, FloatArray, TransferGraph

Size = TypeVar("Size", float, FloatArray)


def bytes_per_ms(gbps: float) -> float:
    """Return a speed in gigabits a second as bytes a millisecond."""
    return gbps * 1e6 / 8


def transfer_ms(size_bytes: Size, gbps: Size | float, latency_us: float = 0.0) -> Size:
    """Return the time of a transfer that has a circuit of ``gbps`` to itself, not rounded to slots."""
    time_ms: Size = latency_us / 1000 + size_bytes * 8 / (gbps * 1e6)
    return time_ms


def durations_ms(graph: TransferGraph, cluster: Cluster) -> FloatArray:
    """Return every node's running time in ms, transfers at full circuit speed, not rounded.

    A duration that the file gives holds its latency already.
    """
    size_bytes = np.nan_to_num(graph.size_bytes)
    by_size = transfer_ms(size_bytes, cluster.port_gbps, cluster.latency_us)
    duration = np.where(np.isnan(graph.duration_ms), by_size, graph.duration_ms)
    return np.where((graph.kind == COMPUTE) | (graph.kind == TRANSFER), duration, 0.0)


def shortest_ms(graph: TransferGraph, cluster: Cluster) -> FloatArray:
    """Return every node's running time in ms with each transfer on all ports of a server: no fabric is faster."""
    speed = cluster.ports_per_server * bytes_per_ms(cluster.port_gbps)
    sending = work_bytes(graph, cluster) / speed + latency_ms(graph, cluster)
    return np.where(graph.kind == COMPUTE, np.nan_to_num(graph.duration_ms), sending)


def work_bytes(graph: TransferGraph, cluster: Cluster) -> FloatArray:
    """Return the bytes of each transfer; a given duration counts as what a port moves in it."""
    given = np.nan_to_num(graph.duration_ms) * bytes_per_ms(cluster.port_gbps)
    moved = np.where(np.isnan(graph.duration_ms), np.nan_to_num(graph.size_bytes), given)
    return np.where(graph.kind == TRANSFER, moved, 0.0)


def latency_ms(graph: TransferGraph, cluster: Cluster) -> FloatArray:
    """Return the latency of each transfer, once for all hops; 0 where a duration is given."""
    return np.where(
        (graph.kind == TRANSFER) & np.isnan(graph.duration_ms), cluster.latency_us / 1000, 0.0
    )
