"""How long an iteration takes on circuits that stay, one matrix after another, and the circuits that a search begins with."""

import hashlib
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from topox_core.errors import InputError, refuse_if
from topox_core.fabrics.fluid.links import half_duplex, shared_fairly, static_layout, wired
from topox_core.fabrics.fluid.simulator import FluidNetwork, FluidTasks, Pairs
from topox_core.fabrics.kernels.events import run_until
from topox_core.fabrics.kernels.state import BATCHES, WORK, State, fresh
from topox_core.fabrics.run import FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution, Layout
from topox_core.model.transfer_graph import FloatArray, TransferGraph, bytes_per_ms
from topox_core.runs.run import Stop
from topox_core.schedule.settings import FREE
from topox_core.text.choices import chosen_words
from topox_core.topology.finder import VARIANTS
from topox_core.topology.greedy import (
    Circuits as Matrix,
    chordal_rings,
    greedy_circuits,
    minimax_circuits,
    repaired,
)
from topox_core.topology.kernels.routes import PATHS, shortest_routes
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import on_ring_count

# What an event takes beside new rates, and a layout beside its events, in paths looked at on links
# (measured on the samples).
OF_EVENT, OF_LAYOUT = 20, 1_000


class LayoutTimes:
    """Times of a graph on matrices of circuits, each routed over up to two shortest paths a pair.

    The same time as :func:`~topox_core.fabrics.fixed.static.run_static` gives for the layout, remembered by
    matrix. Bytes of a pair are split evenly over its paths.

    Parameters
    ----------
    exclusive_devices
        Whether a compute task holds its (server, device) alone.
    """

    def __init__(self, graph: TransferGraph, cluster: Cluster, exclusive_devices: bool) -> None:
        self.graph, self.cluster, self.exclusive = graph, cluster, exclusive_devices
        self.pairs = Pairs.of(graph, cluster)
        self.tasks = FluidTasks.of(graph, cluster, self.pairs, exclusive_devices)
        self.evaluations, self.work = 0, 0
        # What lies before the first byte of a task, and from then to the end, at least: all ports of a server
        # for each transfer.
        speed = cluster.ports_per_server * bytes_per_ms(cluster.port_gbps)
        length = np.nan_to_num(self.tasks.length_ms) + self.tasks.work_bytes / speed
        head_ms, self.tail_ms = graph.heads(length), graph.tails(length) + length
        self._waiting = np.diff(graph.pred_ptr)
        moving, count = self.tasks.moving, len(self.pairs)
        pair, sent = self.tasks.pair, self.tasks.work_bytes[moving]
        self._pair_bytes = np.bincount(pair, sent, count)
        self._pair_head, self._pair_after = np.full(count, np.inf), np.full(count, np.inf)
        np.minimum.at(self._pair_head, pair, head_ms[moving])
        np.minimum.at(self._pair_after, pair, self.tail_ms[moving] - sent / speed)
        # The time of a matrix, or minus the time up to which it is known not to be over.
        self._known: dict[bytes, float] = {}
        self._last: tuple[bytes, State] | None = None

    @property
    def bytes_between(self) -> FloatArray:
        """Matrix servers x servers of the bytes of one iteration."""
        matrix = np.zeros((self.cluster.servers, self.cluster.servers))
        matrix[self.pairs.source, self.pairs.destination] = self._pair_bytes
        return matrix

    def time_ms(self, circuits: Matrix, latest_ms: float = math.inf) -> float:
        """Return the iteration's time; infinite where it is above ``latest_ms`` or a talking pair has no path."""
        key = _digest(circuits)
        known = self._known.get(key)
        if known is not None and (known >= 0 or -known >= latest_ms):
            return known if 0 <= known <= latest_ms else math.inf
        self.evaluations += 1
        network, time_ms = self._network(circuits), math.inf
        if network is not None and self._least_ms(network) <= latest_ms * (1 + 1e-12):
            if self.cluster.duplex == "half":
                network = half_duplex(network, self.cluster, *np.nonzero(circuits))
            plan = self.tasks.on(network)
            state = fresh(plan, self._waiting)
            if run_until(plan, state, self.tail_ms, latest_ms):
                time_ms = float(state.end.max(initial=0.0))
                self._last = key, state
            self.work += int(state.counts[WORK]) + OF_EVENT * int(state.counts[BATCHES])
        self.work += OF_LAYOUT + len(self.graph) + len(self.pairs)
        self._known[key] = -latest_ms if network is not None and time_ms == math.inf else time_ms
        return time_ms

    def execution(self, circuits: Matrix) -> Execution | None:
        """Return the execution of a matrix; None where a talking pair has no path."""
        if self._last is None or self._last[0] != _digest(circuits):
            self._known.pop(_digest(circuits), None)
            if self.time_ms(circuits) == math.inf:
                return None
        assert self._last is not None
        state = self._last[1]
        return Execution(self.graph, self.cluster, state.start, state.end, Circuits.none())

    def layout(self, circuits: Matrix, name: str) -> Layout:
        """Return a matrix with its routes; raises InputError where a talking pair has no path."""
        network = RoutedNetwork(circuits)
        routes = {pair: network.shortest_paths(*pair, PATHS) for pair in self.pairs.ends}
        return Layout(circuits, routes, name)

    def busy_ms(self, circuits: Matrix) -> FloatArray:
        """Return how long each link would need for its bytes alone, as a matrix servers x servers; of connected pairs alone."""
        network = self._network(circuits)
        assert network is not None
        busy = np.zeros(circuits.shape)
        busy[np.nonzero(circuits)] = self._link_ms(network)
        return busy

    def _link_ms(self, network: FluidNetwork) -> FloatArray:
        split = np.diff(network.pair_ptr)
        on_path = np.repeat(self._pair_bytes / np.maximum(split, 1), split)
        sent = np.repeat(on_path, np.diff(network.path_ptr))
        carried = np.bincount(network.path_link, sent, len(network.capacity))
        return np.asarray(carried / network.capacity, np.float64)

    def _least_ms(self, network: FluidNetwork) -> float:
        """Return a time that the iteration cannot be shorter than: load of a link, after and before what must lie beside it."""
        link, hops = network.path_link, np.diff(network.path_ptr)
        pair = np.repeat(np.repeat(np.arange(len(self.pairs)), np.diff(network.pair_ptr)), hops)
        load = self._link_ms(network)
        before, after = np.full(len(load), np.inf), np.full(len(load), np.inf)
        np.minimum.at(before, link, self._pair_head[pair])
        np.minimum.at(after, link, self._pair_after[pair])
        used = load > 0
        return float((before + load + after)[used].max(initial=0.0))

    def _network(self, circuits: Matrix) -> FluidNetwork | None:
        """Return the links one way with the routes of all pairs; None where one has none."""
        pairs = self.pairs
        connected, pair_ptr, path_ptr, path_link = shortest_routes(
            circuits, pairs.source, pairs.destination
        )
        if not connected:
            return None
        parallel = circuits[np.nonzero(circuits)].astype(np.float64)
        capacity = parallel * bytes_per_ms(self.cluster.port_gbps)
        return FluidNetwork(capacity, path_ptr, path_link, pair_ptr)


