"""The lowered graph, as arrays: compute tasks, point-to-point transfers and barriers only, and how long they take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.csr import transposed
from topox_core.model.cluster import Cluster
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph

COMPUTE, TRANSFER, BARRIER = 0, 1, 2
MAX_DEVICES = 8_192  # more than a server may have

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]
Size = TypeVar("Size", float, FloatArray)


@dataclass(frozen=True, slots=True)
class LoweredTransfer:
    """One transfer that a collective was lowered to, whole, as the result file lists it."""

    id: str
    collective: str
    source: int
    destination: int
    size_bytes: float
    dependencies: tuple[str, ...]


@dataclass(frozen=True)
class TransferGraph:
    """A lowered task graph of n nodes, in any order; arrays run over nodes.

    It has no name: results are shared between graphs of one digest, and whoever shows a result
    knows what it is called.

    Attributes
    ----------
    ids
        Task id, lowered transfer id, or ``""`` for a barrier that lowering added (kept out of
        files). A collective's own id sits on its closing barrier.
    kind
        ``COMPUTE``, ``TRANSFER`` or ``BARRIER``.
    origin
        Position in ``TaskGraph.tasks`` of the task that a node came from.
    server, device
        Of compute nodes, else -1.
    source, destination
        Of transfers, else -1.
    duration_ms
        Compute time; a transfer's given time; NaN for a transfer given by its size.
    size_bytes
        Of transfers given by size, else NaN.
    pred_ptr, pred_idx
        Predecessors in compressed rows: of node i, ``pred_idx[pred_ptr[i]:pred_ptr[i + 1]]``.
    task_kind, parallelism
        Words of the task a node came from, for colours and measures (``""`` if none).
    algorithm
        Names of the algorithms of collectives that are lowered step by step, by ``origin``.
    task_graph
        What was lowered, so that it can be lowered otherwise; it does not travel to other processes.
    """

    ids: tuple[str, ...]
    kind: NDArray[np.uint8]
    origin: IntArray
    server: IntArray
    device: IntArray
    source: IntArray
    destination: IntArray
    duration_ms: FloatArray
    size_bytes: FloatArray
    pred_ptr: IntArray
    pred_idx: IntArray
    task_kind: tuple[str, ...]
    parallelism: tuple[str, ...]
    lowering: Lowering
    digest: str
    algorithm: Mapping[int, str] = field(default_factory=dict)
    task_graph: TaskGraph | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"task_graph": None}

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def successors(self) -> tuple[IntArray, IntArray]:
        """The edges turned round: ``succ_ptr, succ_idx`` in the same layout as the predecessors."""
        return transposed(self.pred_ptr, self.pred_idx, len(self))

    @cached_property
    def order(self) -> IntArray:
        """The nodes, each after its predecessors."""
        from topox_core.model.arrays.passes import topological_order  # loads the compiler

        order: IntArray = topological_order(self.pred_ptr, *self.successors)
        return order

    def heads(self, length_ms: FloatArray) -> FloatArray:
        """Return the longest path that ends where each node begins, if nodes take ``length_ms``."""
        from topox_core.model.arrays.passes import heads

        head: FloatArray = heads(self.order, self.pred_ptr, self.pred_idx, length_ms)
        return head

    def tails(self, length_ms: FloatArray) -> FloatArray:
        """Return the longest path that begins where each node ends."""
        from topox_core.model.arrays.passes import tails

        tail: FloatArray = tails(self.order, *self.successors, length_ms)
        return tail

    def matrix(self, amount: FloatArray, nodes: NDArray[Any], servers: int) -> FloatArray:
        """Return an amount of some transfers, summed up by source and destination."""
        matrix = np.zeros((servers, servers))
        np.add.at(matrix, (self.source[nodes], self.destination[nodes]), amount[nodes])
        return matrix

    def devices(self, exclusive: bool = True) -> tuple[IntArray, list[tuple[int, int]]]:
        """Return the number of the device that each node holds alone (-1: none), and the devices as (server, device)."""
        device = np.full(len(self), -1, np.int32)
        compute = (self.kind == COMPUTE) & exclusive
        code = self.server[compute].astype(np.int64) * MAX_DEVICES + self.device[compute]
        places, device[compute] = np.unique(code, return_inverse=True)
        return device, [divmod(place, MAX_DEVICES) for place in places.tolist()]

    @cached_property
    def lowered(self) -> tuple[LoweredTransfer, ...]:
        """What collectives were lowered to, transfer by transfer."""
        ids, origin, kind = self.ids, self.origin.tolist(), self.kind.tolist()
        pointer, waits = self.pred_ptr.tolist(), self.pred_idx.tolist()
        # A collective's own id sits on its closing barrier.
        whole = {origin[i]: ids[i] for i, one in enumerate(kind) if one == BARRIER and ids[i]}
        awaited: dict[
            int, tuple[str, ...]
        ] = {}  # by each collective, and so by its first transfers
        found = []
        for i, one in enumerate(kind):
            if one != TRANSFER or origin[i] not in whole:
                continue
            before = waits[pointer[i] : pointer[i + 1]]
            own = tuple(ids[j] for j in before if origin[j] == origin[i] and kind[j] == TRANSFER)
            if not own:
                if before and not ids[before[0]]:  # the entry barrier of several dependencies
                    before = waits[pointer[before[0]] : pointer[before[0] + 1]]
                awaited[origin[i]] = tuple(ids[j] for j in before)
            found.append(
                LoweredTransfer(
                    ids[i],
                    whole[origin[i]],
                    int(self.source[i]),
                    int(self.destination[i]),
                    float(self.size_bytes[i]),
                    awaited[origin[i]] + own,
                )
            )
        return tuple(found)


def bytes_per_ms(gbps: float) -> float:
    """Return a speed in gigabits per second as bytes per millisecond."""
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
