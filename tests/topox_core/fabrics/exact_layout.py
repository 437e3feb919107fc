"""The best fixed circuits for a small graph, proved: a mixed-integer program with intervals of free length.

After DELTA (arXiv 2603.28096), built from its abstract; the model is ours. Bytes go over direct
circuits at any rates, so that no sharing of direct circuits is faster.
"""

from dataclasses import dataclass

import numpy as np

from topox_core.errors import InputError
from topox_core.fabrics.fluid.simulator import Pairs
from topox_core.model.cluster import Cluster
from topox_core.model.transfer_graph import (
    COMPUTE,
    FloatArray,
    TransferGraph,
    bytes_per_ms,
    latency_ms,
    work_bytes,
)
from topox_core.runs.run import Stop, never
from topox_core.schedule.engines import mip
from topox_core.topology.greedy import Circuits as Matrix

# Beyond so many transfers a search is the better way.
MAX_EXACT_TRANSFERS = 12
# Of two layouts as fast, the one with fewer circuits: what a circuit costs, as a share of the known time.
PORT_SHARE = 1e-6
TOLERANCE = 1e-6
# Bound and time differ by what all circuits may cost at least.
CLOSE = 1e-4


@dataclass(frozen=True)
class ExactLayout:
    """Direct circuits, the shortest iteration on them at any rates, and its bound.

    ``circuits`` is None where no solution was found in time.
    """

    circuits: Matrix | None
    makespan_ms: float
    bound_ms: float

    @property
    def proved(self) -> bool:
        """Whether nothing is shorter."""
        return self.circuits is not None and self.makespan_ms <= self.bound_ms * (1 + CLOSE)


def exact_direct_layout(
    graph: TransferGraph,
    cluster: Cluster,
    known_ms: float,
    exclusive_devices: bool = True,
    time_limit_s: float = 60.0,
    stop: Stop = never,
) -> ExactLayout:
    """Return the best direct circuits of a small graph, solved by HiGHS.

    Parameters
    ----------
    known_ms
        An iteration time that direct circuits are known to reach; nothing longer is looked for.

    Raises
    ------
    InputError
        If the graph has too many transfers, or the cluster is half duplex.
    """
    model = _Model(graph, cluster, known_ms, exclusive_devices)
    model.build()
    # With presolve HiGHS 1.15 has called longer schedules optimal in models of this kind.
    run = mip.Run(time_limit_s, 1e-6, 0.0, presolve=False)
    outcome = mip.solve(model.rows.built(), run, None, stop)
    if outcome.values is None:
        return ExactLayout(None, np.inf, 0.0)
    circuits, makespan_ms = model.read(outcome.values)
    # What the ports add to the objective is taken off the bound.
    bound_ms = max(0.0, outcome.dual - model.most_port_cost)
    if outcome.ended == "optimal":
        # Circuits cost so little that only layouts within as much of the best are taken for it.
        bound_ms = max(bound_ms, makespan_ms * (1 - TOLERANCE) - model.most_port_cost)
    if bound_ms > known_ms * (1 + CLOSE):
        bound_ms = 0.0  # a proof that a schedule at hand contradicts is none
    return ExactLayout(circuits, makespan_ms, min(bound_ms, makespan_ms))