def _digest(circuits: Matrix) -> bytes:
    return hashlib.blake2b(circuits.tobytes(), digest_size=16).digest()


# Matrices of circuits are looked at whole.
MAX_SERVERS = 1_024
GREEDY, MINIMAX, CHORDAL = "greedy by bytes", "fewest bytes a circuit", "rings of several strides"


@dataclass(frozen=True)
class StaticLayout:
    """Fixed circuits with the graph that they carry, and the time of an iteration on them."""

    graph: TransferGraph
    layout: Layout
    time_ms: float


@dataclass(frozen=True)
class MatrixStart:
    """A matrix of circuits for one of the graphs, with its time over shortest routes."""

    times: LayoutTimes
    circuits: Matrix
    time_ms: float
    name: str


def check_size(request: FabricRequest) -> None:
    """Refuse a cluster whose matrices of circuits would be too large, with one line."""
    refuse_if(
        (
            request.cluster.servers > MAX_SERVERS,
            f"must be at most {MAX_SERVERS:,} for circuits from a matrix or the task graph "
            f"(got {request.cluster.servers:,})",
        ),
        file="cluster",
        field="servers",
    )


def ring_graphs(request: FabricRequest) -> Iterator[tuple[str, TransferGraph]]:
    """Yield the graph as it is lowered, then on one ring and on one a port, then as it may be lowered else, with words for each.

    All-reduce traffic is mutable, so the number of rings is the layout's to choose; strides that
    the user chose stay.
    """
    graph, ports = request.graph, request.cluster.ports_per_server
    yield "", graph
    for rings in () if graph.lowering.strides else dict.fromkeys((1, ports)):
        if rings == graph.lowering.rings:
            continue
        with suppress(InputError):  # too many transfers
            if (moved := on_ring_count(graph, rings)) is not graph:
                yield f"{rings} ring{'s' if rings > 1 else ''}", moved
    yield from ((chosen_words(other.lowering, FREE), other) for other in request.others)


def matrix_starts(times: LayoutTimes, rings: str, chordal: bool = False) -> Iterator[MatrixStart]:
    """Yield circuits for the bytes of a graph, repaired so that everybody reaches whom it talks to.

    ``chordal`` adds rings of several strides, which serve exchanges of everybody with everybody.
    """
    wanted, ports = times.bytes_between, times.cluster.ports_per_server
    talking = times.pairs.ends
    ways = {GREEDY: greedy_circuits, MINIMAX: minimax_circuits}
    if chordal:
        ways[CHORDAL] = chordal_rings
    for name, way in ways.items():
        circuits = way(wanted, ports)
        if name != GREEDY and talking and not circuits.any():
            continue
        mended = repaired(circuits, talking, wanted, ports)
        words = f"{name}, {rings}" if rings else name
        yield MatrixStart(times, mended, times.time_ms(mended), words)


def found_layouts(request: FabricRequest, stop: Stop) -> Iterator[StaticLayout]:
    """Yield what TopologyFinder lays, in both variants, and the static fabric where it was run already.

    ``request.options.topology_variant`` comes first. A variant that cannot serve the graph is left
    out.
    """
    known = request.runs.get("static")
    if known is not None and known.execution.layout is not None:
        execution = known.execution
        assert execution.layout is not None
        yield StaticLayout(execution.graph, execution.layout, execution.makespan_ms)
    chosen = request.options.topology_variant
    for variant in sorted(VARIANTS, key=lambda one: one != chosen):
        try:
            result, moved = static_layout(
                request.graph, request.cluster, variant, request.settings.seed
            )
            wiring = wired(result.layout, Pairs.of(moved, request.cluster), request.cluster)
        except InputError:
            continue
        execution = shared_fairly(replace(request, graph=moved), wiring, stop)
        yield StaticLayout(moved, result.layout, execution.makespan_ms)
