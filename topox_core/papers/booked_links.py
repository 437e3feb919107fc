"""Static circuits as FlexNet's simulator runs them: links are booked first come, first served.

The simulator that came with TopoOpt does not share a link. A transfer that becomes ready books
every link of its route at once, each for its bytes at full speed from when the link is free; the
next hop may begin a latency after this one. A booking is never moved, so the time that a link waits
for the hop before it is lost. That is why its iterations are longer than max-min fair sharing makes
them on the same circuits. Written from a description of the simulator's rules, not from its code.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from topox_core.errors import InputError
from topox_core.fabrics.fluid import Stopped
from topox_core.model.cluster import Cluster
from topox_core.model.durations import bytes_per_ms
from topox_core.model.layout import Layout
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, TransferGraph
from topox_core.model.waiting_order import last_end
from topox_core.runs.stopping import Stop, never

# An all-reduce first adds up within the server: 2 S / (4 GPUs x 200 Gbit/s), as TopoOpt's scripts
# set it.
INTRA_SERVER_BYTES_PER_MS = 5e7
LATENCY_MS = 0.001
ASKED_EVERY = 2_000


def booked_iteration_ms(
    graph: TransferGraph, cluster: Cluster, layout: Layout, stop: Stop = never
) -> float:
    """Return the iteration time when links are booked in the order in which transfers become ready.

    Devices run one task at a time in the same order; ties go by the order of the graph. Where a
    pair has several routes each carries an equal share. Latency is 1 us a hop.

    Raises
    ------
    InputError
        If two talking servers have no route; they are named.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    succ_ptr, succ_idx = (array.tolist() for array in graph.successors)
    following = [succ_idx[first:until] for first, until in pairwise(succ_ptr)]
    return last_end(following, _Booking(graph, cluster, layout, stop).end)


class _Booking:
    """When every link and device is free."""

    def __init__(self, graph: TransferGraph, cluster: Cluster, layout: Layout, stop: Stop) -> None:
        self.stop, self.asked = stop, 0
        self.kind: list[int] = graph.kind.tolist()
        self.duration: list[float] = graph.duration_ms.tolist()
        self.device = list(zip(graph.server.tolist(), graph.device.tolist(), strict=True))
        self.ends = list(zip(graph.source.tolist(), graph.destination.tolist(), strict=True))
        self.size: list[float] = graph.size_bytes.tolist()
        self.joins = intra_server_ms(graph)
        self.bytes_per_ms = layout.circuits * bytes_per_ms(cluster.port_gbps)
        self.layout = layout
        self.free: dict[tuple[int, int], float] = {}
        self.idle: dict[tuple[int, int], float] = {}

    def end(self, i: int, ready: float) -> float:
        """Return the end of a task that is ready now, booking what it uses."""
        self.asked += 1
        if self.asked % ASKED_EVERY == 0 and self.stop():
            raise Stopped
        if self.kind[i] == COMPUTE:
            ended = max(ready, self.idle.get(self.device[i], 0.0)) + self.duration[i]
            self.idle[self.device[i]] = ended
            return ended
        return self._moved(i, ready + self.joins[i]) if self.kind[i] == TRANSFER else ready

    def _moved(self, i: int, ready: float) -> float:
        if not np.isnan(self.duration[i]):
            return ready + self.duration[i]
        routes = self.layout.routes.get(self.ends[i], ())
        if not routes:
            source, destination = self.ends[i]
            raise InputError(
                f"server {source} sends to server {destination}, but no route leads there",
                file="layout",
            )
        ended = ready
        for route in routes:
            at = ready
            for link in pairwise(route):
                start = max(at, self.free.get(link, 0.0))
                self.free[link] = start + self.size[i] / len(routes) / float(
                    self.bytes_per_ms[link]
                )
                at = start + LATENCY_MS
                ended = max(ended, self.free[link] + LATENCY_MS)
        return ended


def intra_server_ms(graph: TransferGraph) -> list[float]:
    """Return for each node how long an all-reduce first runs within the servers.

    0 for all other nodes.
    """
    of_all_reduce = np.fromiter(
        (kind == "all_reduce" for kind in graph.task_kind), np.bool_, len(graph)
    )
    nodes = np.flatnonzero(of_all_reduce & (graph.kind == TRANSFER))
    result = [0.0] * len(graph)
    if not len(nodes):
        return result
    origin = graph.origin[nodes]
    total = np.bincount(origin, graph.size_bytes[nodes])
    for task in np.flatnonzero(total):
        own = nodes[origin == task]
        members = len(np.unique(graph.source[own]))
        for node in own.tolist():
            result[node] = float(total[task]) / (2 * (members - 1)) / INTRA_SERVER_BYTES_PER_MS
    return result
