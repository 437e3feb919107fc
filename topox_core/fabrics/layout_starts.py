"""Fixed circuits to begin a search with: TopologyFinder's, and those that a matrix of bytes asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from topox_core.errors import InputError
from topox_core.fabrics.fluid import Pairs
from topox_core.fabrics.layout_times import LayoutTimes
from topox_core.fabrics.links import shared_fairly, static_layout, wired
from topox_core.fabrics.run import FabricRequest
from topox_core.model.layout import Layout
from topox_core.model.transfer_graph import TransferGraph
from topox_core.runs.stopping import Stop
from topox_core.schedule.settings import FREE
from topox_core.text.choices import chosen_words
from topox_core.topology.finder import VARIANTS
from topox_core.topology.greedy import Circuits as Matrix
from topox_core.topology.greedy import (
    chordal_rings,
    greedy_circuits,
    minimax_circuits,
    repaired,
)
from topox_core.topology.mutation import on_ring_count

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
    if request.cluster.servers > MAX_SERVERS:
        raise InputError(
            f"must be at most {MAX_SERVERS:,} for circuits from a matrix or the task graph "
            f"(got {request.cluster.servers:,})",
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
        try:
            moved = on_ring_count(graph, rings)
        except InputError:  # too many transfers
            continue
        if moved is not graph:
            yield f"{rings} ring{'s' if rings > 1 else ''}", moved
    yield from ((chosen_words(other.lowering, FREE), other) for other in request.others)


def matrix_starts(times: LayoutTimes, rings: str, chordal: bool = False) -> Iterator[MatrixStart]:
    """Yield circuits for the bytes of a graph, repaired so that everybody reaches whom it talks to.

    ``chordal`` adds rings of several strides, which serve exchanges of everybody with everybody.
    """
    wanted, ports = times.bytes_between, times.cluster.ports_per_server
    pairs = times.pairs
    talking = list(zip(pairs.source.tolist(), pairs.destination.tolist(), strict=True))
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