class _Model:
    """Intervals between boundaries of free time; what is sent in each, on how many circuits."""

    def __init__(
        self, graph: TransferGraph, cluster: Cluster, known_ms: float, exclusive_devices: bool
    ) -> None:
        if cluster.duplex == "half":
            raise InputError(
                "must be full: the exact layout has ports that send and receive at once",
                file="cluster",
                field="duplex",
            )
        self.graph, self.cluster, self.exclusive = graph, cluster, exclusive_devices
        self.pairs, self.longest = Pairs.of(graph, cluster), known_ms
        # In ms of one port.
        self.work: FloatArray = work_bytes(graph, cluster) / bytes_per_ms(cluster.port_gbps)
        self.latency = latency_ms(graph, cluster)
        self.sending = np.flatnonzero(self.work > 0).tolist()
        if len(self.sending) > MAX_EXACT_TRANSFERS:
            raise InputError(
                f"has {len(self.sending):,} transfers with bytes, more than the {MAX_EXACT_TRANSFERS} of an "
                "exact layout: search instead",
                file="task graph",
            )
        self.rows = mip.MipBuilder()
        self.ports = cluster.ports_per_server
        self.port_cost = PORT_SHARE * known_ms
        self.most_port_cost = self.port_cost * self.ports * cluster.servers

    def build(self) -> None:
        """Write all variables and constraints."""
        rows, m = self.rows, self.longest
        self.makespan = rows.new(m, cost=1.0)
        self.end = [rows.new(m) for _ in range(len(self.graph))]
        self.boundary = [rows.new(m) for _ in range(2 * len(self.sending) + 1)]
        rows.row({self.boundary[0]: 1.0}, 0.0, 0.0)
        for earlier, later in zip(self.boundary, self.boundary[1:], strict=False):
            rows.row({later: 1.0, earlier: -1.0}, 0.0)
        for end in self.end:
            rows.row({self.makespan: 1.0, end: -1.0}, 0.0)
        self.count = [
            [rows.new(1.0, True, k * self.port_cost) for k in range(self.ports + 1)]
            for _ in range(len(self.pairs))
        ]
        self._ports()
        self._tasks()
        self._transfers()
        if self.exclusive:
            self._devices()

    def _ports(self) -> None:
        for one in self.count:
            self.rows.row(dict.fromkeys(one, 1.0), 1.0, 1.0)
        for ends in (self.pairs.source, self.pairs.destination):
            for server in np.unique(ends).tolist():
                terms = {
                    column: float(k)
                    for pair in np.flatnonzero(ends == server).tolist()
                    for k, column in enumerate(self.count[pair])
                    if k
                }
                self.rows.row(terms, -np.inf, float(self.ports))

    def _before(self, node: int) -> list[int]:
        graph = self.graph
        return [int(u) for u in graph.pred_idx[graph.pred_ptr[node] : graph.pred_ptr[node + 1]]]

    def _tasks(self) -> None:
        """End no earlier than a predecessor, and its own time later where that is known."""
        graph = self.graph
        for node in range(len(graph)):
            fixed = float(graph.duration_ms[node]) if graph.kind[node] == COMPUTE else 0.0
            fixed += float(self.latency[node])
            self.rows.row({self.end[node]: 1.0}, fixed)
            for u in self._before(node):
                self.rows.row({self.end[node]: 1.0, self.end[u]: -1.0}, fixed)

    def _transfers(self) -> None:
        rows, m = self.rows, self.longest
        sent: dict[tuple[int, int], list[int]] = {}
        for node in self.sending:
            work, pair = float(self.work[node]), int(self.pairs.of_node[node])
            parts = []
            for k in range(len(self.boundary) - 1):
                part, active = rows.new(work), rows.new(1.0, True)
                parts.append(part)
                sent.setdefault((pair, k), []).append(part)
                rows.row({part: 1.0, active: -work}, -np.inf, 0.0)
                # Active: the interval lies between the end of what came before and its own end.
                late = float(self.latency[node])
                rows.row({self.end[node]: 1.0, self.boundary[k + 1]: -1.0, active: -m}, late - m)
                for u in self._before(node):
                    rows.row({self.boundary[k]: 1.0, self.end[u]: -1.0, active: -m}, -m)
            rows.row(dict.fromkeys(parts, 1.0), work, work)
        for (pair, k), parts in sent.items():
            most = float(self.work[self.pairs.of_node == pair].sum())
            for count, chosen in enumerate(self.count[pair]):
                terms = dict.fromkeys(parts, 1.0)
                if count:
                    terms[self.boundary[k + 1]] = -float(count)
                    terms[self.boundary[k]] = float(count)
                rows.row({**terms, chosen: most}, -np.inf, most)

    def _devices(self) -> None:
        """Two tasks of a device, one after the other."""
        graph, m = self.graph, self.longest
        compute = np.flatnonzero((graph.kind == COMPUTE) & (graph.duration_ms > 0)).tolist()
        for at, i in enumerate(compute):
            for j in compute[at + 1 :]:
                if (graph.server[i], graph.device[i]) != (graph.server[j], graph.device[j]):
                    continue
                first = self.rows.new(1.0, True)
                self.rows.row(
                    {self.end[j]: 1.0, self.end[i]: -1.0, first: -m},
                    float(graph.duration_ms[j]) - m,
                )
                self.rows.row(
                    {self.end[i]: 1.0, self.end[j]: -1.0, first: m}, float(graph.duration_ms[i])
                )

    def read(self, values: FloatArray) -> tuple[Matrix, float]:
        """Return circuits and makespan of a solution."""
        n = self.cluster.servers
        circuits = np.zeros((n, n), np.int32)
        for pair, columns in enumerate(self.count):
            chosen = int(np.argmax(values[columns]))
            circuits[self.pairs.source[pair], self.pairs.destination[pair]] = chosen
        return circuits, float(values[self.end].max(initial=0.0))
