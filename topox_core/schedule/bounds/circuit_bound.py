"""Lower bounds of fabrics whose transfers hold circuits of their own: no slots, but dark time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.model.cluster import Cluster
from topox_core.model.csr import grouped
from topox_core.model.durations import durations_ms
from topox_core.model.passes import heads, tails, topological_order
from topox_core.model.transfer_graph import TRANSFER, FloatArray, IntArray, TransferGraph
from topox_core.schedule.bounds.unrounded import THRESHOLDS, Bound, Loads, device_loads, lower_bound
from topox_core.schedule.kernels.largest_load import largest_load
from topox_core.text.numbers import short


def circuit_bound(graph: TransferGraph, cluster: Cluster, exclusive_devices: bool = True) -> Bound:
    """Return a bound that no order of transfers on whole circuits can beat, and what binds.

    The best of the critical path, every device's load, and every server's port load, each
    unrounded. Only the first circuit of a port stands before the iteration begins, so c ports that
    serve P pairs change at least P - c times, each time dark for the reconfiguration delay.

    Parameters
    ----------
    graph, cluster
        The lowered graph, and the cluster with its delay.
    exclusive_devices
        Whether a device runs one task at a time.
    """
    length = durations_ms(graph, cluster)
    sides = port_loads(graph, cluster, length)
    devices = [device_loads(graph, cluster)] if exclusive_devices else []
    best = lower_bound(graph, length, [*devices, *sides])
    if cluster.reconfiguration_ms > 0 and sides:
        best = _with_dark_time(graph, cluster, length, sides, best)
    return best


def port_loads(graph: TransferGraph, cluster: Cluster, length: FloatArray) -> list[Loads]:
    """Return what each server's ports carry: out and in apart, or together in half duplex."""
    carried = np.flatnonzero((graph.kind == TRANSFER) & (length > 0)).astype(np.int32)
    if not len(carried):
        return []
    ends = [("out-ports", graph.source[carried]), ("in-ports", graph.destination[carried])]
    if cluster.duplex == "half":
        both = np.concatenate([ends[0][1], ends[1][1]])
        return [_loads("ports", both, np.concatenate([carried, carried]), cluster, length)]
    return [_loads(words, server, carried, cluster, length) for words, server in ends]


def _loads(
    words: str, server: IntArray, node: IntArray, cluster: Cluster, length: FloatArray
) -> Loads:
    ptr, by_server = grouped(server, node, cluster.servers)
    several = f" ({cluster.ports_per_server} at once)" if cluster.ports_per_server > 1 else ""
    return Loads(
        ptr,
        by_server,
        length[by_server] / cluster.ports_per_server,
        np.zeros(len(node)),
        lambda s: f"{words} of server {s}{several}",
    )


def _with_dark_time(
    graph: TransferGraph, cluster: Cluster, length: FloatArray, sides: list[Loads], best: Bound
) -> Bound:
    """Return the better of a bound and the port loads that count set-ups.

    For any set of transfers c ports spend at least work + (P - c) * delay between the first head
    and the last tail. One transfer of each pair carries its set-up, and the delay that c ports save
    is taken off at the end, so that head and tail thresholds cut the sum as they cut the work.
    """
    delay = cluster.reconfiguration_ms
    succ_ptr, succ_idx = graph.successors
    order = topological_order(graph.pred_ptr, succ_ptr, succ_idx)
    head = heads(order, graph.pred_ptr, graph.pred_idx, length)
    tail = tails(order, succ_ptr, succ_idx, length)
    first_of_pair = _first_of_pair(graph, cluster, length)
    for side in sides:
        work = side.work_ms + first_of_pair[side.node] * delay / cluster.ports_per_server
        which, load_ms, first, last = largest_load(
            side.ptr, head[side.node], work, tail[side.node], THRESHOLDS
        )
        if which >= 0 and load_ms - delay > best.ms * (1 + 1e-12):
            until = load_ms - delay - last
            best = Bound(
                load_ms - delay,
                f"{side.name(which)} between {short(first)} and {short(until)} ms, set-ups included",
            )
    return best


def _first_of_pair(graph: TransferGraph, cluster: Cluster, length: FloatArray) -> NDArray[np.bool_]:
    carried = np.flatnonzero((graph.kind == TRANSFER) & (length > 0))
    code = graph.source[carried].astype(np.int64) * cluster.servers + graph.destination[carried]
    first = np.zeros(len(graph), np.bool_)
    first[carried[np.unique(code, return_index=True)[1]]] = True
    return first
